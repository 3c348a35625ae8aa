package jsonedit

import (
	"bytes"
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// apply scans doc, makes the changes and joins the segments.
func apply(t *testing.T, doc string, changes ...Change) string {
	t.Helper()
	var o Object
	if err := Scan([]byte(doc), testFields, &o); err != nil {
		t.Fatalf("Scan(%q) = %v", doc, err)
	}
	segments, size := Splice(nil, o.doc, o.Edits(nil, changes...))
	got := bytes.Join(segments, nil)
	if len(got) != size {
		t.Fatalf("size is %d, segments have %d", size, len(got))
	}
	if string(o.doc) != doc {
		t.Fatalf("the document was modified: %q", o.doc)
	}
	return string(got)
}

func TestEdits(t *testing.T) {
	one, two := []byte(`1`), []byte(`{"a":2}`)
	for _, tt := range []struct {
		name, doc string
		changes   []Change
		want      string
	}{
		{"nothing", `{"model":"m"}`, nil, `{"model":"m"}`},
		{"replace", ` { "x" : 1 , "model" : "m" , "y":2 } `, []Change{Set(fModel, two)}, ` { "x" : 1 , "model" : {"a":2} , "y":2 } `},
		{"replace under an escaped name", `{"mod\u0065l":"m"}`, []Change{Set(fModel, one)}, `{"mod\u0065l":1}`},
		{"insert into an empty object", `{}`, []Change{Set(fModel, one)}, `{"model":1}`},
		{"insert two into an empty object", `{ }`, []Change{Set(fModel, one), Set(fK, two)}, `{ "model":1,"k":{"a":2}}`},
		{"insert behind", `{"x":0 }`, []Change{Set(fModel, one)}, `{"x":0 ,"model":1}`},
		{"remove an absent one", `{"x":0}`, []Change{Remove(fModel)}, `{"x":0}`},
		{"remove the only one", `{ "model" : 1 }`, []Change{Remove(fModel)}, `{ }`},
		{"remove the first", `{"model":1 , "x":2}`, []Change{Remove(fModel)}, `{"x":2}`},
		{"remove the middle", `{"x":1, "model":1 ,"y":2}`, []Change{Remove(fModel)}, `{"x":1 ,"y":2}`},
		{"remove the last", `{"x":1, "model":1}`, []Change{Remove(fModel)}, `{"x":1}`},
		{"remove two neighbours in front", `{"k":1,"model":2,"x":3}`, []Change{Remove(fModel), Remove(fK)}, `{"x":3}`},
		{"remove two neighbours behind", `{"x":3,"model":2,"k":1}`, []Change{Remove(fModel), Remove(fK)}, `{"x":3}`},
		{"remove first and last", `{"model":2,"x":3,"k":1}`, []Change{Remove(fK), Remove(fModel)}, `{"x":3}`},
		{"remove first and third", `{"model":2,"x":3,"k":1,"y":4}`, []Change{Remove(fModel), Remove(fK)}, `{"x":3,"y":4}`},
		{"remove all, insert", `{"k":1,"model":2}`, []Change{Remove(fModel), Remove(fK), Set(fStream, one)}, `{"stream":1}`},
		{"remove the last, insert", `{"x":1,"model":2}`, []Change{Set(fStream, one), Remove(fModel)}, `{"x":1,"stream":1}`},
		{"remove all, replace one", `{"k":1,"model":2}`, []Change{Set(fModel, one), Remove(fK)}, `{"model":1}`},
		{"the last change counts", `{"k":1,"model":2}`, []Change{Remove(fK), Set(fModel, two), Set(fK, two), Remove(fModel)}, `{"k":{"a":2}}`},
		{"no value changes nothing", `{"k":1}`, []Change{Set(fK, nil), Set(fModel, nil)}, `{"k":1}`},
		{"comma in front has white space around it", "{\"x\":\",\"\n,\n\"model\":1\n}", []Change{Remove(fModel)}, "{\"x\":\",\"\n\n}"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := apply(t, tt.doc, tt.changes...); got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
}

// A member is renamed by removing it and setting the other one.
func TestRename(t *testing.T) {
	for doc, want := range map[string]string{
		`{"k":7,"x":1}`:              `{"x":1,"max_tokens":7}`,
		`{"k":7}`:                    `{"max_tokens":7}`,
		`{"x":1}`:                    `{"x":1}`,
		`{"max_tokens":3}`:           `{"max_tokens":3}`,
		`{"max_tokens":3,"k":7}`:     `{"max_tokens":7}`,
		`{ "k" : [7] , "model":"m"}`: `{ "model":"m","max_tokens":[7]}`,
	} {
		var o Object
		if err := Scan([]byte(doc), testFields, &o); err != nil {
			t.Fatal(err)
		}
		if got := apply(t, doc, Remove(fK), Set(fMaxTokens, o.Value(fK))); got != want {
			t.Errorf("%s: got %s, want %s", doc, got, want)
		}
	}
}

// Every object of up to four members, some of which are fields, under every
// combination of changes to three fields, comes out as a decoder's map would.
func TestEditsEveryCombination(t *testing.T) {
	members := []string{`"model":1`, `"stream":2`, `"k":3`, `"x":4`, `"y":5`}
	var docs []string
	var build func(list []string)
	build = func(list []string) {
		docs = append(docs, "{"+strings.Join(list, ",")+"}", " { "+strings.Join(list, " , ")+" } ")
		for _, m := range members {
			if len(list) < 4 && !slices.Contains(list, m) {
				build(append(slices.Clip(list), m))
			}
		}
	}
	build(nil)

	fields := []int{fModel, fStream, fK}
	for _, doc := range docs {
		for n := range 3 * 3 * 3 {
			var changes []Change
			want := decode(t, doc)
			for _, field := range fields {
				name := testFields.names[field]
				switch n % 3 {
				case 1:
					changes = append(changes, Remove(field))
					delete(want, name)
				case 2:
					changes = append(changes, Set(field, []byte(`"new"`)))
					want[name] = "new"
				}
				n /= 3
			}
			got := apply(t, doc, changes...)
			if !maps.EqualFunc(decode(t, got), want, reflect.DeepEqual) {
				t.Fatalf("%s with %+v: got %s, want %v", doc, changes, got, want)
			}
			if err := Scan([]byte(got), testFields, new(Object)); err != nil {
				t.Fatalf("%s with %+v: got %s: %v", doc, changes, got, err)
			}
		}
	}
}

func decode(t *testing.T, doc string) map[string]any {
	t.Helper()
	m := map[string]any{}
	if err := json.Unmarshal([]byte(doc), &m); err != nil {
		t.Fatalf("%s: %v", doc, err)
	}
	return m
}

func TestSplice(t *testing.T) {
	doc := []byte("0123456789")
	x, y := []byte("x"), []byte("yy")
	for _, tt := range []struct {
		name  string
		edits []Edit
		want  []string
	}{
		{"none", nil, []string{"0123456789"}},
		{"out of order", []Edit{{Span{7, 9}, x}, {Span{1, 2}, y}}, []string{"0", "yy", "23456", "x", "9"}},
		{"neighbours", []Edit{{Span{2, 4}, x}, {Span{4, 6}, nil}}, []string{"01", "x", "6789"}},
		{"insert in order", []Edit{{Span{10, 10}, x}, {Span{0, 0}, y}, {Span{10, 10}, y}}, []string{"yy", "0123456789", "x", "yy"}},
		{"insert before what is replaced", []Edit{{Span{3, 5}, x}, {Span{3, 3}, y}}, []string{"012", "yy", "x", "56789"}},
		{"everything", []Edit{{Span{0, 10}, nil}}, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			segments, size := Splice(nil, doc, tt.edits)
			var got []string
			n := 0
			for _, s := range segments {
				got = append(got, string(s))
				n += len(s)
			}
			if !slices.Equal(got, tt.want) || size != n {
				t.Errorf("got %q, %d bytes, want %q", got, size, tt.want)
			}
		})
	}
}

func TestSpliceOverlap(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("Splice did not panic")
		}
	}()
	Splice(nil, []byte("0123456789"), []Edit{{At: Span{2, 6}}, {At: Span{5, 7}}})
}

