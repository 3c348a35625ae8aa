package e2e

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/limen-gateway/limen/internal/e2e/upstream"
	"github.com/limen-gateway/limen/internal/money"
)

// priced is a configuration with a model m, whose answers cost a dollar per
// million tokens, and its prompts what is said.
func priced(up *upstream.Server, input string) string {
	return provider(up) + "models:\n  m: {targets: [up/small], price: {input: " + input + ", output: 1}}\n  unknown: {targets: [up/big]}\n"
}

// asking is a request for an answer of m that is no longer than that.
func asking(model, prompt string, stream bool, most int) string {
	return fmt.Sprintf(`{"model":%q,"stream":%t,"max_tokens":%d,"messages":[{"role":"user","content":%q}]}`, model, stream, most, prompt)
}

// paying has the gateway used with a new key that has a budget.
func (g *gateway) paying(t *testing.T, budget string) (key string) {
	t.Helper()
	var k struct{ ID, Key string }
	g.admin(t, http.MethodPost, "/keys", fmt.Sprintf(`{"name":%q,"budgets":[%q]}`, t.Name(), budget), &k)
	g.key = k.Key
	return k.ID
}

// standing is how it stands with the budget of a key.
type standing struct{ Amount, Spent, Held, Left money.Amount }

func (g *gateway) standing(t *testing.T, key string) standing {
	t.Helper()
	var k struct{ Budgets []standing }
	g.admin(t, http.MethodGet, "/keys/"+key, "", &k)
	if len(k.Budgets) != 1 {
		t.Fatalf("the key has %d budgets, want one", len(k.Budgets))
	}
	return k.Budgets[0]
}

// bill is what the record of a call says of money.
func (g *gateway) bill(t *testing.T, requestID string) (cost *money.Amount, charge money.Amount) {
	t.Helper()
	g.record(t, requestID)
	var r struct {
		Cost   *money.Amount `json:"cost_usd"`
		Charge money.Amount  `json:"charge_usd"`
	}
	g.admin(t, http.MethodGet, "/calls/"+requestID, "", &r)
	return r.Cost, r.Charge
}

// Many callers at once get as many calls as their budget has money for, and
// nothing goes beyond it, whatever becomes of those calls.
func TestBudgetAdmitsWhatFits(t *testing.T) {
	t.Parallel()
	const fit, callers = 10, 200
	up := newUpstream(t)
	g := start(t, priced(up, "0"))
	key := g.paying(t, "0.01/total") // of a thousand tokens each
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	var (
		clients sync.WaitGroup
		mu      sync.Mutex
		refused []reply
	)
	for range callers {
		clients.Go(func() {
			resp, err := g.client.Do(g.request(t, ctx, http.MethodPost, "/chat/completions", strings.NewReader(asking("m", "[[fault:hang]]", false, 1000))))
			if err != nil {
				return // it was admitted, and left
			}
			defer resp.Body.Close()
			mu.Lock()
			defer mu.Unlock()
			refused = append(refused, reply{status: resp.StatusCode, header: resp.Header})
		})
	}
	eventually(t, "all but those that fit are refused", func() bool {
		mu.Lock()
		defer mu.Unlock()
		return len(refused) >= callers-fit && attempts(up, "[[fault:hang]]") >= fit
	})
	if at := g.standing(t, key); at.Spent != 0 || at.Held != money.Dollar/100 || at.Left != 0 {
		t.Errorf("while the calls run: %+v", at)
	}
	leave()
	clients.Wait()
	for _, r := range refused {
		if r.status != http.StatusTooManyRequests || r.header.Get("X-Should-Retry") != "false" || r.header.Get("Retry-After") != "" {
			t.Fatalf("refused with %d %v", r.status, r.header)
		}
	}
	if n := attempts(up, "[[fault:hang]]"); n != fit || len(refused) != callers-fit {
		t.Errorf("%d calls were made and %d refused, want %d and %d", n, len(refused), fit, callers-fit)
	}
	eventually(t, "what was held comes back", func() bool {
		at := g.standing(t, key)
		return at.Held == 0 && at.Left == money.Dollar/100 // prompts cost nothing, and no answer came
	})
}

