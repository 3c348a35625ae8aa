package catalog

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/limen-gateway/limen/internal/config"
	"github.com/limen-gateway/limen/internal/dialect"
	"github.com/limen-gateway/limen/internal/llm"
	"github.com/limen-gateway/limen/internal/provider"
	"github.com/limen-gateway/limen/internal/route"
)

// fussy takes one key only.
type fussy struct {
	remote
	key string
}

func (f *fussy) RoundTrip(r *http.Request) (*http.Response, error) {
	f.mu.Lock()
	good := r.Header.Get("Authorization") == "Bearer "+f.key
	if !good {
		f.calls++
	}
	f.mu.Unlock()
	if !good {
		return &http.Response{StatusCode: 401, Header: http.Header{}, Body: io.NopCloser(strings.NewReader("no sk-canary"))}, nil
	}
	return f.remote.RoundTrip(r)
}

func resolve(t *testing.T, c *Catalog, id string) *route.Model {
	t.Helper()
	m, err := c.Table().Resolve(everyone{}, id)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// Each key of a provider is an account, and one that is good for it gets the
// list.
func TestAccounts(t *testing.T) {
	inBubble(t, t.TempDir(), func(t *testing.T, c *Catalog, log *strings.Builder) {
		r := &fussy{key: "third"}
		r.set(nil, "a")
		p := named("p", r)
		p.APIKeys = []config.Secret{"second", "third"}
		p.Speaks, p.Region, p.ZeroRetention = []string{"openai-responses"}, "eu", true
		apply(t, c, Setup{Providers: []Provider{p}, Models: []config.Model{{ID: "mine", Targets: []config.Target{
			{Upstream: config.Upstream{Provider: "p", Model: "a"}, Weight: 3}, {Upstream: config.Upstream{Provider: "p", Model: "b"}},
		}}}})
		pass(time.Second)
		wantOffered(t, c, "mine p/a")
		if r.count() != 3 || log.Len() > 0 {
			t.Errorf("asked %d times; log: %s", r.count(), log)
		}
		m := resolve(t, c, "p/a")
		origins, healths := map[string]bool{}, map[*route.Health]bool{}
		for i, account := range []string{"p", "p#2", "p#3"} {
			target := m.Targets[i]
			if target.Account != account || target.String() != "p/a" || target.Region != "eu" || !target.ZeroRetention {
				t.Errorf("target %d is %+v", i, target)
			}
			origins[target.Caps[dialect.OpenAIResponses].Origin], healths[target.Health] = true, true
		}
		if len(m.Targets) != 3 || len(origins) != 3 || len(healths) != 3 || !m.Affinity || m.Strategy != route.Weighted {
			t.Errorf("got %d targets with origins %v: %+v", len(m.Targets), origins, m)
		}
		mine := resolve(t, c, "mine")
		if len(mine.Targets) != 6 || mine.Targets[0].Weight != 1 || mine.Targets[5].Weight != 1.0/3 || mine.Strategy != route.Weighted ||
			mine.Targets[0].Health != m.Targets[0].Health {
			t.Errorf("got %+v", mine)
		}

		r.mu.Lock()
		r.key = "none"
		r.mu.Unlock()
		pass(time.Hour)
		wantOffered(t, c, "mine p/a")
		if state := c.States()[0]; state.Error == "" || strings.Contains(state.Error+log.String(), "canary") {
			t.Errorf("state is %+v; log: %s", state, log)
		}
	})
}

// One key, in the list or not, is what it was: its origin does not change with
// it.
func TestOneKeyOfAList(t *testing.T) {
	inBubble(t, t.TempDir(), func(t *testing.T, c *Catalog, _ *strings.Builder) {
		origin := func(p Provider) string {
			p.Speaks = []string{"openai-responses"}
			apply(t, c, Setup{Providers: []Provider{p}})
			m := resolve(t, c, "p/m")
			if len(m.Targets) != 1 || m.Targets[0].Account != "p" {
				t.Errorf("got %+v", m.Targets)
			}
			return m.Targets[0].Caps[dialect.OpenAIResponses].Origin
		}
		alone, listed := named("p", &remote{}, "m"), named("p", &remote{}, "m")
		listed.APIKey, listed.APIKeys = "", []config.Secret{"another"}
		if a, b := origin(alone), origin(listed); a != b || a == "" {
			t.Errorf("origins %q and %q", a, b)
		}
	})
}

// What is known of a target's health stays while provider, key and model do.
func TestHealthOutlivesTables(t *testing.T) {
	inBubble(t, t.TempDir(), func(t *testing.T, c *Catalog, _ *strings.Builder) {
		r := &remote{models: []string{"a"}}
		p := named("p", r)
		apply(t, c, Setup{Providers: []Provider{p}})
		pass(time.Second)
		health := func() *route.Health { return resolve(t, c, "p/a").Targets[0].Health }
		first := health()
		r.set(nil, "a", "b")
		pass(time.Hour) // the list came anew
		p.Headers = map[string]config.Secret{"x-team": "t"}
		apply(t, c, Setup{Providers: []Provider{p}})
		if health() != first {
			t.Error("another header makes another health")
		}
		p.APIKey = "another"
		apply(t, c, Setup{Providers: []Provider{p}})
		if health() == first {
			t.Error("another key has the health of the old one")
		}
	})
}

// Whoever reads the configuration again may have seen to a refused credential.
func TestReloadForgivesCredentials(t *testing.T) {
	inBubble(t, t.TempDir(), func(t *testing.T, c *Catalog, _ *strings.Builder) {
		p := named("p", &remote{}, "a")
		apply(t, c, Setup{Providers: []Provider{p}})
		state := func() string { return resolve(t, c, "p/a").Targets[0].Health.Snapshot(time.Now()).State }
		plan := route.NewRouter().Plan(resolve(t, c, "p/a"), &route.Query{}, time.Now())
		target, err := plan.Next(time.Now())
		if err != nil {
			t.Fatal(err)
		}
		plan.Done(target, route.Outcome{Err: &llm.Error{Kind: llm.UpstreamAuth, Status: 401}, Dialed: true}, time.Now())
		if got := state(); got != "cooling" {
			t.Fatalf("it is %s", got)
		}
		apply(t, c, Setup{Providers: []Provider{p}})
		if got := state(); got != "ok" {
			t.Errorf("after a reload it is %s", got)
		}
	})
}

func TestRoutingOfModels(t *testing.T) {
	inBubble(t, t.TempDir(), func(t *testing.T, c *Catalog, _ *strings.Builder) {
		yes, no, second := true, false, config.Duration(time.Second)
		p := named("p", &remote{}, "a", "b")
		p.Caps = []config.Caps{{Models: "a", Vision: &no, Tools: &yes, Structured: &no}}
		gold := `team == "gold"`
		apply(t, c, Setup{Providers: []Provider{p}, Models: []config.Model{
			{ID: "chain", Targets: []config.Target{
				{Upstream: config.Upstream{Provider: "p", Model: "a"}, When: gold}, {Upstream: config.Upstream{Provider: "gone", Model: "x"}},
				{Upstream: config.Upstream{Provider: "p", Model: "b"}, When: gold},
			}, FirstToken: &second, Hedge: &config.Hedge{After: &second, Max: 7}, Continue: true},
			{ID: "quick", Strategy: "latency", Affinity: "off", Targets: []config.Target{target("p", "a"), target("p", "b")}},
		}})
		chain, quick := resolve(t, c, "chain"), resolve(t, c, "quick")
		a, b := chain.Targets[0], chain.Targets[1]
		if chain.Strategy != route.Ordered || !chain.Affinity || chain.FirstToken != time.Second || !chain.Continue || *chain.Hedge != (route.Hedge{After: time.Second, MaxExtra: 7}) ||
			a.Tier != 0 || b.Tier != 2 || a.When.String() != gold || a.When != b.When {
			t.Errorf("chain: %+v", chain)
		}
		if a.Vision != provider.No || a.Tools != provider.Yes || a.Schema != provider.No || b.Vision != provider.Unknown {
			t.Errorf("abilities: %+v, %+v", a, b)
		}
		if quick.Strategy != route.Latency || quick.Affinity || quick.Targets[1].Tier != 0 || quick.Hedge != nil {
			t.Errorf("quick: %+v", quick)
		}
		synctest.Wait() // the lists have come
		table := c.Table()
		_, err := c.Prepare(context.Background(), Setup{Providers: []Provider{p}, Models: []config.Model{
			{ID: "bad", Targets: []config.Target{{Upstream: config.Upstream{Provider: "p", Model: "a"}, When: "teem"}}},
		}})
		if err == nil || !strings.Contains(err.Error(), "model bad: when: undeclared") || c.Table() != table {
			t.Errorf("a rule that is none: %v", err)
		}
	})
}
