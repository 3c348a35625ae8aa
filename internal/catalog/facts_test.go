package catalog

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/limen-gateway/limen/internal/price"
	"github.com/limen-gateway/limen/internal/provider"
	"github.com/limen-gateway/limen/internal/store"
)

// packed are facts about n models with a context and a price: one of Bedrock,
// which gives no list, and others of OpenAI from "m0" on.
func packed(t *testing.T, date string, n, context int) []byte {
	t.Helper()
	rows := []provider.Row{{Vendor: "bedrock", Model: provider.Model{ID: fmt.Sprintf("bedrock-%d", context)}}}
	for i := range n - 1 {
		rows = append(rows, provider.Row{Vendor: "openai", Model: provider.Model{
			ID: fmt.Sprint("m", i), Context: context, Prices: price.List{Rates: price.Rates{Input: price.RateOf(int64(context))}},
		}})
	}
	p, err := provider.PackFacts(provider.Origin{Source: "test", Date: date}, rows)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func keep(t *testing.T, c *Catalog, packed []byte) {
	t.Helper()
	if _, err := KeepFacts(t.Context(), c.store, packed); err != nil {
		t.Fatal(err)
	}
}

// vendors are OpenAI with the model m0, and Bedrock.
func vendors(r *remote) Setup {
	openai, bedrock := named("openai", r), named("bedrock", r)
	openai.Vendor, _ = provider.Lookup("openai")
	bedrock.Vendor, _ = provider.Lookup("bedrock")
	return Setup{Providers: []Provider{openai, bedrock}, Refresh: time.Minute}
}

func wantFacts(t *testing.T, c *Catalog, context int, price string) {
	t.Helper()
	m, err := c.Table().Resolve(everyone{}, "openai/m0")
	if err != nil {
		t.Fatal(err)
	}
	if m.Facts.Context != context || m.Facts.Prices.Input.String() != price {
		t.Errorf("m0 has a context of %d for %s, want %d for %s", m.Facts.Context, m.Facts.Prices.Input, context, price)
	}
}

func TestRefreshedFacts(t *testing.T) {
	dir := t.TempDir()
	inBubble(t, dir, func(t *testing.T, c *Catalog, log *strings.Builder) {
		r := &remote{models: []string{"m0"}}
		apply(t, c, vendors(r))
		pass(time.Second)
		wantFacts(t, c, 0, "-")
		if c.Facts() != provider.Embedded() {
			t.Error("the facts are not those of the release")
		}

		keep(t, c, packed(t, "2000-01-01", minFacts, 7))
		calls := r.count()
		r.set(nil, "m0", "m1")
		states := c.Refresh(t.Context()) // without any time that passes
		wantFacts(t, c, 7, "0.000007")
		wantOffered(t, c, "bedrock/bedrock-7 openai/m0 openai/m1")
		if r.count() != calls+1 || len(states) != 2 || states[0].Models != 2 || states[1].Models != 1 {
			t.Errorf("after %d calls: %+v", r.count()-calls, states)
		}

		// Another gateway on the same store took others.
		pass(time.Second)
		keep(t, c, packed(t, "2000-01-01", minFacts, 9))
		wantFacts(t, c, 7, "0.000007")
		pass(2 * time.Minute)
		wantFacts(t, c, 9, "0.000009")
		wantOffered(t, c, "bedrock/bedrock-9 openai/m0 openai/m1")
		if log.Len() > 0 {
			t.Errorf("the log: %s", log)
		}
	})
	inBubble(t, dir, func(t *testing.T, c *Catalog, _ *strings.Builder) {
		apply(t, c, vendors(&remote{err: errors.New("away")}))
		wantFacts(t, c, 9, "0.000009") // at once

		if err := DropFacts(t.Context(), c.store); err != nil {
			t.Fatal(err)
		}
		states := c.Refresh(t.Context())
		wantFacts(t, c, 0, "-")
		if states[0].Error == "" || states[1].Models < 50 {
			t.Errorf("states are %+v", states)
		}
	})
}

// A provider that does not answer does not hold up a refresh for ever.
func TestRefreshEnds(t *testing.T) {
	inBubble(t, t.TempDir(), func(t *testing.T, c *Catalog, _ *strings.Builder) {
		apply(t, c, Setup{Providers: []Provider{named("slow", &remote{hangs: true})}})
		pass(time.Second) // it is being asked
		start := time.Now()
		states := c.Refresh(t.Context())
		if took := time.Since(start); took > 2*listTimeout || len(states) != 1 || states[0].Error == "" {
			t.Errorf("after %v: %+v", took, states)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if states := c.Refresh(ctx); len(states) != 1 {
			t.Errorf("for nobody: %+v", states)
		}
	})
}

func TestKeepFactsRefuses(t *testing.T) {
	st, err := store.Open(t.Context(), t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	good := packed(t, "2000-01-01", minFacts, 7)
	for name, bad := range map[string][]byte{
		"nothing": nil, "no facts": []byte("facts"), "a part": good[:len(good)/2], "too few": packed(t, "2000-01-01", minFacts-1, 7),
	} {
		_, err := KeepFacts(t.Context(), st, bad)
		if as := (*BadFacts)(nil); !errors.As(err, &as) {
			t.Errorf("%s: got %v", name, err)
		}
		if _, err := st.ModelList(t.Context(), factsName); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("%s: something was kept, %v", name, err)
		}
	}
	if facts, err := KeepFacts(t.Context(), st, good); err != nil || facts.Len() != minFacts {
		t.Errorf("got %v", err)
	}
}

// Facts that were kept count until a release has later ones.
func TestKeptFactsOfAnotherRelease(t *testing.T) {
	release := provider.EmbeddedOrigin().Date
	for name, test := range map[string]struct {
		release, date string
		kept          bool
	}{
		"the same release":          {release, "2000-01-01", true},
		"an earlier one":            {"1999-01-01", "2000-01-01", false},
		"an earlier one, but later": {"1999-01-01", "2999-01-01", true},
	} {
		body, err := json.Marshal(keptFacts{test.release, packed(t, test.date, minFacts, 7)})
		if err != nil {
			t.Fatal(err)
		}
		at := time.UnixMilli(1000)
		facts, since, err := unpack(store.ModelList{Fetched: at, Body: body})
		if err != nil || (facts != provider.Embedded()) != test.kept || since.Equal(at) != test.kept || since.IsZero() == test.kept {
			t.Errorf("%s: from %v since %v, %v", name, facts.Origin(), since, err)
		}
	}
}

// Kept facts that cannot be read leave those there were.
func TestDamagedKeptFacts(t *testing.T) {
	st, err := store.Open(t.Context(), t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	var log strings.Builder
	c := New(st, slog.New(slog.NewTextHandler(&log, nil)), "limen/test")
	for _, body := range []string{"{", `{"packed":"QUJD"}`} {
		log.Reset()
		if err := st.SetModelList(t.Context(), store.ModelList{Provider: factsName, Fetched: time.Now(), Body: []byte(body)}); err != nil {
			t.Fatal(err)
		}
		c.renewFacts(t.Context(), nil)
		if c.Facts() != provider.Embedded() || !strings.Contains(log.String(), "cannot be read") {
			t.Errorf("%s: facts from %v; log: %s", body, c.Facts().Origin(), &log)
		}
	}
}
