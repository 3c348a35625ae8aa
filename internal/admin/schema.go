package admin

import (
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/limen-gateway/limen/internal/budget"
	"github.com/limen-gateway/limen/internal/catalog"
	"github.com/limen-gateway/limen/internal/keys"
	"github.com/limen-gateway/limen/internal/limit"
	"github.com/limen-gateway/limen/internal/money"
	"github.com/limen-gateway/limen/internal/price"
	"github.com/limen-gateway/limen/internal/store"
)

// schema is the part of JSON Schema that the API needs.
type schema struct {
	Ref         string             `json:"$ref,omitempty"`
	AnyOf       []*schema          `json:"anyOf,omitempty"`
	Type        string             `json:"type,omitempty"`
	Description string             `json:"description,omitempty"`
	Format      string             `json:"format,omitempty"`
	Encoding    string             `json:"contentEncoding,omitempty"`
	Enum        []string           `json:"enum,omitempty"`
	Minimum     *int               `json:"minimum,omitempty"`
	Maximum     *int               `json:"maximum,omitempty"`
	Items       *schema            `json:"items,omitempty"`
	Properties  map[string]*schema `json:"properties,omitempty"`
	Required    []string           `json:"required,omitempty"`
	// Additional is false where no other members are taken, or the schema of
	// members with any name.
	Additional any `json:"additionalProperties,omitempty"`
}

const toSchemas = "#/components/schemas/"

// schemas are made of the types of bodies and answers, by the rules of
// encoding/json. Structs become components.
type schemas struct {
	components map[string]*schema
	types      map[string]reflect.Type // of the components
	errs       []error
}

func newSchemas() *schemas {
	return &schemas{components: map[string]*schema{}, types: map[string]reflect.Type{}}
}

// place is where a type stands: what bodies may have is stricter than what
// answers may.
type place int

const (
	inAnswer place = iota
	inBody
	inPartial // a body of which members stay when they are absent
)

// written are the types that write themselves.
var written = map[reflect.Type]schema{
	reflect.TypeFor[time.Time]():       {Type: "string", Format: "date-time"},
	reflect.TypeFor[json.RawMessage](): {},
	reflect.TypeFor[[]byte]():          {Type: "string", Encoding: "base64"},
	reflect.TypeFor[price.Rate]():      {Type: "number", Description: "Dollars per million tokens."},
	reflect.TypeFor[price.Fee]():       {Type: "number", Description: "Dollars for each."},
	reflect.TypeFor[Configuration]():   {Type: "object"},
	reflect.TypeFor[OpenAPI]():         {Type: "object"},
}

// enums are the values of types that have few.
var enums = map[reflect.Type][]string{
	reflect.TypeFor[keys.Role]():       texts(keys.Roles),
	reflect.TypeFor[budget.Period]():   {string(budget.Day), string(budget.Week), string(budget.Month), string(budget.Total)},
	reflect.TypeFor[store.Dimension](): texts(store.Dimensions),
}

// names are those of components that are not named as their types are.
var names = map[reflect.Type]string{
	reflect.TypeFor[money.Amount]():  "Amount",
	reflect.TypeFor[budget.Budget](): "NewBudget",
	reflect.TypeFor[keys.New]():      "NewKey",
	reflect.TypeFor[limit.Rates]():   "Limits",
	reflect.TypeFor[catalog.State](): "Provider",
	reflect.TypeFor[price.List]():    "Prices",
	reflect.TypeFor[price.Tier]():    "PriceTier",
}

func texts[T ~string](list []T) (out []string) {
	for _, text := range list {
		out = append(out, string(text))
	}
	return out
}

// fail notes that a type cannot be described.
func (s *schemas) fail(t reflect.Type, why string) *schema {
	s.errs = append(s.errs, fmt.Errorf("%v %s", t, why))
	return &schema{}
}

func (s *schemas) err() error { return errors.Join(s.errs...) }

