package upstream

import (
	"compress/gzip"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/limen-gateway/limen/internal/dialect"
	"github.com/limen-gateway/limen/internal/provider"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// serve starts a server, and an upstream for it that is closed before it.
func serve(t *testing.T, c Config, handler http.HandlerFunc) *Upstream {
	t.Helper()
	server := httptest.NewServer(handler)
	c.BaseURL = server.URL + c.BaseURL
	c.Connect = 5 * time.Second
	if c.Name == "" {
		c.Name = "p"
	}
	u, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { u.Close(); server.Close() })
	return u
}

// post sends a body of two segments, and fails when their memory is not given
// back in the end.
func post(t *testing.T, u *Upstream, path string, stream bool, extra http.Header) (*http.Response, error) {
	t.Helper()
	list, size := segments(`{"model":`, `"m"}`)
	released := make(chan struct{})
	body := NewBody(list, size, func() { close(released) })
	resp, err := u.Post(t.Context(), path, body, stream, extra)
	body.Done()
	if err == nil {
		t.Cleanup(func() {
			resp.Body.Close()
			select {
			case <-released:
			case <-time.After(5 * time.Second):
				t.Error("the body's memory was not given back")
			}
		})
	}
	return resp, err
}

func TestPost(t *testing.T) {
	type request struct {
		method, uri, body string
		length            int64
		header            http.Header
	}
	for name, tt := range map[string]struct {
		config Config
		path   string
		stream bool
		extra  http.Header
		uri    string
		header map[string]string // "" is absent
	}{
		"bearer": {
			config: Config{BaseURL: "/v1", Key: "canary"}, path: "/chat/completions", uri: "/v1/chat/completions",
			header: map[string]string{"Authorization": "Bearer canary", "Api-Key": "", "Accept": "application/json", "Content-Type": "application/json", "Accept-Encoding": "identity", "User-Agent": "limen/test"},
		},
		"api-key header": {
			config: Config{BaseURL: "/openai/v1/", Key: "canary", Vendor: provider.Vendor{Auth: provider.APIKeyHeader}}, path: "/responses", stream: true, uri: "/openai/v1/responses",
			header: map[string]string{"Authorization": "", "Api-Key": "canary", "Accept": "text/event-stream"},
		},
		"x-api-key header": {
			config: Config{BaseURL: "/v1", Key: "canary", Vendor: provider.Vendor{Auth: provider.XAPIKey}}, path: "/messages", uri: "/v1/messages",
			header: map[string]string{"X-Api-Key": "canary", "Authorization": ""},
		},
		"a server of Messages": {
			config: Config{BaseURL: "/v1", Key: "canary", Speaks: []dialect.Name{dialect.Anthropic}}, path: "/messages/count_tokens?beta=true", uri: "/v1/messages/count_tokens?beta=true",
			header: map[string]string{"X-Api-Key": "canary", "Authorization": ""},
		},
		"a server of Gemini's dialect": {
			config: Config{BaseURL: "/v1beta?api-version=7", Key: "canary", Speaks: []dialect.Name{dialect.Gemini}},
			path:   "/models/m:streamGenerateContent?alt=sse", uri: "/v1beta/models/m:streamGenerateContent?api-version=7&alt=sse", stream: true,
			header: map[string]string{"X-Goog-Api-Key": "canary", "Authorization": "", "Accept": "text/event-stream"},
		},
		"Bedrock with a key": {
			config: Config{BaseURL: "", Key: "canary", Speaks: []dialect.Name{dialect.Bedrock}},
			path:   "/model/arn:aws:bedrock:1%2Fm-v1%3A0/converse", uri: "/model/arn:aws:bedrock:1%2Fm-v1%3A0/converse",
			header: map[string]string{"Authorization": "Bearer canary"},
		},
		"Vertex AI with a key": {
			config: Config{BaseURL: "/v1", Key: "canary", Vendor: provider.Vendor{Auth: provider.GoogleOAuth}}, path: "/m", uri: "/v1/m",
			header: map[string]string{"X-Goog-Api-Key": "canary", "Authorization": ""},
		},
		"no key": {
			config: Config{BaseURL: ""}, path: "/chat/completions", uri: "/chat/completions",
			header: map[string]string{"Authorization": "", "Api-Key": ""},
		},
		"headers of the configuration": {
			config: Config{BaseURL: "/v1", Key: "canary", Headers: map[string]string{"x-title": "T", "authorization": "Custom c", "User-Agent": "mine"}}, path: "/responses", uri: "/v1/responses",
			header: map[string]string{"X-Title": "T", "Authorization": "Custom c", "User-Agent": "mine"},
		},
		"headers of the client": {
			config: Config{BaseURL: "/v1?api-version=7", Key: "canary"}, path: "/chat/completions", uri: "/v1/chat/completions?api-version=7", stream: true,
			extra:  http.Header{"Openai-Beta": {"b"}},
			header: map[string]string{"Openai-Beta": "b", "Authorization": "Bearer canary", "Accept": "text/event-stream"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			requests := make(chan request, 10)
			tt.config.UserAgent = "limen/test"
			u := serve(t, tt.config, func(w http.ResponseWriter, r *http.Request) {
				body, _ := io.ReadAll(r.Body)
				requests <- request{r.Method, r.RequestURI, string(body), r.ContentLength, r.Header}
				io.WriteString(w, "answer")
			})
			for range 2 { // what one call adds must not stay for the next
				extra := tt.extra
				resp, err := post(t, u, tt.path, tt.stream, extra)
				if err != nil {
					t.Fatal(err)
				}
				if answer, err := io.ReadAll(resp.Body); string(answer) != "answer" || err != nil {
					t.Errorf("answer is %q, %v", answer, err)
				}
				if len(requests) == 0 {
					t.Fatalf("the server was not called; status %d", resp.StatusCode)
				}
				got := <-requests
				if got.method != "POST" || got.uri != tt.uri || got.body != `{"model":"m"}` || got.length != int64(len(got.body)) {
					t.Errorf("got %s %s %q of %d bytes, want POST %s", got.method, got.uri, got.body, got.length, tt.uri)
				}
				for name, want := range tt.header {
					if values := got.header[name]; got.header.Get(name) != want || len(values) > 1 {
						t.Errorf("%s is %q, want %q", name, values, want)
					}
				}
				tt.extra = nil
				delete(tt.header, "Openai-Beta")
			}
			if _, err := post(t, u, tt.path, tt.stream, nil); err != nil {
				t.Fatal(err)
			}
			if got := <-requests; got.header.Get("Openai-Beta") != "" {
				t.Error("a header of one client's call is sent with another's")
			}
		})
	}
}

