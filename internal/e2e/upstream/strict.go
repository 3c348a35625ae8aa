package upstream

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"regexp"
	"slices"
	"strings"
)

// strictly reads JSON into a value whose type has every member that there may be.
// unknown names a member that the type has not.
func strictly(raw []byte, into any) (unknown string, err error) {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.DisallowUnknownFields()
	err = dec.Decode(into)
	if err == nil {
		if _, end := dec.Token(); end != io.EOF {
			err = errors.New("more than one value")
		}
		return "", err
	}
	if name, ok := strings.CutPrefix(err.Error(), "json: unknown field "); ok {
		return strings.Trim(name, `"`), nil
	}
	return "", err
}

// members are the names in a JSON object.
func members(raw json.RawMessage) []string {
	var object map[string]json.RawMessage
	json.Unmarshal(raw, &object)
	var names []string
	for name := range object {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// isObject says whether a raw value is a JSON object.
func isObject(raw json.RawMessage) bool {
	var object map[string]json.RawMessage
	return json.Unmarshal(raw, &object) == nil && object != nil
}

// idPattern is what Anthropic and Bedrock take for the ID of a call.
var idPattern = regexp.MustCompile(`^[a-zA-Z0-9_-]+$`)

// signature is the opaque state that goes with something the model said. A vendor
// knows its own by the same computation.
func signature(of ...string) string {
	sum := sha256.Sum256([]byte("upstream\x00" + strings.Join(of, "\x00")))
	return base64.StdEncoding.EncodeToString(sum[:])
}

// canonical is a JSON value in the one spelling that Go gives it.
func canonical(raw json.RawMessage) string {
	var v any
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	if dec.Decode(&v) != nil {
		return string(raw)
	}
	return string(marshal(v))
}

// least is the least value that fits a JSON schema: the words of its own that a test
// can look for are "Hello" and 1.
func least(schema json.RawMessage) json.RawMessage {
	var s struct {
		Type       json.RawMessage
		Enum       []json.RawMessage
		Const      json.RawMessage
		Required   []string
		Properties map[string]json.RawMessage
		AnyOf      []json.RawMessage
	}
	if json.Unmarshal(schema, &s) != nil {
		return null
	}
	switch {
	case len(s.Const) > 0:
		return s.Const
	case len(s.Enum) > 0:
		return s.Enum[0]
	case len(s.AnyOf) > 0:
		return least(s.AnyOf[0])
	}
	kind := string(bytes.ToLower(s.Type)) // Gemini's own schemas shout
	switch {
	case strings.Contains(kind, `"object"`):
		object := map[string]json.RawMessage{}
		for _, name := range s.Required {
			object[name] = least(s.Properties[name])
		}
		return marshal(object)
	case strings.Contains(kind, `"array"`):
		return json.RawMessage("[]")
	case strings.Contains(kind, `"string"`):
		return json.RawMessage(`"Hello"`)
	case strings.Contains(kind, `"boolean"`):
		return json.RawMessage("true")
	case strings.Contains(kind, `"integer"`), strings.Contains(kind, `"number"`):
		return json.RawMessage("1")
	}
	return null
}

// forbidden finds the first keyword, at any depth of a JSON schema, that is not
// allowed, and says where it is.
func forbidden(schema json.RawMessage, at string, bad func(keyword string, in map[string]json.RawMessage) bool) (where, keyword string) {
	var object map[string]json.RawMessage
	if json.Unmarshal(schema, &object) != nil {
		return "", ""
	}
	for _, name := range members(schema) {
		if bad(name, object) {
			return at, name
		}
		value := object[name]
		switch name {
		case "properties", "$defs", "definitions":
			var inner map[string]json.RawMessage
			json.Unmarshal(value, &inner)
			for _, key := range members(value) {
				if where, keyword = forbidden(inner[key], at+"."+name+"."+key, bad); keyword != "" {
					return where, keyword
				}
			}
		case "items":
			if where, keyword = forbidden(value, at+".items", bad); keyword != "" {
				return where, keyword
			}
		case "anyOf", "allOf":
			var inner []json.RawMessage
			json.Unmarshal(value, &inner)
			for _, s := range inner {
				if where, keyword = forbidden(s, at+"."+name, bad); keyword != "" {
					return where, keyword
				}
			}
		}
	}
	return "", ""
}
