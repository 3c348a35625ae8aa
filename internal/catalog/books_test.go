package catalog

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/limen-gateway/limen/internal/config"
	"github.com/limen-gateway/limen/internal/price"
	"github.com/limen-gateway/limen/internal/provider"
)

// parsed is a configuration.
func parsed(t *testing.T, text string) *config.Config {
	t.Helper()
	cfg, err := config.Parse(config.Source{Name: "limen.yaml", Data: []byte(text)}, config.Options{Vendors: []string{"openai", "ollama"}})
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}

// lists are those of a book, a line each.
func lists(b *price.Book) string {
	var text strings.Builder
	for _, l := range b.Lists() {
		from := "always"
		if !l.From.IsZero() {
			from = l.From.UTC().Format(time.DateOnly)
		}
		text.WriteString(from + " " + l.String() + " (" + l.Source + ")\n")
	}
	return text.String()
}

func wantBook(t *testing.T, c *Catalog, model, want string) {
	t.Helper()
	if got := lists(resolve(t, c, model).Targets[0].Price); got != want {
		t.Errorf("%s: got\n%swant\n%s", model, got, want)
	}
}

// What a refresh brings counts from then on; what was taken before stays known,
// over restarts, too.
func TestFormerPrices(t *testing.T) {
	dir := t.TempDir()
	inBubble(t, dir, func(t *testing.T, c *Catalog, log *strings.Builder) { // it is 2000-01-01
		r := &remote{models: []string{"m0", "m1"}}
		keep(t, c, packed(t, "2000-01-01", minFacts, 7))
		setup := vendors(r)
		setup.Refresh = 24 * time.Hour
		apply(t, c, setup)
		pass(time.Second)
		wantBook(t, c, "openai/m0", "always 0.000007;flex=50;batch=50 (test)\n")

		pass(48 * time.Hour)
		keep(t, c, packed(t, "2000-01-03", minFacts, 9))
		c.Refresh(t.Context())
		const both = "always 0.000007;flex=50;batch=50 (test)\n2000-01-03 0.000009;flex=50;batch=50 (test)\n"
		wantBook(t, c, "openai/m0", both)
		c.Refresh(t.Context())
		apply(t, c, setup) // nothing new
		wantBook(t, c, "openai/m0", both)
		if log.Len() > 0 {
			t.Errorf("the log: %s", log)
		}
	})
	inBubble(t, dir, func(t *testing.T, c *Catalog, _ *strings.Builder) {
		apply(t, c, vendors(&remote{models: []string{"m0"}}))
		pass(time.Second)
		const both = "always 0.000007;flex=50;batch=50 (test)\n2000-01-03 0.000009;flex=50;batch=50 (test)\n"
		wantBook(t, c, "openai/m0", both)
		prices, err := c.store.Prices(t.Context())
		if err != nil || len(prices) != 2*(minFacts-1) {
			t.Errorf("%d prices are kept, %v", len(prices), err)
		}
	})
}

// Lists of providers are dated as facts are.
func TestFormerListedPrices(t *testing.T) {
	const models, one = `{"data":[{"id":"m","pricing":{"prompt":"%s","completion":"%[1]s"}},{"id":"n"}]}`, "always 2,2 (its list)\n"
	inBubble(t, t.TempDir(), func(t *testing.T, c *Catalog, _ *strings.Builder) {
		r := &lister{}
		setup := Setup{Providers: []Provider{named("p", r)}, Refresh: 24 * time.Hour}
		want := ""
		for day, each := range []string{"0.000002", "0.000002", "-1", "0.000003", "0.000002"} {
			r.set(fmt.Sprintf(models, each))
			if day == 0 {
				apply(t, c, setup)
			}
			pass(24 * time.Hour) // at the end of which the list is read
			switch day {
			case 0:
				want = one
			case 2:
				want += "2000-01-04  ()\n" // it depends
			case 3:
				want += "2000-01-05 3,3 (its list)\n"
			case 4:
				want += "2000-01-06 2,2 (its list)\n"
			}
			wantBook(t, c, "p/m", want)
			wantBook(t, c, "p/n", "")
		}
	})
}