// What a call costs is in its record, its key's budget and its header: the
// same everywhere.
func TestCostIsTold(t *testing.T) {
	t.Parallel()
	up := newUpstream(t)
	g := start(t, priced(up, "3")+"prices: {in_usage: true}\n")
	key := g.paying(t, "1/total")
	var spent money.Amount
	for _, stream := range []bool{false, true} {
		resp, err := g.client.Do(g.request(t, t.Context(), http.MethodPost, "/chat/completions", strings.NewReader(asking("m", "hello [[fault:slow]]", stream, 1000))))
		if err != nil {
			t.Fatal(err)
		}
		got := read(t, resp)
		told := resp.Header.Get("X-Limen-Cost")
		if stream {
			told = resp.Trailer.Get("X-Limen-Cost")
		}
		r := g.record(t, got.id())
		want := 3000*money.Amount(r.Input) + 1000*money.Amount(r.Output) // nano-dollars
		cost, charge := g.bill(t, got.id())
		if cost == nil || *cost != want || charge != want || told != want.String() || r.Estimated {
			t.Errorf("stream %t: told %q, recorded %v and %s, want %s", stream, told, cost, charge, want)
		}
		if !stream && !strings.Contains(got.body, `"cost":`+want.String()) {
			t.Errorf("the usage does not say so: %s", got.body)
		}
		spent += want
	}
	if at := g.standing(t, key); at.Spent != spent || at.Held != 0 || at.Left != money.Dollar-spent {
		t.Errorf("the budget has %+v, want %s spent", at, spent)
	}
}

func read(t *testing.T, resp *http.Response) reply {
	t.Helper()
	defer resp.Body.Close()
	var body strings.Builder
	if _, err := io.Copy(&body, resp.Body); err != nil {
		t.Fatal(err)
	}
	return reply{status: resp.StatusCode, header: resp.Header, body: body.String()}
}

// A price that is not known is said to be so; a key with a budget cannot use
// the model, unless the policy is another.
func TestUnknownPrice(t *testing.T) {
	t.Parallel()
	up := newUpstream(t)
	g := start(t, priced(up, "3"))
	got := g.post(t, "/chat/completions", asking("unknown", "hello", false, 10))
	if cost, charge := g.bill(t, got.id()); got.status != http.StatusOK || got.header.Get("X-Limen-Cost") != "unknown" || cost != nil || charge != 0 {
		t.Errorf("without a budget: %d, %q, %v, %s", got.status, got.header.Get("X-Limen-Cost"), cost, charge)
	}
	everybody, key := g.key, g.paying(t, "1/month")
	g.post(t, "/chat/completions", asking("unknown", "hello", false, 10)).want(t, http.StatusForbidden, "price_unknown", "models.unknown.price")
	g.reload(t, priced(up, "3")+"prices: {unknown: ceiling, ceiling: {input: 0, output: 1000}}\n")
	g.post(t, "/chat/completions", asking("unknown", "hello", false, 1_000_000)).want(t, http.StatusTooManyRequests, "insufficient_quota", "It may cost $1000")
	got = g.post(t, "/chat/completions", asking("unknown", "hello", false, 10))
	r := g.record(t, got.id())
	if cost, charge := g.bill(t, got.id()); cost != nil || charge != 1_000_000*money.Amount(r.Output) {
		t.Errorf("at the ceiling: %v and %s for %d tokens", cost, charge, r.Output)
	}
	if at := g.standing(t, key); at.Spent != 1_000_000*money.Amount(r.Output) {
		t.Errorf("at the ceiling: %+v", at)
	}
	g.reload(t, priced(up, "3")+"prices: {unknown: allow}\n")
	g.post(t, "/chat/completions", asking("unknown", "hello", false, 10)).want(t, http.StatusOK)
	g.reload(t, priced(up, "3")+"prices: {unknown: refuse}\n")
	g.key = everybody
	g.post(t, "/chat/completions", asking("unknown", "hello", false, 10)).want(t, http.StatusForbidden, "price_unknown")
}

// Whatever way a call ends, it is charged for what was seen of it, and what was
// held for the rest comes back.
func TestEveryEndIsSettled(t *testing.T) {
	t.Parallel()
	up := newUpstream(t)
	g := start(t, priced(up, "3"))
	key := g.paying(t, "1/total")
	var spent money.Amount
	for _, fault := range []string{"reset-mid", "cut", "error-first", "lying-usage arg=huge", "lying-usage", "no-usage"} {
		for _, stream := range []bool{false, true} {
			ctx, leave := context.WithCancel(t.Context())
			prompt := "[[fault:" + fault + "]] " + fmt.Sprint(stream)
			resp, err := g.client.Do(g.request(t, ctx, http.MethodPost, "/chat/completions", strings.NewReader(asking("m", prompt, stream, 100))))
			if err != nil {
				t.Fatal(err)
			}
			var first [1]byte
			resp.Body.Read(first[:])
			leave()
			resp.Body.Close()
			_, charge := g.bill(t, resp.Header.Get("X-Request-Id"))
			spent += charge
			if charge < 0 || charge > money.Dollar/100 {
				t.Errorf("%s, stream %t: charged %s", fault, stream, charge)
			}
			if charge == 0 && fault != "error-first" {
				t.Errorf("%s, stream %t: charged nothing", fault, stream)
			}
		}
	}
	eventually(t, "what was held comes back", func() bool {
		at := g.standing(t, key)
		return at.Held == 0 && at.Spent == spent && at.Left == money.Dollar-spent
	})
}

