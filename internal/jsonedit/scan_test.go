package jsonedit

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"unicode/utf8"
)

var testFields = NewFields("model", "stream", "max_tokens", "k", "stream_options")

const (
	fModel = iota
	fStream
	fMaxTokens
	fK
	fStreamOptions
)

func nested(depth int) string {
	return `{"a":` + strings.Repeat("[", depth-1) + strings.Repeat("]", depth-1) + `}`
}

func TestScanAccepts(t *testing.T) {
	for _, tt := range []struct {
		name, doc string
		field     int
		want      string // the field's value, "" when absent
	}{
		{"empty object", `{}`, fModel, ""},
		{"white space everywhere", " \t\r\n{ \"model\" \n:\t\"m\" \r, \"x\" : [ ] , \"y\" : { } } \n", fModel, `"m"`},
		{"first", `{"model":"m","x":1}`, fModel, `"m"`},
		{"last", `{"x":1,"model":"m"}`, fModel, `"m"`},
		{"null", `{"stream":null}`, fStream, `null`},
		{"true", `{"stream":true}`, fStream, `true`},
		{"false", `{"stream":false}`, fStream, `false`},
		{"object", `{"stream_options":{"include_usage":true, "x":[1,{}]}}`, fStreamOptions, `{"include_usage":true, "x":[1,{}]}`},
		{"number as it is", `{"max_tokens":-0.10E+400}`, fMaxTokens, `-0.10E+400`},
		{"big integer", `{"max_tokens":123456789012345678901234567890}`, fMaxTokens, `123456789012345678901234567890`},
		{"escaped name", `{"mod\u0065l":"m"}`, fModel, `"m"`},
		{"wholly escaped name", `{"\u006d\u006f\u0064\u0065\u006C":"m"}`, fModel, `"m"`},
		{"not at the top", `{"x":{"model":"a","MODEL":"b"},"model":"m"}`, fModel, `"m"`},
		{"duplicates of others", `{"x":1,"x":2,"X":3,"model":"m"}`, fModel, `"m"`},
		{"longer name", `{"models":1,"mode":2,"model":"m","":3}`, fModel, `"m"`},
		{"escapes", `{"x":"\"\\\/\b\f\n\r\t\u00e9\uD83D\uDE00","model":"m"}`, fModel, `"m"`},
		{"lone surrogate", `{"x":"\ud800","y":"\udc00\ud800x","model":"m"}`, fModel, `"m"`},
		{"lone surrogate in a name", `{"\ud800":1,"mode\ud800":1,"model":"m"}`, fModel, `"m"`},
		{"escaped NUL", `{"x":"\u0000","model":"m"}`, fModel, `"m"`},
		{"delete is no control character", "{\"x\":\"\x7f\",\"model\":\"m\"}", fModel, `"m"`},
		{"UTF-8 of every length", `{"é":"aé€😀` + "\u0080\u07FF\u0800\uD7FF\uE000\uFFFF\U00010000\U0010FFFF" + `z","model":"m"}`, fModel, `"m"`},
		{"byte order mark in a string", "{\"x\":\"\uFEFF\",\"model\":\"m\"}", fModel, `"m"`},
		{"deepest", nested(MaxDepth), fModel, ""},
		{"deepest objects", strings.Repeat(`{"a":`, MaxDepth-1) + `{}` + strings.Repeat(`}`, MaxDepth-1), fModel, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var o Object
			if err := Scan([]byte(tt.doc), testFields, &o); err != nil {
				t.Fatalf("Scan(%q) = %v", tt.doc, err)
			}
			if got := string(o.Value(tt.field)); got != tt.want {
				t.Errorf("value is %q, want %q", got, tt.want)
			}
			if o.Has(tt.field) != (tt.want != "") {
				t.Errorf("Has is %v", o.Has(tt.field))
			}
			if tt.doc[o.End] != '}' || strings.TrimSpace(tt.doc[o.End+1:]) != "" {
				t.Errorf("End is %d in %q", o.End, tt.doc)
			}
		})
	}
}

