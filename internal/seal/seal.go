// Package seal packs what one dialect must carry for another into a text that
// clients hand back unread: "gw1." and the base64url of a JSON object with
// sorted names, whose "k" says what it is. A key adds a MAC, so that what
// comes back can be told from what was never ours.
package seal

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"slices"
	"strings"

	"github.com/limen-gateway/limen/internal/jsonedit"
)

// Prefix begins every sealed text.
const Prefix = "gw1."

// Key signs. The zero Key seals without a MAC and opens whatever is well
// formed.
type Key struct{ secret []byte }

// NewKey makes a key of a secret; it is kept.
func NewKey(secret []byte) Key { return Key{secret: secret} }

// A Field is one member of the object; Value is JSON.
type Field struct {
	Name  string
	Value []byte
}

// The names of members that the envelope itself has.
const (
	kindName = "k"
	macName  = "m"
)

// Is reports whether a text claims to be sealed.
func Is(text string) bool { return strings.HasPrefix(text, Prefix) }

// Seal packs fields, whose values are compact JSON, under a kind. Fields
// without a value are left out.
func (k Key) Seal(kind string, fields ...Field) string {
	body := k.object(kind, nil, fields)
	if k.secret != nil {
		mac := base64.RawURLEncoding.AppendEncode([]byte{'"'}, k.mac(body))
		body = k.object(kind, append(mac, '"'), fields)
	}
	return string(base64.RawURLEncoding.AppendEncode([]byte(Prefix), body))
}

func (k Key) object(kind string, mac []byte, fields []Field) []byte {
	all := append(slices.Clone(fields), Field{kindName, jsonedit.AppendQuote(nil, kind)}, Field{macName, mac})
	slices.SortFunc(all, func(a, b Field) int { return strings.Compare(a.Name, b.Name) })
	var w jsonedit.Writer
	w.BeginObject()
	for _, f := range all {
		w.SetRaw(f.Name, f.Value)
	}
	w.EndObject()
	return w.Bytes()
}

// macSize is enough to tell forgeries: 128 bits.
const macSize = 16

func (k Key) mac(body []byte) []byte {
	h := hmac.New(sha256.New, k.secret)
	h.Write(body)
	return h.Sum(nil)[:macSize]
}

// Sealed is an opened text.
type Sealed struct {
	Kind   string
	fields []Field
}

// Get returns a member as JSON, nil when there is none.
func (s Sealed) Get(name string) []byte {
	for _, f := range s.fields {
		if f.Name == name {
			return f.Value
		}
	}
	return nil
}

var noFields = jsonedit.NewFields()

// Open unpacks a text. It reports false for what is not sealed, is broken, or
// was not sealed with this key.
func (k Key) Open(text string) (s Sealed, ok bool) {
	if !Is(text) {
		return s, false
	}
	body, err := base64.RawURLEncoding.DecodeString(text[len(Prefix):])
	if err != nil {
		return s, false
	}
	var object jsonedit.Object
	if jsonedit.Scan(body, noFields, &object) != nil {
		return s, false
	}
	var mac []byte
	for quoted, value := range jsonedit.Members(body) {
		name, _ := jsonedit.Unquote(quoted)
		switch name {
		case kindName:
			s.Kind, _ = jsonedit.Unquote(value)
		case macName:
			said, _ := jsonedit.Unquote(value)
			mac, _ = base64.RawURLEncoding.DecodeString(said)
		default:
			s.fields = append(s.fields, Field{name, value})
		}
	}
	if k.secret != nil && !hmac.Equal(mac, k.mac(k.object(s.Kind, nil, s.fields))) {
		return s, false
	}
	return s, s.Kind != ""
}

// Sorted appends a JSON value, compact and with the members of its objects in
// the order of their names: one form for one meaning.
func Sorted(dst, value []byte) []byte {
	switch jsonedit.KindOf(value) {
	case jsonedit.KindObject:
		var members []Field
		for quoted, v := range jsonedit.Members(value) {
			name, _ := jsonedit.Unquote(quoted)
			members = append(members, Field{name, v})
		}
		slices.SortStableFunc(members, func(a, b Field) int { return strings.Compare(a.Name, b.Name) })
		dst = append(dst, '{')
		for i, m := range members {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = append(jsonedit.AppendQuote(dst, m.Name), ':')
			dst = Sorted(dst, m.Value)
		}
		return append(dst, '}')
	case jsonedit.KindArray:
		dst = append(dst, '[')
		first := true
		for v := range jsonedit.Elements(value) {
			if !first {
				dst = append(dst, ',')
			}
			first = false
			dst = Sorted(dst, v)
		}
		return append(dst, ']')
	default:
		return jsonedit.Compact(dst, value)
	}
}
