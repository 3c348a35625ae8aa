package e2e

import (
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/limen-gateway/limen/internal/money"
)

// TestKill kills gateways under load without warning, again and again on the
// same data. Whatever a client saw complete is accounted for once; nothing is
// accounted for twice.
func TestKill(t *testing.T) {
	rounds := 10
	switch {
	case *soak:
		rounds = 100
	case testing.Short():
		rounds = 3
	}
	config := provider(newUpstream(t)) + "prices: {unknown: ceiling, ceiling: {input: 1, output: 2}}\n"
	data := t.TempDir()
	acknowledged := map[string]bool{} // request IDs, of all rounds
	var key, payer, password string
	for round := range rounds {
		g := spawn(t, data, config)
		if round == 0 {
			password = g.password
			payer = g.paying(t, "1000/total")
			key = g.key
		}
		g.key, g.password = key, password
		g.checkUsage(t, acknowledged)
		g.checkSettled(t, payer)
		maps.Copy(acknowledged, g.load(t, 16, time.Duration(200+rand.IntN(300))*time.Millisecond))
		if t.Failed() {
			return
		}
	}
	g := spawn(t, data, config)
	g.key, g.password = key, password
	g.checkUsage(t, acknowledged)
	g.checkSettled(t, payer)
	t.Logf("%d rounds, %d calls acknowledged", rounds, len(acknowledged))
	if code := g.stop(); code != 0 {
		t.Errorf("exit code: got %d, want 0\n%s", code, g.log.String())
	}
}

// load makes calls until the gateway is killed under them, and returns those
// that were complete for their client.
func (g *gateway) load(t *testing.T, clients int, kill time.Duration) map[string]bool {
	t.Helper()
	var (
		running sync.WaitGroup
		mu      sync.Mutex
	)
	complete := map[string]bool{}
	time.AfterFunc(kill, g.kill)
	for i := range clients {
		running.Go(func() {
			for n := 0; ; n++ {
				path := [...]string{"/chat/completions", "/responses"}[(n+i)%2]
				stream := n%3 != 0
				id, ok := g.try(t, path, ask(path, stream, fmt.Sprint("client ", i, " call ", n)), stream)
				if !ok {
					return
				}
				mu.Lock()
				complete[id] = true
				mu.Unlock()
			}
		})
	}
	running.Wait()
	g.kill()
	if len(complete) == 0 {
		t.Error("no call was complete before the kill")
	}
	return complete
}

// try makes a call and says whether it was complete.
func (g *gateway) try(t *testing.T, path, body string, stream bool) (id string, complete bool) {
	resp, err := g.client.Do(g.request(t, t.Context(), http.MethodPost, path, strings.NewReader(body)))
	if err != nil {
		return "", false
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if resp.StatusCode != http.StatusOK {
		t.Errorf("got %s %s, want 200", resp.Status, answer)
		return "", false
	}
	if stream {
		// What counts is the end that the client sees, not that of the connection.
		return resp.Header.Get("X-Request-Id"), strings.HasSuffix(string(answer), "data: [DONE]\n\n")
	}
	return resp.Header.Get("X-Request-Id"), err == nil
}

// checkSettled wants a budget to be charged what the records say, and nothing
// to be held by calls that are over.
func (g *gateway) checkSettled(t *testing.T, payer string) {
	t.Helper()
	var charged money.Amount
	before := ""
	for {
		var page struct {
			Calls []struct {
				RequestID string       `json:"request_id"`
				Charge    money.Amount `json:"charge_usd"`
			}
		}
		g.admin(t, http.MethodGet, "/calls?limit=10000&key="+payer+"&before="+before, "", &page)
		for _, r := range page.Calls {
			charged += r.Charge
			before = r.RequestID
		}
		if len(page.Calls) == 0 {
			break
		}
	}
	if at := g.standing(t, payer); at.Spent != charged || at.Held != 0 || at.Left != at.Amount-charged {
		t.Errorf("the budget has %+v, the records %s", at, charged)
	}
}

// checkUsage pages through all calls that are accounted for.
func (g *gateway) checkUsage(t *testing.T, acknowledged map[string]bool) {
	t.Helper()
	seen := map[string]int{}
	before := ""
	for {
		var page struct{ Calls []record }
		g.admin(t, http.MethodGet, "/calls?limit=10000&before="+before, "", &page)
		for _, r := range page.Calls {
			seen[r.RequestID]++
			before = r.RequestID
		}
		if len(page.Calls) == 0 {
			break
		}
	}
	missing, twice := 0, 0
	for id := range acknowledged {
		if seen[id] == 0 {
			missing++
		}
	}
	for _, n := range seen {
		if n > 1 {
			twice++
		}
	}
	if missing > 0 || twice > 0 {
		t.Errorf("usage after kill -9: got %d of %d acknowledged calls missing, %d twice, want none", missing, len(acknowledged), twice)
	}
	var sum struct{ Calls int }
	g.admin(t, http.MethodGet, "/usage", "", &sum)
	if sum.Calls != len(seen) {
		t.Errorf("sum of usage: got %d calls, want %d as listed", sum.Calls, len(seen))
	}
}
