package sdk

import (
	"bytes"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/aws/smithy-go"
	"github.com/aws/smithy-go/traits"
)

// A misfit is where JSON does not fit a vendor's type.
type misfit struct {
	path, reason string
	kind         bool // the value is of another kind than the type; in a union another type may fit
}

func (m *misfit) Error() string { return strings.TrimPrefix(m.path, ".") + ": " + m.reason }

func misfitf(at, format string, args ...any) *misfit {
	return &misfit{path: at, reason: fmt.Sprintf(format, args...)}
}

// checker holds JSON against the types of the vendors' SDKs. The SDKs themselves
// would take more: they ignore members that they do not know, and fill those that
// are missing.
type checker struct {
	answer bool // any member may be null or missing
	stream bool // the SDK adds the member "stream" to its type
}

// check says where raw is not what t takes, or nil.
func (c checker) check(raw json.RawMessage, t reflect.Type) error {
	if m := c.value("", raw, t); m != nil {
		return m
	}
	return nil
}

func (c checker) value(at string, raw json.RawMessage, t reflect.Type) *misfit {
	if t.Kind() == reflect.Pointer {
		return c.value(at, raw, t.Elem())
	}
	opt := strings.HasPrefix(t.Name(), "Opt[")
	switch {
	case isUnion(t):
		return c.union(at, raw, t)
	case t.Kind() == reflect.Interface, t == reflect.TypeFor[json.RawMessage]():
		return nil
	case string(raw) == "null" && (c.answer || opt):
		return nil
	case string(raw) == "null":
		return misfitf(at, "is null")
	case opt:
		return c.value(at, raw, t.Field(0).Type)
	case t.Kind() == reflect.Struct:
		return c.object(at, raw, t)
	case t.Kind() == reflect.Map:
		return c.entries(at, raw, func(name string, v json.RawMessage) *misfit { return c.value(at+"."+name, v, t.Elem()) })
	case t.Kind() == reflect.Slice && t.Elem().Kind() != reflect.Uint8:
		return c.list(at, raw, t.Elem())
	}
	v := reflect.New(t)
	if err := json.Unmarshal(raw, v.Interface()); err != nil {
		m := misfitf(at, "%s is no %s", short(raw), t)
		m.kind = true
		return m
	}
	if t.Kind() == reflect.String {
		return inEnum(at, v.Elem().String(), t)
	}
	return nil
}

// list takes a text for a list of one text where the vendors' documentation does:
// their types have the long form only.
func (c checker) list(at string, raw json.RawMessage, item reflect.Type) *misfit {
	if raw[0] == '"' && item.Kind() == reflect.Struct {
		return c.value(at, fmt.Appendf(nil, `{"type":"text","text":%s}`, raw), item)
	}
	var items []json.RawMessage
	if json.Unmarshal(raw, &items) != nil {
		m := misfitf(at, "%s is no list", short(raw))
		m.kind = true
		return m
	}
	for i, v := range items {
		if m := c.value(fmt.Sprintf("%s[%d]", at, i), v, item); m != nil {
			return m
		}
	}
	return nil
}

// isUnion: the variants of a union of parameters are inlined.
func isUnion(t reflect.Type) bool {
	return t.Kind() == reflect.Struct && t.NumField() > 0 && strings.Contains(t.Field(0).Tag.Get("json"), ",inline")
}

// union wants one variant that fits. What is told is what the nearest misses: one
// of the value's own type, then the one that fits furthest.
func (c checker) union(at string, raw json.RawMessage, t reflect.Type) *misfit {
	nearest := misfitf(at, "%s fits no variant of %s", short(raw), t)
	rank := 0
	for f := range fields(t) {
		m := c.value(at, raw, f.Type)
		if m == nil {
			return nil
		}
		n := len(m.path)
		if typed(f.Type) {
			n += 1000
		}
		if !m.kind && n > rank {
			nearest, rank = m, n
		}
	}
	return nearest
}

