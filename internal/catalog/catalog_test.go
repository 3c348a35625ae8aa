package catalog

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/limen-gateway/limen/internal/config"
	"github.com/limen-gateway/limen/internal/dialect"
	"github.com/limen-gateway/limen/internal/llm"
	"github.com/limen-gateway/limen/internal/provider"
	"github.com/limen-gateway/limen/internal/route"
	"github.com/limen-gateway/limen/internal/store"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// remote is an upstream within the process, whose answer can change.
type remote struct {
	mu     sync.Mutex
	models []string
	err    error
	hangs  bool
	calls  int
}

func (r *remote) set(err error, models ...string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.err, r.models = err, models
}

func (r *remote) count() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.calls
}

func (r *remote) RoundTrip(req *http.Request) (*http.Response, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.calls++
	if r.hangs {
		<-req.Context().Done()
		return nil, req.Context().Err()
	}
	if r.err != nil {
		return nil, r.err
	}
	var list struct {
		Data []struct {
			ID string `json:"id"`
		} `json:"data"`
	}
	for _, id := range r.models {
		list.Data = append(list.Data, struct {
			ID string `json:"id"`
		}{id})
	}
	body, _ := json.Marshal(list)
	return &http.Response{StatusCode: 200, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(string(body)))}, nil
}

// named makes a provider that answers with r.
func named(name string, r http.RoundTripper, models ...config.Pattern) Provider {
	return Provider{Provider: config.Provider{Name: name, BaseURL: "http://" + name + ".test/v1", APIKey: "sk-canary", Models: models}, Transport: r}
}

func target(provider, model string) config.Target {
	return config.Target{Upstream: config.Upstream{Provider: provider, Model: model}, Weight: 1}
}

// everyone sees all models.
type everyone struct{}

func (everyone) KeyName() string  { return "k" }
func (everyone) Sees(string) bool { return true }

func offered(c *Catalog) string {
	var ids []string
	for _, m := range c.Table().All() {
		ids = append(ids, m.ID)
	}
	return strings.Join(ids, " ")
}

func wantOffered(t *testing.T, c *Catalog, want string) {
	t.Helper()
	if got := offered(c); got != want {
		t.Errorf("offered are %q, want %q", got, want)
	}
}

func apply(t *testing.T, c *Catalog, s Setup) {
	t.Helper()
	if s.Refresh == 0 {
		s.Refresh = 10 * time.Minute
	}
	count, err := c.Prepare(context.Background(), s)
	if err != nil {
		t.Fatal(err)
	}
	count()
}

// inBubble runs a test with a catalog that runs, on a store in dir, in time
// that passes as fast as it can.
func inBubble(t *testing.T, dir string, test func(t *testing.T, c *Catalog, log *strings.Builder)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		st, err := store.Open(context.Background(), dir, "")
		if err != nil {
			t.Fatal(err)
		}
		defer st.Close()
		var log strings.Builder
		c := New(st, slog.New(slog.NewTextHandler(&log, nil)), "limen/test")
		ctx, cancel := context.WithCancel(context.Background())
		var running sync.WaitGroup
		running.Go(func() { c.Run(ctx) })
		defer running.Wait()
		defer cancel()
		test(t, c, &log)
	})
}

// pass lets time pass, and all that falls into it be done.
func pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func TestListIsKeptOverAnOutage(t *testing.T) {
	inBubble(t, t.TempDir(), func(t *testing.T, c *Catalog, log *strings.Builder) {
		r := &remote{models: []string{"b", "a"}}
		apply(t, c, Setup{Providers: []Provider{named("p", r)}})
		pass(time.Second)
		wantOffered(t, c, "p/a p/b")
		first := c.States()[0]
		if first.Models != 2 || first.Error != "" || first.Fetched.IsZero() {
			t.Errorf("state is %+v", first)
		}

		r.set(errors.New("refused for sk-canary at p.test"))
		pass(time.Hour)
		wantOffered(t, c, "p/a p/b")
		state := c.States()[0]
		if state.Models != 2 || !state.Fetched.Equal(first.Fetched) || state.Error == "" || strings.Contains(state.Error, "canary") {
			t.Errorf("state during the outage is %+v", state)
		}
		if text := log.String(); strings.Count(text, "\n") != 1 || strings.Contains(text, "canary") {
			t.Errorf("an outage of an hour is logged as\n%s", text)
		}

		r.set(nil, "c")
		pass(retryEvery)
		wantOffered(t, c, "p/c")
		if state := c.States()[0]; state.Error != "" || state.Models != 1 {
			t.Errorf("state after the outage is %+v", state)
		}
	})
}

