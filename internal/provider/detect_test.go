package provider

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

func environment(vars map[string]string) func(string) (string, bool) {
	return func(name string) (string, bool) {
		v, ok := vars[name]
		return v, ok
	}
}

func TestDetect(t *testing.T) {
	const secret = "sk-do-not-print"
	tests := []struct {
		name string
		env  map[string]string
		want []string // vendor, base URL, variable
	}{
		{"nothing", nil, nil},
		{"key", map[string]string{"GROQ_API_KEY": secret},
			[]string{"groq https://api.groq.com/openai/v1 GROQ_API_KEY"}},
		{"blank key", map[string]string{"GROQ_API_KEY": " "}, nil},
		{"first key wins", map[string]string{"GOOGLE_API_KEY": secret, "GEMINI_API_KEY": secret},
			[]string{"gemini https://generativelanguage.googleapis.com/v1beta GEMINI_API_KEY"}},
		{"Anthropic", map[string]string{"ANTHROPIC_API_KEY": secret},
			[]string{"anthropic https://api.anthropic.com/v1 ANTHROPIC_API_KEY"}},
		{"Anthropic elsewhere", map[string]string{"ANTHROPIC_API_KEY": secret, "ANTHROPIC_BASE_URL": "https://proxy.example"},
			[]string{"anthropic https://proxy.example/v1 ANTHROPIC_API_KEY"}},
		{"second key when the first is blank", map[string]string{"TOGETHER_API_KEY": "", "TOGETHER_AI_API_KEY": secret},
			[]string{"together https://api.together.ai/v1 TOGETHER_AI_API_KEY"}},
		{"in the order of the table", map[string]string{"XAI_API_KEY": secret, "OPENAI_API_KEY": secret},
			[]string{"openai https://api.openai.com/v1 OPENAI_API_KEY", "xai https://api.x.ai/v1 XAI_API_KEY"}},
		{"GitHub's token is not a vendor's", map[string]string{"GITHUB_TOKEN": secret}, nil},

		{"OpenAI elsewhere", map[string]string{"OPENAI_API_KEY": secret, "OPENAI_BASE_URL": "https://proxy.example/v1/"},
			[]string{"openai https://proxy.example/v1 OPENAI_API_KEY"}},
		{"OpenAI elsewhere without a key", map[string]string{"OPENAI_BASE_URL": "https://proxy.example/v1"}, nil},
		{"OpenAI nowhere", map[string]string{"OPENAI_API_KEY": secret, "OPENAI_BASE_URL": "https://"}, nil},
		{"OpenAI at a file", map[string]string{"OPENAI_API_KEY": secret, "OPENAI_BASE_URL": "file:///etc/passwd"}, nil},
		{"a secret within the address", map[string]string{"OPENAI_API_KEY": "k", "OPENAI_BASE_URL": "https://me:" + secret + "@proxy.example/v1"}, nil},
		{"a secret in the query", map[string]string{"OPENAI_API_KEY": "k", "OPENAI_BASE_URL": "https://proxy.example/v1?key=" + secret}, nil},

		{"Azure by resource", map[string]string{"AZURE_API_KEY": secret, "AZURE_RESOURCE_NAME": "acme"},
			[]string{"azure https://acme.openai.azure.com/openai/v1 AZURE_API_KEY"}},
		{"Azure by endpoint", map[string]string{"AZURE_OPENAI_API_KEY": secret, "AZURE_OPENAI_ENDPOINT": "https://acme.openai.azure.com/"},
			[]string{"azure https://acme.openai.azure.com/openai/v1 AZURE_OPENAI_API_KEY"}},
		{"Azure by endpoint with its path", map[string]string{"AZURE_API_KEY": secret, "AZURE_OPENAI_ENDPOINT": "https://acme.openai.azure.com/openai/v1/"},
			[]string{"azure https://acme.openai.azure.com/openai/v1 AZURE_API_KEY"}},
		{"Azure by endpoint with half its path", map[string]string{"AZURE_API_KEY": secret, "AZURE_OPENAI_ENDPOINT": "https://acme.openai.azure.com/openai"},
			[]string{"azure https://acme.openai.azure.com/openai/v1 AZURE_API_KEY"}},
		{"Azure without a resource", map[string]string{"AZURE_API_KEY": secret}, nil},
		{"Azure on somebody else's host", map[string]string{"AZURE_API_KEY": secret, "AZURE_RESOURCE_NAME": "evil.example/"}, nil},

		{"Bedrock", map[string]string{"AWS_BEARER_TOKEN_BEDROCK": secret, "AWS_REGION": "eu-central-1"},
			[]string{"bedrock https://bedrock-runtime.eu-central-1.amazonaws.com AWS_BEARER_TOKEN_BEDROCK"}},
		{"Bedrock by an AWS credential", map[string]string{"AWS_ACCESS_KEY_ID": "id", "AWS_SECRET_ACCESS_KEY": secret, "AWS_DEFAULT_REGION": "us-east-1"},
			[]string{"bedrock https://bedrock-runtime.us-east-1.amazonaws.com "}},
		{"Bedrock without a region", map[string]string{"AWS_BEARER_TOKEN_BEDROCK": secret}, nil},
		{"AWS without Bedrock", map[string]string{"AWS_ACCESS_KEY_ID": secret, "AWS_REGION": "eu-central-1"}, nil},

		{"Vertex AI", map[string]string{"GOOGLE_APPLICATION_CREDENTIALS": "/sa.json", "GOOGLE_CLOUD_PROJECT": "acme", "GOOGLE_CLOUD_LOCATION": "europe-west1"},
			[]string{"vertex https://europe-west1-aiplatform.googleapis.com/v1 "}},
		{"Vertex AI everywhere", map[string]string{"GOOGLE_APPLICATION_CREDENTIALS": "/sa.json", "GOOGLE_VERTEX_PROJECT": "acme", "GOOGLE_VERTEX_LOCATION": "global"},
			[]string{"vertex https://aiplatform.googleapis.com/v1 "}},
		{"Vertex AI in Europe", map[string]string{"GOOGLE_APPLICATION_CREDENTIALS": "/sa.json", "GOOGLE_CLOUD_PROJECT": "acme", "GOOGLE_CLOUD_LOCATION": "eu"},
			[]string{"vertex https://aiplatform.eu.rep.googleapis.com/v1 "}},
		{"Vertex AI without a project", map[string]string{"GOOGLE_APPLICATION_CREDENTIALS": "/sa.json", "GOOGLE_CLOUD_LOCATION": "global"}, nil},
		{"Vertex AI without a location", map[string]string{"GOOGLE_APPLICATION_CREDENTIALS": "/sa.json", "GOOGLE_CLOUD_PROJECT": "acme"}, nil},
		{"Google Cloud without a credential", map[string]string{"GOOGLE_CLOUD_PROJECT": "acme", "GOOGLE_CLOUD_LOCATION": "global"}, nil},

		{"Ollama's cloud", map[string]string{"OLLAMA_API_KEY": secret},
			[]string{"ollama https://ollama.com/v1 OLLAMA_API_KEY"}},
		{"Ollama, bare host", map[string]string{"OLLAMA_HOST": "gpu-box"},
			[]string{"ollama http://gpu-box:11434/v1 "}},
		{"Ollama, as it listens", map[string]string{"OLLAMA_HOST": "0.0.0.0"},
			[]string{"ollama http://127.0.0.1:11434/v1 "}},
		{"Ollama, port only", map[string]string{"OLLAMA_HOST": ":9999"},
			[]string{"ollama http://127.0.0.1:9999/v1 "}},
		{"Ollama, IPv6", map[string]string{"OLLAMA_HOST": "[::1]"},
			[]string{"ollama http://[::1]:11434/v1 "}},
		{"Ollama, URL", map[string]string{"OLLAMA_BASE_URL": "https://ollama.example/v1", "OLLAMA_API_KEY": secret},
			[]string{"ollama https://ollama.example/v1 OLLAMA_API_KEY"}},
		{"a local server's key alone", map[string]string{"LLAMA_API_KEY": secret, "LMSTUDIO_API_KEY": secret}, nil},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var got []string
			found := Detect(environment(test.env))
			for _, f := range found {
				got = append(got, f.Vendor.Name+" "+f.BaseURL+" "+f.KeyEnv)
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("got %q, want %q", got, test.want)
			}
			if s := fmt.Sprintf("%v %+v %#v", found, found, found); strings.Contains(s, secret) {
				t.Errorf("the secret is in %s", s)
			}
		})
	}
}

