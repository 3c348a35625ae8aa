package admin

import (
	"encoding/json"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/limen-gateway/limen/internal/document"
)

// asked asks for an operation as the owner, and returns status and body.
func asked(s *Server, method, path, body string) (int, string) {
	r := httptest.NewRequest(method, root+path, strings.NewReader(body))
	r.Header.Set("Authorization", "Bearer "+password)
	w := serve(s, r)
	return w.Code, w.Body.String()
}

// step is one of a story: a request and what its answer has.
type step struct {
	method, path, body string
	code               int
	has                []string
}

func follow(t *testing.T, s *Server, steps []step) {
	t.Helper()
	for _, c := range steps {
		code, body := asked(s, c.method, c.path, c.body)
		if code != c.code {
			t.Errorf("%s %s %s: %d %s, want %d", c.method, c.path, c.body, code, body, c.code)
		}
		for _, want := range c.has {
			if !strings.Contains(body, want) {
				t.Errorf("%s %s %s: %s\nhas no %s", c.method, c.path, c.body, body, want)
			}
		}
		if strings.Contains(body, "canary") {
			t.Errorf("%s %s: a secret is in %s", c.method, c.path, body)
		}
	}
}

func TestStoredConfiguration(t *testing.T) {
	follow(t, newServer(t), []step{
		{"GET", "/config/document", "", 200, []string{`{"source":"none","text":"","document":{}}`}},
		{"GET", "/config/versions", "", 200, []string{`{"versions":[]}`}},
		{"GET", "/config/versions/1", "", 404, nil},
		{"PUT", "/config/document", `{"base":0}`, 400, []string{"text is the configuration"}},
		{"PUT", "/config/document", `{"text":"","bass":0}`, 400, []string{"bass"}},
		{"PUT", "/config/document", `{"text":"lisen: a:1","base":0}`, 400, []string{`"code":"bad_configuration"`, `"line":1`, `"column":1`, `did you mean \"listen\"?`}},
		{"PUT", "/config/document", `{"text":"providers: {openai: {api_key: sk-canary}}","base":0}`, 400, []string{"a secret cannot stand here in clear", "limen config secret set NAME"}},
		{"PUT", "/config/document", `{"text":"providers: {openai: {api_key: '${secret:openai}'}}","base":0}`, 400, []string{"there is no secret openai"}},
		{"PUT", "/config/secrets/openai", `{"value":"sk-canary"}`, 200, []string{`"used":false`}},
		{"PUT", "/config/secrets/open%20ai", `{"value":"sk-canary"}`, 400, nil},
		{"PUT", "/config/secrets/empty", `{"value":" "}`, 400, nil},
		{"PUT", "/config/document", `{"text":"# Ours.\nproviders: {openai: {api_key: '${secret:openai}'}}\n","base":0,"note":"first"}`, 200, []string{`{"version":1}`}},
		{"PUT", "/config/document", `{"text":"","base":0}`, 409, []string{"its newest version is 1"}},
		{"PUT", "/config/document", `{"text":"","base":7}`, 409, nil},
		{"GET", "/config/secrets", "", 200, []string{`"name":"openai"`, `"used":true`}},
		{"DELETE", "/config/secrets/openai", "", 409, []string{"uses the secret openai"}},
		{"DELETE", "/config/secrets/gone", "", 404, nil},
		{"PUT", "/config/secrets/openai", `{"value":"sk\u0007canary"}`, 400, []string{"control characters"}},
		{"PUT", "/config/providers/groq", `{"provider":{"base_url":"http://127.0.0.1:9/v1","models":["a"]},"api_key":"gsk-canary","base":1}`, 200, []string{`{"version":2}`}},
		{"PUT", "/config/providers/groq", `{"api_key":"gsk-canary-2","base":1}`, 409, nil},
		{"PUT", "/config/providers/groq", `{"api_key":"gsk-canary-2","base":2}`, 200, []string{`{"version":2}`}},
		{"PUT", "/config/providers/groq", `{"provider":{"bas_url":"http://127.0.0.1:9/v1"}}`, 400, []string{"bas_url", `did you mean \"base_url\"?`}},
		{"PUT", "/config/providers/lab", `{"provider":{"base_url":"http://a/v1","api_key":"sk-canary"}}`, 400, []string{"a secret cannot stand here in clear"}},
		{"PUT", "/config/providers/lab", `{}`, 400, nil},
		{"PUT", "/config/models/fast%2F1", `{"model":{"targets":["groq/a"]},"base":2}`, 200, []string{`{"version":3}`}},
		{"GET", "/config/document", "", 200, []string{
			`"source":"store"`, `"version":3`, `# Ours.\nproviders:\n  openai:\n    api_key: '${secret:openai}'\n  groq:\n    base_url: http://127.0.0.1:9/v1\n`,
			`"document":{"providers":{"openai":{"api_key":"${secret:openai}"},"groq":{"base_url":"http://127.0.0.1:9/v1","models":["a"],"api_key":"${secret:provider-groq}"}}`,
		}},
		{"DELETE", "/config/providers/groq", `{"base":3}`, 400, []string{`unknown provider \"groq\"`}},
		{"DELETE", "/config/models/fast%2F1", "", 200, []string{`{"version":4}`}},
		{"DELETE", "/config/models/fast%2F1", "", 404, nil},
		{"POST", "/config/check", `{"text":"providers: {}\nlisten: 5\n"}`, 200, []string{`"ok":false`, `"line":2`, `-    api_key: '${secret:openai}'`}},
		{"POST", "/config/check", `{"text":"providers: {}"}`, 200, []string{`"ok":true`, `"problems":[]`}},
		{"POST", "/config/rollback", `{"version":9,"base":4}`, 404, nil},
		{"POST", "/config/rollback", `{"version":1,"base":3}`, 409, nil},
		{"POST", "/config/rollback", `{"version":1,"base":4}`, 200, []string{`{"version":5}`}},
		{"GET", "/config/versions?limit=2", "", 200, []string{`"version":5`, `"note":"back to version 1","current":true`, `"by":"admin"`, `"note":"without model fast/1","current":false`, `"next":4`}},
		{"GET", "/config/versions?before=3", "", 200, []string{`"version":2`, `"note":"first"`}},
		{"GET", "/config/versions/2", "", 200, []string{`+  groq:`, `"text":"# Ours.\nproviders:`}},
		{"GET", "/config/versions/1", "", 200, []string{"--- version 0"}},
		{"DELETE", "/config/secrets/provider-groq", "", 200, nil},
		{"GET", "/audit", "", 200, []string{`"operation":"PUT /config/secrets/{name}"`, `"object":"openai"`, `"members":["value"]`}},
	})
}

