package config

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"
)

// RedactedYAML is the effective configuration, defaults included, with every secret replaced. What is empty is left
// out. Apart from the secrets it reads back as the same configuration.
func (c *Config) RedactedYAML() ([]byte, error) {
	return yaml.Dump(render(reflect.ValueOf(c).Elem()), yaml.WithIndent(2), yaml.WithUnicode(true))
}

// RedactedJSON is RedactedYAML as JSON, its members in the same order.
func (c *Config) RedactedJSON() ([]byte, error) {
	var out, indented bytes.Buffer
	writeJSON(&out, render(reflect.ValueOf(c).Elem()))
	if err := json.Indent(&indented, out.Bytes(), "", "  "); err != nil {
		return nil, err
	}
	indented.WriteByte('\n')
	return indented.Bytes(), nil
}

// YAML is RedactedJSON as RedactedYAML.
func YAML(text []byte) ([]byte, error) {
	n, err := nodeOfJSON(text)
	if err != nil || n == nil {
		return nil, err
	}
	return yaml.Dump(n, yaml.WithIndent(2), yaml.WithUnicode(true))
}

// render writes a value as the document would have it, or gives nil for what is empty.
func render(v reflect.Value) *yaml.Node {
	switch kindOf(v.Type()) {
	case pointer:
		if v.IsNil() {
			return nil
		}
		if n := render(v.Elem()); n != nil {
			return n
		}
		return &yaml.Node{Kind: yaml.MappingNode}
	case object:
		return renderObject(v)
	case table:
		return renderTable(v)
	case dict:
		return renderDict(v)
	case series:
		if v.Len() == 1 {
			return renderElement(v.Index(0))
		}
		return renderList(v)
	case wrapper:
		whole, _ := valueOf(v.Type())
		return render(whole.of(v))
	case list:
		return renderList(v)
	}
	return renderLeaf(v)
}

func renderObject(v reflect.Value) *yaml.Node {
	fields := fieldsOf(v.Type())
	if short, ok := shortOf(fields); ok && restIsDefault(v, fields) {
		return render(short.of(v))
	}
	n := &yaml.Node{Kind: yaml.MappingNode}
	for _, f := range fields {
		if value := render(f.of(v)); value != nil {
			n.Content = append(n.Content, textNode(f.name), value)
		}
	}
	return unlessEmpty(n)
}

// restIsDefault reports whether the short form says everything.
func restIsDefault(v reflect.Value, fields []field) bool {
	plain := newElement(v.Type())
	for _, f := range fields {
		if !f.short && !reflect.DeepEqual(f.of(v).Interface(), f.of(plain).Interface()) {
			return false
		}
	}
	return true
}

func renderTable(v reflect.Value) *yaml.Node {
	name, _ := keyOf(v.Type().Elem())
	n := &yaml.Node{Kind: yaml.MappingNode}
	for i := range v.Len() {
		value := render(v.Index(i))
		if value == nil {
			value = &yaml.Node{Kind: yaml.MappingNode}
		}
		n.Content = append(n.Content, textNode(name.of(v.Index(i)).String()), value)
	}
	return unlessEmpty(n)
}

func renderDict(v reflect.Value) *yaml.Node {
	keys := v.MapKeys()
	slices.SortFunc(keys, func(a, b reflect.Value) int { return strings.Compare(a.String(), b.String()) })
	n := &yaml.Node{Kind: yaml.MappingNode}
	for _, key := range keys {
		n.Content = append(n.Content, textNode(key.String()), renderElement(v.MapIndex(key)))
	}
	return unlessEmpty(n)
}

func renderList(v reflect.Value) *yaml.Node {
	n := &yaml.Node{Kind: yaml.SequenceNode}
	for i := range v.Len() {
		n.Content = append(n.Content, renderElement(v.Index(i)))
	}
	if kindOf(v.Type().Elem()) == leaf || v.Len() == 0 {
		n.Style = yaml.FlowStyle
	}
	if v.IsNil() {
		return nil
	}
	return n // one that is empty, but written, says that there is none
}

// renderElement keeps an empty element: its place says something.
func renderElement(v reflect.Value) *yaml.Node {
	if n := render(v); n != nil {
		return n
	}
	return textNode("")
}

func unlessEmpty(n *yaml.Node) *yaml.Node {
	if len(n.Content) == 0 {
		return nil
	}
	return n
}

func renderLeaf(v reflect.Value) *yaml.Node {
	if s, ok := v.Interface().(fmt.Stringer); ok {
		return unlessBlank(s.String())
	}
	switch v.Kind() {
	case reflect.Bool:
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!bool", Value: strconv.FormatBool(v.Bool())}
	case reflect.Int:
		if v.Int() == 0 {
			return nil
		}
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!int", Value: strconv.FormatInt(v.Int(), 10)}
	}
	return unlessBlank(v.String())
}

func unlessBlank(text string) *yaml.Node {
	if text == "" {
		return nil
	}
	return textNode(escape(text))
}

func textNode(text string) *yaml.Node {
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: text}
}

// writeJSON writes a rendered tree.
func writeJSON(out *bytes.Buffer, n *yaml.Node) {
	switch {
	case n.Kind == yaml.MappingNode:
		out.WriteByte('{')
		for i := 0; i < len(n.Content); i += 2 {
			if i > 0 {
				out.WriteByte(',')
			}
			writeJSON(out, n.Content[i])
			out.WriteByte(':')
			writeJSON(out, n.Content[i+1])
		}
		out.WriteByte('}')
	case n.Kind == yaml.SequenceNode:
		out.WriteByte('[')
		for i, item := range n.Content {
			if i > 0 {
				out.WriteByte(',')
			}
			writeJSON(out, item)
		}
		out.WriteByte(']')
	case n.Tag == "!!str":
		text, _ := json.Marshal(n.Value) // a string cannot fail
		out.Write(text)
	default:
		out.WriteString(n.Value)
	}
}
