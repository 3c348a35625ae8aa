package config

import (
	"fmt"
	"iter"
	"reflect"
	"regexp"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"
)

// maxProblems is how many problems are spelled out; the rest is counted.
const maxProblems = 100

// decoder walks a parsed document and the configuration's types side by side.
type decoder struct {
	*source
	resolver
	stored   bool // see Options
	problems []Problem
	more     int

	at       map[any]*yaml.Node  // where a value of the configuration came from, by pointer to the value
	flawed   map[any]bool        // values with problems in them, likewise
	expanded map[*yaml.Node]bool // values that came, at least in part, from references: never shown
}

// report adds a problem. The hint is asked for only if the problem will be spelled out.
func (d *decoder) report(n *yaml.Node, column int, message string, hint func() string) {
	if len(d.problems) == maxProblems {
		d.more++
		return
	}
	text := ""
	if hint != nil {
		text = hint()
	}
	d.problems = append(d.problems, d.problem(n.Line, column, message, text))
}

func (d *decoder) count() int { return len(d.problems) + d.more }

func (d *decoder) complain(n *yaml.Node, message string) { d.report(n, n.Column, message, nil) }

// decode reads the value at n into v, which is addressable and holds its default. f is the field that v is in,
// or is an element of.
func (d *decoder) decode(n *yaml.Node, v reflect.Value, f field) {
	place, before := v.Addr().Interface(), d.count()
	d.at[place] = n
	defer func() { d.flawed[place] = d.count() > before }()
	switch {
	case n.Kind == yaml.AliasNode:
		d.complain(n, "aliases are not supported: write the value out")
		return
	case n.Style&yaml.TaggedStyle != 0:
		d.complain(n, "tags are not supported: write the value alone")
		return
	}
	switch kindOf(v.Type()) {
	case leaf:
		d.leaf(n, v, f)
	case pointer:
		v.Set(reflect.New(v.Type().Elem()))
		setDefaults(v.Elem())
		d.decode(n, v.Elem(), f)
	case object:
		d.object(n, v, f)
	case table:
		d.table(n, v, f)
	case dict:
		d.dict(n, v, f)
	case series:
		d.series(n, v, f)
	case wrapper:
		whole, _ := valueOf(v.Type())
		d.decode(n, whole.of(v), whole)
	case list:
		d.list(n, v, f)
	}
}

// series reads one element, or several.
func (d *decoder) series(n *yaml.Node, v reflect.Value, f field) {
	if n.Kind == yaml.SequenceNode || absent(n) {
		d.list(n, v, f)
		return
	}
	v.Set(reflect.MakeSlice(v.Type(), 1, 1))
	setDefaults(v.Index(0))
	d.decode(n, v.Index(0), f)
}

func (d *decoder) object(n *yaml.Node, v reflect.Value, f field) {
	fields := fieldsOf(v.Type())
	if short, ok := shortOf(fields); ok && n.Kind == yaml.ScalarNode {
		d.decode(n, short.of(v), short)
		return
	}
	for key, value := range d.pairs(n) {
		known := fieldNamed(fields, key.Value)
		if known == nil {
			d.unknown(key, fields)
			continue
		}
		d.show(key)
		if d.stored && known.early != "" {
			d.report(key, key.Column, known.name+" cannot be set here: it must be known before the store is open", func() string { return "use " + known.early })
		}
		d.decode(value, known.of(v), *known)
	}
}

func fieldNamed(fields []field, name string) *field {
	for i := range fields {
		if fields[i].name == name {
			return &fields[i]
		}
	}
	return nil
}

// plainName tells the name of a field from a value that slipped into its place, as in {api_key:value}.
var plainName = regexp.MustCompile(`^[A-Za-z0-9_.-]{1,40}$`)

func (d *decoder) unknown(key *yaml.Node, fields []field) {
	if !plainName.MatchString(key.Value) {
		d.report(key, key.Column, "unknown field", func() string { return colonHint(key.Value) })
		return
	}
	d.show(key)
	d.report(key, key.Column, fmt.Sprintf("unknown field %q", key.Value), func() string {
		return didYouMean(nearest(key.Value, names(fields)))
	})
}

// colonHint helps with name:value, which YAML takes for one word.
func colonHint(text string) string {
	name, rest, found := strings.Cut(text, ":")
	if !found || strings.HasPrefix(rest, "//") || !plainName.MatchString(name) {
		return ""
	}
	return "a space is needed after the colon"
}

func (d *decoder) table(n *yaml.Node, v reflect.Value, f field) {
	if absent(n) {
		return
	}
	name, _ := keyOf(v.Type().Elem())
	// The slice is made at its full length first: pointers into it are remembered as places.
	v.Set(reflect.MakeSlice(v.Type(), len(n.Content)/2, len(n.Content)/2))
	count := 0
	for key, value := range d.pairs(n) {
		element := v.Index(count)
		count++
		setDefaults(element)
		d.key(key, name.of(element), name)
		d.decode(value, element, f)
		d.at[element.Addr().Interface()] = key
	}
	v.SetLen(count)
}

func (d *decoder) dict(n *yaml.Node, v reflect.Value, f field) {
	if absent(n) {
		return
	}
	v.Set(reflect.MakeMap(v.Type()))
	for key, value := range d.pairs(n) {
		name := reflect.New(v.Type().Key()).Elem()
		d.key(key, name, field{check: f.keys})
		element := newElement(v.Type().Elem())
		of := f
		of.harmless = f.keys == "header" && !credentialHeader.MatchString(key.Value)
		d.decode(value, element, of)
		v.SetMapIndex(name, element)
	}
}

