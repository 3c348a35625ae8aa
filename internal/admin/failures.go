package admin

import (
	"context"
	"sync"
	"time"

	"github.com/limen-gateway/limen/internal/dialect/openai"
	"github.com/limen-gateway/limen/internal/keys"
	"github.com/limen-gateway/limen/internal/llm"
	"github.com/limen-gateway/limen/internal/store"
)

// failures writes down logins that failed. Whoever guesses must not fill the
// store: an account and an address have one row an hour, which says how often.
// What more than maxFailures of them tried is one row more.
type failures struct {
	mu    sync.Mutex
	begun time.Time // of the hour
	rows  map[failure]*failedRow
}

// failure is who was not let in, from where, and how that is known.
type failure struct {
	account, address string
	via              keys.Via
}

type failedRow struct {
	id      string
	times   int64
	written time.Time
}

const (
	maxFailures = 1000
	failureHour = time.Hour
	// countEvery is how often a row says anew how often somebody was refused
	// without a look at the password.
	countEvery = 10 * time.Second
	// nobody is whose password it is where nobody has the name that was said. What
	// stood there is not kept: people type passwords into the wrong field.
	nobody = "(nobody)"
	// everybody stands for those who are too many.
	everybody = "(many)"
)

// failedLogin writes down that a login was refused. It counts those that were
// too early, and makes rows of those alone whose password was looked at.
func (s *Server) failedLogin(op *operation, r *request, in *keys.Login, refusal *llm.Error) {
	now := time.Now()
	f := &s.failures
	f.mu.Lock()
	defer f.mu.Unlock()
	if now.Sub(f.begun) >= failureHour {
		f.begun, f.rows = now, map[failure]*failedRow{}
	}
	what := failure{in.Account, in.From, keys.ViaPassword}
	if r.who != nil {
		what.via = r.who.Via
	}
	if what.account == "" {
		what.account = nobody
	}
	if f.rows[what] == nil && len(f.rows) >= maxFailures {
		what = failure{account: everybody, via: what.via}
	}
	row, evaluated := f.rows[what], refusal.Kind != llm.RateLimited
	if row == nil && !evaluated {
		return
	}
	// Who was refused may be gone already.
	ctx := context.WithoutCancel(r.Context())
	var err error
	if row == nil {
		row = &failedRow{id: newChangeID(now), times: 1, written: now}
		f.rows[what] = row
		err = s.api.Store.BeginChange(ctx, &store.Change{
			ID: row.id, At: now.UnixMilli(), Who: what.account, Via: string(what.via), Address: what.address,
			Operation: op.method + " " + op.path, Status: openai.Status(refusal),
		})
	} else if row.times++; evaluated || now.Sub(row.written) >= countEvery {
		row.written = now
		err = s.api.Store.CountChange(ctx, row.id, row.times)
	}
	if err != nil {
		s.api.Log.Error("a login that failed cannot be written to the audit log", "who", what.account, "from", what.address, "error", err)
	}
}
