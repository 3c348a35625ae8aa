package openaichat

import (
	"bytes"

	"github.com/limen-gateway/limen/internal/jsonedit"
	"github.com/limen-gateway/limen/internal/llm"
)

// schema is a schema as the server takes it.
func (e *requestEncoder) schema(s llm.Raw) llm.Raw {
	if e.chat.TypedAnyOf {
		return typed(s)
	}
	return s
}

// typed is a schema in which the types of alternatives stand with each of
// them, where a server refuses one beside anyOf and an alternative without.
func typed(schema llm.Raw) llm.Raw {
	if !bytes.Contains(schema, []byte(`"anyOf"`)) || schema.Kind() != jsonedit.KindObject {
		return schema
	}
	_, union := jsonedit.Get(schema, "anyOf")
	shared, _ := jsonedit.Get(schema, "type")
	var w jsonedit.Writer
	w.BeginObject()
	for name, value := range jsonedit.Members(schema) {
		switch memberName(name) {
		case "type":
			if union {
				continue
			}
		case "anyOf":
			value = alternatives(value, shared)
		case "properties", "$defs", "definitions":
			value = typedAll(value)
		case "items", "additionalProperties":
			value = typed(value)
		}
		w.RawName(name)
		w.Raw(value)
	}
	w.EndObject()
	return w.Bytes()
}

// typedAll is an object whose members are schemas.
func typedAll(schemas llm.Raw) llm.Raw {
	if schemas.Kind() != jsonedit.KindObject {
		return schemas
	}
	var w jsonedit.Writer
	w.BeginObject()
	for name, value := range jsonedit.Members(schemas) {
		w.RawName(name)
		w.Raw(typed(value))
	}
	w.EndObject()
	return w.Bytes()
}

// alternatives are those of an anyOf, each with a type.
func alternatives(list, shared llm.Raw) llm.Raw {
	if list.Kind() != jsonedit.KindArray {
		return list
	}
	var w jsonedit.Writer
	w.BeginArray()
	for value := range jsonedit.Elements(list) {
		w.Raw(withType(typed(value), shared))
	}
	w.EndArray()
	return w.Bytes()
}

// withType adds the type to an alternative that says none: the one that all
// share, or what its other members tell.
func withType(schema, shared llm.Raw) llm.Raw {
	kind := shared
	for name, value := range jsonedit.Members(schema) {
		switch memberName(name) {
		case "type", "$ref", "anyOf":
			return schema
		case "properties":
			kind = orElse(kind, `"object"`)
		case "items":
			kind = orElse(kind, `"array"`)
		case "const":
			kind = orElse(kind, typeOfValue(value))
		case "enum":
			for first := range jsonedit.Elements(value) {
				kind = orElse(kind, typeOfValue(first))
				break
			}
		}
	}
	if kind == nil || schema.Kind() != jsonedit.KindObject {
		return schema
	}
	var w jsonedit.Writer
	w.BeginObject()
	w.SetRaw("type", kind)
	for name, value := range jsonedit.Members(schema) {
		w.RawName(name)
		w.Raw(value)
	}
	w.EndObject()
	return w.Bytes()
}

func orElse(kind llm.Raw, otherwise string) llm.Raw {
	if kind == nil && otherwise != "" {
		return llm.Raw(otherwise)
	}
	return kind
}

// typeOfValue is the schema's word for the type of a value.
func typeOfValue(value llm.Raw) string {
	switch kind := value.Kind(); kind {
	case jsonedit.KindString, jsonedit.KindNumber, jsonedit.KindObject, jsonedit.KindArray, jsonedit.KindNull:
		return `"` + kind.String() + `"`
	case jsonedit.KindInvalid:
		return ""
	}
	return `"boolean"`
}
