package admin

import (
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/limen-gateway/limen/internal/budget"
	"github.com/limen-gateway/limen/internal/llm"
	"github.com/limen-gateway/limen/internal/money"
	"github.com/limen-gateway/limen/internal/store"
)

// Tokens are the counters of usage, disjoint.
type Tokens struct {
	Input      int64 `json:"input_tokens"`
	CacheRead  int64 `json:"cache_read_tokens"`
	CacheWrite int64 `json:"cache_write_tokens"`
	HourWrite  int64 `json:"cache_write_1h_tokens"`
	AudioIn    int64 `json:"input_audio_tokens"`
	Output     int64 `json:"output_tokens"`
	Reasoning  int64 `json:"reasoning_tokens"`
	AudioOut   int64 `json:"output_audio_tokens"`
	ImageOut   int64 `json:"output_image_tokens"`
	Total      int64 `json:"total_tokens"`
	Searches   int64 `json:"searches"` // that the upstream ran and takes money for
}

func newTokens(u llm.Usage) Tokens {
	return Tokens{u.Input, u.CacheRead, u.CacheWrite, u.HourWrite, u.AudioIn, u.Output, u.Reasoning, u.AudioOut, u.ImageOut, u.Total(), u.Searches}
}

// Sum is the usage of some calls.
type Sum struct {
	Calls     int64 `json:"calls"`
	Failed    int64 `json:"failed"`
	Estimated int64 `json:"estimated"` // calls whose tokens are an estimate
	Unpriced  int64 `json:"unpriced"`  // calls whose cost is not known, and not in it
	Tokens
	Cost          money.Amount `json:"cost_usd"`   // what the vendors take
	Charge        money.Amount `json:"charge_usd"` // what budgets pay
	BytesIn       int64        `json:"bytes_in"`
	BytesOut      int64        `json:"bytes_out"`
	MeanMs        float64      `json:"mean_ms"`
	MeanFirstByte float64      `json:"mean_first_byte_ms"` // of the calls that had one
}

func newSum(s *store.Sums) Sum {
	return Sum{
		Calls: s.Calls, Failed: s.Failed, Estimated: s.Estimated, Unpriced: s.Unpriced, Tokens: newTokens(s.Usage), Cost: s.Cost, Charge: s.Charge,
		BytesIn: s.BytesIn, BytesOut: s.BytesOut, MeanMs: millis(s.MeanTotal()), MeanFirstByte: millis(s.MeanFirstByte()),
	}
}

// Group is one by the dimensions that were asked for.
type Group struct {
	Key           string `json:"key,omitempty"`      // ID
	KeyName       string `json:"key_name,omitempty"` // as it is now
	Team          string `json:"team,omitempty"`     // ID
	TeamName      string `json:"team_name,omitempty"`
	Model         string `json:"model,omitempty"`
	Provider      string `json:"provider,omitempty"`
	UpstreamModel string `json:"upstream_model,omitempty"`
	Tag           string `json:"tag,omitempty"`   // name=value
	Hour          string `json:"hour,omitempty"`  // 2006-01-02T15:04:05Z07:00
	Day           string `json:"day,omitempty"`   // 2006-01-02
	Week          string `json:"week,omitempty"`  // its Monday
	Month         string `json:"month,omitempty"` // 2006-01
}

// UsageRow is the sum of one group.
type UsageRow struct {
	Group
	Sum
}

// Usage is the answer of GET /api/v1/usage: the sum of all, and by groups.
type Usage struct {
	Sum
	By     []string   `json:"by" enum:"hour day week month key team model provider upstream_model tag"`
	Zone   string     `json:"zone"`
	Groups []UsageRow `json:"groups"`
}

// keyName is the name of a key as it is now; "" when there is none.
func (a *API) keyName(id string) string {
	if k := a.Keys.Lookup(id); k != nil {
		return k.Name
	}
	return ""
}

// teamName is the same of a team.
func (a *API) teamName(id string) string {
	if t := a.Keys.Team(id); t != nil {
		return t.Name
	}
	return ""
}

// filter reads since, until (RFC 3339, or a date in the zone), key, team,
// model, provider and tag. A member sees the own team, and those below it.
func (a *API) filter(r *request, zone *time.Location) (f store.Filter, err error) {
	q := r.URL.Query()
	if f.Since, err = parseTime("since", q.Get("since"), zone); err != nil {
		return f, err
	}
	if f.Until, err = parseTime("until", q.Get("until"), zone); err != nil {
		return f, err
	}
	f.Model, f.Provider, f.Tag = q.Get("model"), q.Get("provider"), q.Get("tag")
	if ref := q.Get("key"); ref != "" {
		k, err := a.findKey(r, ref)
		if err != nil {
			return f, err
		}
		f.KeyID = k.ID
	}
	teams, only := a.ownTeams(r)
	if only && len(teams) == 0 {
		return f, llm.Errorf(llm.Forbidden, "You belong to no team whose usage you may see.")
	}
	f.Teams = teams
	if ref := q.Get("team"); ref != "" {
		t, err := a.findTeam(r, ref)
		if err != nil {
			return f, err
		}
		f.Teams = []string{t.ID}
	}
	return f, nil
}