// Answers pass as they are; a redirect is one.
func TestPostFollowsNothing(t *testing.T) {
	calls := 0
	u := serve(t, Config{Key: "canary"}, func(w http.ResponseWriter, r *http.Request) {
		calls++
		http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect)
	})
	resp, err := post(t, u, "/responses", false, nil)
	if err != nil || resp.StatusCode != http.StatusTemporaryRedirect || calls != 1 {
		t.Errorf("got %v, %v after %d calls", resp, err, calls)
	}
}

func TestPostIsCancelled(t *testing.T) {
	arrived, left := make(chan struct{}), make(chan struct{})
	u := serve(t, Config{}, func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		close(arrived)
		<-r.Context().Done()
		close(left)
	})
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-arrived; cancel() }()
	released := make(chan struct{})
	list, size := segments("{}")
	body := NewBody(list, size, func() { close(released) })
	if _, err := u.Post(ctx, "/responses", body, false, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want that it was cancelled", err)
	}
	body.Done()
	for name, ch := range map[string]chan struct{}{"the upstream sees it": left, "the memory is given back": released} {
		select {
		case <-ch:
		case <-time.After(5 * time.Second):
			t.Errorf("not so: %s", name)
		}
	}
}

func TestPostDecodes(t *testing.T) {
	zip := func(w io.Writer, text string) {
		z := gzip.NewWriter(w)
		io.WriteString(z, text)
		z.Close()
	}
	long := strings.Repeat("data: {}\n\n", 10_000)
	for name, tt := range map[string]struct {
		answer  http.HandlerFunc
		want    string
		post    bool // Post itself fails
		reading bool // reading the answer does
	}{
		"plain": {answer: func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, long) }, want: long},
		"identity": {answer: func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "identity")
			io.WriteString(w, "a")
		}, want: "a"},
		"gzip": {answer: func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Content-Encoding", "gzip"); zip(w, long) }, want: long},
		"gzip of a failure": {answer: func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			w.WriteHeader(500)
			zip(w, "e")
		}, want: "e"},
		"no gzip": {answer: func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			io.WriteString(w, "not gzip")
		}, post: true},
		"cut gzip": {answer: func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			var all strings.Builder
			zip(&all, long)
			io.WriteString(w, all.String()[:all.Len()/2])
		}, reading: true},
		"unknown": {answer: func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "br")
			io.WriteString(w, "a")
		}, post: true},
	} {
		t.Run(name, func(t *testing.T) {
			u := serve(t, Config{}, tt.answer)
			resp, err := post(t, u, "/chat/completions", false, nil)
			if (err != nil) != tt.post {
				t.Fatalf("Post failed with %v, want a failure: %v", err, tt.post)
			}
			if err != nil {
				return
			}
			got, err := io.ReadAll(resp.Body)
			if (err != nil) != tt.reading || err == nil && string(got) != tt.want {
				t.Errorf("got %d bytes, %v, want %d", len(got), err, len(tt.want))
			}
		})
	}
}

