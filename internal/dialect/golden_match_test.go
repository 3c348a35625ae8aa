package dialect_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"
)

// matcher compares JSON with what a case wants. "<name>" in a case stands for
// any text, the same for the same name; "<any>" and "<created>" stand for any.
type matcher struct {
	*testing.T
	exact bool // objects have no other members
	bound map[string]string
}

func (g *goldenRun) matcher(exact bool) *matcher {
	return &matcher{T: g.T, exact: exact && g.c.Match == "exact", bound: map[string]string{}}
}

func (m *matcher) compare(at string, want, got []byte) {
	m.Helper()
	w, err := parsed(want)
	if err != nil {
		m.Fatalf("%s: the case: %v", at, err)
	}
	g, err := parsed(got)
	if err != nil {
		m.Errorf("%s: %v in %s", at, err, got)
		return
	}
	m.value(at, w, g)
}

func parsed(doc []byte) (any, error) {
	d := json.NewDecoder(bytes.NewReader(doc))
	d.UseNumber()
	var v any
	err := d.Decode(&v)
	return v, err
}

func (m *matcher) value(at string, want, got any) {
	switch want := want.(type) {
	case map[string]any:
		object, ok := got.(map[string]any)
		if !ok {
			m.Errorf("%s: got %s, want an object", at, shown(got))
			return
		}
		for name, w := range want {
			g, there := object[name]
			if !there {
				m.Errorf("%s.%s is missing; want %s", at, name, shown(w))
				continue
			}
			m.value(at+"."+name, w, g)
		}
		for name, g := range object {
			if _, wanted := want[name]; m.exact && !wanted {
				m.Errorf("%s.%s is too much: %s", at, name, shown(g))
			}
		}
	case []any:
		list, ok := got.([]any)
		if !ok || len(list) != len(want) {
			m.Errorf("%s: got %s, want %s", at, shown(got), shown(want))
			return
		}
		for i := range want {
			m.value(fmt.Sprintf("%s[%d]", at, i), want[i], list[i])
		}
	case string:
		m.text(at, want, got)
	default:
		if !reflect.DeepEqual(want, got) && !(isNumber(want) && isNumber(got) && number(want) == number(got)) {
			m.Errorf("%s: got %s, want %s", at, shown(got), shown(want))
		}
	}
}

func isNumber(v any) bool { _, ok := v.(json.Number); return ok }

func number(v any) float64 {
	f, _ := v.(json.Number).Float64()
	return f
}

func (m *matcher) text(at, want string, got any) {
	if want == "<created>" {
		if n, ok := got.(json.Number); !ok || strings.Contains(n.String(), ".") {
			m.Errorf("%s: got %s, want an integer", at, shown(got))
		}
		return
	}
	text, ok := got.(string)
	switch {
	case !ok:
		m.Errorf("%s: got %s, want %q", at, shown(got), want)
	case want == "<any>":
	case strings.Contains(want, "<") && strings.Contains(want, ">") && m.binds(want, text):
	case strings.HasPrefix(want, "gw1.") && strings.HasPrefix(text, "gw1."):
		m.value(at+" unsealed", unsealed(want), unsealed(text))
	case want != text:
		m.Errorf("%s: got %q, want %q", at, text, want)
	}
}

// binds reports whether a text has the form of a pattern with one or more
// <names>, and binds them.
func (m *matcher) binds(pattern, text string) bool {
	before, rest, found := strings.Cut(pattern, "<")
	name, after, closed := strings.Cut(rest, ">")
	if !found || !closed {
		return pattern == text
	}
	if !isName(name) || !strings.HasPrefix(text, before) {
		return false
	}
	text = text[len(before):]
	end := len(text)
	if literal, _, more := strings.Cut(after, "<"); literal != "" {
		at := strings.Index(text, literal)
		if !more {
			at = strings.LastIndex(text, literal)
		}
		if at < 0 {
			return false
		}
		end = at
	}
	value := text[:end]
	if known, ok := m.bound[name]; ok && known != value {
		return false
	}
	for other, known := range m.bound {
		if other != name && known == value && !strings.Contains(pattern, " ") && before == "" && after == "" {
			m.Errorf("<%s> and <%s> are both %q", name, other, value)
		}
	}
	m.bound[name] = value
	return m.binds(after, text[end:])
}