func parseTime(param, text string, zone *time.Location) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	for _, layout := range []string{time.RFC3339, time.DateOnly} {
		if t, err := time.ParseInLocation(layout, text, zone); err == nil {
			return t, nil
		}
	}
	return time.Time{}, llm.InvalidParam("invalid_value", param, "%s is a date such as 2026-01-31 or a time such as 2026-01-31T15:00:00Z.", param)
}

// parseZone reads the name of a time zone; "" is UTC.
func parseZone(name string) (*time.Location, error) {
	zone, err := budget.Location(name)
	if err != nil {
		return nil, llm.InvalidParam("invalid_value", "zone", "zone is the name of a time zone such as Europe/Berlin; there is none %q.", name)
	}
	return zone, nil
}

func parseBy(text string) (by []store.Dimension, err error) {
	if text == "" {
		return nil, nil
	}
	for name := range strings.SplitSeq(text, ",") {
		d := store.Dimension(strings.TrimSpace(name))
		if !slices.Contains(store.Dimensions, d) {
			return nil, llm.InvalidParam("invalid_value", "by", "Usage is grouped by %s, not by %q.", dimensionNames(), name)
		}
		if slices.Contains(by, d) {
			return nil, llm.InvalidParam("invalid_value", "by", "Usage cannot be grouped by %s twice.", d)
		}
		by = append(by, d)
	}
	return by, nil
}

func dimensionNames() string {
	var all []string
	for _, d := range store.Dimensions {
		all = append(all, string(d))
	}
	last := len(all) - 1
	return strings.Join(all[:last], ", ") + " and " + all[last]
}

// usageAsked is what a question about usage says.
func (a *API) usageAsked(r *request) (filter store.Filter, by []store.Dimension, zone *time.Location, err error) {
	q := r.URL.Query()
	if zone, err = parseZone(q.Get("zone")); err != nil {
		return filter, nil, nil, err
	}
	if filter, err = a.filter(r, zone); err != nil {
		return filter, nil, nil, err
	}
	by, err = parseBy(q.Get("by"))
	return filter, by, zone, err
}

// usageTable is the groups alone.
func (a *API) usageTable(r *request) (answer stream, err error) {
	sums, err := a.usage(r)
	if err != nil {
		return answer, err
	}
	return stream{csvType, "usage.csv", sums.WriteCSV}, nil
}

func (a *API) usage(r *request) (*Usage, error) {
	filter, by, zone, err := a.usageAsked(r)
	if err != nil {
		return nil, err
	}
	if err := a.settle(r.Context()); err != nil {
		return nil, err
	}
	total, err := a.Store.Usage(r.Context(), filter, nil, zone)
	if err != nil {
		return nil, err
	}
	out := &Usage{Sum: newSum(&total[0].Sums), By: []string{}, Zone: zone.String(), Groups: []UsageRow{}}
	if len(by) == 0 {
		return out, nil
	}
	rows, err := a.Store.Usage(r.Context(), filter, by, zone)
	if errors.Is(err, store.ErrTooManyGroups) {
		return nil, llm.InvalidParam("invalid_value", "by", "These are too many groups for one answer. Ask for a shorter time, or for fewer dimensions.")
	}
	if err != nil {
		return nil, err
	}
	for i := range rows {
		out.Groups = append(out.Groups, a.usageRow(&rows[i], by))
	}
	for _, d := range by {
		out.By = append(out.By, string(d))
	}
	return out, nil
}

func (a *API) usageRow(row *store.UsageRow, by []store.Dimension) UsageRow {
	return UsageRow{a.newGroup(row.Group, by), newSum(&row.Sums)}
}

// newGroup is one with the values that it has of dimensions.
func (a *API) newGroup(values []string, by []store.Dimension) (out Group) {
	for i, d := range by {
		value := values[i]
		*out.dimension(d) = value
		switch d {
		case store.ByKey:
			out.KeyName = a.keyName(value)
		case store.ByTeam:
			out.TeamName = a.teamName(value)
		}
	}
	return out
}

// dimension is the member for a dimension.
func (u *Group) dimension(d store.Dimension) *string {
	return map[store.Dimension]*string{
		store.ByHour: &u.Hour, store.ByDay: &u.Day, store.ByWeek: &u.Week, store.ByMonth: &u.Month,
		store.ByKey: &u.Key, store.ByTeam: &u.Team, store.ByModel: &u.Model, store.ByProvider: &u.Provider,
		store.ByUpstreamModel: &u.UpstreamModel, store.ByTag: &u.Tag,
	}[d]
}

// Value is what the group has of a dimension.
func (u *Group) Value(dimension string) string { return *u.dimension(store.Dimension(dimension)) }
