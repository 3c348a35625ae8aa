package jsonedit

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestGet(t *testing.T) {
	const doc = ` {"id":"a","choices":[{"delta":{}}],"us\u0061ge":{"details": {"cached" : 3 } ,"total":5},"usage":1,"Usage":2,"a\\b":6,"é":7}`
	for _, tt := range []struct {
		doc   string
		path  []string
		want  string
		found bool
	}{
		{doc, []string{"id"}, `"a"`, true},
		{doc, []string{"usage", "details", "cached"}, `3`, true},
		{doc, []string{"usage", "total"}, `5`, true},
		{doc, []string{"usage", "none"}, ``, false},
		{doc, []string{"Usage"}, `2`, true},
		{doc, []string{`a\b`}, `6`, true},
		{doc, []string{"é"}, `7`, true},
		{doc, []string{`a\\b`}, ``, false},
		{doc, []string{"id", "x"}, ``, false},
		{doc, []string{"choices", "delta"}, ``, false},
		{doc, []string{""}, ``, false},
		{` 1 `, nil, `1`, true},
		{``, nil, ``, false},
		{``, []string{"a"}, ``, false},
		{`[]`, []string{"a"}, ``, false},
		{`{}`, []string{"a"}, ``, false},
		{`{"a":1,bad`, []string{"a"}, `1`, true},
		{`{"a":1,bad`, []string{"bad"}, ``, false},
		{`{"a":tru`, []string{"a"}, ``, false},
		{`{"a":`, []string{"a"}, ``, false},
		{`{"a" 1}`, []string{"a"}, ``, false},
		{`{"b":1 "a":1}`, []string{"a"}, ``, false},
		{nested(1000), []string{"a"}, ``, false},
	} {
		got, found := Get([]byte(tt.doc), tt.path...)
		if string(got) != tt.want || found != tt.found || (got == nil) == found {
			t.Errorf("Get(%.40s, %q) = %q, %v, want %q, %v", tt.doc, tt.path, got, found, tt.want, tt.found)
		}
	}
}

func TestMembers(t *testing.T) {
	for doc, want := range map[string]string{
		`{}`:                           ``,
		` { "a" : 1 , "b\n":[2,3] } x`: `"a"=1;"b\n"=[2,3];`,
		`{"a":1,"a":2}`:                `"a"=1;"a"=2;`,
		`{"a":1,"b":}`:                 `"a"=1;`,
		`{"a":1 "b":2}`:                `"a"=1;`,
		`[1]`:                          ``,
		``:                             ``,
	} {
		var got strings.Builder
		for name, value := range Members([]byte(doc)) {
			got.WriteString(string(name) + "=" + string(value) + ";")
		}
		if got.String() != want {
			t.Errorf("Members(%s) yields %s, want %s", doc, got.String(), want)
		}
	}
	for name := range Members([]byte(`{"a":1,"b":2}`)) {
		if string(name) != `"a"` {
			t.Errorf("goes on after a break: %s", name)
		}
		break
	}
}

func TestElements(t *testing.T) {
	for doc, want := range map[string]string{
		`[]`:                     ``,
		` [ 1 , {"a":[]},"x" ] `: `1;{"a":[]};"x";`,
		`[1,2`:                   `1;2;`,
		`[1,`:                    `1;`,
		`[1}`:                    `1;`,
		`{"a":1}`:                ``,
	} {
		var got strings.Builder
		for value := range Elements([]byte(doc)) {
			got.WriteString(string(value) + ";")
		}
		if got.String() != want {
			t.Errorf("Elements(%s) yields %s, want %s", doc, got.String(), want)
		}
	}
	for value := range Elements([]byte(`[1,2]`)) {
		if string(value) != "1" {
			t.Errorf("goes on after a break: %s", value)
		}
		break
	}
}

func TestKindOf(t *testing.T) {
	for value, want := range map[string]string{
		`null`: "null", `true`: "boolean", `false`: "boolean", `0`: "number", `-1`: "number", `9`: "number",
		`""`: "string", `[]`: "array", `{}`: "object", ``: "invalid", `x`: "invalid",
	} {
		if got := KindOf([]byte(value)).String(); got != want {
			t.Errorf("KindOf(%q) is %s, want %s", value, got, want)
		}
	}
}