// of is the schema of a type.
func (s *schemas) of(t reflect.Type, at place) *schema {
	if p, ok := reflect.Zero(t).Interface().(interface{ of() reflect.Type }); ok {
		return s.of(p.of(), inPartial)
	}
	if known, ok := written[t]; ok {
		return &known
	}
	switch t {
	case reflect.TypeFor[money.Amount]():
		return s.component(t, func() *schema {
			return &schema{Type: "number", Description: "Dollars, exact to as many places as are written."}
		})
	case reflect.TypeFor[budget.Budget]():
		return s.component(t, func() *schema {
			text := &schema{Type: "string", Description: "As on the command line, such as 5/month@Europe/Berlin soft."}
			return &schema{AnyOf: []*schema{s.object(t, at), text}}
		})
	}
	if writesItself(t) {
		return s.fail(t, "writes itself, and nobody says how")
	}
	switch t.Kind() {
	case reflect.Pointer:
		return s.of(t.Elem(), at)
	case reflect.String:
		return &schema{Type: "string", Enum: enums[t]}
	case reflect.Bool:
		return &schema{Type: "boolean"}
	case reflect.Int, reflect.Int64:
		return &schema{Type: "integer"}
	case reflect.Float64:
		return &schema{Type: "number"}
	case reflect.Slice:
		return &schema{Type: "array", Items: s.of(t.Elem(), at)}
	case reflect.Map:
		return &schema{Type: "object", Additional: s.of(t.Elem(), at)}
	case reflect.Struct:
		if t.Name() == "" {
			return s.object(t, at)
		}
		return s.component(t, func() *schema { return s.object(t, at) })
	}
	return s.fail(t, "has no schema")
}

// resolve is what a schema refers to.
func (s *schemas) resolve(of *schema) *schema {
	if name, ok := strings.CutPrefix(of.Ref, toSchemas); ok {
		return s.components[name]
	}
	return of
}

// writesItself reports whether encoding/json leaves a type to its own methods.
func writesItself(t reflect.Type) bool {
	for _, by := range []reflect.Type{
		reflect.TypeFor[json.Marshaler](), reflect.TypeFor[json.Unmarshaler](),
		reflect.TypeFor[encoding.TextMarshaler](), reflect.TypeFor[encoding.TextUnmarshaler](),
	} {
		if t.Implements(by) || reflect.PointerTo(t).Implements(by) {
			return t.Kind() != reflect.Pointer
		}
	}
	return false
}

// component is a reference to the schema of a type, which is made once.
func (s *schemas) component(t reflect.Type, make func() *schema) *schema {
	name := names[t]
	if name == "" {
		name = strings.ToUpper(t.Name()[:1]) + t.Name()[1:]
	}
	if known, ok := s.types[name]; ok && known != t {
		return s.fail(t, fmt.Sprintf("has the name of %v", known))
	}
	if s.types[name] == nil {
		s.types[name] = t
		s.components[name] = make()
	}
	return &schema{Ref: toSchemas + name}
}

// object is the schema of a struct, with the members of what it embeds. One that
// is embedded by a pointer may be absent whole.
func (s *schemas) object(t reflect.Type, at place) *schema {
	out := &schema{Type: "object", Properties: map[string]*schema{}}
	if at != inAnswer {
		out.Additional = false
	}
	s.members(out, t, at, false)
	slices.Sort(out.Required)
	return out
}

func (s *schemas) members(out *schema, t reflect.Type, at place, optional bool) {
	var embedded []reflect.StructField
	for i := range t.NumField() {
		f := t.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case f.Anonymous && name == "":
			embedded = append(embedded, f)
			continue
		case name == "-", out.Properties[name] != nil: // what embeds goes before what is embedded
			continue
		case name == "":
			s.fail(t, "has the member "+f.Name+" without a name in JSON")
			continue
		}
		m := s.of(f.Type, at)
		if values := strings.Fields(f.Tag.Get("enum")); len(values) > 0 {
			m = withEnum(m, values)
		}
		isOptional := optional || strings.HasPrefix(options, "omit") || at == inPartial || at == inBody && f.Type.Kind() == reflect.Pointer
		if mayBeNull(f.Type, at, isOptional) {
			m = &schema{AnyOf: []*schema{m, {Type: "null"}}}
		}
		out.Properties[name] = m
		if !isOptional {
			out.Required = append(out.Required, name)
		}
	}
	for _, f := range embedded {
		inner := f.Type
		if inner.Kind() == reflect.Pointer {
			inner = inner.Elem()
		}
		s.members(out, inner, at, optional || inner != f.Type)
	}
}

// withEnum is the schema of a text, or of texts, of which there are few.
func withEnum(m *schema, values []string) *schema {
	if m.Type == "array" {
		m.Items.Enum = values
		return m
	}
	m.Enum = values
	return m
}

// mayBeNull reports whether a member may be null: in an answer, what is not
// known; in a change, what is taken away.
func mayBeNull(t reflect.Type, at place, optional bool) bool {
	switch at {
	case inAnswer:
		return t.Kind() == reflect.Pointer && !optional
	case inPartial:
		return t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice
	}
	return false
}
