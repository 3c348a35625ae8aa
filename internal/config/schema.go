package config

import (
	"bytes"
	"encoding/json"
	"reflect"
)

// SchemaURL is where the schema of the current release is published.
const SchemaURL = "https://raw.githubusercontent.com/limen-gateway/limen/main/docs/limen.schema.json"

// schema is the part of JSON Schema (draft 2020-12) that the document needs.
type schema struct {
	Dialect     string     `json:"$schema,omitempty"`
	ID          string     `json:"$id,omitempty"`
	Title       string     `json:"title,omitempty"`
	Ref         string     `json:"$ref,omitempty"`
	Description string     `json:"description,omitempty"`
	AnyOf       []*schema  `json:"anyOf,omitempty"`
	Type        types      `json:"type,omitempty"`
	Enum        []string   `json:"enum,omitempty"`
	Pattern     string     `json:"pattern,omitempty"`
	Minimum     *int64     `json:"minimum,omitempty"`
	Items       *schema    `json:"items,omitempty"`
	Names       *schema    `json:"propertyNames,omitempty"`
	Properties  properties `json:"properties,omitempty"`
	Additional  any        `json:"additionalProperties,omitempty"` // false or *schema
	Required    []string   `json:"required,omitempty"`
	Default     any        `json:"default,omitempty"` // string, bool or number
	Defs        properties `json:"$defs,omitempty"`
}

// types is one type, written alone, or several.
type types []string

func (t types) MarshalJSON() ([]byte, error) {
	if len(t) == 1 {
		return json.Marshal(t[0])
	}
	return json.Marshal([]string(t))
}

// properties keep their order.
type properties []property

type property struct {
	name   string
	schema *schema
}

func (p properties) MarshalJSON() ([]byte, error) {
	var out bytes.Buffer
	for i, property := range p {
		out.WriteByte("{,"[min(i, 1)])
		name, err := json.Marshal(property.name)
		if err != nil {
			return nil, err
		}
		value, err := json.Marshal(property.schema)
		if err != nil {
			return nil, err
		}
		out.Write(name)
		out.WriteByte(':')
		out.Write(value)
	}
	out.WriteByte('}')
	return out.Bytes(), nil
}

// Schema is the JSON Schema of the document, for editors and for checking without Limen.
func Schema() []byte {
	root := schemaOf(reflect.ValueOf(Default()).Elem(), field{doc: "Configuration of Limen. Every value may hold references such as ${NAME}."})
	root.Dialect, root.ID, root.Title = "https://json-schema.org/draft/2020-12/schema", SchemaURL, "limen.yaml"
	root.Defs = properties{{"reference", &schema{
		Description: "A value from the environment or a file.", Type: types{"string"}, Pattern: `\$\{.+\}`,
	}}}
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(root); err != nil {
		panic(err) // made of strings, numbers and booleans only
	}
	return out.Bytes()
}

// schemaOf describes the field f, whose default is v.
func schemaOf(v reflect.Value, f field) *schema {
	var s *schema
	switch t := v.Type(); kindOf(t) {
	case pointer:
		s = schemaOf(newElement(t.Elem()), f)
		s.Default = nil
	case object:
		s = objectSchema(v)
	case table:
		name, _ := keyOf(t.Elem())
		s = namedSchema(schemaOf(newElement(t.Elem()), field{}), name.check)
	case dict:
		s = namedSchema(elementSchema(t, f), f.keys)
	case series:
		one := elementSchema(t, f)
		s = &schema{AnyOf: []*schema{one, {Type: types{"array", "null"}, Items: one}}}
	case wrapper:
		whole, _ := valueOf(t)
		s = schemaOf(whole.of(v), whole)
	case list:
		s = &schema{Type: types{"array", "null"}, Items: elementSchema(t, f)}
	default:
		s = leafSchema(v, f)
	}
	s.Description = f.doc
	return s
}

// elementSchema is for what a field's own words are not about.
func elementSchema(t reflect.Type, f field) *schema {
	f.doc = ""
	s := schemaOf(newElement(t.Elem()), f)
	s.Default = nil
	return s
}

func namedSchema(element *schema, rule string) *schema {
	s := &schema{Type: types{"object", "null"}, Additional: element}
	if pattern := ruleNamed(rule).pattern; pattern != "" {
		s.Names = &schema{Pattern: pattern}
	}
	return s
}

func objectSchema(v reflect.Value) *schema {
	fields := fieldsOf(v.Type())
	s := &schema{Type: types{"object", "null"}, Additional: false}
	for _, f := range fields {
		s.Properties = append(s.Properties, property{f.name, schemaOf(f.of(v), f)})
	}
	if short, ok := shortOf(fields); ok {
		s.Type = types{"object"}
		if short.need {
			s.Required = []string{short.name}
		}
		return &schema{AnyOf: []*schema{schemaOf(short.of(v), short), s}}
	}
	return s
}

func leafSchema(v reflect.Value, f field) *schema {
	t := v.Type()
	s := &schema{Type: types{"string"}, Enum: f.enum, Pattern: ruleOf(t, f).pattern}
	switch {
	case t.Kind() == reflect.Bool:
		s.Type = types{"boolean"}
	case t.Kind() == reflect.Int:
		s.Type, s.Minimum = types{"integer"}, &f.min
	case t == reflect.TypeFor[ByteSize](), t == reflect.TypeFor[Percent](), t == reflect.TypeFor[Factor]():
		s.Type, s.Minimum = types{"string", "integer"}, &f.min
	case t == reflect.TypeFor[Rate](), t == reflect.TypeFor[Fee](), t == reflect.TypeFor[Markup]():
		s.Type, s.Minimum = types{"string", "number"}, new(int64)
	}
	if t.Kind() != reflect.String || s.Pattern != "" || len(s.Enum) > 0 {
		s = &schema{AnyOf: []*schema{s, {Ref: "#/$defs/reference"}}}
	}
	s.Default = defaultOf(v)
	return s
}

// defaultOf is the value as the document would have it; nil when nothing is meant by absence.
func defaultOf(v reflect.Value) any {
	n := render(v)
	switch {
	case n == nil || v.IsZero() && !v.CanInt() && v.Kind() != reflect.Bool:
		return nil
	case v.Kind() == reflect.Bool:
		return v.Bool()
	case v.Kind() == reflect.Int:
		return v.Int()
	}
	return n.Value
}