func TestModels(t *testing.T) {
	const list = `{"object":"list","data":[{"id":"b"},{"id":"a","owned_by":"o"}]}`
	for name, tt := range map[string]struct {
		status  int
		body    string
		ids     string
		problem string
	}{
		"good":     {200, list, "a b", ""},
		"none":     {200, `{"data":[]}`, "", ""},
		"refused":  {401, `{"error":"canary"}`, "", "401"},
		"moved":    {302, "", "", "302"},
		"no list":  {200, "<html>", "", "not a model list"},
		"too long": {200, strings.Repeat(" ", maxList+1), "", "more than"},
	} {
		t.Run(name, func(t *testing.T) {
			u := serve(t, Config{BaseURL: "/v1", Key: "k"}, func(w http.ResponseWriter, r *http.Request) {
				if r.Method != "GET" || r.RequestURI != "/v1/models" || r.Header.Get("Authorization") != "Bearer k" {
					t.Errorf("got %s %s with %v", r.Method, r.RequestURI, r.Header)
				}
				w.WriteHeader(tt.status)
				io.WriteString(w, tt.body)
			})
			models, err := u.Models(t.Context(), provider.Embedded())
			var ids []string
			for _, m := range models {
				ids = append(ids, m.ID)
			}
			if got := strings.Join(ids, " "); got != tt.ids || (err != nil) != (tt.problem != "") {
				t.Errorf("got %q, %v", got, err)
			}
			if err != nil && (!strings.Contains(err.Error(), tt.problem) || strings.Contains(err.Error(), "canary")) {
				t.Errorf("got %v, want an error with %q and nothing that the upstream said", err, tt.problem)
			}
		})
	}
}