// Every vendor of the cloud is found once all that it needs is set.
func TestDetectEvery(t *testing.T) {
	for _, v := range Vendors() {
		if v.Local() {
			continue
		}
		sets := [][]string{v.Means}
		for _, key := range v.KeyEnv {
			sets = append(sets, []string{key})
		}
		for _, set := range sets {
			env := map[string]string{}
			for _, name := range set {
				env[name] = "k"
			}
			for _, f := range v.Fill {
				env[f.Env[0]] = "here"
			}
			found := Detect(environment(env))
			switch {
			case len(set) == 0:
			case len(found) != 1 || strings.Contains(found[0].BaseURL+found[0].Vendor.Place.Project, "{"):
				t.Errorf("%s: found %v", set, found)
			case (found[0].Vendor.Name == v.Name) == v.ByName:
				t.Errorf("%s: found %v, want %s: %v", set, found, v.Name, !v.ByName)
			}
		}
	}
}

func TestPlace(t *testing.T) {
	vertex, _ := Lookup("vertex")
	env := environment(map[string]string{"GOOGLE_CLOUD_PROJECT": "p", "GOOGLE_CLOUD_LOCATION": "l"})
	for base, want := range map[string]struct {
		place Place
		root  string
	}{
		"https://aiplatform.googleapis.com/v1":                             {Place{"p", "l"}, "https://aiplatform.googleapis.com/v1"},
		"https://aiplatform.googleapis.com/v1/projects/acme/locations/eu":  {Place{"acme", "eu"}, "https://aiplatform.googleapis.com/v1"},
		"https://aiplatform.googleapis.com/v1/projects/acme/locations/eu/": {Place{"acme", "eu"}, "https://aiplatform.googleapis.com/v1"},
	} {
		if v := vertex.At(base, env); v.Place != want.place || v.Root(base) != want.root || v.Incomplete(base) != nil {
			t.Errorf("%s: got %v at %s, want %v", base, v.Place, v.Root(base), want)
		}
	}
	lost := vertex.At(vertex.BaseURL, environment(nil))
	if err := lost.Incomplete(vertex.BaseURL); err == nil || !strings.Contains(err.Error(), "GOOGLE_CLOUD_LOCATION and GOOGLE_CLOUD_PROJECT") {
		t.Errorf("without a place: %v", err)
	}
	openai, _ := Lookup("openai")
	if v := openai.At("https://h/projects/a/locations/b", env); v.Place != (Place{}) || v.Root("https://h/projects/a/locations/b") != "https://h/projects/a/locations/b" {
		t.Errorf("a vendor without a place has %v", v.Place)
	}
	for _, tt := range []struct {
		found Found
		want  string
	}{
		{Found{Vendor: vertex, BaseURL: "https://v"}, "Vertex AI at https://v with GOOGLE_APPLICATION_CREDENTIALS"},
		{Found{Vendor: openai, BaseURL: "https://o", KeyEnv: "OPENAI_API_KEY"}, "OpenAI at https://o with OPENAI_API_KEY"},
		{Found{Vendor: openai, BaseURL: "http://127.0.0.1:1/v1"}, "OpenAI at http://127.0.0.1:1/v1"},
	} {
		if got := tt.found.String(); got != tt.want {
			t.Errorf("got %q, want %q", got, tt.want)
		}
	}
}

