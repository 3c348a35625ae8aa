package admin

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/limen-gateway/limen/internal/budget"
	"github.com/limen-gateway/limen/internal/config"
	"github.com/limen-gateway/limen/internal/document"
	"github.com/limen-gateway/limen/internal/keys"
	"github.com/limen-gateway/limen/internal/ledger"
	"github.com/limen-gateway/limen/internal/llm"
	"github.com/limen-gateway/limen/internal/money"
	"github.com/limen-gateway/limen/internal/seal"
	"github.com/limen-gateway/limen/internal/store"
)

// newAPI is the API on a data directory of its own, with the key k1 of alice
// and the team t1 of research.
func newAPI(t *testing.T, calls ...store.Call) http.Handler {
	t.Helper()
	return newServer(t, calls...).Local(keys.ViaSocket)
}

// newServer is its server. The admin password is "correct horse".
func newServer(t *testing.T, calls ...store.Call) *Server {
	t.Helper()
	ctx, dir, log := t.Context(), t.TempDir(), slog.New(slog.DiscardHandler)
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	st, err := store.Open(ctx, dir, "")
	must(err)
	t.Cleanup(func() { st.Close() })
	must(st.CreateTeam(ctx, store.Team{ID: "t1", Name: "research", Budgets: "[]", Limits: "{}"}, func([]store.Team) error { return nil }))
	must(st.CreateKey(ctx, store.Key{ID: "k1", Name: "=alice", TeamID: "t1"}))
	must(st.AddCalls(ctx, calls))
	books := budget.NewBooks(st, "n", true, log)
	ring, err := keys.Open(ctx, st, books, log)
	must(err)
	l, err := ledger.Open(dir, books, log)
	must(err)
	t.Cleanup(func() { l.Close(context.Background()) })
	operators := keys.NewOperators(st, keys.NewAdmin(st))
	must(operators.SetAdminPassword(ctx, password))
	documents, err := document.New(st, make([]byte, seal.KeySize), true, config.Options{Vendors: []string{"openai", "ollama"}})
	must(err)
	return NewServer(&API{
		Keys: ring, Books: books, Operators: operators, Ledger: l, Store: st, Log: log, KeyPrefix: func() string { return "limen_" }, Documents: documents,
	})
}

func ask(h http.Handler, path string) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest("GET", "/api/v1"+path, nil))
	return w
}

var update = flag.Bool("update", false, "write the files in testdata anew")

func sample() []store.Call {
	at := time.Date(2026, 3, 1, 22, 30, 0, 123e6, time.UTC)
	return []store.Call{
		{
			ID: fmt.Sprintf("%012x7abc", at.UnixMilli()), KeyID: "k1", Team: "t1", Operation: "chat", Model: "fast", Provider: "openai", UpstreamModel: "gpt-5", Account: "openai#2", Stream: true,
			Status: 200, Started: at, FirstByte: 250 * time.Millisecond, Total: 1500 * time.Millisecond, BytesIn: 100, BytesOut: 200, Notes: "drop:seed,rename:model",
			Usage:  llm.Usage{Input: 1, CacheRead: 2, CacheWrite: 3, HourWrite: 4, AudioIn: 5, Output: 6, Reasoning: 7, AudioOut: 8, ImageOut: 9, Searches: 10, Service: llm.Flex},
			Priced: true, Cost: 420_000_001, Charge: 500_000_000, Tags: "project=+red\nuser=a,\"b\"",
		},
		{ID: fmt.Sprintf("%012x7abd", at.Add(time.Hour).UnixMilli()), KeyID: "k1", Team: "t1", Operation: "chat", Model: "@x", Status: 502, Error: "upstream", Started: at.Add(time.Hour), Total: 500 * time.Millisecond, Usage: llm.Usage{Input: 3, Estimated: true}, Tags: "project=blue"},
		{ID: fmt.Sprintf("%012x7abe", at.Add(2*time.Hour).UnixMilli()), KeyID: "k9", Operation: "chat", Model: "fast", Provider: "openai", UpstreamModel: "gpt-5", Status: 200, Started: at.Add(2 * time.Hour), Total: time.Second, Priced: true, Cost: money.Dollar, Charge: money.Dollar},
	}
}

