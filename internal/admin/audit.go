package admin

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/limen-gateway/limen/internal/dialect/openai"
	"github.com/limen-gateway/limen/internal/keys"
	"github.com/limen-gateway/limen/internal/llm"
	"github.com/limen-gateway/limen/internal/store"
)

// Change is one that was made by the admin API.
type Change struct {
	ID        string    `json:"id"`
	Time      time.Time `json:"time"`
	Who       string    `json:"who"`
	Via       string    `json:"via" enum:"password session token socket directory"`
	From      string    `json:"from,omitempty"`
	Operation string    `json:"operation"`
	Object    string    `json:"object,omitempty"`  // what it was done to
	Members   []string  `json:"members,omitempty"` // that were said; their values are not kept
	// Status is the HTTP status of the outcome. Without one it is not known: the
	// gateway ended before it was.
	Status int `json:"status,omitempty"`
	// Times is how often somebody tried, of logins that failed.
	Times int64 `json:"times,omitempty"`
}

// Changes is a page of the audit log, newest first.
type Changes struct {
	Changes []Change `json:"changes"`
	// Next is what the next page has as 'before'; empty when this is the last.
	Next string `json:"next,omitempty"`
}

// maxText bounds what is kept of names that a change has.
const maxText = 200

// audited has an operation change something. That is written down before, and
// what came of it after: there is no change that nobody knows of.
func (s *Server) audited(op *operation, r *request, body []byte) (any, error) {
	if r.who == nil {
		return s.auditedLogin(op, r)
	}
	c := newChange(op, r)
	if err := s.api.Store.BeginChange(r.Context(), c); err != nil {
		return nil, noAudit(err)
	}
	document, err := op.serve(r)
	c.Status = http.StatusOK
	if err != nil {
		c.Status = openai.Status(llm.AsError(err))
	} else {
		c.Members = membersOf(body)
	}
	if r.object != "" {
		c.Object = clean(r.object)
	}
	// It was done, whoever still listens.
	if err := s.api.Store.EndChange(context.WithoutCancel(r.Context()), c); err != nil {
		s.api.Log.Error("what came of a change cannot be written to the audit log", "operation", c.Operation, "who", c.Who, "status", c.Status, "error", err)
	}
	return document, err
}

// auditedLogin writes down a login after it: before, nobody knows who it is.
func (s *Server) auditedLogin(op *operation, r *request) (any, error) {
	document, err := op.serve(r)
	if err != nil {
		if e := llm.AsError(err); r.login != nil && (e.Kind == llm.Unauthenticated || e.Kind == llm.RateLimited) {
			s.failedLogin(op, r, r.login, e)
		}
		return nil, err
	}
	if to, ok := document.(*redirect); ok && to.refused != nil {
		if r.who != nil {
			s.failedLogin(op, r, &keys.Login{Account: r.who.Name, From: r.who.From}, to.refused)
		}
		return document, nil
	}
	c := newChange(op, r)
	c.Status = http.StatusOK
	if err := s.api.Store.BeginChange(r.Context(), c); err != nil {
		r.header.Del("Set-Cookie")
		return nil, noAudit(err)
	}
	return document, nil
}

// newChange is a change that a request is about to make.
func newChange(op *operation, r *request) *store.Change {
	now := time.Now()
	return &store.Change{
		ID: newChangeID(now), At: now.UnixMilli(),
		Who: r.who.Name, Via: string(r.who.Via), Address: r.who.From, Operation: op.method + " " + op.path, Object: named(op, r),
	}
}

// newChangeID sorts by time.
func newChangeID(now time.Time) string {
	return fmt.Sprintf("%016x%x", now.UnixNano(), rand.Text()[:8])
}

func noAudit(err error) error {
	return &llm.Error{Kind: llm.Unavailable, Message: "Nothing was changed: the store, which keeps what was changed by whom, is away.", RetryAfter: time.Second, Err: err}
}

// on says what was changed, so that it is known whatever its name becomes.
func (r *request) on(id, name string) { r.object = id + " " + name }

// named is what the path of a request names.
func named(op *operation, r *request) string {
	_, rest, _ := strings.Cut(op.path, "{")
	name, _, _ := strings.Cut(rest, "}")
	if name == "" {
		return ""
	}
	return clean(r.PathValue(name))
}

// clean makes a text one that every database keeps and every terminal shows.
func clean(text string) string {
	text = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return '?'
		}
		return r
	}, strings.ToValidUTF8(text, "?"))
	if len(text) > maxText {
		text = strings.ToValidUTF8(text[:maxText], "") + "…"
	}
	return text
}

// membersOf are the names of the members of a body that was taken.
func membersOf(body []byte) string {
	var members map[string]json.RawMessage
	if json.NewDecoder(bytes.NewReader(body)).Decode(&members) != nil {
		return ""
	}
	return strings.Join(slices.Sorted(maps.Keys(members)), ",")
}

// maxChanges bounds one page of the audit log.
const maxChanges = 1000

func (a *API) audit(r *request) (*Changes, error) {
	limit, err := limitOf(r, maxChanges)
	if err != nil {
		return nil, err
	}
	q := r.URL.Query()
	filter := store.ChangeFilter{Who: q.Get("who"), On: q.Get("on"), Object: q.Get("object")}
	if text := q.Get("failed"); text != "" {
		if filter.Failed, err = strconv.ParseBool(text); err != nil {
			return nil, llm.InvalidParam("invalid_value", "failed", "failed is true or false.")
		}
	}
	rows, err := a.Store.Changes(r.Context(), filter, q.Get("before"), limit)
	if err != nil {
		return nil, err
	}
	out := &Changes{Changes: []Change{}}
	for i := range rows {
		c := &rows[i]
		out.Changes = append(out.Changes, Change{
			ID: c.ID, Time: fromMs(c.At), Who: c.Who, Via: c.Via, From: c.Address, Operation: c.Operation, Object: c.Object,
			Members: strings.FieldsFunc(c.Members, func(r rune) bool { return r == ',' }), Status: c.Status,
		})
		if c.Status == http.StatusUnauthorized {
			out.Changes[i].Times = c.Times
		}
	}
	if len(rows) == limit {
		out.Next = rows[limit-1].ID
	}
	return out, nil
}

// limitOf is how many rows a request asks for, 100 where it does not say.
func limitOf(r *request, most int) (int, error) {
	text := r.URL.Query().Get("limit")
	if text == "" {
		return 100, nil
	}
	limit, err := strconv.Atoi(text)
	if err != nil || limit < 1 || limit > most {
		return 0, llm.InvalidParam("invalid_value", "limit", "limit is a number from 1 to %d.", most)
	}
	return limit, nil
}