func isName(s string) bool {
	for _, c := range s {
		if c != '_' && c != ' ' && (c < 'a' || c > 'z') && (c < '0' || c > '9') {
			return false
		}
	}
	return s != ""
}

func unsealed(text string) any {
	body, err := base64.RawURLEncoding.DecodeString(strings.TrimPrefix(text, "gw1."))
	if err != nil {
		return err.Error()
	}
	v, err := parsed(body)
	if err != nil {
		return err.Error()
	}
	return v
}

func shown(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(b)
}

// told is a frame of a stream.
type told struct {
	event string
	data  json.RawMessage
}

// checkNumbers checks that sequence numbers count from 0, where there are any.
func checkNumbers(t *testing.T, frames []told) {
	for i, f := range frames {
		var numbered struct {
			Number *int `json:"sequence_number"`
		}
		if json.Unmarshal(f.data, &numbered) == nil && numbered.Number != nil && *numbered.Number != i {
			t.Errorf("frame %d has the number %d", i, *numbered.Number)
		}
	}
}

// folded joins neighbouring frames that tell pieces of one text: where a text
// is cut is free.
func folded(t *testing.T, frames []told) []told {
	var out []told
	var values []map[string]any
	for _, f := range frames {
		v, err := parsed(f.data)
		if err != nil {
			t.Fatal(err)
		}
		object, _ := v.(map[string]any)
		delete(object, "sequence_number")
		if n := len(out); n > 0 && out[n-1].event == f.event && values[n-1] != nil && object != nil {
			if joined, ok := join(values[n-1], object); ok {
				values[n-1] = joined
				continue
			}
		}
		out, values = append(out, f), append(values, object)
	}
	for i, v := range values {
		if v == nil {
			continue
		}
		data, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		out[i].data = data
	}
	return out
}

// growing are the members in which texts come in pieces, per kind of frame.
var growing = map[string]bool{"content": true, "reasoning_content": true, "refusal": true, "arguments": true, "input": true, "delta": true, "text": true, "thinking": true, "partial_json": true}

// join joins two frames that differ in growing texts alone.
func join(a, b map[string]any) (map[string]any, bool) {
	if kind, ok := b["type"].(string); ok {
		if !strings.HasSuffix(kind, ".delta") && kind != "content_block_delta" {
			return nil, false
		}
	} else if !isText(a) || !isText(b) {
		return nil, false
	}
	v, ok := joined("", a, b)
	if !ok {
		return nil, false
	}
	return v.(map[string]any), true
}

// isText reports whether a chunk of Chat Completions brings a piece of text.
func isText(chunk map[string]any) bool {
	choices, _ := chunk["choices"].([]any)
	if len(choices) != 1 {
		return false
	}
	choice, _ := choices[0].(map[string]any)
	delta, _ := choice["delta"].(map[string]any)
	return choice["finish_reason"] == nil && len(delta) > 0 && delta["role"] == nil && delta["annotations"] == nil && delta["images"] == nil
}

func joined(name string, a, b any) (any, bool) {
	switch a := a.(type) {
	case map[string]any:
		b, ok := b.(map[string]any)
		if !ok {
			return nil, false
		}
		out := map[string]any{}
		for name, v := range a {
			other, there := b[name]
			if !there {
				if name == "id" || name == "type" || name == "name" || name == "extra_content" {
					out[name] = v // of the beginning of a call
					continue
				}
				return nil, false
			}
			j, ok := joined(name, v, other)
			if !ok {
				return nil, false
			}
			out[name] = j
		}
		for name := range b {
			if _, there := a[name]; !there {
				return nil, false
			}
		}
		return out, true
	case []any:
		b, ok := b.([]any)
		if !ok || len(a) != 1 || len(b) != 1 {
			return a, ok && reflect.DeepEqual(a, b)
		}
		j, ok := joined(name, a[0], b[0])
		return []any{j}, ok
	case string:
		b, ok := b.(string)
		switch {
		case !ok:
			return nil, false
		case growing[name]:
			return a + b, true
		}
		return a, a == b
	default:
		return a, reflect.DeepEqual(a, b)
	}
}