func (d *decoder) list(n *yaml.Node, v reflect.Value, f field) {
	if absent(n) {
		return
	}
	if n.Kind != yaml.SequenceNode {
		d.complain(n, "expected a list such as [a, b], got "+got(n))
		return
	}
	v.Set(reflect.MakeSlice(v.Type(), len(n.Content), len(n.Content)))
	for i, item := range n.Content {
		setDefaults(v.Index(i))
		d.decode(item, v.Index(i), f)
	}
}

// key reads a name that the document is free to choose.
func (d *decoder) key(n *yaml.Node, v reflect.Value, f field) {
	if err := set(v, f, n.Value); err != nil {
		d.complain(n, err.Error())
		return
	}
	d.show(n)
}

// pairs yields what a mapping says, each name once.
func (d *decoder) pairs(n *yaml.Node) iter.Seq2[*yaml.Node, *yaml.Node] {
	return func(yield func(key, value *yaml.Node) bool) {
		if absent(n) {
			return
		}
		if n.Kind != yaml.MappingNode {
			d.report(n, n.Column, "expected a mapping such as name: value, got "+got(n), func() string { return colonHint(n.Value) })
			return
		}
		first := make(map[string]*yaml.Node, len(n.Content)/2)
		for i := 0; i < len(n.Content); i += 2 {
			key, value := n.Content[i], n.Content[i+1]
			switch earlier := first[key.Value]; {
			case key.Kind != yaml.ScalarNode || key.Style&yaml.TaggedStyle != 0:
				d.complain(key, "expected a name")
			case key.Tag == "!!merge":
				d.complain(key, "merge keys are not supported: write the fields out")
			case strings.Contains(key.Value, "${"):
				d.complain(key, "a name cannot be a reference")
			case earlier != nil:
				if d.shown[earlier] {
					d.show(key)
				}
				d.complain(key, fmt.Sprintf("duplicate: the same name stands in line %d", earlier.Line))
			default:
				first[key.Value] = key
				if !yield(key, value) {
					return
				}
			}
		}
	}
}

func (d *decoder) leaf(n *yaml.Node, v reflect.Value, f field) {
	if n.Kind != yaml.ScalarNode || n.Tag == "!!null" {
		d.complain(n, fmt.Sprintf("expected %s, got %s", ruleOf(v.Type(), f).want, got(n)))
		return
	}
	if showable(n, v, f) {
		d.show(n)
	}
	if d.stored && isSecret(v.Type()) && !f.harmless && revealing(n.Value) {
		d.report(n, n.Column, "a secret cannot stand here in clear", func() string {
			return "keep it with 'limen config secret set NAME', and write ${secret:NAME}"
		})
		return
	}
	if problem := misplaced(n.Value, isSecret(v.Type())); d.stored && problem != nil {
		d.report(n, d.columnOf(n, problem.ref), problem.message, func() string { return problem.hint })
		return
	}
	text, expanded, problem := d.expand(n.Value)
	d.expanded[n] = expanded
	if problem != nil {
		d.report(n, d.columnOf(n, problem.ref), problem.message, func() string { return problem.hint })
		return
	}
	if !printable(text) {
		d.complain(n, "the value has control characters, or is not UTF-8")
	} else if err := set(v, f, text); err != nil {
		d.report(n, n.Column, err.Error()+d.butGot(n), func() string {
			if expanded {
				return ""
			}
			return didYouMean(nearest(text, f.enum))
		})
	}
}

// credentialHeader fits the names of headers that carry credentials, as far as names tell.
var credentialHeader = regexp.MustCompile(`(?i)auth|key|token|secret|pass|cookie|cred|sign|session`)

// showable tells whether a value may be shown as it stands in the document. A URL may hold a password or a key;
// of secrets, what only says where they are.
func showable(n *yaml.Node, v reflect.Value, f field) bool {
	if isSecret(v.Type()) {
		return pureReference(n.Value) || strings.Contains(n.Value, "${") && !strings.Contains(n.Value, ":-") && !revealing(n.Value)
	}
	isURL := strings.HasSuffix(f.check, "url") || f.check == "origin"
	return !isURL || !strings.ContainsAny(n.Value, "@?")
}

// butGot repeats a value as it stands in the document, if it may be shown.
func (d *decoder) butGot(n *yaml.Node) string {
	switch {
	case d.hides(n):
		return ""
	case d.expanded[n]:
		return ", got the value of " + quote(n.Value)
	}
	return ", got " + quote(n.Value)
}

func quote(text string) string {
	if runes := []rune(text); len(runes) > 60 {
		text = string(runes[:60]) + "…"
	}
	return strconv.Quote(text)
}

// got says what kind of thing stands where another was expected.
func got(n *yaml.Node) string {
	switch {
	case n.Kind == yaml.MappingNode:
		return "a mapping"
	case n.Kind == yaml.SequenceNode:
		return "a list"
	case n.Tag == "!!null":
		return "nothing"
	}
	return "a single value"
}

// absent reports a value that is not there, as after "providers:" when all below it is commented out.
func absent(n *yaml.Node) bool {
	return n.Kind == yaml.ScalarNode && n.Tag == "!!null" && n.Value == ""
}