// What is in force without being configured goes into the first document.
func TestFoundProviders(t *testing.T) {
	s := newServer(t)
	s.api.Found = func() []document.Found {
		return []document.Found{{Name: "openai", Value: []byte(`{"api_key":"${PATH}"}`)}, {Name: "ollama", Value: []byte(`{}`)}}
	}
	const both = `providers:\n  openai:\n    api_key: ${PATH}\n  ollama: {}\n`
	follow(t, s, []step{
		{"GET", "/config/document", "", 200, []string{`{"source":"none","text":"` + both + `"`}},
		{"PUT", "/config/providers/lab", `{"provider":{"base_url":"http://a/v1"},"base":0}`, 200, nil},
		{"GET", "/config/document", "", 200, []string{both + `  lab:\n    base_url: http://a/v1\n`}},
		{"DELETE", "/config/providers/openai", "", 200, nil},
		{"GET", "/config/document", "", 200, []string{`"text":"providers:\n  ollama: {}\n  lab:`}},
	})
}

func TestConfigurationInFile(t *testing.T) {
	s := newServer(t)
	file := filepath.Join(t.TempDir(), "limen.yaml")
	if err := os.WriteFile(file, []byte("providers: {openai: {api_key: sk-canary}}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s.api.ConfigFile = file
	path, _ := json.Marshal(file)
	const code = "The configuration is the file"
	follow(t, s, []step{
		{"GET", "/config/document", "", 200, []string{`"source":"file"`, `"path":` + string(path), `"text":"providers: {openai: {api_key: [redacted]}}\n"`}},
		{"PUT", "/config/document", `{"text":"","base":0}`, 409, []string{code}},
		{"POST", "/config/rollback", `{"version":1,"base":0}`, 409, []string{code}},
		{"PUT", "/config/providers/a", `{"provider":{}}`, 409, []string{code}},
		{"DELETE", "/config/providers/openai", "", 409, []string{code}},
		{"PUT", "/config/models/a", `{"model":{}}`, 409, []string{code}},
		{"DELETE", "/config/models/a", "", 409, []string{code}},
		{"GET", "/config/secrets", "", 200, []string{`{"secrets":[]}`}},
		{"PUT", "/config/secrets/lab", `{"value":"canary"}`, 200, nil},
		{"POST", "/config/check", `{"text":"providers: {openai: {api_key: sk-canary}}\n"}`, 200, []string{`"ok":true`}},
	})
}