func TestScanRefuses(t *testing.T) {
	for _, tt := range []struct {
		name, doc string
		reason    Reason
		offset    int
		message   string
	}{
		{"nothing", ``, NotObject, 0, "expected a JSON object, found end at byte 0"},
		{"white space", " \n", NotObject, 2, "expected a JSON object, found end at byte 2"},
		{"array", `[{}]`, NotObject, 0, "expected a JSON object, found '[' at byte 0"},
		{"string", ` "x"`, NotObject, 1, `expected a JSON object, found '"' at byte 1`},
		{"byte order mark", "\uFEFF{}", NotObject, 0, "expected a JSON object, found byte order mark at byte 0"},
		{"cut after the brace", `{`, Syntax, 1, "unexpected end at byte 1"},
		{"cut in a name", `{"mod`, Syntax, 5, "unexpected end at byte 5"},
		{"cut after a name", `{"model"`, Syntax, 8, "unexpected end at byte 8"},
		{"cut in a value", `{"model":"gpt-5.2 and a long string behind it`, Syntax, 45, "unexpected end at byte 45"},
		{"cut after a value", `{"model":"m"`, Syntax, 12, "unexpected end at byte 12"},
		{"cut in a literal", `{"x":tru`, Syntax, 8, "unexpected end at byte 8"},
		{"cut in an escape", `{"x":"\`, Syntax, 7, "unexpected end at byte 7"},
		{"cut in a hex escape", `{"x":"\u00`, Syntax, 10, "unexpected end at byte 10"},
		{"trailing comma", `{"model":"m",}`, Syntax, 13, "unexpected '}' at byte 13"},
		{"leading comma", `{,"model":"m"}`, Syntax, 1, "unexpected ',' at byte 1"},
		{"trailing comma in an array", `{"x":[1,]}`, Syntax, 8, "unexpected ']' at byte 8"},
		{"trailing comma inside", `{"x":{"y":1,}}`, Syntax, 12, "unexpected '}' at byte 12"},
		{"leading comma in an array", `{"x":[,1]}`, Syntax, 6, "unexpected ',' at byte 6"},
		{"wrong bracket", `{"x":[1}`, Syntax, 7, "unexpected '}' at byte 7"},
		{"wrong brace", `{"x":{"y":1]}`, Syntax, 11, "unexpected ']' at byte 11"},
		{"no colon", `{"x" 1}`, Syntax, 5, "unexpected '1' at byte 5"},
		{"no value", `{"x":}`, Syntax, 5, "unexpected '}' at byte 5"},
		{"no comma", `{"x":1 "y":2}`, Syntax, 7, `unexpected '"' at byte 7`},
		{"name without quotes", `{model:"m"}`, Syntax, 1, "unexpected 'm' at byte 1"},
		{"single quotes", `{'x':1}`, Syntax, 1, "unexpected ''' at byte 1"},
		{"comment", `{/**/}`, Syntax, 1, "unexpected '/' at byte 1"},
		{"second document", `{} {}`, Syntax, 3, "unexpected '{' at byte 3"},
		{"NUL after the document", "{}\x00", Syntax, 2, "unexpected 0x00 at byte 2"},
		{"form feed is no white space", "{\f}", Syntax, 1, "unexpected 0x0c at byte 1"},
		{"no-break space is no white space", "{\u00a0}", Syntax, 1, "unexpected 0xc2 at byte 1"},
		{"line feed in a string", "{\"x\":\"ab\ncd\"}", Syntax, 8, "unexpected 0x0a at byte 8"},
		{"NUL in a string", "{\"x\":\"ab\x00cd\"}", Syntax, 8, "unexpected 0x00 at byte 8"},
		{"0x1f far in a string", `{"x":"` + strings.Repeat("a", 77) + "\x1f" + strings.Repeat("a", 77) + `"}`, Syntax, 83, "unexpected 0x1f at byte 83"},
		{"bad escape", `{"x":"\q"}`, Syntax, 7, "unexpected 'q' at byte 7"},
		{"bad hex escape", `{"x":"\u00g0"}`, Syntax, 10, "unexpected 'g' at byte 10"},
		{"bad escape in a name", `{"\x":1}`, Syntax, 3, "unexpected 'x' at byte 3"},
		{"leading zero", `{"x":01}`, Syntax, 6, "unexpected '1' at byte 6"},
		{"plus", `{"x":+1}`, Syntax, 5, "unexpected '+' at byte 5"},
		{"minus alone", `{"x":-}`, Syntax, 6, "unexpected '}' at byte 6"},
		{"point alone", `{"x":.5}`, Syntax, 5, "unexpected '.' at byte 5"},
		{"point at the end", `{"x":1.}`, Syntax, 7, "unexpected '}' at byte 7"},
		{"exponent without digits", `{"x":1e+}`, Syntax, 8, "unexpected '}' at byte 8"},
		{"hexadecimal", `{"x":0x1}`, Syntax, 6, "unexpected 'x' at byte 6"},
		{"NaN", `{"x":NaN}`, Syntax, 5, "unexpected 'N' at byte 5"},
		{"Infinity", `{"x":-Infinity}`, Syntax, 6, "unexpected 'I' at byte 6"},
		{"True", `{"x":True}`, Syntax, 5, "unexpected 'T' at byte 5"},
		{"nul", `{"x":nul}`, Syntax, 8, "unexpected '}' at byte 8"},
		{"nullx", `{"x":nullx}`, Syntax, 9, "unexpected 'x' at byte 9"},
		{"stray continuation", "{\"x\":\"a\x80\"}", UTF8, 7, "invalid UTF-8 (0x80) at byte 7"},
		{"overlong of two", "{\"x\":\"\xc0\xaf\"}", UTF8, 6, "invalid UTF-8 (0xc0) at byte 6"},
		{"overlong of two, C1", "{\"x\":\"\xc1\xbf\"}", UTF8, 6, "invalid UTF-8 (0xc1) at byte 6"},
		{"overlong of three", "{\"x\":\"\xe0\x9f\xbf\"}", UTF8, 6, "invalid UTF-8 (0xe0) at byte 6"},
		{"overlong of four", "{\"x\":\"\xf0\x8f\xbf\xbf\"}", UTF8, 6, "invalid UTF-8 (0xf0) at byte 6"},
		{"surrogate", "{\"x\":\"\xed\xa0\x80\"}", UTF8, 6, "invalid UTF-8 (0xed) at byte 6"},
		{"surrogate after a good character", "{\"x\":\"中\xed\xbf\xbf        \"}", UTF8, 9, "invalid UTF-8 (0xed) at byte 9"},
		{"beyond U+10FFFF", "{\"x\":\"\xf4\x90\x80\x80\"}", UTF8, 6, "invalid UTF-8 (0xf4) at byte 6"},
		{"lead byte F5", "{\"x\":\"\xf5\x80\x80\x80\"}", UTF8, 6, "invalid UTF-8 (0xf5) at byte 6"},
		{"cut character", "{\"x\":\"\xe4\xb8\"}", UTF8, 6, "invalid UTF-8 (0xe4) at byte 6"},
		{"cut character at the end", "{\"x\":\"\xe4\xb8", UTF8, 6, "invalid UTF-8 (0xe4) at byte 6"},
		{"in a name", "{\"\xff\":1}", UTF8, 2, "invalid UTF-8 (0xff) at byte 2"},
		{"too deep", nested(MaxDepth + 1), Depth, 5 + MaxDepth - 1, "nested deeper than 64 levels at byte 68"},
		{"too deep by far", nested(1_000_000), Depth, 5 + MaxDepth - 1, "nested deeper than 64 levels at byte 68"},
		{"too deep with objects", strings.Repeat(`{"a":`, MaxDepth+1), Depth, 5 * MaxDepth, "nested deeper than 64 levels at byte 320"},
		{"duplicate", `{"model":"a","model":"b"}`, Duplicate, 13, `member "model" appears twice`},
		{"duplicate null", `{"stream":null,"x":1,"stream":null}`, Duplicate, 21, `member "stream" appears twice`},
		{"escaped duplicate", `{"model":"a","m\u006fdel":"b"}`, Duplicate, 13, `member "model" appears twice`},
		{"upper case", `{"MODEL":"a"}`, Case, 1, `member "MODEL" differs from "model" only in case`},
		{"case variant beside it", `{"model":"a","Model":"b"}`, Case, 13, `member "Model" differs from "model" only in case`},
		{"case variant before it", `{"moDel":"b","model":"a"}`, Case, 1, `member "moDel" differs from "model" only in case`},
		{"escaped case variant", `{"\u004dodel":"b"}`, Case, 1, `member "\u004dodel" differs from "model" only in case`},
		{"Kelvin sign", "{\"max_to\u212Aens\":1}", Case, 1, "member \"max_to\u212Aens\" differs from \"max_tokens\" only in case"},
		{"Kelvin sign in front", "{\"\u212A\":1}", Case, 1, "member \"\u212A\" differs from \"k\" only in case"},
		{"long s in front", "{\"\u017Ftream\":1}", Case, 1, "member \"\u017Ftream\" differs from \"stream\" only in case"},
		{"long s at the end", "{\"max_token\u017F\":1}", Case, 1, "member \"max_token\u017F\" differs from \"max_tokens\" only in case"},
		{"escaped Kelvin sign", `{"\u212a":1}`, Case, 1, `member "\u212a" differs from "k" only in case`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var o Object
			err := Scan([]byte(tt.doc), testFields, &o)
			var e *Error
			if !errors.As(err, &e) {
				t.Fatalf("Scan is %v, want an *Error", err)
			}
			if e.Reason != tt.reason || e.Offset != tt.offset || e.Error() != tt.message {
				t.Errorf("got %d at %d: %s\nwant %d at %d: %s", e.Reason, e.Offset, e, tt.reason, tt.offset, tt.message)
			}
		})
	}
}

// A byte that must stop the search for a string's end is found at every
// distance from its beginning and from the end of the document.
func TestScanEveryDistance(t *testing.T) {
	for before := range 100 {
		for after := range 45 {
			for _, bad := range []string{"\x00", "\x1f", "\n", "\xff", "\xe4\xb8", `\`, `"`} {
				doc := `{"x":"` + strings.Repeat("!", before) + bad + strings.Repeat("#", after) + `"}`
				if bad == `\` && after == 0 {
					continue // escapes the quote
				}
				var o Object
				if err := Scan([]byte(doc), testFields, &o); err == nil {
					t.Fatalf("Scan(%q) accepts", doc)
				}
			}
			doc := `{"x":"` + strings.Repeat("[", before) + `é\"中\\😀` + strings.Repeat("~", after) + `","model":1}`
			var o Object
			if err := Scan([]byte(doc), testFields, &o); err != nil || string(o.Value(fModel)) != "1" {
				t.Fatalf("Scan(%q) = %v", doc, err)
			}
		}
	}
}

// Every sequence of up to four bytes is judged as package utf8 judges it.
func TestScanUTF8(t *testing.T) {
	edges := []byte{0x20, 0x7f, 0x80, 0x8f, 0x90, 0x9f, 0xa0, 0xbf, 0xc0, 0xc1, 0xc2, 0xdf,
		0xe0, 0xe1, 0xec, 0xed, 0xee, 0xef, 0xf0, 0xf1, 0xf3, 0xf4, 0xf5, 0xf7, 0xf8, 0xff}
	for _, padding := range []string{"", "         "} {
		for n := range len(edges) * len(edges) * len(edges) * len(edges) {
			var s [4]byte
			for i := range s {
				s[i] = edges[n%len(edges)]
				n /= len(edges)
			}
			doc := []byte(`"` + string(s[:]) + padding + `"`)
			end, bad := text(doc, 0)
			if (bad == ok) != utf8.Valid(s[:]) || bad == ok && end != len(doc) {
				t.Fatalf("text(%q) = %d, %d, want valid %v", doc, end, bad, utf8.Valid(s[:]))
			}
		}
	}
}

func TestScanAgain(t *testing.T) {
	var o Object
	for _, doc := range []string{`{"model":"a","stream":true}`, `{"k":1}`, `{"model":1,"model":2}`, `{}`} {
		err := Scan([]byte(doc), testFields, &o)
		if err != nil {
			continue
		}
		for i, name := range testFields.names {
			if want := strings.Contains(doc, name); o.Has(i) != want {
				t.Errorf("%s: Has(%s) is %v, want %v", doc, name, o.Has(i), want)
			}
		}
	}
}

func TestScanAllocates(t *testing.T) {
	doc := []byte(`{"x":"\u00e9é中","model":"m","str\u0065am":true,"max_tokens":1.5e3}`)
	var o Object
	if n := testing.AllocsPerRun(100, func() {
		if err := Scan(doc, testFields, &o); err != nil {
			t.Fatal(err)
		}
	}); n != 0 {
		t.Errorf("Scan allocates %v times, want 0", n)
	}
}

func TestNewFieldsRefuses(t *testing.T) {
	for _, names := range [][]string{{""}, {"Model"}, {"a", "a"}, {"é"}, {"a b"}, strings.Split(strings.Repeat("x ", 65), " ")} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("NewFields(%q) did not panic", names)
				}
			}()
			NewFields(names...)
		}()
	}
}

// depthOf measures nesting by counting brackets outside of strings, as an
// independent check of a document known to be JSON.
func depthOf(doc []byte) (deepest int) {
	depth, inString := 0, false
	for i := 0; i < len(doc); i++ {
		switch c := doc[i]; {
		case inString && c == '\\':
			i++
		case c == '"':
			inString = !inString
		case inString:
		case c == '{', c == '[':
			depth++
			deepest = max(deepest, depth)
		case c == '}', c == ']':
			depth--
		}
	}
	return deepest
}

func FuzzScan(f *testing.F) {
	for _, s := range []string{`{}`, `{"model":"m","stream":true}`, ` { "a" : [ 1 , -2.5e+3 , null ] } `, `{"a":"\ud83d\ude00\u12"}`,
		`{"model":1,"Model":2}`, `{"m\u006fdel":1}`, "{\"\u017Ftream\":1,\"\u212A\":2}", "{\"a\":\"\xed\xa0\x80é中😀\"}", nested(64), nested(65),
		`{"a":"0123456789abcdef0123456789abcdef\n0123456789abcdef0123456789abcdef"}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, doc []byte) {
		before := string(doc)
		var o Object
		err := Scan(doc, testFields, &o)
		if string(doc) != before {
			t.Fatal("the document was modified")
		}
		trimmed := strings.TrimLeft(before, " \t\r\n")
		legal := json.Valid(doc) && utf8.Valid(doc) && strings.HasPrefix(trimmed, "{") && depthOf(doc) <= MaxDepth
		var e *Error
		if err != nil && !errors.As(err, &e) {
			t.Fatalf("error is a %T", err)
		}
		if err != nil && (e.Reason == Duplicate || e.Reason == Case) {
			return // the rest was not looked at
		}
		if (err == nil) != legal {
			t.Fatalf("Scan(%q) = %v, want legal %v", doc, err, legal)
		}
		if err != nil {
			if e.Offset > len(doc) || e.Error() == "" || !utf8.ValidString(e.Error()) {
				t.Fatalf("error %+v", e)
			}
			return
		}
		// What was found is what a decoder finds, under whichever spelling.
		var members map[string]json.RawMessage
		if err := json.Unmarshal(doc, &members); err != nil {
			t.Fatal(err)
		}
		for name, value := range members {
			for i, field := range testFields.names {
				if strings.EqualFold(name, field) && (name != field || string(o.Value(i)) != string(value)) {
					t.Fatalf("Scan(%q): field %s is %s, decoder has %q: %s", doc, field, o.Value(i), name, value)
				}
			}
		}
		for i, field := range testFields.names {
			if _, there := members[field]; there != o.Has(i) {
				t.Fatalf("Scan(%q): Has(%s) is %v", doc, field, o.Has(i))
			}
		}
	})
}
