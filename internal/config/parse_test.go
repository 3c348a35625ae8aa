package config

import (
	"bytes"
	"errors"
	"flag"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

// world is an environment and files to resolve references in.
func world(env ...string) Options {
	return Options{
		Getenv: func(name string) (string, bool) {
			for i := 0; i < len(env); i += 2 {
				if env[i] == name {
					return env[i+1], true
				}
			}
			return "", false
		},
		ReadFile: func(path string) ([]byte, error) {
			switch path {
			case "/run/secrets/x":
				return []byte("from-file\n"), nil
			case "/run/secrets/big":
				return make([]byte, maxReferenced+1), nil
			}
			return nil, &fs.PathError{Op: "open", Path: path, Err: fs.ErrNotExist}
		},
		Vendors:   []string{"anthropic", "openai"},
		Responses: []string{"openai"},
		Providers: []string{"ollama"},
		Keeps: func(vendor string, speaks []string) string {
			if vendor == "openai" || slices.Contains(speaks, "openai-responses") {
				return ""
			}
			return "it does not speak openai-responses"
		},
	}
}

func parse(t *testing.T, document string, env ...string) *Config {
	t.Helper()
	c, err := Parse(Source{Name: "limen.yaml", Data: []byte(document)}, world(env...))
	if err != nil {
		t.Fatalf("Parse: %v", err)
	}
	return c
}

func TestDocumentOfTheReadme(t *testing.T) {
	c := parse(t, `listen: 127.0.0.1:8080
data: ./limen-data
providers:
  openai: { api_key: ${OPENAI_API_KEY} }            # a vendor of the table, by its name
  lab:                                              # any other
    base_url: http://127.0.0.1:9000/v1
    api_key: secret
    speaks: [openai-chat, openai-responses]         # dialects, best first
models:
  fast: { targets: [lab/small] }                    # provider/upstream-model
`, "OPENAI_API_KEY", "sk-1")
	want := Default()
	want.Data = "./limen-data"
	want.Providers = []Provider{
		{Name: "openai", APIKey: "sk-1"},
		{Name: "lab", BaseURL: "http://127.0.0.1:9000/v1", APIKey: "secret", Speaks: []string{"openai-chat", "openai-responses"}},
	}
	want.Models = []Model{{ID: "fast", Targets: []Target{{Upstream: Upstream{"lab", "small"}}}, Affinity: "on"}}
	if !reflect.DeepEqual(c, want) {
		t.Errorf("got %#v\nwant %#v", c, want)
	}
}

// Sockets are for providers that serve Responses: as they say themselves, else as their vendor does.
func TestSocketsOfProviders(t *testing.T) {
	for document, good := range map[string]bool{
		`{ openai: { sockets: true } }`:              true,
		`{ lab: { vendor: openai, sockets: true } }`: true,
		`{ lab: { base_url: "http://h/v1", speaks: [openai-chat, openai-responses], sockets: true } }`: true,
		`{ anthropic: { sockets: false } }`:                    true,
		`{ anthropic: { sockets: true } }`:                     false,
		`{ openai: { speaks: [openai-chat], sockets: true } }`: false,
		`{ lab: { base_url: "http://h/v1", sockets: true } }`:  false,
	} {
		_, err := Parse(Source{Name: "limen.yaml", Data: []byte("providers: " + document)}, world())
		if (err == nil) != good || err != nil && !strings.Contains(err.Error(), "sockets need Responses") {
			t.Errorf("%s: %v", document, err)
		}
	}
}

var update = flag.Bool("update", false, "write the messages into testdata/bad.txt anew")

// Each case of testdata/bad.txt is a document, a line of dashes, and the whole error.
func TestBadDocuments(t *testing.T) {
	const file, separator = "testdata/bad.txt", "-----\n"
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var rewritten strings.Builder
	cases := strings.Split(string(data), "=== ")[1:]
	if len(cases) < 30 {
		t.Errorf("got %d cases, want at least 30", len(cases))
	}
	for _, c := range cases {
		name, rest, _ := strings.Cut(c, "\n")
		document, want, found := strings.Cut(rest, separator)
		if !found {
			t.Fatalf("%s: no line of dashes", name)
		}
		t.Run(name, func(t *testing.T) {
			_, err := Parse(Source{Name: "limen.yaml", Data: []byte(document)}, world("SECRET", "canary", "EMPTY", ""))
			if err == nil {
				t.Fatal("got no error")
			}
			got := err.Error() + "\n"
			rewritten.WriteString("=== " + name + "\n" + document + separator + got)
			if got != want && !*update {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
			if strings.Contains(got, "canary") {
				t.Errorf("shows a secret:\n%s", got)
			}
		})
	}
	if *update {
		if err := os.WriteFile(file, []byte(rewritten.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// What cannot stand in a text file.
func TestBadText(t *testing.T) {
	tests := []struct {
		name, document string
		want           string
	}{
		{"not UTF-8", "listen: a\n data: \xff", "x:2:8: the document is not UTF-8\n   data: …\n         ^"},
		{"UTF-16", "\xff\xfel\x00", "x:1:1: the document is not UTF-8"},
		{"control character", "data: a\x00b", "x:1:8: the character U+0000 is not allowed\n  data: …\n        ^"},
		{"placeholder", "data: \uFDD0", "x:1:7: the character U+FDD0 is not allowed\n  data: …\n        ^"},
		{"line separator", "data: a\u2028lissen: b", "x:1:8: the character U+2028 is not allowed\n  data: …\n        ^"},
		{"too large", strings.Repeat("#", maxDocument+1), "x:1:1: the document is larger than 4MiB"},
		{"carriage returns count once", "data: a\r\nlissen: b\rdate: c", "" +
			"x:2:1: unknown field \"lissen\" (did you mean \"listen\"?)\n  lissen: …\n  ^\n" +
			"x:3:1: unknown field \"date\" (did you mean \"data\"?)\n  date: …\n  ^"},
		{"byte order mark", "\uFEFFlissen: a", "x:1:1: unknown field \"lissen\" (did you mean \"listen\"?)\n  lissen: …\n  ^"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := Parse(Source{Name: "x", Data: []byte(tt.document)}, world())
			if err == nil || err.Error() != tt.want {
				t.Errorf("got\n%v\nwant\n%s", err, tt.want)
			}
		})
	}
}

func TestManyProblemsAreCounted(t *testing.T) {
	_, err := Parse(Source{Name: "x", Data: []byte("limits: {" + strings.Repeat("a: 1, ", 120) + "}")}, world())
	var e *Errors
	if !errors.As(err, &e) {
		t.Fatalf("got %v, want *Errors", err)
	}
	if len(e.Problems) != maxProblems || e.More != 20 {
		t.Errorf("got %d problems and %d more, want %d and 20", len(e.Problems), e.More, maxProblems)
	}
	if !strings.HasSuffix(err.Error(), "\n… and 20 more") {
		t.Errorf("got %q at the end", err.Error()[len(err.Error())-40:])
	}
}

// Nothing that fits into a document takes long.
func TestHostileDocuments(t *testing.T) {
	fill := func(unit string) string { return strings.Repeat(unit, maxDocument/8/len(unit)) }
	tests := map[string]string{
		"deep list":          fill("["),
		"deep mapping":       fill("{a: "),
		"deep sequence":      fill("- "),
		"unknown fields":     "{" + fill("abcdefgh: 1, ") + "}",
		"open references":    "data: " + fill("${A:-"),
		"escaped references": "data: '" + fill("$${A}") + "'",
		"providers":          "providers: {" + fill("a: {}, ") + "}",
		"long name":          fill("a") + ": 1",
		"aliases":            "providers: &a\n  x: *a\n" + fill("\n  y: *a"),
	}
	for name, document := range tests {
		t.Run(name, func(t *testing.T) {
			start := time.Now()
			_, err := Parse(Source{Name: "x", Data: []byte(document)}, world())
			if took := time.Since(start); took > 10*time.Second {
				t.Errorf("took %v", took)
			}
			if err != nil && len(err.Error()) > 64<<10 {
				t.Errorf("got an error of %d bytes", len(err.Error()))
			}
		})
	}
}

func TestEmptyDocuments(t *testing.T) {
	for _, document := range []string{"", "\n", "# nothing\n", "---\n", "{}", "providers:\nmodels:\n", "\uFEFF"} {
		if got := parse(t, document); !reflect.DeepEqual(got, Default()) {
			t.Errorf("%q: got %#v, want the defaults", document, got)
		}
	}
}

// A document with every field, and what it says.
func TestEveryField(t *testing.T) {
	yes, two, twenty := true, 2*second, 20*second
	c := parse(t, `
listen: "[::1]:0"
data: /var/lib/limen
public_url: https://llm.example.com/base
behind_proxy: true
tls: { acme: { domains: [a.example.com, b.example.com], email: me@example.com, cache: /c } }
login:
  passwords: admin
  oidc:
    name: Us
    issuer: http://localhost:9000/realms/us
    client_id: limen
    client_secret: canary
    client: confidential
    scopes: [openid, "https://example.com/groups"]
    name_claim: preferred_username
    groups_claim: realm_access.roles
    groups: { /ops: owner, "a b": { role: member, team: web } }
    others: { role: viewer }
    domains: [example.com]
cors: { origins: ["*", "http://localhost:3000"] }
log: { format: json, level: debug }
limits: { body: 1GiB, event: 10MB, answer: 1024, headers: 8 KiB, concurrency: 10, bodies: 2GiB, queue: 0s, cache_read_weight: 10% }
timeouts: { connect: 1s, first_byte: 2m, idle: 1m30s, total: 2h, write: 1s, body: 1s, heartbeat: 0s, drain: 1s, shutdown_delay: 250ms }
keys: { prefix: sk- }
refresh: 1h
retries: { attempts: 2, budget: 0 }
reasoning_memory: off
tools:
  timeout: 5s
  mcp:
    servers:
      Docs_1: { url: "https://mcp.example.com/mcp?x=y", headers: { authorization: Bearer canary } }
    allow: ["https://*.example.com/mcp*"]
  web_search: { url: "http://127.0.0.1:8888/search?format=json", method: post, api_key: canary, headers: { X-A: b } }
  file_search: { url: "http://127.0.0.1:8321/v1", api_key: canary, headers: { X-B: c } }
  code_interpreter: { mcp: Docs_1, tool: run, argument: script }
  image_generation: { model: org/fast:8b, timeout: 2m }
alerts:
  webhook: { url: "https://hooks.example.com/T/canary", headers: { x-a: canary }, secret: canary }
  email: { smtp: "mail.example.com:465", username: me, password: canary, from: "Limen <limen@example.com>", to: [a@example.com, b@example.com], tls: tls }
sockets: false
state: {retention: 7d, max_size: 1GiB}
usage: {retention: 1h, max_size: 10MB, tags: {metadata: [project, "a:b"], headers: {X-Project: project, x-who: user}}}
providers:
  lab:
    vendor: openai
    base_url: https://x.example.com/openai?api-version=2026-01-01
    api_key: 12345
    api_keys: [second, "${file:/run/secrets/x}"]
    region: eu
    zero_retention: true
    speaks: [anthropic, gemini, bedrock]
    models: [a, "b-*"]
    headers: { X-Team: t, x-other: ${file:/run/secrets/x} }
    concurrency: 7
    quirks: { drop: [logit_bias], rename: { max_completion_tokens: max_tokens }, stream_usage: true }
    caps:
      org/x: { thinking: [adaptive, between_tools], efforts: [none], max_output: 8192, sampling: true }
      "*": { forced_tool: true, structured: true, mid_system: true, place_cache: true, vision: true, tools: true }
    markup: 0%
    prices:
      org/x:
        - { input: 1.25, output: 10, cache_read: 0.125, cache_write: 1.5, cache_write_1h: 2.5, reasoning: 12, input_audio: 3, output_audio: 4, output_image: 40 }
        - { from: 2026-01-31, call: 0.005, search: 0.01, searched: 0.03, other: 80%, flex: 50%, priority: 200, batch: 50%, tiers: [{ over: 200000, input: 2.5 }] }
      "*": free
  anthropic:
prices: { unknown: ceiling, ceiling: { input: 20, output: 100 }, in_usage: true, markup: 5.5% }
models:
  org/fast:8b:
    targets: [lab/org/x, { to: ollama/y, weight: 3 }, { to: ollama/z, when: 'team == "a"' }]
    strategy: busy
    affinity: off
    first_token: 20s
    hedge: { after: 2s, max: 7 }
    continue: true
    limits: { rpm: 60, tpm: 40000, rpd: 1000, concurrency: 4 }
    visible_to: ["team-*", bob]
    strict: true
    description: |
      Two
      lines
    context: 128000
    max_output: 8192
    price: { is: free, from: "2026-01-31T12:00:00+02:00" }
    markup: 12.25
`)
	rate := func(text string) (r Rate) { r.parse(text); return r }
	fee := func(text string) (f Fee) { f.parse(text); return f }
	none, much := Markup(0), Markup(1225)
	want := &Config{
		Listen: "[::1]:0", Data: "/var/lib/limen", PublicURL: "https://llm.example.com/base", BehindProxy: true,
		TLS: TLS{ACME: &ACME{Domains: []string{"a.example.com", "b.example.com"}, Email: "me@example.com", Cache: "/c"}},
		Login: Login{"admin", &OIDC{
			"Us", "http://localhost:9000/realms/us", "limen", "canary", "confidential", []string{"openid", "https://example.com/groups"}, "preferred_username", "realm_access.roles",
			[]Group{{"/ops", Grant{"owner", ""}}, {"a b", Grant{"member", "web"}}}, &Grant{"viewer", ""}, []string{"example.com"},
		}},
		CORS:   CORS{Origins: []string{"*", "http://localhost:3000"}},
		Log:    Log{"json", "debug"},
		Limits: Limits{1 << 30, 10e6, 1024, 8 << 10, 10, 2 << 30, 0, 10},
		Timeouts: Timeouts{
			second, 2 * minute, 90 * second, 120 * minute, second, second, 0, second, Duration(250 * time.Millisecond),
		},
		Keys: Keys{"sk-"}, Refresh: 60 * minute, Retries: Retries{Attempts: 2}, State: State{Retention: 7 * day, MaxSize: 1024 * mebibyte},
		Usage: Usage{Retention: hour, MaxSize: 10e6, Tags: Tags{Metadata: []string{"project", "a:b"}, Headers: map[string]string{"X-Project": "project", "x-who": "user"}}}, ReasoningMemory: "off",
		Alerts: Alerts{
			Webhook: &Webhook{URL: "https://hooks.example.com/T/canary", Headers: map[string]Secret{"x-a": "canary"}, Secret: "canary"},
			Email:   &Email{SMTP: "mail.example.com:465", Username: "me", Password: "canary", From: "Limen <limen@example.com>", To: []string{"a@example.com", "b@example.com"}, TLS: "tls"},
		},
		Tools: Tools{
			Timeout: 5 * second,
			MCP: MCP{
				Servers: []MCPServer{{Label: "Docs_1", URL: "https://mcp.example.com/mcp?x=y", Headers: map[string]Secret{"authorization": "Bearer canary"}}},
				Allow:   []string{"https://*.example.com/mcp*"},
			},
			WebSearch: &WebSearch{URL: "http://127.0.0.1:8888/search?format=json", Method: "post", APIKey: "canary", Headers: map[string]Secret{"X-A": "b"}},

			FileSearch: &FileSearch{URL: "http://127.0.0.1:8321/v1", APIKey: "canary", Headers: map[string]Secret{"X-B": "c"}},
			Code:       &Code{Server: "Docs_1", Tool: "run", Argument: "script"},
			Images:     &Images{Model: "org/fast:8b", Timeout: 2 * minute},
		},
		Prices: PriceRules{UnknownCeiling, &Price{TokenPrices: TokenPrices{Input: rate("20"), Output: rate("100")}}, true, 550},
		Providers: []Provider{{
			Name: "lab", Vendor: "openai", BaseURL: "https://x.example.com/openai?api-version=2026-01-01", APIKey: "12345",
			APIKeys: []Secret{"second", "from-file"}, Region: "eu", ZeroRetention: true,
			Speaks: []string{"anthropic", "gemini", "bedrock"}, Models: []Pattern{"a", "b-*"},
			Headers: map[string]Secret{"X-Team": "t", "x-other": "from-file"}, Concurrency: 7,
			Quirks: Quirks{[]string{"logit_bias"}, map[string]string{"max_completion_tokens": "max_tokens"}, &yes},
			Caps: []Caps{
				{Models: "org/x", Thinking: []string{"adaptive", "between_tools"}, Efforts: []string{"none"}, MaxOutput: 8192, Sampling: &yes},
				{Models: "*", ForcedTool: &yes, Structured: &yes, MidSystem: &yes, PlaceCache: &yes, Vision: &yes, Tools: &yes},
			},
			Markup: &none,
			Prices: []ModelPrices{
				{"org/x", Prices{
					{TokenPrices: TokenPrices{rate("1.25"), rate("10"), rate("0.125"), rate("1.5"), rate("2.5"), rate("12"), rate("3"), rate("4"), rate("40")}},
					{
						From: Date{time.Date(2026, 1, 31, 0, 0, 0, 0, time.UTC)}, Call: fee("0.005"), Search: fee("0.01"), Searched: fee("0.03"), Other: 80, Flex: 50, Priority: 200, Batch: 50,
						Tiers: []PriceTier{{200_000, TokenPrices{Input: rate("2.5")}}},
					},
				}},
				{"*", Prices{{Is: "free"}}},
			},
		}, {Name: "anthropic"}},
		Models: []Model{{
			ID:       "org/fast:8b",
			Targets:  []Target{{Upstream: Upstream{"lab", "org/x"}}, {Upstream: Upstream{"ollama", "y"}, Weight: 3}, {Upstream: Upstream{"ollama", "z"}, When: `team == "a"`}},
			Strategy: "busy", Affinity: "off", FirstToken: &twenty, Hedge: &Hedge{&two, 7}, Continue: true,
			Limits:    &Allowance{Requests: 60, Tokens: 40000, Daily: 1000, Concurrency: 4},
			VisibleTo: []Pattern{"team-*", "bob"}, Strict: true, Description: "Two\nlines\n", Context: 128000, MaxOutput: 8192,
			Price: Prices{{Is: "free", From: Date{time.Date(2026, 1, 31, 10, 0, 0, 0, time.UTC)}}}, Markup: &much,
		}},
	}
	if !reflect.DeepEqual(c, want) {
		t.Errorf("got %#v\nwant %#v", c, want)
	}
	if p, ok := c.Provider("lab"); !ok || p != &c.Providers[0] {
		t.Errorf("Provider(lab): got %v, %v", p, ok)
	}
	lab := &c.Providers[0]
	if first, rest := lab.CapsOf("org/x"), lab.CapsOf("other"); first != &lab.Caps[0] || rest != &lab.Caps[1] || c.Providers[1].CapsOf("x") != nil {
		t.Errorf("CapsOf: got %v and %v", first, rest)
	}
	if _, ok := c.Model("fast"); ok {
		t.Error("Model(fast): got one, want none")
	}
}

func TestReferences(t *testing.T) {
	env := []string{"A", "alpha", "EMPTY", "", "YAML", "{x: [1]}\n- &a *b # c", "N", "7s", "T", "true", "REF", "${A}"}
	tests := []struct{ value, want string }{
		{"${A}", "alpha"},
		{"a${A}b${A}", "aalphabalpha"},
		{"${NONE:-}", ""},
		{"${NONE:-x y}", "x y"},
		{"${EMPTY:-x}", "x"},
		{"${EMPTY}", ""},
		{"${A:-x}", "alpha"},
		{"${A:?must}", "alpha"},
		{"${NONE:-a, b: [c] #d {e}", "a, b: [c] #d {e"},
		{"${NONE:-a $} b}", "a } b"},
		{"${NONE:-http://h:1/?a=b}", "http://h:1/?a=b"},
		{"$${A}", "${A}"},
		{"$$${A}", "$${A}"},
		{"$A $ {A}", "$A $ {A}"},
		{"${file:/run/secrets/x}", "from-file"},
		{"${file:-x}", "x"},
		{"${YAML}", "{x: [1]}\n- &a *b # c"},
		{"${REF}", "${A}"},
	}
	for _, tt := range tests {
		inFlow := strings.NewReplacer("{A}", "A").Replace(tt.value) // YAML's own braces only inside references
		documents := map[string]string{
			"block":         "data: " + tt.value + " # ${NOT} } read\n",
			"double quotes": "data: \"" + tt.value + "\"\n",
			"single quotes": "{data: '" + tt.value + "', log: {level: info}}\n",
			"flow":          "{data: " + tt.value + ", log: {level: info}}\n",
			"tight flow":    "{log: {level: info}, data: " + tt.value + "}\n",
			"literal":       "data: |-\n  " + tt.value + "\n",
			"folded":        "data: >-\n  " + tt.value + "\nrefresh: ${NONE:-1h}\n",
		}
		if inFlow == "$A $ A" {
			delete(documents, "flow")
			delete(documents, "tight flow")
		}
		for style, document := range documents {
			c, err := Parse(Source{Name: "x", Data: []byte(document)}, world(env...))
			if err != nil {
				t.Errorf("%s %s: %v", style, tt.value, err)
			} else if c.Data != tt.want {
				t.Errorf("%s %s: got %q, want %q", style, tt.value, c.Data, tt.want)
			}
		}
	}
	c := parse(t, "behind_proxy: ${T}\nrefresh: \"${N}\"\nlimits: {body: ${NONE:-1MiB}}\n", env...)
	if !c.BehindProxy || c.Refresh != 7*second || c.Limits.Body != mebibyte {
		t.Errorf("got %v, %v, %v, want true, 7s, 1MiB", c.BehindProxy, c.Refresh, c.Limits.Body)
	}
}

// A string with a # or a brace in quotes is not mistaken for a reference.
func TestQuotedText(t *testing.T) {
	c := parse(t, `{data: "a $${", log: {level: "info"}} # ${`)
	if c.Data != "a ${" {
		t.Errorf("got %q, want %q", c.Data, "a ${")
	}
}

func TestFind(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	write := func(path string) string {
		path = filepath.Join(dir, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, nil, 0o644); err != nil {
			t.Fatal(err)
		}
		return path
	}
	find := func(explicit string, env ...string) string {
		path, ok, err := Find(explicit, world(env...).Getenv)
		if err != nil {
			return err.Error()
		}
		if ok != (path != "") {
			t.Errorf("got %q and %v", path, ok)
		}
		return path
	}
	check := func(what, got, want string) {
		t.Helper()
		if got != want {
			t.Errorf("%s: got %q, want %q", what, got, want)
		}
	}
	xdg, home := filepath.Join(dir, "xdg"), filepath.Join(dir, "home")
	env := []string{"XDG_CONFIG_HOME", xdg, "HOME", home}

	check("nothing", find("", env...), "")
	inHome := write("home/.config/limen/limen.yaml")
	check("home", find("", "HOME", home), inHome)
	check("a relative XDG_CONFIG_HOME", find("", "HOME", home, "XDG_CONFIG_HOME", "xdg"), inHome)
	inXDG := write("xdg/limen/limen.yaml")
	check("XDG_CONFIG_HOME", find("", env...), inXDG)
	write("limen.yaml")
	check("the working directory", find("", env...), "limen.yaml")
	named := write("named.yaml")
	check("LIMEN_CONFIG", find("", append(env, "LIMEN_CONFIG", named)...), named)
	check("explicit", find("limen.yaml", "LIMEN_CONFIG", named), "limen.yaml")
	check("explicit but missing", find("no.yaml"), "cannot read the configuration no.yaml: no such file or directory")
	check("named but missing", find("", "LIMEN_CONFIG", "no.yaml"), "cannot read the configuration no.yaml: no such file or directory")
	check("a directory", find(xdg), "cannot read the configuration "+xdg+": it is a directory")
}

func TestLoad(t *testing.T) {
	path := filepath.Join(t.TempDir(), "limen.yaml")
	if _, err := Load(path, Options{}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v, want that it does not exist", err)
	}
	if err := os.WriteFile(path, bytes.Repeat([]byte("#"), maxDocument+1), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(path, Options{}); err == nil || !strings.Contains(err.Error(), "larger than 4MiB") {
		t.Errorf("got %v, want that it is too large", err)
	}
	t.Setenv("LIMEN_TEST_DATA", "there")
	if err := os.WriteFile(path, []byte("data: ${LIMEN_TEST_DATA}"), 0o644); err != nil {
		t.Fatal(err)
	}
	c, err := Load(path, Options{})
	if err != nil || c.Data != "there" {
		t.Errorf("got %v, %v, want the data directory from the environment", c, err)
	}
}