func TestListIsKeptOverARestart(t *testing.T) {
	dir := t.TempDir()
	inBubble(t, dir, func(t *testing.T, c *Catalog, _ *strings.Builder) {
		apply(t, c, Setup{Providers: []Provider{named("p", &remote{models: []string{"a", "b"}})}})
		pass(time.Second)
		wantOffered(t, c, "p/a p/b")
	})
	inBubble(t, dir, func(t *testing.T, c *Catalog, _ *strings.Builder) {
		away := &remote{err: errors.New("away")}
		apply(t, c, Setup{Providers: []Provider{named("p", away)}})
		wantOffered(t, c, "p/a p/b") // at once
		pass(time.Minute)
		wantOffered(t, c, "p/a p/b")

		elsewhere := named("p", away)
		elsewhere.BaseURL = "http://elsewhere.test/v1"
		apply(t, c, Setup{Providers: []Provider{elsewhere}})
		wantOffered(t, c, "") // the list of one address is not that of another
	})
}

func TestListIsRefreshed(t *testing.T) {
	inBubble(t, t.TempDir(), func(t *testing.T, c *Catalog, _ *strings.Builder) {
		r := &remote{models: []string{"a"}}
		apply(t, c, Setup{Providers: []Provider{named("p", r)}, Refresh: time.Minute})
		pass(30 * time.Second)
		r.set(nil, "a", "b")
		pass(20 * time.Second)
		wantOffered(t, c, "p/a")
		pass(20 * time.Second)
		wantOffered(t, c, "p/a p/b")
		before := r.count()
		pass(10 * time.Minute)
		if n := r.count() - before; n < 9 || n > 11 {
			t.Errorf("asked %d times in ten minutes, want once a minute", n)
		}
	})
}

func TestOffered(t *testing.T) {
	inBubble(t, t.TempDir(), func(t *testing.T, c *Catalog, _ *strings.Builder) {
		some, none := &remote{models: []string{"gpt-5", "gpt-5-mini", "o3", "whisper"}}, &remote{err: errors.New("away")}
		apply(t, c, Setup{Providers: []Provider{
			named("all", some), named("few", some, "gpt-*", "o3", "unlisted", "gpt-5"), named("away", none, "x-*", "y", "y"), named("nothing", some, "z-*"),
		}})
		wantOffered(t, c, "away/y few/gpt-5 few/o3 few/unlisted")
		pass(time.Second)
		wantOffered(t, c, "all/gpt-5 all/gpt-5-mini all/o3 all/whisper away/y few/gpt-5 few/gpt-5-mini few/o3 few/unlisted")
	})
}

