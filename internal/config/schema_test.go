package config

import (
	"bytes"
	"encoding/json"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// fieldPaths lists every field that the types have, by reflection alone.
func fieldPaths(t reflect.Type, at string) []string {
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Map:
		return fieldPaths(t.Elem(), at)
	case reflect.Struct:
		var paths []string
		for i := range t.NumField() {
			name, option, _ := strings.Cut(t.Field(i).Tag.Get("yaml"), ",")
			if option == "inline" || option == "value" {
				paths = append(paths, fieldPaths(t.Field(i).Type, at)...)
			}
			if name == "" {
				continue
			}
			paths = append(paths, at+"/"+name)
			paths = append(paths, fieldPaths(t.Field(i).Type, at+"/"+name)...)
		}
		return paths
	}
	return nil
}

// node is as much of a JSON Schema as the tests look at.
type node struct {
	Ref         string           `json:"$ref"`
	Description string           `json:"description"`
	AnyOf       []*node          `json:"anyOf"`
	Items       *node            `json:"items"`
	Properties  map[string]*node `json:"properties"`
	Additional  json.RawMessage  `json:"additionalProperties"`
	Pattern     string           `json:"pattern"`
	Default     any              `json:"default"`
}

func (n *node) paths(t *testing.T, at string) []string {
	var paths []string
	if _, err := regexp.Compile(n.Pattern); err != nil {
		t.Errorf("%s: %v", at, err)
	}
	for name, property := range n.Properties {
		if property.Description == "" {
			t.Errorf("%s/%s has no description", at, name)
		}
		paths = append(paths, at+"/"+name)
		paths = append(paths, property.paths(t, at+"/"+name)...)
	}
	for _, choice := range n.AnyOf {
		paths = append(paths, choice.paths(t, at)...)
	}
	if n.Items != nil {
		paths = append(paths, n.Items.paths(t, at)...)
	}
	if n.Properties != nil && string(n.Additional) != "false" {
		t.Errorf("%s takes fields that do not exist", at)
	}
	if len(n.Additional) > 0 && string(n.Additional) != "false" {
		var additional node
		if err := json.Unmarshal(n.Additional, &additional); err != nil {
			t.Errorf("%s: %v", at, err)
		}
		paths = append(paths, additional.paths(t, at)...)
	}
	return paths
}

func TestSchemaHasEveryField(t *testing.T) {
	var root node
	if err := json.Unmarshal(Schema(), &root); err != nil {
		t.Fatal(err)
	}
	got, want := root.paths(t, ""), fieldPaths(reflect.TypeFor[Config](), "")
	slices.Sort(got)
	slices.Sort(want)
	got = slices.Compact(got) // one price stands for a list of them
	if !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	if !bytes.Equal(Schema(), Schema()) {
		t.Error("two calls give two schemas")
	}
	if i, j := bytes.Index(Schema(), []byte(`"listen"`)), bytes.Index(Schema(), []byte(`"models"`)); i > j {
		t.Error("the order of the fields is lost")
	}
	defaults := map[string]any{
		"listen": "127.0.0.1:8080", "behind_proxy": false, "refresh": "10m", "data": nil,
	}
	for name, want := range defaults {
		if got := root.Properties[name].Default; got != want {
			t.Errorf("default of %s: got %v, want %v", name, got, want)
		}
	}
	if got := root.Properties["timeouts"].Properties["shutdown_delay"].Default; got != "0s" {
		t.Errorf("default of shutdown_delay: got %v, want 0s", got)
	}
}

// The schema's patterns accept what the decoder writes.
func TestSchemaPatterns(t *testing.T) {
	tests := []struct {
		of   any
		good []string
		bad  []string
	}{
		{Duration(0), []string{"30s", "1h30m", "1.5h", "0s"}, []string{"30", "s", "1 s"}},
		{ByteSize(0), []string{"64MiB", "10MB", "1", "8 KiB", "1B"}, []string{"MiB", "1.5MiB", "1mb"}},
		{Percent(0), []string{"0", "10", "10%", "100%"}, []string{"%", "101%", "-1", "1.5%"}},
		{Rate{}, []string{"0", "1.25", "10000", "0.000001"}, []string{"", "-1", "1e3", ".5", "1.", "0.0000001", "$1"}},
		{Fee{}, []string{"0", "0.01", "0.000000001"}, []string{"-1", "1e-2", "0.0000000001", "free"}},
		{Factor(0), []string{"50%", "200", "1000%"}, []string{"0", "1001%", "-5%", "2.5%"}},
		{Markup(0), []string{"0", "10%", "5.5%", "12.25"}, []string{"-5%", "1.234%", "%"}},
		{Date{}, []string{"2026-01-31", "2026-01-31T15:00:00Z"}, []string{"31.1.2026", "soon"}},
		{Upstream{}, []string{"a/b", "a/b/c"}, []string{"a", "/b", "a/", "a/b c"}},
	}
	for _, tt := range tests {
		pattern := regexp.MustCompile(ruleOf(reflect.TypeOf(tt.of), field{}).pattern)
		for _, text := range tt.good {
			if !pattern.MatchString(text) {
				t.Errorf("%T: refuses %q", tt.of, text)
			}
		}
		for _, text := range tt.bad {
			if pattern.MatchString(text) {
				t.Errorf("%T: accepts %q", tt.of, text)
			}
		}
	}
}

