package config

import (
	"errors"
	"strings"
	"testing"
)

const edited = `# Ours.
listen: 127.0.0.1:8080 # here

providers:
  # the big one
  openai: # main
    # paid by research
    api_key: ${secret:openai}
    models: [a, b] # two
    headers: {x-team: research}

  lab: { base_url: "${LAB}", api_key: "${secret:lab}" }  # the lab's
# the end of providers

models:
  "fast/1":
    targets: [openai/a]
`

// replaced is the document with one part in the place of another.
func replaced(parts ...string) string { return strings.NewReplacer(parts...).Replace(edited) }

func TestEdit(t *testing.T) {
	set := func(section, name, value string) func(*Document) (string, error) {
		return func(d *Document) (string, error) { return d.Set(section, name, []byte(value)) }
	}
	remove := func(section, name string) func(*Document) (string, error) {
		return func(d *Document) (string, error) { return d.Remove(section, name) }
	}
	for _, c := range []struct {
		name, text string
		edit       func(*Document) (string, error)
		want       string
	}{
		{
			"the same", edited,
			set("providers", "openai", `{"api_key":"[redacted]","models":["a","b"],"headers":{"x-team":"research"}}`), edited,
		},
		{
			"a member set", edited,
			set("providers", "openai", `{"api_key":"${secret:new}","models":["a","b"],"headers":{"x-team":"research"}}`),
			replaced("api_key: ${secret:openai}", "api_key: ${secret:new}"),
		},
		{
			"members changed, gone and new", edited,
			set("providers", "openai", `{"models":["a","b","c"],"api_key":"${secret:openai}","concurrency":5,"sockets":true,"region":null}`),
			replaced("    models: [a, b] # two\n    headers: {x-team: research}\n", "    models: [a, b, c] # two\n    concurrency: 5\n    sockets: true\n"),
		},
		{
			"in brackets", edited,
			set("providers", "lab", `{"base_url":"[redacted]","api_key":"[redacted]","region":"eu"}`),
			replaced(`  lab: { base_url: "${LAB}", api_key: "${secret:lab}" }  # the lab's`, "  lab: # the lab's\n    base_url: \"${LAB}\"\n    api_key: \"${secret:lab}\"\n    region: eu"),
		},
		{
			"a new one", edited,
			set("providers", "groq", `{"api_key":"${secret:provider-groq}"}`),
			replaced("# the lab's\n", "# the lab's\n  groq:\n    api_key: ${secret:provider-groq}\n"),
		},
		{
			"one that says nothing", edited, set("providers", "ollama", `{}`),
			replaced("# the lab's\n", "# the lab's\n  ollama: {}\n"),
		},
		{
			"a model with a slash", edited, set("models", "fast/1", `{"targets":["openai/a",{"to":"lab/b","when":"tokens < 8000"}]}`),
			replaced("    targets: [openai/a]\n", "    targets:\n    - openai/a\n    - to: lab/b\n      when: tokens < 8000\n"),
		},
		{"one gone", edited, remove("providers", "lab"), replaced(`  lab: { base_url: "${LAB}", api_key: "${secret:lab}" }  # the lab's`+"\n", "")},
		{"the only one gone", edited, remove("models", "fast/1"), replaced("  \"fast/1\":\n    targets: [openai/a]\n", "")},
		{"nothing is there", "", set("providers", "a", `{"base_url":"http://a/v1"}`), "providers:\n  a:\n    base_url: http://a/v1\n"},
		{"no section", "listen: a:1", set("models", "m", `{"targets":["a/b"]}`), "listen: a:1\n\nmodels:\n  m:\n    targets: [a/b]\n"},
		{"an empty section", "models:\n# none\nlisten: a:1\n", set("models", "m", `{"targets":["a/b"]}`), "models:\n  m:\n    targets: [a/b]\n# none\nlisten: a:1\n"},
		{"a section in brackets", "models: {} # none\n", set("models", "m", `{"targets":["a/b"]}`), "models: # none\n  m:\n    targets: [a/b]\n"},
		{"odd texts", "", set("models", "m", `{"targets":["a/b"],"description":"yes: \"1\"\n# no\nü ${X:?a: b}"}`), "models:\n  m:\n    targets: [a/b]\n    description: |-\n      yes: \"1\"\n      # no\n      ü ${X:?a: b}\n"},
	} {
		d, err := ReadDocument(Source{Name: "x", Data: []byte(c.text)})
		if err != nil {
			t.Fatal(err)
		}
		if got, err := c.edit(d); err != nil || got != c.want {
			t.Errorf("%s: %v, got\n%s\nwant\n%s", c.name, err, got, c.want)
		}
	}
}

func TestEditRefused(t *testing.T) {
	for _, c := range []struct{ name, text, value string }{
		{"all in brackets", "{listen: a:1}", `{}`},
		{"an anchor", "providers: &p\n  openai: {}\n  a: 1\nmodels: *p\n", `{"api_key":"x"}`},
		{"no object", "", `[]`},
		{"null", "", `null`},
		{"no JSON", "", `{`},
		{"twice", "", `{"a":1,"a":2}`},
		{"deep", "", strings.Repeat(`{"a":`, 40) + "1" + strings.Repeat("}", 40)},
	} {
		d, err := ReadDocument(Source{Name: "x", Data: []byte(c.text)})
		if err != nil {
			t.Fatal(err)
		}
		if got, err := d.Set("providers", "openai", []byte(c.value)); err == nil {
			t.Errorf("%s: got %q", c.name, got)
		}
	}
	d, err := ReadDocument(Source{Data: []byte(edited)})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.Remove("providers", "gone"); !errors.Is(err, ErrNotThere) {
		t.Errorf("what is not there: %v", err)
	}
	if _, err := d.SetMember("providers", "gone", "api_key", "x"); !errors.Is(err, ErrNotThere) {
		t.Errorf("a member of what is not there: %v", err)
	}
	got, err := d.SetMember("providers", "openai", "api_key", "${secret:provider-openai}")
	if want := replaced("api_key: ${secret:openai}", "api_key: ${secret:provider-openai}"); err != nil || got != want {
		t.Errorf("%v, got\n%s", err, got)
	}
}