func TestAliases(t *testing.T) {
	inBubble(t, t.TempDir(), func(t *testing.T, c *Catalog, _ *strings.Builder) {
		r := &remote{models: []string{"gpt-4o"}}
		openai := named("openai", r)
		openai.Vendor, _ = provider.Lookup("openai")
		known, ok := provider.Embedded().Model("openai", "gpt-4o")
		if !ok || known.Context == 0 {
			t.Fatal("the model that the test is about is not known")
		}
		apply(t, c, Setup{Providers: []Provider{openai, named("q", &remote{models: []string{"m"}})}, Models: []config.Model{
			{ID: "smart", Targets: []config.Target{target("gone", "x"), target("openai", "gpt-4o"), target("q", "m")}, VisibleTo: []config.Pattern{"team-*"}},
			{ID: "small", Targets: []config.Target{target("openai", "gpt-4o")}, Description: "D", Context: 7, MaxOutput: 5},
			{ID: "nowhere", Targets: []config.Target{target("gone", "x")}},
			{ID: "q/m", Targets: []config.Target{target("openai", "gpt-4o")}},
		}})
		wantOffered(t, c, "q/m small smart") // before any list came
		pass(time.Second)
		wantOffered(t, c, "openai/gpt-4o q/m small smart")
		find := func(id string) *route.Model {
			i := slices.IndexFunc(c.Table().All(), func(m *route.Model) bool { return m.ID == id })
			return c.Table().All()[i]
		}
		smart := find("smart")
		var targets []string
		for _, t := range smart.Targets {
			targets = append(targets, t.Upstream.Name+"/"+t.Model)
		}
		if got := strings.Join(targets, " "); got != "openai/gpt-4o q/m" {
			t.Errorf("targets are %s", got)
		}
		if smart.Facts.Name != "smart" || smart.Facts.Context != known.Context || len(smart.VisibleTo) != 1 {
			t.Errorf("smart is %+v", smart)
		}
		if _, err := c.Table().Resolve(everyone{}, "smart"); err == nil {
			t.Error("a key that is not of the team sees its model")
		}
		if f := find("small").Facts; f.Context != 7 || f.MaxOutput != 5 || f.Description != "D" || f.Tools != known.Tools {
			t.Errorf("facts of small are %+v", f)
		}
		if got := find("q/m").Targets[0].Upstream.Name; got != "openai" {
			t.Errorf("q/m is served by %s: the configured model comes first", got)
		}
		if f := find("openai/gpt-4o").Facts; f.Context != known.Context || f.ID != "gpt-4o" {
			t.Errorf("facts of the upstream's own model are %+v", f)
		}
	})
}

func TestApplyKeepsWhatIsTheSame(t *testing.T) {
	inBubble(t, t.TempDir(), func(t *testing.T, c *Catalog, _ *strings.Builder) {
		r, s := &remote{models: []string{"a"}}, &remote{models: []string{"b"}}
		upstreams := func() map[string]any {
			all := map[string]any{}
			for _, m := range c.Table().All() {
				all[m.ID] = m.Targets[0].Upstream
			}
			return all
		}
		apply(t, c, Setup{Providers: []Provider{named("p", r), named("q", s)}})
		pass(time.Second)
		first, calls := upstreams(), r.count()

		apply(t, c, Setup{Providers: []Provider{named("q", s), named("p", r)}, Models: []config.Model{{ID: "x", Targets: []config.Target{target("p", "a")}}}})
		pass(time.Second)
		second := upstreams()
		if len(second) != 3 || second["p/a"] != first["p/a"] || second["q/b"] != first["q/b"] || second["x"] != first["p/a"] {
			t.Errorf("upstreams are %v, were %v", second, first)
		}
		if r.count() != calls {
			t.Error("an unchanged provider was asked for its list again")
		}

		changed := named("p", r)
		changed.APIKey = "another"
		apply(t, c, Setup{Providers: []Provider{changed}})
		wantOffered(t, c, "p/a") // its list is kept, and the other provider is gone
		if third := upstreams(); third["p/a"] == first["p/a"] {
			t.Error("a provider with another key is called with the old one")
		}
		pass(time.Second)
		if r.count() != calls+1 {
			t.Errorf("a changed provider was asked %d times for its list", r.count()-calls)
		}
	})
}

func TestSetupIsRefusedWhole(t *testing.T) {
	inBubble(t, t.TempDir(), func(t *testing.T, c *Catalog, _ *strings.Builder) {
		r := &remote{models: []string{"a"}}
		apply(t, c, Setup{Providers: []Provider{named("p", r)}})
		pass(time.Second)
		table, states := c.Table(), c.States()
		bad := named("bad", r)
		bad.BaseURL = "nowhere"
		if _, err := c.Prepare(context.Background(), Setup{Providers: []Provider{named("new", r), bad}}); err == nil {
			t.Error("a setup with an error was taken")
		}
		if c.Table() != table || !reflect.DeepEqual(c.States(), states) {
			t.Errorf("a setup with an error changed something: %v", c.States())
		}
	})
}