// typed says whether a variant is told by the one value that its member type has.
func typed(t reflect.Type) bool {
	if t.Kind() != reflect.Pointer || t.Elem().Kind() != reflect.Struct {
		return false
	}
	f, ok := t.Elem().FieldByName("Type")
	return ok && f.Tag.Get("default") != ""
}

func fields(t reflect.Type) func(func(reflect.StructField) bool) {
	return func(yield func(reflect.StructField) bool) {
		for i := range t.NumField() {
			if f := t.Field(i); f.IsExported() && !yield(f) {
				return
			}
		}
	}
}

func (c checker) object(at string, raw json.RawMessage, t reflect.Type) *misfit {
	known := map[string]reflect.StructField{}
	open := false // any other member is an extra one
	for f := range fields(t) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		open = open || f.Tag.Get("api") == "extrafields"
		if name != "" && name != "-" {
			known[name] = f
		}
	}
	if c.stream && at == "" {
		known["stream"] = reflect.StructField{Type: reflect.TypeFor[bool]()}
	}
	given := map[string]json.RawMessage{}
	if m := c.entries(at, raw, func(name string, v json.RawMessage) *misfit { given[name] = v; return nil }); m != nil {
		return m
	}
	names := slices.Sorted(maps.Keys(known))
	for _, name := range names { // first those that tell which variant of a union it is
		if constant := known[name].Tag.Get("default"); constant != "" && string(given[name]) != strconv.Quote(constant) {
			m := misfitf(at+"."+name, "%s, not %q", short(given[name]), constant)
			m.kind = true
			return m
		}
	}
	for _, name := range names {
		if f := known[name]; !c.answer && f.Tag.Get("api") == "required" && given[name] == nil && !defaulted[name] {
			return misfitf(at+"."+name, "is missing")
		}
	}
	for _, name := range slices.Sorted(maps.Keys(given)) {
		f, ok := known[name]
		switch {
		case !ok && !open:
			return misfitf(at+"."+name, "is unknown to %s", t)
		case !ok, f.Tag.Get("default") != "":
			continue
		}
		if m := c.value(at+"."+name, given[name], f.Type); m != nil {
			return m
		}
	}
	return nil
}

// entries calls each with the members of an object, of which none may come twice.
func (c checker) entries(at string, raw json.RawMessage, each func(string, json.RawMessage) *misfit) *misfit {
	if raw[0] != '{' {
		m := misfitf(at, "%s is no object", short(raw))
		m.kind = true
		return m
	}
	seen := map[string]bool{}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.Token()
	for dec.More() {
		token, _ := dec.Token()
		name := token.(string)
		if seen[name] {
			return misfitf(at+"."+name, "comes twice")
		}
		seen[name] = true
		var v json.RawMessage
		if err := dec.Decode(&v); err != nil {
			return misfitf(at+"."+name, "%v", err)
		}
		if m := each(name, v); m != nil {
			return m
		}
	}
	return nil
}

func short(raw json.RawMessage) string {
	if len(raw) > 60 {
		return string(raw[:60]) + "…"
	}
	return string(raw)
}

// enums are the constants of named string types, by package and type. The types
// themselves do not say which values they have; their source does.
var enums = map[string]map[string][]string{}

func inEnum(at, value string, t reflect.Type) *misfit {
	if t.PkgPath() == "" || strings.HasSuffix(t.Name(), "Model") {
		return nil // of models there are more than the SDKs know
	}
	of, ok := enums[t.PkgPath()]
	if !ok {
		of = constants(t.PkgPath())
		enums[t.PkgPath()] = of
	}
	if values := of[t.Name()]; len(values) > 0 && !slices.Contains(values, value) {
		return misfitf(at, "%q is none of %s: %q", value, t, values)
	}
	return nil
}