func TestStoredDocument(t *testing.T) {
	opt := world("KEY", "k")
	opt.Stored = true
	opt.Secret = func(name string) (string, error) {
		if name != "lab" {
			return "", errors.New("there is no secret " + name)
		}
		return canary, nil
	}
	for _, c := range []struct{ text, want string }{
		{"providers: {lab: {base_url: http://a/v1, api_key: '${secret:lab}', headers: {authorization: 'Bearer ${secret:lab}', x-team: research}}}", ""},
		{"providers: {lab: {base_url: http://a/v1, api_key: '${KEY}', api_keys: ['${KEY:-}x']}}", "x:1:72: a secret cannot stand here in clear (keep it with 'limen config secret set NAME', and write ${secret:NAME})"},
		{"providers: {lab: {base_url: http://a/v1, api_key: sk-abc}}", "x:1:51: a secret cannot stand here in clear"},
		{"providers: {lab: {base_url: http://a/v1, api_key: '${NONE:-sk-abc}'}}", "x:1:51: a secret cannot stand here in clear"},
		{"providers: {lab: {base_url: http://a/v1, headers: {x-api-key: abc}}}", "x:1:63: a secret cannot stand here in clear"},
		{"providers: {lab: {base_url: http://a/v1, api_key: '${secret:gone}'}}", "x:1:52: there is no secret gone (set it with 'limen config secret set gone')"},
		{"providers: {lab: {base_url: 'http://a/${KEY}'}}", "x:1:39: only secrets can be referred to by a document of the store (write the value itself)"},
		{"models: {m: {description: '${secret:lab}', targets: []}}", "x:1:28: only secrets can be referred to by a document of the store"},
		{"providers: {lab: {base_url: http://a/v1, api_key: '${file:/etc/passwd}'}}", "x:1:52: a document of the store reads no files"},
		{"providers: {lab: {base_url: http://a/v1, api_key: '${LIMEN_STATE_KEY}'}}", "x:1:52: the gateway's own variables cannot be referred to"},
		{"providers: {lab: {base_url: http://a/v1, api_key: '${secret:lab}'}}\nmodels: {m: {targets: [lab/m], description: '$${KEY}'}}", ""},
		{"alerts: {webhook: {url: https://hooks.example.com/abc}}", "x:1:25: a secret cannot stand here in clear"},
		{"data: /var/lib/limen", "x:1:1: data cannot be set here: it must be known before the store is open (use --data or LIMEN_DATA)"},
		{"log: {level: info, format: json}", "x:1:20: format cannot be set here: it must be known before the store is open (use --log-format)"},
	} {
		cfg, err := Parse(Source{Name: "x", Data: []byte(c.text)}, opt)
		switch {
		case c.want == "" && err != nil, c.want != "" && (err == nil || !strings.HasPrefix(err.Error(), c.want)):
			t.Errorf("%s: %v, want %s", c.text, err, c.want)
		case err != nil && strings.Contains(err.Error(), "sk-abc"):
			t.Errorf("%s: shown by %v", c.text, err)
		case err == nil && cfg.Providers[0].APIKey.Reveal() != canary:
			t.Errorf("%s: the key is %q", c.text, cfg.Providers[0].APIKey.Reveal())
		}
	}
	if _, err := Parse(Source{Name: "x", Data: []byte("providers: {lab: {base_url: http://a/v1, api_key: '${secret:any}'}}")}, world()); err != nil {
		t.Errorf("where no secret can be known: %v", err)
	}
}

func TestShown(t *testing.T) {
	const text = `# api_key: sk-old-1234567890
providers:
  openai: { api_key: sk-canary, models: [a] } # token: canary-9
  lab:
    base_url: http://a/v1
    api_key: |
      canary
      canary
    api_keys: ["canary \" x", '${secret:lab}']  # further
    headers: {authorization: "Bearer ${secret:docs}", x: canary}
    api_kye: canary
    #  api_key: ${LAB}
`
	const want = `# api_key: [redacted]
providers:
  openai: { api_key: [redacted], models: [a] } # token: [redacted]
  lab:
    base_url: http://a/v1
    api_key: [redacted]
    api_keys: [[redacted], '${secret:lab}']  # further
    headers: {authorization: "Bearer ${secret:docs}", x: [redacted]}
    api_kye: [redacted]
    #  api_key: ${LAB}
`
	const document = `{"providers":{"openai":{"api_key":"[redacted]","models":["a"]},"lab":{"base_url":"http://a/v1","api_key":"[redacted]",` +
		`"api_keys":["[redacted]","${secret:lab}"],"headers":{"authorization":"Bearer ${secret:docs}","x":"[redacted]"},"api_kye":"[redacted]"}}}`
	d, err := ReadDocument(Source{Name: "x", Data: []byte(text)})
	if err != nil {
		t.Fatal(err)
	}
	if got := d.Shown(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if got := string(d.JSON()); got != document {
		t.Errorf("got  %s\nwant %s", got, document)
	}
	if got := strings.Join(d.Secrets(), " "); got != "docs lab" {
		t.Errorf("secrets: %s", got)
	}
	if got := Outline(Source{Data: []byte("a: canary\n  b: [canary\n")}); strings.Contains(got, "canary") || !strings.HasPrefix(got, "a: …\n") {
		t.Errorf("the outline is %q", got)
	}
}