// lister answers with a list.
type lister struct {
	mu   sync.Mutex
	list string
}

func (l *lister) set(list string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.list = list
}

func (l *lister) RoundTrip(*http.Request) (*http.Response, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return &http.Response{StatusCode: 200, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(l.list))}, nil
}

// The configuration goes before what is known: the model's before the provider's.
func TestConfiguredPrices(t *testing.T) {
	const text = `
providers:
  openai:
    base_url: http://openai.test/v1
    api_key: k
    markup: 20%
    prices:
      m0: { output: 5 }
      "m*": [{ input: 3, output: 4 }, { is: free, from: 2000-01-10 }]
  ollama: { base_url: "http://127.0.0.1:11434/v1", prices: { dear: { input: 1, output: 2 } } }
  far: { base_url: "http://far" }
models:
  mine: { targets: [openai/m0, openai/m1], markup: 0%, price: [{ input: 1 }, { input: 2, from: 2000-01-02 }] }
  theirs: { targets: [openai/m1] }
prices: { markup: 5.5% }
`
	inBubble(t, t.TempDir(), func(t *testing.T, c *Catalog, _ *strings.Builder) {
		cfg := parsed(t, text)
		keep(t, c, packed(t, "2000-01-01", minFacts, 7))
		setup := vendors(&remote{models: []string{"m0", "m1"}})
		openai := setup.Providers[0]
		openai.Provider = cfg.Providers[0]
		ollama := named("ollama", &remote{models: []string{"llama", "dear", "big-cloud"}})
		ollama.Vendor, _ = provider.Lookup("ollama")
		ollama.Provider = cfg.Providers[1]
		far := named("far", &remote{models: []string{"m9"}})
		apply(t, c, Setup{Providers: []Provider{openai, ollama, far}, Models: cfg.Models, Markup: cfg.Prices.Markup})
		pass(time.Second)
		for model, want := range map[string]string{
			"mine": "always 1,5;flex=50;batch=50 (models.mine, providers.openai, test)\n" +
				"2000-01-02 2,5;flex=50;batch=50 (models.mine, providers.openai, test)\n",
			"theirs": "always 3,4;flex=50;batch=50 (providers.openai, test)\n" +
				"2000-01-10 " + price.Free().String() + " (providers.openai, test)\n",
			"openai/m0":        "always 0.000007,5;flex=50;batch=50 (providers.openai, test)\n",
			"ollama/llama":     "always " + price.Free().String() + " (own machine)\n",
			"ollama/dear":      "always 1,2,0,0,0,0,0,0,0;call=0;search=0;flex=100;priority=100;batch=100;other=100 (providers.ollama, own machine)\n",
			"ollama/big-cloud": "",
			"far/m9":           "",
		} {
			wantBook(t, c, model, want)
		}
		for model, want := range map[string]price.Markup{"mine": 0, "theirs": 2000, "openai/m0": 2000, "ollama/llama": 550} {
			if got := resolve(t, c, model).Targets[0].Price.Markup(); got != want {
				t.Errorf("%s has a markup of %d", model, got)
			}
		}
	})
}

// Without the store nothing is forgotten, and prices go on to be known.
func TestPricesWithoutStore(t *testing.T) {
	inBubble(t, t.TempDir(), func(t *testing.T, c *Catalog, log *strings.Builder) {
		keep(t, c, packed(t, "2000-01-01", minFacts, 7))
		apply(t, c, vendors(&remote{models: []string{"m0"}}))
		pass(time.Second)
		if err := c.store.Close(); err != nil {
			t.Fatal(err)
		}
		c.renewFacts(context.WithoutCancel(t.Context()), nil)
		wantBook(t, c, "openai/m0", "always 0.000007;flex=50;batch=50 (test)\n")
		if !strings.Contains(log.String(), "former prices cannot be read") {
			t.Errorf("the log: %s", log)
		}
	})
}