// machine is a Doer for which servers listen on ports of the loopback interface.
type machine struct {
	ports map[string]http.HandlerFunc

	mu    sync.Mutex
	asked []string
}

func (m *machine) Do(req *http.Request) (*http.Response, error) {
	m.mu.Lock()
	m.asked = append(m.asked, req.URL.Host)
	m.mu.Unlock()
	serve, ok := m.ports[req.URL.Port()]
	if !ok || req.URL.Hostname() != "127.0.0.1" {
		return nil, errors.New("connection refused")
	}
	server := httptest.NewServer(serve)
	defer server.Close()
	there, err := http.NewRequestWithContext(req.Context(), req.Method, server.URL+req.URL.Path, nil)
	if err != nil {
		return nil, err
	}
	there.Header = req.Header
	return server.Client().Do(there)
}

func answer(body string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/v1/models" || r.Header.Get("Authorization") != "" {
			http.Error(w, "unexpected request", http.StatusTeapot)
			return
		}
		io.WriteString(w, body)
	}
}

func owned(by string) http.HandlerFunc {
	return answer(`{"object":"list","data":[{"id":"m","object":"model","created":1,"owned_by":"` + by + `"}]}`)
}

func TestProbe(t *testing.T) {
	tests := []struct {
		name  string
		ports map[string]http.HandlerFunc
		own   string
		want  []string
	}{
		{"nobody", nil, "", nil},
		{"all", map[string]http.HandlerFunc{
			"11434": owned("library"), "8000": owned("vllm"), "30000": owned("sglang"),
			"8080": owned("llamacpp"), "1234": owned("organization_owner"),
		}, ":4000", []string{"ollama 11434", "vllm 8000", "sglang 30000", "llamacpp 8080", "lmstudio 1234"}},
		{"SGLang on vLLM's port", map[string]http.HandlerFunc{"8000": owned("sglang")}, "", []string{"sglang 8000"}},
		{"llama.cpp on LM Studio's port", map[string]http.HandlerFunc{"1234": owned("llamacpp")}, "", []string{"llamacpp 1234"}},
		{"somebody else on vLLM's port", map[string]http.HandlerFunc{"8000": owned("me")}, "", nil},
		{"ourselves", map[string]http.HandlerFunc{"8080": owned("llamacpp")}, "0.0.0.0:8080", nil},
		{"a web page", map[string]http.HandlerFunc{"11434": answer("<html>hello</html>")}, "", nil},
		{"other JSON", map[string]http.HandlerFunc{"11434": answer(`{"data":[{"id":"1"}]}`)}, "", nil},
		{"another list", map[string]http.HandlerFunc{"11434": answer(`{"object":"list","data":[{"id":"1","object":"customer"}]}`)}, "", nil},
		{"an empty list", map[string]http.HandlerFunc{"11434": answer(`{"object":"list","data":[]}`)}, "", nil},
		{"an error with a list", map[string]http.HandlerFunc{"11434": func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(http.StatusUnauthorized)
			owned("library")(w, r)
		}}, "", nil},
		{"an endless list", map[string]http.HandlerFunc{"11434": answer(
			`{"object":"list","data":[{"id":"m","object":"model"}]}` + strings.Repeat(" ", probeSize))}, "", nil},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var got []string
			for _, f := range Probe(t.Context(), &machine{ports: test.ports}, test.own) {
				if f.KeyEnv != "" || !strings.HasPrefix(f.BaseURL, "http://127.0.0.1:") {
					t.Errorf("got %v", f)
				}
				got = append(got, f.Vendor.Name+" "+strings.TrimSuffix(strings.TrimPrefix(f.BaseURL, "http://127.0.0.1:"), "/v1"))
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func TestProbeLeavesOwnPortAlone(t *testing.T) {
	for _, own := range []string{":8080", "127.0.0.1:8080", "[::]:8080", "limen.example:8080"} {
		m := &machine{}
		Probe(t.Context(), m, own)
		if slices.Contains(m.asked, "127.0.0.1:8080") {
			t.Errorf("%s: asked itself", own)
		}
		if len(m.asked) != 4 {
			t.Errorf("%s: asked %v, want the four other servers", own, m.asked)
		}
	}
}

func TestProbeHangingServers(t *testing.T) {
	hang := func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }
	m := &machine{ports: map[string]http.HandlerFunc{"11434": hang, "8000": hang, "1234": owned("x")}}
	start := time.Now()
	found := Probe(context.Background(), m, "")
	if took := time.Since(start); took > 100*probeTime {
		t.Errorf("took %v, want about %v", took, probeTime)
	}
	if len(found) != 1 || found[0].Vendor.Name != "lmstudio" {
		t.Errorf("found %v, want LM Studio only", found)
	}
}
