package config

import (
	"errors"
	"os"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"
)

// Whatever the document: no panic, every problem lies inside it, what a secret variable holds is never shown, and
// what is accepted can be shown and read again.
func FuzzParse(f *testing.F) {
	f.Add(string(Sample()))
	if data, err := os.ReadFile("testdata/bad.txt"); err == nil {
		for _, c := range strings.Split(string(data), "=== ")[1:] {
			_, rest, _ := strings.Cut(c, "\n")
			document, _, _ := strings.Cut(rest, "-----\n")
			f.Add(document)
		}
	}
	f.Add("{data: a$${A} ${S}, providers: {openai: {api_key: ${S}}}}")
	f.Add("models: {a: {targets: [ollama/b, {to: ollama/c, weight: 2}], context: 1}}")
	f.Add("\uFEFFdata: |\r\n  a\r  b\n")

	opt := world("S", canary, "A", "a")
	f.Fuzz(func(t *testing.T, document string) {
		c, err := Parse(Source{Name: "f", Data: []byte(document)}, opt)
		if err == nil {
			showAndRead(t, c, opt)
			return
		}
		if strings.Contains(err.Error(), canary) {
			t.Errorf("shows the secret: %v", err)
		}
		var e *Errors
		if !errors.As(err, &e) || len(e.Problems) == 0 {
			t.Fatalf("got %#v, want *Errors with problems", err)
		}
		lines := newSource(Source{Data: []byte(document)}).lines
		for _, p := range e.Problems {
			if p.Line < 1 || p.Line > len(lines) || p.Column < 1 || p.Column > utf8.RuneCountInString(lines[p.Line-1])+1 {
				t.Errorf("%v lies outside of the document", p)
			}
		}
	})
}

func showAndRead(t *testing.T, c *Config, opt Options) {
	for _, show := range []func() ([]byte, error){c.RedactedYAML, c.RedactedJSON} {
		data, err := show()
		if err != nil {
			t.Fatalf("showing %+v: %v", c, err)
		}
		again, err := Parse(Source{Name: "shown", Data: data}, opt)
		if err != nil {
			t.Fatalf("reading what was shown: %v\n%s", err, data)
		}
		if got, want := hideSecrets(again), hideSecrets(c); !reflect.DeepEqual(got, want) {
			t.Errorf("shown\n%s\nreads as %+v, want %+v", data, got, want)
		}
	}
}

// hideSecrets makes a configuration comparable with one that was read from what is shown. Empty is as good as absent.
func hideSecrets(c *Config) *Config {
	for i := range c.Providers {
		p := &c.Providers[i]
		p.APIKey = Secret(p.APIKey.String())
		for name, value := range p.Headers {
			p.Headers[name] = Secret(value.String())
		}
	}
	dropEmpty(reflect.ValueOf(c).Elem())
	return c
}

func dropEmpty(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			dropEmpty(v.Elem())
		}
	case reflect.Struct:
		for i := range v.NumField() {
			dropEmpty(v.Field(i))
		}
	case reflect.Slice:
		for i := range v.Len() {
			dropEmpty(v.Index(i))
		}
		fallthrough
	case reflect.Map:
		if v.Len() == 0 {
			v.SetZero()
		}
	}
}