func TestSampleMeansTheDefaults(t *testing.T) {
	if got := parse(t, string(Sample())); !reflect.DeepEqual(got, Default()) {
		t.Errorf("got %#v, want the defaults", got)
	}
	if !bytes.HasPrefix(Sample(), []byte("# yaml-language-server: $schema=https://")) {
		t.Errorf("begins with %.60q", Sample())
	}
}

// With every setting uncommented the sample still is a document, mentions every field of the first two levels, and
// shows the true defaults.
func TestSampleUncommented(t *testing.T) {
	text := regexp.MustCompile(`(?m)^#([^ \n]|  )`).ReplaceAllString(string(Sample()), "$1")
	c := parse(t, text, "OPENAI_API_KEY", "x")
	want := Default()
	if c.Limits != want.Limits || c.Timeouts != want.Timeouts || c.Log != want.Log || c.Keys != want.Keys || c.Refresh != want.Refresh || c.Retries != want.Retries {
		t.Errorf("got %+v, want the defaults %+v", c, want)
	}
	for _, f := range fieldsOf(reflect.TypeFor[Config]()) {
		if !regexp.MustCompile(`(?m)^` + f.name + `:`).MatchString(text) {
			t.Errorf("%s is missing", f.name)
		}
	}
	if len(c.Providers) != 2 || len(c.Models) != 1 || !c.TLS.Enabled() {
		t.Errorf("got %d providers, %d models, TLS %v, want 2, 1, true", len(c.Providers), len(c.Models), c.TLS)
	}
}

// What config show prints is a document that says the same, apart from the secrets.
func TestRedactedReadsBack(t *testing.T) {
	c := parse(t, `
retries: { budget: 0 }
data: "a $${b} $${ \"c\" # d"
tls: { acme: { domains: [a.example.com] } }
cors: { origins: ["*"] }
providers:
  z: { base_url: http://z, headers: { b: x, a: "" }, quirks: { drop: [a], rename: { c: d }, stream_usage: false } }
  a: { base_url: http://a, models: ["*", "true", "1"] }
  openai:
    markup: 0%
    prices: { "gpt-*": free, "*": [{ input: 1.25, call: 0.005 }, { is: free, from: 2026-01-31 }], o3: { tiers: [] } }
prices: { unknown: ceiling, ceiling: { input: 20, output: 100.5 }, in_usage: true, markup: 5.5% }
models:
  priced: { targets: [z/x], markup: 12.25%, price: { input: 0.000001, flex: 50%, from: "2026-01-31T15:00:00Z", tiers: [{ over: 7, output: 9 }, { over: 8, input: 1 }] } }
  "1": { targets: [z/x, { to: z/y, weight: 2, when: "team in ['a', \"b\"]" }], hedge: { max: 0% }, first_token: 1s, description: "two\nlines: é 😀", context: 5 }
`)
	for name, show := range map[string]func() ([]byte, error){"YAML": c.RedactedYAML, "JSON": c.RedactedJSON} {
		data, err := show()
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		got := parse(t, string(data))
		got.Providers[0].Headers["b"] = "x"
		if !reflect.DeepEqual(got, c) {
			t.Errorf("%s:\n%s\ngot  %+v\nwant %+v", name, data, got, c)
		}
	}
	data, _ := c.RedactedJSON()
	if !json.Valid(data) {
		t.Errorf("not JSON: %s", data)
	}
	want := []string{`"listen"`, `"tls"`, `"timeouts"`, `"z"`, `"a"`, `"openai"`, `"models"`}
	at := 0
	for _, name := range want {
		i := bytes.Index(data[at:], []byte(name))
		if i < 0 {
			t.Fatalf("%s is not where it should be in\n%s", name, data)
		}
		at += i
	}
}