func constants(pkg string) map[string][]string {
	dir, err := exec.Command("go", "list", "-f", "{{.Dir}}", pkg).Output()
	if err != nil {
		panic(err)
	}
	files, err := filepath.Glob(filepath.Join(strings.TrimSpace(string(dir)), "*.go"))
	if err != nil {
		panic(err)
	}
	found := map[string][]string{}
	for _, name := range files {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			panic(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			s, ok := n.(*ast.ValueSpec)
			if !ok || len(s.Values) != 1 {
				return true
			}
			typ, named := s.Type.(*ast.Ident)
			literal, ok := s.Values[0].(*ast.BasicLit)
			if named && ok && literal.Kind == token.STRING {
				value, _ := strconv.Unquote(literal.Value)
				found[typ.Name] = append(found[typ.Name], value)
			}
			return true
		})
	}
	return found
}

// shape says where raw does not fit a shape of Amazon's model of Bedrock, of which
// the SDK's types and serializers are made, or nil.
func (c checker) shape(at string, raw json.RawMessage, s *smithy.Schema) *misfit {
	switch s.Type() {
	case smithy.ShapeTypeDocument:
		return nil
	case smithy.ShapeTypeStructure, smithy.ShapeTypeUnion:
		n := 0
		m := c.entries(at, raw, func(name string, v json.RawMessage) *misfit {
			n++
			member := s.Member(name)
			if _, inPath := smithy.SchemaTrait[*traits.HTTPLabel](member); member == nil || inPath {
				return misfitf(at+"."+name, "is unknown to %s", shapeName(s))
			}
			return c.shape(at+"."+name, v, member)
		})
		if m == nil && s.Type() == smithy.ShapeTypeUnion && n != 1 {
			return misfitf(at, "has %d members of the union %s", n, shapeName(s))
		}
		return m
	case smithy.ShapeTypeMap:
		return c.entries(at, raw, func(name string, v json.RawMessage) *misfit { return c.shape(at+"."+name, v, s.MapValue()) })
	case smithy.ShapeTypeList:
		var items []json.RawMessage
		if json.Unmarshal(raw, &items) != nil {
			return misfitf(at, "%s is no list", short(raw))
		}
		for i, v := range items {
			if m := c.shape(fmt.Sprintf("%s[%d]", at, i), v, s.ListMember()); m != nil {
				return m
			}
		}
		return nil
	}
	return c.scalar(at, raw, s)
}

func (c checker) scalar(at string, raw json.RawMessage, s *smithy.Schema) *misfit {
	kind, ok := map[smithy.ShapeType]reflect.Type{
		smithy.ShapeTypeBlob: reflect.TypeFor[[]byte](), smithy.ShapeTypeBoolean: reflect.TypeFor[bool](),
		smithy.ShapeTypeString: reflect.TypeFor[string](), smithy.ShapeTypeEnum: reflect.TypeFor[string](),
		smithy.ShapeTypeInteger: reflect.TypeFor[int32](), smithy.ShapeTypeLong: reflect.TypeFor[int64](),
		smithy.ShapeTypeFloat: reflect.TypeFor[float32](), smithy.ShapeTypeDouble: reflect.TypeFor[float64](),
	}[s.Type()]
	if !ok {
		return misfitf(at, "is of a shape that this test does not know: %d", s.Type())
	}
	if m := c.value(at, raw, kind); m != nil || s.Type() != smithy.ShapeTypeEnum {
		return m
	}
	var value string
	if err := json.Unmarshal(raw, &value); err != nil {
		return misfitf(at, "%v", err)
	}
	for name := range s.Members() { // of an enum they are the names of values
		if strings.EqualFold(name, strings.ReplaceAll(value, "-", "_")) {
			return nil
		}
	}
	return misfitf(at, "%q is no %s", value, shapeName(s))
}

// shapeName is the name of a member's shape, or of the shape itself.
func shapeName(s *smithy.Schema) string {
	if target := s.TargetID().Name; target != "" {
		return target
	}
	return s.ID().Name
}

// defaulted are members that a type requires and its document gives a default.
var defaulted = map[string]bool{"detail": true}
