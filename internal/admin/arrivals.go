package admin

import (
	"fmt"
	"slices"
	"time"

	"github.com/limen-gateway/limen/internal/arrivals"
)

// Arrivals are what lately came from clients to this gateway.
type Arrivals struct {
	Arrivals []*arrivals.Arrival `json:"arrivals"` // the newest last
	Now      time.Time           `json:"now"`      // by the gateway's clock, for the next since
	Gateways int                 `json:"gateways"` // that share the store
	Note     string              `json:"note,omitempty"`
}

// listArrivals tells what came, and has what comes for a while after
// remembered as well where it is served.
func (a *API) listArrivals(r *request) (*Arrivals, error) {
	if a.Arrivals == nil {
		return nil, errNotRunning
	}
	q := r.URL.Query()
	since, err := parseTime("since", q.Get("since"), time.UTC)
	if err != nil {
		return nil, err
	}
	only := ""
	if ref := q.Get("key"); ref != "" {
		k, err := a.findKey(r, ref)
		if err != nil {
			return nil, err
		}
		only = k.ID
	}
	now := time.Now()
	a.Arrivals.Watch(now)
	out := Arrivals{Arrivals: []*arrivals.Arrival{}, Now: now.UTC(), Gateways: max(1, a.Books.Nodes())}
	if out.Gateways > 1 {
		out.Note = fmt.Sprintf("%d gateways share the store. What is here came to this one; another may have what is missed.", out.Gateways)
	}
	for _, came := range a.Arrivals.Since(since) {
		if (only == "" || came.Key == only) && a.maySee(r, came) {
			out.Arrivals = append(out.Arrivals, came)
		}
	}
	return &out, nil
}

// maySee reports whether somebody may see an arrival: a member only those
// with keys of the own team and of those below it.
func (a *API) maySee(r *request, came *arrivals.Arrival) bool {
	teams, only := a.ownTeams(r)
	if !only {
		return true
	}
	k := a.Keys.Lookup(came.Key)
	return k != nil && slices.Contains(teams, k.TeamID)
}