// A list of several pages is read whole, but not for ever.
func TestModelsOfPages(t *testing.T) {
	for name, tt := range map[string]struct {
		speaks dialect.Name
		more   string // what a page ends with, "" on the second
		uris   string
		header string
	}{
		"Anthropic": {dialect.Anthropic, `"has_more":true,"last_id":"a b"`, "/v1/models?limit=1000 /v1/models?limit=1000&after_id=a+b", "2023-06-01"},
		"Gemini":    {dialect.Gemini, `"nextPageToken":"t="`, "/v1/models?pageSize=1000 /v1/models?pageSize=1000&pageToken=t%3D", ""},
		"OpenAI":    {dialect.OpenAIChat, `"has_more":true,"last_id":"a"`, "/v1/models", ""},
	} {
		t.Run(name, func(t *testing.T) {
			var uris []string
			u := serve(t, Config{BaseURL: "/v1", Speaks: []dialect.Name{tt.speaks}}, func(w http.ResponseWriter, r *http.Request) {
				uris = append(uris, r.RequestURI)
				if got := r.Header.Get("Anthropic-Version"); got != tt.header {
					t.Errorf("version is %q, want %q", got, tt.header)
				}
				if len(uris) == 1 {
					io.WriteString(w, `{"data":[{"id":"b"}],`+tt.more+`}`)
					return
				}
				io.WriteString(w, `{"data":[{"id":"a"}]}`)
			})
			models, err := u.Models(t.Context(), provider.Embedded())
			if got := strings.Join(uris, " "); err != nil || got != tt.uris || len(models) != len(uris) || models[len(models)-1].ID != "b" {
				t.Errorf("got %v, %v by %s, want %s", models, err, got, tt.uris)
			}
		})
	}
	calls := 0
	u := serve(t, Config{Speaks: []dialect.Name{dialect.Anthropic}}, func(w http.ResponseWriter, _ *http.Request) {
		calls++
		io.WriteString(w, `{"data":[{"id":"a"}],"has_more":true,"last_id":"a"}`)
	})
	if models, err := u.Models(t.Context(), provider.Embedded()); err != nil || len(models) != 1 || calls != maxPages {
		t.Errorf("an endless list: %d models, %v after %d calls", len(models), err, calls)
	}
}

func TestModelsWithoutList(t *testing.T) {
	bedrock, _ := provider.Lookup("bedrock")
	for _, tt := range []struct {
		vendor provider.Vendor
		known  bool
	}{{bedrock, true}, {provider.Vendor{}, false}} {
		u := serve(t, Config{Vendor: tt.vendor, Key: "k", Speaks: []dialect.Name{dialect.Bedrock}}, func(_ http.ResponseWriter, r *http.Request) {
			t.Errorf("got %s", r.RequestURI)
		})
		if models, err := u.Models(t.Context(), provider.Embedded()); err != nil || (len(models) > 0) != tt.known {
			t.Errorf("%s: %d models, %v", tt.vendor.Name, len(models), err)
		}
	}
}

func TestGuard(t *testing.T) {
	for address, blocked := range map[string]bool{
		"169.254.169.254:80":          true,
		"169.254.169.254:443":         true,
		"169.254.170.2:80":            true,
		"100.100.100.200:80":          true,
		"[::ffff:169.254.169.254]:80": true,
		"[fd00:ec2::254]:80":          true,
		"[fd00:ec2::254%eth0]:80":     true,
		"127.0.0.1:11434":             false,
		"10.0.0.1:80":                 false,
		"169.254.1.1:80":              false,
		"[::1]:80":                    false,
		"[2001:db8::1]:443":           false,
	} {
		if err := guard("tcp", address, nil); errors.Is(err, errBlocked) != blocked || !blocked && err != nil {
			t.Errorf("guard(%s) = %v, want blocked: %v", address, err, blocked)
		}
	}
	if err := guard("tcp", "no address", nil); err == nil {
		t.Error("what is no address is dialled")
	}
}

// The guard is in the way of both transports.
func TestMetadataServicesAreNotCalled(t *testing.T) {
	for _, base := range []string{"http://169.254.169.254/latest", "https://169.254.169.254/v1", "http://[fd00:ec2::254]/v1"} {
		u, err := New(Config{Name: "p", BaseURL: base, Connect: time.Second})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := u.Models(t.Context(), provider.Embedded()); !errors.Is(err, errBlocked) {
			t.Errorf("%s: got %v, want that it is blocked", base, err)
		}
		u.Close()
		if u, err = New(Config{Name: "p", BaseURL: base, Connect: time.Second, Sockets: true}); err != nil {
			t.Fatal(err)
		}
		if _, err := post(t, u, "/responses", true, nil); !errors.Is(err, errBlocked) {
			t.Errorf("%s, over a socket: got %v, want that it is blocked", base, err)
		}
		u.Close()
	}
}