// A call whose gateway was killed is charged about what it costs, and what it
// held comes back.
func TestKilledCallIsSettled(t *testing.T) {
	t.Parallel()
	up := newUpstream(t)
	data := t.TempDir()
	g := spawn(t, data, priced(up, "3"))
	key := g.paying(t, "1/total")
	password, client := g.password, g.key
	leave := g.hangAsking(t, up, asking("m", "[[fault:hang]]", false, 1000))
	if at := g.standing(t, key); at.Held < money.Dollar/1000 {
		t.Errorf("while the call runs: %+v", at)
	}
	g.kill()
	leave()
	g = spawn(t, data, priced(up, "3"))
	g.password, g.key = password, client
	var interrupted *record
	for _, r := range g.records(t) {
		if r.Error == "interrupted" {
			interrupted = &r
		}
	}
	if interrupted == nil || !interrupted.Estimated {
		t.Fatalf("the call is not recorded as interrupted: %+v", g.records(t))
	}
	_, charge := g.bill(t, interrupted.RequestID)
	if at := g.standing(t, key); charge == 0 || at.Spent != charge || at.Held != 0 || at.Left != money.Dollar-charge {
		t.Errorf("charged %s: %+v", charge, at)
	}
}

// hangAsking makes a call that does not end; leave has its client leave.
func (g *gateway) hangAsking(t *testing.T, up *upstream.Server, body string) (leave func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var client sync.WaitGroup
	client.Go(func() {
		if resp, err := g.client.Do(g.request(t, ctx, http.MethodPost, "/chat/completions", strings.NewReader(body))); err == nil {
			resp.Body.Close()
		}
	})
	eventually(t, "the call is made", func() bool { return attempts(up, "[[fault:hang]]") == 1 })
	return func() {
		cancel()
		client.Wait()
	}
}

// A call that is tried again is charged for every attempt that was worked on.
func TestEachAttemptIsCharged(t *testing.T) {
	t.Parallel()
	g, a, _ := pair(t, "openai-chat", "openai-chat", "price: {input: 1, output: 1}", "")
	faulty(t, a, "reset")
	key := g.paying(t, "1/total")
	got := g.post(t, "/chat/completions", asking("m", "hello", true, 100))
	r := g.record(t, got.id())
	_, charge := g.bill(t, got.id())
	if r.Provider != "b" || !r.Estimated || charge != 1000*money.Amount(r.Total) || r.Total < 40 {
		t.Errorf("charged %s for %+v", charge, r)
	}
	if at := g.standing(t, key); at.Spent != charge || at.Held != 0 {
		t.Errorf("the budget has %+v, want %s spent", at, charge)
	}
}

var mayCost = regexp.MustCompile(`It may cost \$([0-9.]+);`)

// A budget that has just enough for a call lets it be made, but not again after
// an attempt that cost something.
func TestAttemptsStayWithinTheBudget(t *testing.T) {
	t.Parallel()
	g, a, b := pair(t, "openai-chat", "openai-chat", "price: {input: 1, output: 1}", "")
	body := asking("m", "hello", false, 100)
	g.paying(t, "0.000000001/total")
	refused := g.post(t, "/chat/completions", body)
	m := mayCost.FindStringSubmatch(refused.body)
	if refused.status != http.StatusTooManyRequests || m == nil {
		t.Fatalf("got %d %s", refused.status, refused.body)
	}
	key := g.paying(t, m[1]+"/total")
	faulty(t, a, "reset")
	g.post(t, "/chat/completions", body).want(t, http.StatusTooManyRequests, "insufficient_quota")
	if at := g.standing(t, key); at.Spent == 0 || at.Held != 0 || len(calls(b)) != 0 {
		t.Errorf("after one attempt: %+v, %d calls of the other target", at, len(calls(b)))
	}
	faulty(t, a, "")
	g.paying(t, m[1]+"/total")
	g.post(t, "/chat/completions", body).want(t, http.StatusOK)
}
