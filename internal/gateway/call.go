package gateway

import (
	"context"
	"encoding/hex"
	"math/rand/v2"
	"net/http"
	"time"
	"unicode/utf8"

	"github.com/limen-gateway/limen/internal/dialect"
	"github.com/limen-gateway/limen/internal/keys"
	"github.com/limen-gateway/limen/internal/limit"
	"github.com/limen-gateway/limen/internal/llm"
	"github.com/limen-gateway/limen/internal/money"
	"github.com/limen-gateway/limen/internal/route"
	"github.com/limen-gateway/limen/internal/state"
	"github.com/limen-gateway/limen/internal/store"
)

// Call is the one record that flows through a call. Its log line, usage row
// and metrics are all made from it, once, at the end.
type Call struct {
	requestID string // requestIDPrefix and the call's ID
	Operation string
	Started   time.Time

	Dialect Door
	Key     *keys.Key
	Request dialect.Request

	Err       *llm.Error
	FirstByte time.Duration // of the upstream's answer; 0 when there was none
	BytesIn   int64         // of the request's body, decompressed
	BytesOut  int64         // of the answer's body
	Usage     llm.Usage
	cost      money.Amount // what the vendors take, as far as it is known
	charge    money.Amount // what the key pays
	unpriced  bool         // the cost of something used is not known

	set        *Settings
	ctx        context.Context // ends when the client leaves or a wait is over
	upstream   context.Context // ends with ctx, and when the attempts under way are given up
	cancel     context.CancelCauseFunc
	answer     *answer
	model      *route.Model
	fits       func(*route.Target) bool // the targets that may serve it; nil is all
	query      route.Query
	plan       route.Plan
	thread     uint64         // that the call belongs to, where somebody asks for it
	print      *fingerprint   // of its prompt; nil when that is too short for a cache
	cacheMiss  string         // why no cache was read, although it was to be expected
	tags       string         // that it is found by in the usage, as they are recorded
	at         *attempt       // whose answer is the client's, or the last; nil before the first
	notes      llm.Notes      // what could not be said as it was written, whoever serves
	held       *held          // of what all calls share; nil once another call has it
	hold       *hold          // of the key's budgets; nil when none pays, or another call has it
	patience   time.Duration  // for which the call waits for room
	meters     []*limit.Meter // that count the call
	pass       *limit.Pass    // of theirs; nil when they do not limit it, and once another call has it
	sent       bool           // an upstream had, or may have had, a request for it
	record     *store.Call    // once it is in the journal
	streams    bool           // the client wants a stream, whatever the upstream is asked for
	compaction compaction     // its conversation is compacted instead of answered
	launched   bool           // it goes on in the background, as a call of its own
	unkept     []byte         // the end of a stream whose turn could not be kept
	session    *state.Session // of the socket that it came by; nil elsewhere
	turn       *state.Turn    // of a call that goes on from others, or that others may go on from
	there      *there         // in place of a turn, where the upstream keeps the response
	unanswered bool           // its answer is not wanted yet
}

// requestIDPrefix stands before a call's ID in headers and log lines.
const requestIDPrefix = "req_"

// newRequestID makes the ID of a call behind its prefix: a UUIDv7 in hex. Its
// first 12 digits are Unix milliseconds, so that IDs sort by time; the rest is
// random, which need not be secret.
func newRequestID(now time.Time) string {
	var id [16]byte
	ms := uint64(now.UnixMilli())
	a, b := rand.Uint64(), rand.Uint64()
	for i := range 6 {
		id[i] = byte(ms >> (40 - 8*i))
	}
	id[6], id[7] = 0x70|byte(a>>8)&0x0f, byte(a)
	for i := range 8 {
		id[8+i] = byte(b >> (56 - 8*i))
	}
	id[8] = 0x80 | id[8]&0x3f
	text := make([]byte, 0, len(requestIDPrefix)+2*len(id))
	text = append(text, requestIDPrefix...)
	return string(hex.AppendEncode(text, id[:]))
}

// id is what tells the call from all others, without any prefix.
func (c *Call) id() string { return c.requestID[len(requestIDPrefix):] }

// status is the HTTP status of the outcome, also when a stream failed after
// its 200 had gone out.
func (c *Call) status() int {
	if c.Err != nil {
		return c.Dialect.Status(c.Err)
	}
	return http.StatusOK
}

// newRecord is what is kept of the call.
func (c *Call) newRecord(now time.Time) *store.Call {
	r := &store.Call{
		ID: c.id(), Operation: c.Operation, Model: clip(c.Request.Model), Stream: c.Request.Stream,
		Status: c.status(), Started: c.Started, FirstByte: c.FirstByte, Total: now.Sub(c.Started),
		BytesIn: c.BytesIn, BytesOut: c.BytesOut, Usage: c.Usage, Notes: c.notes.String(), CacheMiss: c.cacheMiss, Tags: c.tags,
		Priced: !c.unpriced, Cost: c.cost, Charge: c.charge, Balances: c.hold.balances(),
	}
	if a := c.at; a != nil {
		r.Steps = c.steps()
		r.Provider, r.UpstreamModel, r.Account, r.Notes = a.Target.Upstream.Name, a.Target.Model, a.Target.Account, a.notes.String()
	}
	if c.Key != nil {
		r.KeyID, r.Team = c.Key.ID, c.Key.TeamID
	}
	if c.Err != nil {
		r.Error = c.Err.Kind.String()
	}
	return r
}

// steps are those of the plan, as they are kept.
func (c *Call) steps() string {
	steps := c.plan.Steps()
	if steps == nil {
		return ""
	}
	kept := make([]store.Step, 0, len(steps))
	for _, s := range steps {
		k := store.Step{Target: s.Target, Account: s.Account, Result: s.Reason, Tried: s.Tried}
		if s.Tried {
			k.AtMs, k.TookMs = millis(s.Start.Sub(c.Started)), millis(s.Took)
			if k.Result == "" {
				k.Result = "ok"
			}
		}
		kept = append(kept, k)
	}
	return store.EncodeSteps(kept)
}

func millis(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// maxName bounds what is kept of a name that a client chose.
const maxName = 200

func clip(name string) string { return cut(name, maxName) }

// cut is the beginning of a text, whole characters in at most n bytes.
func cut(name string, n int) string {
	if len(name) <= n {
		return name
	}
	end := n
	for end > 0 && !utf8.RuneStart(name[end]) {
		end--
	}
	return name[:end]
}