func TestAwait(t *testing.T) {
	inBubble(t, t.TempDir(), func(t *testing.T, c *Catalog, _ *strings.Builder) {
		await := func() time.Duration {
			start := time.Now()
			c.Await()
			return time.Since(start)
		}
		if got := await(); got != 0 {
			t.Errorf("without a setup Await takes %v", got)
		}
		apply(t, c, Setup{Providers: []Provider{named("p", &remote{models: []string{"a"}})}})
		if got := await(); got > time.Second {
			t.Errorf("a list that comes at once is waited for %v", got)
		}
		wantOffered(t, c, "p/a")
		hanging := &remote{hangs: true}
		apply(t, c, Setup{Providers: []Provider{named("slow", hanging), named("p", &remote{models: []string{"b"}})}})
		if got := await(); got != firstLists {
			t.Errorf("a list that does not come is waited for %v, want %v", got, firstLists)
		}
		wantOffered(t, c, "p/b")
		if got := await(); got != 0 {
			t.Errorf("it is waited for again, %v", got)
		}
		pass(listTimeout)
		if state := c.States()[0]; state.Error == "" {
			t.Errorf("a list that does not come is no error: %+v", state)
		}
	})
}

// A provider that hangs holds up no other that was configured after it.
func TestNewProviderDoesNotWaitForOthers(t *testing.T) {
	inBubble(t, t.TempDir(), func(t *testing.T, c *Catalog, _ *strings.Builder) {
		slow := named("slow", &remote{hangs: true})
		apply(t, c, Setup{Providers: []Provider{slow}})
		pass(time.Second)
		apply(t, c, Setup{Providers: []Provider{slow, named("p", &remote{models: []string{"a"}})}})
		c.Await()
		wantOffered(t, c, "p/a")
	})
}

// The same over a real connection.
func TestLists(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/v1/models" || r.Header.Get("User-Agent") != "limen/test" || r.Header.Get("X-Team") != "t" {
			t.Errorf("got %s with %v", r.URL, r.Header)
		}
		io.WriteString(w, `{"object":"list","data":[{"id":"a","max_model_len":4096,"owned_by":"vllm"}]}`)
	}))
	defer server.Close()
	st, err := store.Open(t.Context(), t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	c := New(st, slog.New(slog.DiscardHandler), "limen/test")
	apply(t, c, Setup{Connect: time.Second, Providers: []Provider{{Provider: config.Provider{
		Name: "p", BaseURL: server.URL + "/v1", Headers: map[string]config.Secret{"X-Team": "t"}, Speaks: []string{"openai-responses"},
	}}}})
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { c.Run(ctx) })
	c.Await()
	cancel()
	running.Wait()
	m, err := c.Table().Resolve(everyone{}, "p/a")
	if err != nil || m.Facts.Context != 4096 || m.Facts.OwnedBy != "vllm" {
		t.Fatalf("got %+v, %v", m, err)
	}
	if got := m.Targets[0].Upstream.Speaks; len(got) != 1 || got[0] != "openai-responses" {
		t.Errorf("it speaks %v", got)
	}
	m.Targets[0].Upstream.Close()
}

// A kept list that cannot be read is as good as none.
func TestDamagedKeptList(t *testing.T) {
	dir := t.TempDir()
	p := named("p", &remote{models: []string{"a"}})
	st, err := store.Open(t.Context(), dir, "")
	if err != nil {
		t.Fatal(err)
	}
	if err := st.SetModelList(t.Context(), store.ModelList{Provider: listName(p), Fetched: time.Now(), Body: []byte("{")}); err != nil {
		t.Fatal(err)
	}
	st.Close()
	inBubble(t, dir, func(t *testing.T, c *Catalog, log *strings.Builder) {
		apply(t, c, Setup{Providers: []Provider{p}})
		if !strings.Contains(log.String(), "cannot be read") {
			t.Errorf("the log is silent: %s", log)
		}
		pass(time.Second)
		wantOffered(t, c, "p/a")
	})
}

