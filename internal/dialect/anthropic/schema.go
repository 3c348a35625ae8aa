package anthropic

import (
	"strings"

	"github.com/limen-gateway/limen/internal/jsonedit"
	"github.com/limen-gateway/limen/internal/llm"
)

// described are the keywords that the decoder which keeps to a schema refuses. They
// are told in the description instead.
var described = map[string]bool{
	"minimum": true, "maximum": true, "exclusiveMinimum": true, "exclusiveMaximum": true, "multipleOf": true,
	"minLength": true, "maxLength": true, "minItems": true, "maxItems": true, "uniqueItems": true,
	"minProperties": true, "maxProperties": true, "default": true,
}

// fitSchema is a schema as the model keeps to it. shut closes its objects,
// which a format for answers must have.
func (o *outgoing) fitSchema(schema llm.Raw, shut bool) llm.Raw {
	f := fitter{shut: shut}
	f.schema(schema)
	if !f.changed {
		return schema
	}
	o.notes.Degrade("schema_keywords")
	return f.Bytes()
}

// fitter writes a schema anew.
type fitter struct {
	jsonedit.Writer
	shut, changed bool
}

// schema writes one schema. What is none, as true and false are, stays.
func (f *fitter) schema(schema llm.Raw) {
	if schema.Kind() != jsonedit.KindObject {
		f.Raw(schema)
		return
	}
	var desc llm.Raw
	var moved []string
	object, closed, chooses := false, false, false
	for quoted, value := range jsonedit.Members(schema) {
		switch name, _ := jsonedit.Unquote(quoted); {
		case name == "description":
			desc = value
		case name == "properties", name == "type" && namesObject(value):
			object = true
		case name == "additionalProperties":
			closed = string(value) == "false"
		case name == "anyOf":
			chooses = true
		}
	}
	f.BeginObject()
	for quoted, value := range jsonedit.Members(schema) {
		name, _ := jsonedit.Unquote(quoted)
		switch {
		case name == "description":
		case name == "additionalProperties" && f.shut:
		case described[name] && !(name == "minItems" && (string(value) == "0" || string(value) == "1")):
			moved = append(moved, name+": "+string(jsonedit.Compact(nil, value))+".")
		case name == "oneOf" && !chooses:
			f.changed = true
			f.Name("anyOf")
			f.schemas(value)
		case name == "oneOf":
			f.changed = true
			f.Array("allOf")
			f.BeginObject()
			f.Name("anyOf")
			f.schemas(value)
			f.EndObject()
			f.EndArray()
		default:
			f.RawName(quoted)
			f.keyword(name, value)
		}
	}
	if len(moved) > 0 {
		f.changed = true
		f.Name("description")
		f.Raw(llm.Concat(" ", desc, llm.Quote(strings.Join(moved, " "))))
	} else {
		f.SetRaw("description", desc)
	}
	if object && f.shut {
		f.changed = f.changed || !closed
		f.SetBool("additionalProperties", false)
	}
	f.EndObject()
}

// namesObject reports whether a type is that of objects, alone or among others.
func namesObject(value llm.Raw) bool {
	if value.Kind() == jsonedit.KindString {
		return value.Text() == "object"
	}
	for one := range jsonedit.Elements(value) {
		if text(one) == "object" {
			return true
		}
	}
	return false
}

// keyword writes the value of a keyword, which may be made of schemas.
func (f *fitter) keyword(name string, value llm.Raw) {
	switch name {
	case "properties", "$defs", "definitions", "patternProperties", "dependentSchemas":
		if value.Kind() != jsonedit.KindObject {
			f.Raw(value)
			return
		}
		f.BeginObject()
		for quoted, schema := range jsonedit.Members(value) {
			f.RawName(quoted)
			f.schema(schema)
		}
		f.EndObject()
	case "anyOf", "allOf", "prefixItems":
		f.schemas(value)
	case "items", "not", "additionalProperties", "if", "then", "else", "contains":
		if value.Kind() == jsonedit.KindArray {
			f.schemas(value)
			return
		}
		f.schema(value)
	default:
		f.Raw(value)
	}
}

// schemas writes a list of schemas.
func (f *fitter) schemas(list llm.Raw) {
	if list.Kind() != jsonedit.KindArray {
		f.Raw(list)
		return
	}
	f.BeginArray()
	for schema := range jsonedit.Elements(list) {
		f.schema(schema)
	}
	f.EndArray()
}