func TestUnquote(t *testing.T) {
	for _, tt := range []struct {
		value, want string
		ok          bool
	}{
		{`""`, "", true},
		{`"héllo 中😀"`, "héllo 中😀", true},
		{`"\"\\\/\b\f\n\r\tx"`, "\"\\/\b\f\n\r\tx", true},
		{`"a\u00e9\u4E2D\ud83d\uDE00z"`, "aé中😀z", true},
		{`"\ud83d"`, "\uFFFD", true},
		{`"\ud83dx"`, "\uFFFDx", true},
		{`"\ud83d\n"`, "\uFFFD\n", true},
		{`"\ude00\ud83d"`, "\uFFFD\uFFFD", true},
		{`"\ud83d\ud83d\ude00"`, "\uFFFD😀", true},
		{`"\ud83d\u0041"`, "\uFFFDA", true},
		{`"\u0000"`, "\x00", true},
		{`"a`, "", false},
		{`"a" `, "", false},
		{`"a\"`, "", false},
		{`"`, "", false},
		{``, "", false},
		{`null`, "", false},
		{`"\x"`, "", false},
		{"\"a\nb\"", "", false},
		{"\"\xff\"", "", false},
	} {
		if got, ok := Unquote([]byte(tt.value)); got != tt.want || ok != tt.ok {
			t.Errorf("Unquote(%s) = %q, %v, want %q, %v", tt.value, got, ok, tt.want, tt.ok)
		}
	}
}

func TestAppendQuote(t *testing.T) {
	for s, want := range map[string]string{
		"":                           `""`,
		"plain <a>&</a>":             `"plain <a>&</a>"`,
		"\"\\/\n\r\t\b\x00\x1f\x7f":  `"\"\\/\n\r\t\u0008\u0000\u001f` + "\x7f\"",
		"中é😀\u2028":                  "\"中é😀\u2028\"",
		"a\xffb\xed\xa0\x80\xe4\xb8": "\"a\uFFFDb\uFFFD\uFFFD\uFFFD\uFFFD\uFFFD\"",
	} {
		if got := string(AppendQuote([]byte("x:"), s)); got != "x:"+want {
			t.Errorf("AppendQuote(%q) = %s, want %s", s, got, want)
		}
	}
}

func FuzzGet(f *testing.F) {
	f.Add([]byte(`{"a":{"b":[1,"\u00e9"]},"c":null}`), "a", "b")
	f.Add([]byte(`{"\u0061":1,"a":2}`), "a", "")
	f.Add([]byte(`{"a\\b":{"é":"\ud800"}}`), `a\b`, "é")
	f.Fuzz(func(t *testing.T, doc []byte, a, b string) {
		if !utf8.ValidString(a) || !utf8.ValidString(b) {
			return // no name in a document is such
		}
		for _, path := range [][]string{nil, {a}, {a, b}} {
			value, found := Get(doc, path...)
			if found && !json.Valid(value) {
				t.Fatalf("Get(%q, %q) = %q", doc, path, value)
			}
			want, there := firstValue(doc, path)
			if Scan(doc, testFields, new(Object)) == nil && (found != there || string(value) != want) {
				t.Fatalf("Get(%q, %q) = %q, %v, want %q, %v", doc, path, value, found, want, there)
			}
		}
		for name, value := range Members(doc) {
			if !json.Valid(name) || !json.Valid(value) {
				t.Fatalf("Members(%q) yields %q: %q", doc, name, value)
			}
		}
		for value := range Elements(doc) {
			if !json.Valid(value) {
				t.Fatalf("Elements(%q) yields %q", doc, value)
			}
		}
	})
}

// firstValue is Get by way of Members and decoded names.
func firstValue(doc []byte, path []string) (string, bool) {
	doc = []byte(strings.Trim(string(doc), " \t\r\n"))
	for _, want := range path {
		var next []byte
		for name, value := range Members(doc) {
			if n, _ := Unquote(name); n == want {
				next = value
				break
			}
		}
		if next == nil {
			return "", false
		}
		doc = next
	}
	return string(doc), true
}

func FuzzQuote(f *testing.F) {
	f.Add("plain", []byte(`"\u00e9\ud83d\ude00\ud800"`))
	f.Add("\x00\xff\"\\中", []byte("\"\xff\""))
	f.Fuzz(func(t *testing.T, s string, value []byte) {
		quoted := AppendQuote(nil, s)
		if got, ok := Unquote(quoted); !ok || got != string([]rune(s)) {
			t.Fatalf("%q becomes %s becomes %q, %v", s, quoted, got, ok)
		}
		var want string
		valid := json.Unmarshal(value, &want) == nil && len(value) > 0 && value[0] == '"' && value[len(value)-1] == '"' && utf8.Valid(value)
		if got, ok := Unquote(value); ok != valid || ok && got != want {
			t.Fatalf("Unquote(%q) = %q, %v, want %q, %v", value, got, ok, want, valid)
		}
	})
}