// The words and columns are others' to read: files in testdata have them all.
func TestGolden(t *testing.T) {
	h := newAPI(t, sample()...)
	for name, path := range map[string]string{
		"calls.csv":    "/usage/export?format=csv",
		"calls.jsonl":  "/usage/export?format=jsonl",
		"usage.json":   "/usage?by=day,key,team,model,upstream_model&zone=Europe/Berlin&until=2026-03-02",
		"tags.json":    "/usage?by=tag,hour&team=research",
		"latency.json": "/usage/latency?by=day,key&zone=Europe/Berlin&since=2026-03-01",
		"models.csv":   "/usage/table?by=model",
	} {
		got := ask(h, path)
		if got.Code != http.StatusOK {
			t.Fatalf("%s: %d %s", path, got.Code, got.Body)
		}
		checkGolden(t, name, got.Body.String())
	}
	var u Usage
	if err := json.Unmarshal(ask(h, "/usage?by=month,key,team,tag").Body.Bytes(), &u); err != nil {
		t.Fatal(err)
	}
	var table strings.Builder
	if err := u.WriteCSV(&table); err != nil {
		t.Fatal(err)
	}
	checkGolden(t, "usage.csv", table.String())
	table.Reset()
	if err := json.Unmarshal(ask(h, "/usage").Body.Bytes(), &u); err != nil {
		t.Fatal(err)
	}
	if err := (&Usage{Sum: u.Sum}).WriteCSV(&table); err != nil {
		t.Fatal(err)
	}
	checkGolden(t, "total.csv", table.String())
}

func checkGolden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil || got != string(want) {
		t.Errorf("%s: %v, got\n%s\nwant\n%s", name, err, got, want)
	}
}

// Pages go on where the one before ended, and the last says so.
func TestPagesOfCalls(t *testing.T) {
	h := newAPI(t, sample()...)
	var seen []string
	path, next := "/calls?limit=2", ""
	for range 3 {
		var page Calls
		if err := json.Unmarshal(ask(h, path+next).Body.Bytes(), &page); err != nil {
			t.Fatal(err)
		}
		for _, c := range page.Calls {
			seen = append(seen, c.Model)
		}
		if page.Next == "" {
			break
		}
		next = "&before=" + page.Next
	}
	if got := strings.Join(seen, " "); got != "fast @x fast" {
		t.Errorf("the pages have %s", got)
	}
	for query, want := range map[string]int{
		"": 3, "team=t1": 2, "team=research&failed=true": 1, "failed=false": 3, "status=502": 1, "cost_min=0.5": 1, "cost_min=0.42": 2, "provider=openai&model=fast": 2,
		"tag=project": 2, "tag=project%3Dblue": 1, "since=2026-03-02": 1, "until=2026-03-01T23:00:00Z": 1, "key=%3Dalice": 2,
	} {
		var page Calls
		if err := json.Unmarshal(ask(h, "/calls?"+query).Body.Bytes(), &page); err != nil || len(page.Calls) != want {
			t.Errorf("%s: %d calls, %v, want %d", query, len(page.Calls), err, want)
		}
	}
}

// An export that breaks off must not look whole.
func TestExportThatBreaksOff(t *testing.T) {
	h := newAPI(t, sample()...)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { h.ServeHTTP(&fullDisk{w}, r) }))
	defer server.Close()
	resp, err := http.Get(server.URL + "/api/v1/usage/export")
	if err == nil {
		resp.Body.Close()
		t.Errorf("the export ended well with %s", resp.Status)
	}
}

// fullDisk takes no byte.
type fullDisk struct{ http.ResponseWriter }

func (fullDisk) Write([]byte) (int, error) { return 0, os.ErrDeadlineExceeded }