func TestRedact(t *testing.T) {
	u, err := New(Config{Name: "acme", BaseURL: "https://llm.acme.test:8443/v1", Key: "sk-canary", Headers: map[string]string{"X-Auth": "other-canary"}})
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{
		"nothing to hide": "nothing to hide",
		"bad key sk-canary at https://llm.acme.test:8443/v1/x, key sk-canary": "bad key [redacted] at https://acme/v1/x, key [redacted]",
		"bad value other-canary": "bad value [redacted]",
	} {
		if got := u.Redact(text); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	without, err := New(Config{Name: "p", BaseURL: "http://host/v1"})
	if err != nil {
		t.Fatal(err)
	}
	if got := without.Redact("abc"); got != "abc" {
		t.Errorf("without a key: %q", got)
	}
}

func TestNew(t *testing.T) {
	for _, base := range []string{"", "v1", "/v1", "http://", "http://%zz/"} {
		if _, err := New(Config{Name: "acme", BaseURL: base}); err == nil || !strings.Contains(err.Error(), "acme") {
			t.Errorf("%q: got %v, want an error that names the provider", base, err)
		}
	}
	azure, _ := provider.Lookup("azure")
	if _, err := New(Config{Name: "a", BaseURL: azure.BaseURL, Vendor: azure}); err == nil || !strings.Contains(err.Error(), "AZURE_RESOURCE_NAME") {
		t.Errorf("an address that is not complete: %v", err)
	}
	u, err := New(Config{Name: "p", BaseURL: "https://user:canary@host/v1"})
	if err != nil {
		t.Fatal(err)
	}
	if got := u.BaseURL(); strings.Contains(got, "canary") {
		t.Errorf("BaseURL() shows a password: %s", got)
	}
}

// What is between the base URL and the operation is sent as it was written.
func TestEscapedBaseURL(t *testing.T) {
	u, err := New(Config{Name: "p", BaseURL: "https://host/a%2Fb/v1"})
	if err != nil {
		t.Fatal(err)
	}
	want, _ := url.Parse("https://host/a%2Fb/v1/responses")
	if got := u.paths["/responses"].String(); got != want.String() {
		t.Errorf("got %s, want %s", got, want)
	}
}

// What a client names leads to no address of a private network, and what the
// operator names to none that hands out credentials.
func TestAddressesOfTools(t *testing.T) {
	for address, want := range map[string][2]bool{ // of the operator, of clients
		"93.184.216.34:443":           {true, true},
		"[2606:2800:220:1::1]:443":    {true, true},
		"127.0.0.1:80":                {true, false},
		"[::1]:80":                    {true, false},
		"10.0.0.1:80":                 {true, false},
		"172.16.9.9:80":               {true, false},
		"192.168.1.1:80":              {true, false},
		"100.64.0.1:80":               {true, false},
		"169.254.1.1:80":              {true, false},
		"0.0.0.0:80":                  {true, false},
		"224.0.0.1:80":                {true, false},
		"[fd00::1]:80":                {true, false},
		"[fe80::1%eth0]:80":           {true, false},
		"[::ffff:10.0.0.1]:80":        {true, false},
		"[64:ff9b::7f00:1]:80":        {true, false},
		"169.254.169.254:80":          {false, false},
		"100.100.100.200:80":          {false, false},
		"[::ffff:169.254.169.254]:80": {false, false},
	} {
		if got := [2]bool{guard("tcp", address, nil) == nil, guardPublic("tcp", address, nil) == nil}; got != want {
			t.Errorf("%s: got %v, want %v", address, got, want)
		}
	}
}