func TestEditAllocates(t *testing.T) {
	doc := []byte(`{"model":"m","stream":true}`)
	var o Object
	if err := Scan(doc, testFields, &o); err != nil {
		t.Fatal(err)
	}
	value := []byte("1")
	if n := testing.AllocsPerRun(100, func() {
		var edits [4]Edit
		var segments [8][]byte
		Splice(segments[:0], doc, o.Edits(edits[:0], Set(fModel, value), Set(fK, value), Remove(fStream)))
	}); n != 0 {
		t.Errorf("editing allocates %v times, want 0", n)
	}
}

// firstAndLast reads the members of a document as a parser would for which the
// first, and as one for which the last of several with one name counts.
func firstAndLast(doc []byte) (first, last map[string]string) {
	first, last = map[string]string{}, map[string]string{}
	for name, value := range Members(doc) {
		n, _ := Unquote(name)
		if _, there := first[n]; !there {
			first[n] = string(value)
		}
		last[n] = string(value)
	}
	return first, last
}

func FuzzEdit(f *testing.F) {
	for _, s := range []string{`{}`, `{"model":"m","stream":true}`, ` { "x" : 1 , "model" : 2 , "x" : 3 , "k" : 4 } `,
		`{"m\u006fdel":1,"stream_options":{"a":[]},"max_tokens":1}`} {
		f.Add([]byte(s), uint64(0))
		f.Add([]byte(s), uint64(0x1b39c))
	}
	f.Fuzz(func(t *testing.T, doc []byte, plan uint64) {
		var o Object
		if Scan(doc, testFields, &o) != nil {
			return
		}
		first, last := firstAndLast(doc)
		var changes []Change
		for range 7 {
			field := int(plan>>2&7) % len(testFields.names)
			name := testFields.names[field]
			switch plan & 3 {
			case 1:
				changes = append(changes, Remove(field))
				delete(first, name)
				delete(last, name)
			case 2, 3:
				changes = append(changes, Set(field, []byte(`"new"`)))
				first[name], last[name] = `"new"`, `"new"`
			}
			plan >>= 5
		}
		segments, size := Splice(nil, doc, o.Edits(nil, changes...))
		got := bytes.Join(segments, nil)
		if len(got) != size {
			t.Fatalf("size is %d, want %d", size, len(got))
		}
		if err := Scan(got, testFields, new(Object)); err != nil {
			t.Fatalf("%q with %+v gives %q: %v", doc, changes, got, err)
		}
		gotFirst, gotLast := firstAndLast(got)
		if !maps.Equal(gotFirst, first) || !maps.Equal(gotLast, last) {
			t.Fatalf("%q with %+v gives %q", doc, changes, got)
		}
	})
}
