package budget

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/limen-gateway/limen/internal/llm"
	"github.com/limen-gateway/limen/internal/money"
	"github.com/limen-gateway/limen/internal/store"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func openStore(t *testing.T) *store.Store {
	t.Helper()
	st, err := store.Open(context.Background(), t.TempDir(), "")
	mustDo(t, err)
	t.Cleanup(func() { st.Close() })
	return st
}

func mustDo(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// openBooks opens books of a gateway.
func openBooks(t *testing.T, st *store.Store, node string, alone bool) *Books {
	t.Helper()
	b := NewBooks(st, node, alone, slog.New(slog.DiscardHandler))
	mustDo(t, b.Start(t.Context()))
	mustDo(t, b.CloseFormer(t.Context()))
	t.Cleanup(func() { b.Close(context.Background()) })
	return b
}

func mustParse(t *testing.T, texts ...string) (list []Budget) {
	t.Helper()
	for _, text := range texts {
		b, err := Parse(text)
		mustDo(t, err)
		list = append(list, b)
	}
	return list
}

// isOver reports whether an error says that a budget has not enough left.
func isOver(err error) bool {
	e, ok := errors.AsType[*llm.Error](err)
	return ok && e.Kind == llm.OverBudget && e.NoRetry
}

// Two hundred callers at once on a budget for ten: ten are served, whoever
// serves them.
func TestExactlyWhatFits(t *testing.T) {
	for name, gateways := range map[string]int{"one": 1, "three": 3} {
		t.Run(name, func(t *testing.T) {
			for range 20 {
				st := openStore(t)
				var payers []*Payer
				for i := range gateways {
					b := openBooks(t, st, string(rune('a'+i)), gateways == 1)
					payers = append(payers, b.Payer("k", "key k", mustParse(t, "1/month"), nil))
				}
				var served atomic.Int64
				var wg sync.WaitGroup
				for i := range 200 {
					wg.Go(func() {
						h, err := payers[i%gateways].Hold(t.Context(), money.Dollar/10, time.Now())
						switch {
						case err == nil && h.Active():
							served.Add(1)
						case !isOver(err):
							t.Errorf("%+v", err)
						}
					})
				}
				wg.Wait()
				if n := served.Load(); n != 10 {
					t.Fatalf("%d calls were served, want 10", n)
				}
			}
		})
	}
}
