package llm

import (
	"bytes"
	"strings"

	"github.com/limen-gateway/limen/internal/jsonedit"
)

// Raw is one JSON value as it was written; nil is an absent one. Texts, schemas
// and arguments travel so from dialect to dialect: both sides are JSON, and
// what nobody needs to look into is never decoded. It often shares the memory
// of the body or frame that it came in.
type Raw []byte

// Quote is s as a JSON string.
func Quote(s string) Raw { return jsonedit.AppendQuote(nil, s) }

// Text is the string that r is; anything else reads "".
func (r Raw) Text() string {
	s, _ := jsonedit.Unquote(r)
	return s
}

// IsText reports whether r is a string.
func (r Raw) IsText() bool { return jsonedit.KindOf(r) == jsonedit.KindString }

// Given reports whether r is there and is not null.
func (r Raw) Given() bool {
	return r != nil && jsonedit.KindOf(r) != jsonedit.KindNull
}

// Blank reports whether r is absent, null or the empty string.
func (r Raw) Blank() bool { return !r.Given() || len(r) == len(`""`) && r[0] == '"' }

// White reports whether a string is nothing but white space.
func (r Raw) White() bool {
	in := r.Inner()
	for i := 0; i < len(in); i++ {
		switch c := in[i]; {
		case c == ' ':
		case c == '\\' && i+1 < len(in) && strings.IndexByte("ntr", in[i+1]) >= 0:
			i++
		default:
			return false
		}
	}
	return true
}

// Kind is the type of the value.
func (r Raw) Kind() jsonedit.Kind { return jsonedit.KindOf(r) }

// Clone is a copy that shares no memory.
func (r Raw) Clone() Raw { return bytes.Clone(r) }

// Inner is a string as it is written between its quotes; nil for all else.
func (r Raw) Inner() []byte {
	if len(r) < 2 || r[0] != '"' {
		return nil
	}
	return r[1 : len(r)-1]
}

// Concat joins strings, which stay as they are written, with sep between those
// that are not blank.
func Concat(sep string, texts ...Raw) Raw {
	kept := 0
	for _, t := range texts {
		if !t.Blank() {
			kept++
		}
	}
	if kept == 1 {
		for _, t := range texts {
			if !t.Blank() {
				return t
			}
		}
	}
	out := Raw{'"'}
	quoted := jsonedit.AppendQuote(nil, sep)
	for _, t := range texts {
		if t.Blank() {
			continue
		}
		if len(out) > 1 {
			out = append(out, quoted[1:len(quoted)-1]...)
		}
		out = append(out, t.Inner()...)
	}
	return append(out, '"')
}

// QuoteJSON is a JSON value, compact, as the text of a JSON string: how some
// dialects write arguments that others write as objects.
func QuoteJSON(value Raw) Raw {
	return jsonedit.AppendQuote(nil, string(jsonedit.Compact(nil, value)))
}

// Object reads a JSON string whose text is an object, as arguments are; the
// empty text stands for an empty object. It reports false for anything else.
func (r Raw) Object() (Raw, bool) {
	if r.Blank() {
		return Raw("{}"), true
	}
	text := []byte(r.Text())
	var o jsonedit.Object
	if err := jsonedit.Scan(text, noFields, &o); err != nil {
		return nil, false
	}
	return bytes.TrimSpace(text), true
}

var noFields = jsonedit.NewFields()
