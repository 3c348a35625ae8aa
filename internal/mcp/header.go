package mcp

import (
	"encoding/base64"
	"net/http"
	"strings"

	"github.com/limen-gateway/limen/internal/jsonedit"
)

// named adds to header fields what a request without a session says there as
// well as in its body.
func named(h http.Header, r request) http.Header {
	if h == nil {
		h = http.Header{}
	}
	h.Set("Mcp-Method", r.method)
	if r.name != "" {
		h.Set("Mcp-Name", encode(r.name))
	}
	return h
}

// field is an argument that a server wants in a header field.
type field struct {
	path []string
	name string
}

// maxNested bounds how deep in a schema such arguments are looked for.
const maxNested = 8

// fields are the arguments that a schema wants in header fields. It reports
// false where that breaks the rules for them.
func fields(schema []byte) (all []field, ok bool) {
	all, ok = gather(nil, schema, nil)
	seen := map[string]bool{}
	for _, f := range all {
		key := http.CanonicalHeaderKey(f.name)
		ok = ok && !seen[key]
		seen[key] = true
	}
	return all, ok
}

func gather(all []field, schema []byte, path []string) ([]field, bool) {
	if len(path) == maxNested {
		return all, true
	}
	properties, _ := jsonedit.Get(schema, "properties")
	for name, property := range jsonedit.Members(properties) {
		text, _ := jsonedit.Unquote(name)
		at := append(path[:len(path):len(path)], text)
		if wanted, found := jsonedit.Get(property, "x-mcp-header"); found {
			f, ok := fieldOf(at, wanted, property)
			if !ok {
				return all, false
			}
			all = append(all, f)
		}
		var ok bool
		if all, ok = gather(all, property, at); !ok {
			return all, false
		}
	}
	return all, true
}

func fieldOf(path []string, wanted, property []byte) (field, bool) {
	name, ok := jsonedit.Unquote(wanted)
	kind, _ := jsonedit.Get(property, "type")
	switch string(kind) {
	case `"string"`, `"integer"`, `"boolean"`:
		return field{path, name}, ok && isToken(name)
	}
	return field{}, false
}

// isToken reports whether a text can be the name of a header field.
func isToken(text string) bool {
	for _, c := range []byte(text) {
		if !('a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || strings.IndexByte("!#$%&'*+-.^_`|~", c) >= 0) {
			return false
		}
	}
	return text != ""
}

// told are the header fields that a tool's schema wants of its arguments.
func told(schema, args []byte) http.Header {
	all, ok := fields(schema)
	if !ok || len(all) == 0 {
		return nil
	}
	h := http.Header{}
	for _, f := range all {
		value, _ := jsonedit.Get(args, f.path...)
		switch jsonedit.KindOf(value) {
		case jsonedit.KindString:
			text, _ := jsonedit.Unquote(value)
			h.Set("Mcp-Param-"+f.name, encode(text))
		case jsonedit.KindNumber, jsonedit.KindBool:
			h.Set("Mcp-Param-"+f.name, string(value))
		}
	}
	return h
}

// Around a value that a header field cannot have as it is.
const (
	before = "=?base64?"
	behind = "?="
)

// encode writes a text as the value of a header field.
func encode(text string) string {
	plain := strings.Trim(text, " \t") == text && !(strings.HasPrefix(text, before) && strings.HasSuffix(text, behind))
	for _, c := range []byte(text) {
		plain = plain && (' ' <= c && c <= '~' || c == '\t')
	}
	if plain {
		return text
	}
	return before + base64.StdEncoding.EncodeToString([]byte(text)) + behind
}