// What the configuration says of a model goes before what is known of it.
func TestCapsOfTargets(t *testing.T) {
	yes, no := true, false
	inBubble(t, t.TempDir(), func(t *testing.T, c *Catalog, _ *strings.Builder) {
		claude, glm, two := named("claude", &remote{}, "claude-opus-4-8", "claude-sonnet-5-5"), named("glm", &remote{}, "glm-4.7"), named("two", &remote{}, "m", "n")
		claude.Vendor, _ = provider.Lookup("anthropic")
		glm.Vendor, _ = provider.Lookup("zhipu")
		claude.Caps = []config.Caps{{Models: "claude-opus-*", Thinking: []string{"disabled"}, MaxOutput: 100, Sampling: &yes, ForcedTool: &no, Structured: &no, MidSystem: &no}}
		glm.Caps = []config.Caps{{Models: "*", Efforts: []string{"low"}, ForcedTool: &yes, Structured: &yes, MidSystem: &no}}
		two.Speaks = []string{"openai-chat", "openai-responses"}
		apply(t, c, Setup{Providers: []Provider{claude, glm, two}})
		caps := func(id string) map[dialect.Name]*llm.Caps {
			m, err := c.Table().Resolve(everyone{}, id)
			if err != nil {
				t.Fatal(err)
			}
			return m.Targets[0].Caps
		}
		opus := caps("claude/claude-opus-4-8")[dialect.Anthropic]
		if opus.Reasons || !opus.ReasonsKnown || opus.MaxOutput != 100 || opus.DefaultMaxTokens != 100 || opus.NoSampling || !opus.NoForcedTool ||
			!opus.NoStructured || opus.MidSystem || !opus.NoPrefill || opus.Origin != "" {
			t.Errorf("opus: %+v", opus)
		}
		if sonnet := caps("claude/claude-sonnet-5-5")[dialect.Anthropic]; !sonnet.Preserved || sonnet.Origin == "" || !sonnet.NoSampling {
			t.Errorf("sonnet: %+v", sonnet)
		}
		air := caps("glm/glm-4.7")[dialect.OpenAIChat]
		if !air.Reasons || !slices.Equal(air.Efforts, []string{"low"}) || air.Chat.ToolChoice != nil || !air.Chat.OneSystem ||
			!slices.Equal(air.Chat.Formats, []string{"json_object", "json_schema"}) {
			t.Errorf("glm: %+v", air)
		}
		if f := glm.Vendor.Quirks.Formats; !slices.Equal(f, []string{"json_object"}) {
			t.Errorf("the vendor's row has become %v", f)
		}
		m, n := caps("two/m"), caps("two/n")
		if len(m) != 2 || m[dialect.OpenAIChat].Origin != "" || m[dialect.OpenAIResponses].Origin != n[dialect.OpenAIResponses].Origin || m[dialect.OpenAIResponses].Origin == "" {
			t.Errorf("origins: %+v, %+v", m, n)
		}
	})
}

// Providers without a list offer what is known, or what is configured.
func TestProvidersWithoutList(t *testing.T) {
	inBubble(t, t.TempDir(), func(t *testing.T, c *Catalog, log *strings.Builder) {
		silent := &remote{err: errors.New("it has no list")}
		known, picked, own := named("known", silent), named("picked", silent, "house", "us.anthropic.claude-opus-4-*"), named("own", silent, "house")
		known.Vendor, _ = provider.Lookup("bedrock")
		picked.Vendor, own.Speaks = known.Vendor, []string{"bedrock"}
		apply(t, c, Setup{Providers: []Provider{known, picked, own}})
		pass(time.Second)
		offered := map[string]int{}
		for _, m := range c.Table().All() {
			name, id, _ := strings.Cut(m.ID, "/")
			if offered[name]++; name == "picked" && id != "house" && !strings.HasPrefix(id, "us.anthropic.claude-opus-4-") {
				t.Errorf("%s is offered", m.ID)
			}
		}
		if offered["known"] != len(provider.Embedded().Known(known.Vendor)) || offered["picked"] < 3 || offered["own"] != 1 || silent.count() > 0 || log.Len() > 0 {
			t.Errorf("offered %v after %d calls; log: %s", offered, silent.count(), log)
		}
	})
}
