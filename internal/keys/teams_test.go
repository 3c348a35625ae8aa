package keys

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/limen-gateway/limen/internal/budget"
	"github.com/limen-gateway/limen/internal/limit"
	"github.com/limen-gateway/limen/internal/llm"
	"github.com/limen-gateway/limen/internal/money"
	"github.com/limen-gateway/limen/internal/store"
)

func createTeam(t *testing.T, r *Keyring, n NewTeam) *Team {
	t.Helper()
	team, err := r.CreateTeam(t.Context(), n)
	if err != nil {
		t.Fatal(err)
	}
	return team
}

// budgets reads budgets as operators write them.
func budgets(t *testing.T, texts ...string) (list []budget.Budget) {
	t.Helper()
	for _, text := range texts {
		b, err := budget.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, b)
	}
	return list
}

// refused checks that err is told to whoever asked, and says all of this.
func refused(t *testing.T, err error, kind llm.Kind, says ...string) {
	t.Helper()
	var e *llm.Error
	if !errors.As(err, &e) || e.Kind != kind {
		t.Errorf("got %v, want %s", err, kind)
		return
	}
	for _, text := range says {
		if !strings.Contains(e.Message, text) {
			t.Errorf("%q does not say %q", e.Message, text)
		}
	}
}

func TestTeams(t *testing.T) {
	r := newRing(t)
	all := createTeam(t, r, NewTeam{Name: "all", Budgets: budgets(t, "500/month")})
	web := createTeam(t, r, NewTeam{Name: " web ", Parent: "all", Budgets: budgets(t, "5/day@Europe/Berlin", "4/day soft"), Limits: limit.Rates{Requests: 60}})
	if web.Name != "web" || web.Parent == nil || web.Parent.Name != "all" || fmt.Sprint(web.Budgets) != "[5/day@Europe/Berlin 4/day soft]" || web.Limits != (limit.Rates{Requests: 60}) {
		t.Errorf("made %+v", web)
	}
	for _, ref := range []string{"web", web.ID} {
		if found, err := r.FindTeam(ref); found == nil || found.ID != web.ID {
			t.Errorf("%s finds %v, %v", ref, found, err)
		}
	}
	_, k := create(t, r, New{Name: "alice", Team: "web", Budgets: budgets(t, "1/total"), Limits: limit.Rates{Concurrency: 2}})
	if k.Team == nil || k.TeamName() != "web" || k.Team.Parent.ID != all.ID || fmt.Sprint(k.Budgets) != "[1/total]" || k.Limits != (limit.Rates{Concurrency: 2}) {
		t.Errorf("the key is %+v", k)
	}
	if _, plain := create(t, r, New{Name: "bob", Team: "none"}); plain.Team != nil || plain.TeamName() != "" || plain.Payer != nil || plain.Meters != nil {
		t.Errorf("a key without a team is %+v", plain)
	}

	// A change leaves alone what it does not name, and keys follow it.
	changed, err := r.ChangeTeam(t.Context(), "web", func(n *NewTeam) error {
		if n.Parent != all.ID || len(n.Budgets) != 2 {
			t.Errorf("it is shown for change as %+v", n)
		}
		n.Name, n.Limits.Tokens = "frontend", 1000
		return nil
	})
	if err != nil || changed.Name != "frontend" || changed.Parent.ID != all.ID || len(changed.Budgets) != 2 || changed.Limits != (limit.Rates{Requests: 60, Tokens: 1000}) || changed.Created != web.Created {
		t.Errorf("changed to %+v, %v", changed, err)
	}
	if name := r.Lookup(k.ID).TeamName(); name != "frontend" {
		t.Errorf("the key's team is %s", name)
	}
	if changed, err = r.ChangeTeam(t.Context(), "frontend", func(n *NewTeam) error { n.Parent = "none"; return nil }); err != nil || changed.Parent != nil {
		t.Errorf("without a parent it is %+v, %v", changed, err)
	}
	var names []string
	for _, team := range r.Teams() {
		names = append(names, team.Name)
	}
	if !slices.Equal(names, []string{"all", "frontend"}) {
		t.Errorf("teams are %v", names)
	}

	// What has members stays, and it is said which they are.
	_, err = r.DeleteTeam(t.Context(), "frontend")
	refused(t, err, llm.Conflict, "key alice ("+k.ID+")", "limen keys set")
	if _, err := r.Change(t.Context(), "alice", func(n *New) error { n.Team = ""; return nil }); err != nil {
		t.Fatal(err)
	}
	if _, err := r.DeleteTeam(t.Context(), "frontend"); err != nil {
		t.Error(err)
	}
	_, err = r.DeleteTeam(t.Context(), "frontend")
	refused(t, err, llm.NotFound, `"frontend"`)
	_, err = r.ChangeTeam(t.Context(), web.ID, func(*NewTeam) error { return nil })
	refused(t, err, llm.NotFound, web.ID)
	for range maxNamed {
		create(t, r, New{Name: "k", Team: "all"})
	}
	createTeam(t, r, NewTeam{Name: "sub", Parent: "all"})
	createTeam(t, r, NewTeam{Name: "sub2", Parent: "all"})
	_, err = r.DeleteTeam(t.Context(), "all")
	refused(t, err, llm.Conflict, ", 2 more.")
}

func TestTeamsAreATree(t *testing.T) {
	r := newRing(t)
	parent := ""
	for i := range maxDepth {
		parent = createTeam(t, r, NewTeam{Name: fmt.Sprint("t", i), Parent: parent}).ID
	}
	_, err := r.CreateTeam(t.Context(), NewTeam{Name: "deeper", Parent: parent})
	refused(t, err, llm.Invalid, "8 deep at most", "deeper belongs to t7 belongs to t6")
	under := func(child, parent string) error {
		_, err := r.ChangeTeam(t.Context(), child, func(n *NewTeam) error { n.Parent = parent; return nil })
		return err
	}
	refused(t, under("t0", "t0"), llm.Invalid, "circle: t0 belongs to t0")
	refused(t, under("t0", "t2"), llm.Invalid, "circle: ")
	refused(t, under("t1", "t7"), llm.Invalid)
	top := createTeam(t, r, NewTeam{Name: "top"})
	refused(t, under("t0", "top"), llm.Invalid, "t7 belongs to t6")
	refused(t, under("t0", "nobody"), llm.Invalid, `no team with the ID or name "nobody"`)
	if err := under("t4", "top"); err != nil {
		t.Error(err)
	}
	if err := under("t0", "t5"); err != nil {
		t.Errorf("no circle any more: %v", err)
	}
	if r.Team(top.ID).Parent != nil || len(r.Teams()) != maxDepth+1 {
		t.Errorf("refusals left something behind: %v", r.Teams())
	}
}

// Bad input is refused with what to do, of new keys and teams and of changes.
func TestTermsThatCannotBe(t *testing.T) {
	r := newRing(t)
	createTeam(t, r, NewTeam{Name: "web"})
	_, k := create(t, r, New{Name: "alice", Team: "web"})
	const most = int64(limit.MaxRate)
	for name, tt := range map[string]struct {
		budgets []budget.Budget
		limits  limit.Rates
		says    string
	}{
		"negative amount":   {[]budget.Budget{{Amount: -1, Period: budget.Month}}, limit.Rates{}, "below zero"},
		"period":            {[]budget.Budget{{Amount: money.Dollar, Period: "year"}}, limit.Rates{}, "day, week, month or total"},
		"no period":         {[]budget.Budget{{Amount: money.Dollar}}, limit.Rates{}, "day, week, month or total"},
		"zone":              {[]budget.Budget{{Amount: money.Dollar, Period: budget.Day, Zone: "Europe/Atlantis"}}, limit.Rates{}, "Europe/Berlin"},
		"zone of a machine": {[]budget.Budget{{Amount: money.Dollar, Period: budget.Day, Zone: "Local"}}, limit.Rates{}, "time zone"},
		"zone of a total":   {[]budget.Budget{{Amount: money.Dollar, Period: budget.Total, Zone: "UTC"}}, limit.Rates{}, "never begins anew"},
		"twice":             {budgets(t, "5/month", "4/day", "6/month"), limit.Rates{}, "two budgets for the same period, the second is 6/month"},
		"twice, soft":       {budgets(t, "5/month soft", "6/month@Europe/Berlin soft"), limit.Rates{}, "two budgets"},
		"negative rate":     {nil, limit.Rates{Requests: -1}, "rpm is a number from 1"},
		"rate":              {nil, limit.Rates{Tokens: most + 1}, "tpm is a number"},
		"daily":             {nil, limit.Rates{Daily: -5}, "rpd is a number"},
		"at once":           {nil, limit.Rates{Concurrency: -5}, "concurrency is a number"},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err := r.Create(t.Context(), New{Name: "k", Budgets: tt.budgets, Limits: tt.limits})
			refused(t, err, llm.Invalid, tt.says)
			_, err = r.Change(t.Context(), "alice", func(n *New) error { n.Budgets, n.Limits = tt.budgets, tt.limits; return nil })
			refused(t, err, llm.Invalid, tt.says)
			_, err = r.CreateTeam(t.Context(), NewTeam{Name: "t", Budgets: tt.budgets, Limits: tt.limits})
			refused(t, err, llm.Invalid, tt.says)
			_, err = r.ChangeTeam(t.Context(), "web", func(n *NewTeam) error { n.Budgets, n.Limits = tt.budgets, tt.limits; return nil })
			refused(t, err, llm.Invalid, tt.says)
		})
	}
	for name, says := range map[string]string{
		"": "needs a name", " ": "needs a name", "none": "stands for no team", "web": "already", "a\nb": "control characters", strings.Repeat("x", maxName+1): "at most",
	} {
		_, err := r.CreateTeam(t.Context(), NewTeam{Name: name})
		refused(t, err, llm.Invalid, says)
	}
	_, _, err := r.Create(t.Context(), New{Name: "k", Team: "nobody"})
	refused(t, err, llm.Invalid, `"nobody"`, "limen teams create")
	_, err = r.Change(t.Context(), "alice", func(n *New) error { n.Team = "nobody"; return nil })
	refused(t, err, llm.Invalid, `"nobody"`)
	_, err = r.Change(t.Context(), "alice", func(n *New) error { n.Prefix = "sk-"; return nil })
	refused(t, err, llm.Invalid, "sk-")
	_, err = r.Change(t.Context(), "nobody", func(*New) error { return nil })
	refused(t, err, llm.NotFound, `"nobody"`)
	if len(r.Teams()) != 1 || len(r.All()) != 1 || r.Lookup(k.ID).TeamName() != "web" || r.Lookup(k.ID).Name != "alice" {
		t.Errorf("refusals left something behind: %v %v", r.Teams(), r.All())
	}
}

// A change of a key leaves alone what it does not name, also an expiry that has
// passed, and counts at once.
func TestChangeKey(t *testing.T) {
	st := openStore(t, t.TempDir())
	r := openRing(t, st)
	text, k := create(t, r, New{
		Name: "alice", Owner: "o", Models: []string{"a/*"}, Operations: []string{OpChat}, Budgets: budgets(t, "1/day"), Limits: limit.Rates{Requests: 5, Tokens: 6},
	})
	const long = 1000 // ago
	if err := st.UpdateKey(t.Context(), k.ID, func(row *store.Key) error { row.Expires = long; return nil }); err != nil {
		t.Fatal(err)
	}
	if err := r.Reload(t.Context()); err != nil {
		t.Fatal(err)
	}
	authenticate(t, r, text, time.Now(), wrong)
	changed, err := r.Change(t.Context(), k.ID, func(n *New) error { n.Limits.Requests, n.Strict = 0, true; return nil })
	if err != nil {
		t.Fatal(err)
	}
	if changed.Name != "alice" || changed.Owner != "o" || !slices.Equal(changed.Models, k.Models) || !slices.Equal(changed.Operations, k.Operations) ||
		fmt.Sprint(changed.Budgets) != "[1/day]" || changed.Limits != (limit.Rates{Tokens: 6}) || !changed.Strict || changed.Expires != long || changed.Created != k.Created {
		t.Errorf("changed to %+v", changed)
	}
	_, err = r.Change(t.Context(), k.ID, func(n *New) error { n.Expires = n.Expires.Add(-time.Hour); return nil })
	refused(t, err, llm.Invalid, "past")
	if _, err = r.Change(t.Context(), k.ID, func(n *New) error { n.Name, n.Expires, n.Models, n.Budgets = "bob", time.Time{}, nil, nil; return nil }); err != nil {
		t.Fatal(err)
	}
	authenticate(t, r, text, time.Now(), good)
	if k := r.Lookup(k.ID); k.Name != "bob" || k.Expires != 0 || len(k.Models) != 0 || len(k.Budgets) != 0 || k.Payer != nil {
		t.Errorf("changed to %+v", k)
	}
}

// The calls of a key count for its team and all above, from one snapshot to the
// next.
func TestMetersOutliveSnapshots(t *testing.T) {
	r := newRing(t)
	createTeam(t, r, NewTeam{Name: "all", Limits: limit.Rates{Concurrency: 2}})
	createTeam(t, r, NewTeam{Name: "mid", Parent: "all"})
	createTeam(t, r, NewTeam{Name: "web", Parent: "mid", Limits: limit.Rates{Concurrency: 1}})
	_, web := create(t, r, New{Name: "a", Team: "web", Limits: limit.Rates{Concurrency: 9}})
	_, mid := create(t, r, New{Name: "b", Team: "mid"})
	if len(web.Meters) != 3 || len(mid.Meters) != 1 || web.Meters[2] != mid.Meters[0] {
		t.Fatalf("meters are %v and %v", web.Meters, mid.Meters)
	}
	owners := []limit.Owner{limit.OfKey, limit.OfTeam, limit.OfTeam}
	for i, m := range web.Meters {
		if m.Owner != owners[i] {
			t.Errorf("meter %d is of %s", i, m.Owner)
		}
	}
	enter := func(id string, want bool) {
		t.Helper()
		if _, refusal := limit.Enter(time.Now(), limit.Need{Nodes: 1}, r.Lookup(id).Meters...); (refusal == nil) != want {
			t.Errorf("%s: refused is %+v, want to be let in: %v", r.Lookup(id).Name, refusal, want)
		}
	}
	enter(web.ID, true)
	enter(web.ID, false)
	if err := r.Reload(t.Context()); err != nil {
		t.Fatal(err)
	}
	enter(web.ID, false) // the same call is still under way
	if _, err := r.ChangeTeam(t.Context(), "web", func(n *NewTeam) error { n.Limits = limit.Rates{}; return nil }); err != nil {
		t.Fatal(err)
	}
	enter(web.ID, true)
	enter(mid.ID, false) // two of all are under way
	if _, err := r.ChangeTeam(t.Context(), "all", func(n *NewTeam) error { n.Limits.Concurrency = 3; return nil }); err != nil {
		t.Fatal(err)
	}
	enter(mid.ID, true)

	if _, err := r.Change(t.Context(), web.ID, func(n *New) error { n.Team = ""; return nil }); err != nil {
		t.Fatal(err)
	}
	if _, err := r.DeleteTeam(t.Context(), "web"); err != nil {
		t.Fatal(err)
	}
	if len(r.meters) != 2 {
		t.Errorf("%d meters are kept, want those of the key and of all", len(r.meters))
	}
}

// A key pays from its own budgets and from those of all teams above.
func TestPayers(t *testing.T) {
	r := newRing(t)
	createTeam(t, r, NewTeam{Name: "all", Budgets: budgets(t, "3/total")})
	createTeam(t, r, NewTeam{Name: "mid", Parent: "all"})
	createTeam(t, r, NewTeam{Name: "web", Parent: "mid", Budgets: budgets(t, "2/total")})
	_, a := create(t, r, New{Name: "a", Team: "web", Budgets: budgets(t, "1/total")})
	_, b := create(t, r, New{Name: "b", Team: "web"})
	_, c := create(t, r, New{Name: "c", Team: "mid"})
	spend := func(id string, dollars money.Amount, want string) {
		t.Helper()
		h, err := r.Lookup(id).Payer.Hold(t.Context(), dollars*money.Dollar, time.Now())
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, want %q", r.Lookup(id).Name, err, want)
		}
		h.Settle(dollars * money.Dollar)
	}
	spend(a.ID, 2, "key a, $1/total")
	spend(a.ID, 1, "")
	spend(b.ID, 2, "team web, $2/total")
	if err := r.Reload(t.Context()); err != nil {
		t.Fatal(err)
	}
	spend(a.ID, 1, "key a, $1/total") // a snapshot forgets nothing
	spend(b.ID, 1, "")
	spend(c.ID, 2, "team all, $3/total")
	if _, err := r.ChangeTeam(t.Context(), "all", func(n *NewTeam) error { n.Budgets = nil; return nil }); err != nil {
		t.Fatal(err)
	}
	spend(c.ID, 2, "")
	if r.Lookup(c.ID).Payer != nil {
		t.Error("nobody above has a budget")
	}
}

// What another process changes of teams counts here after a look.
func TestTeamsElsewhere(t *testing.T) {
	dir := t.TempDir()
	here, there := openRing(t, openStore(t, dir)), openRing(t, openStore(t, dir))
	createTeam(t, there, NewTeam{Name: "web"})
	_, k := create(t, there, New{Name: "a", Team: "web"})
	if err := here.look(t.Context()); err != nil || here.Lookup(k.ID).TeamName() != "web" {
		t.Errorf("%v, %v", here.Lookup(k.ID), err)
	}
	// A team that is deleted there meanwhile takes no key here.
	createTeam(t, there, NewTeam{Name: "gone"})
	if err := here.look(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := there.DeleteTeam(t.Context(), "gone"); err != nil {
		t.Fatal(err)
	}
	_, _, err := here.Create(t.Context(), New{Name: "b", Team: "gone"})
	refused(t, err, llm.Invalid, `"gone"`)
	_, err = here.Change(t.Context(), k.ID, func(n *New) error { n.Team = "gone"; return nil })
	refused(t, err, llm.Invalid, `"gone"`)
	_, err = here.CreateTeam(t.Context(), NewTeam{Name: "sub", Parent: "gone"})
	refused(t, err, llm.Invalid, "no team")
	_, err = here.ChangeTeam(t.Context(), "gone", func(*NewTeam) error { return nil })
	refused(t, err, llm.NotFound, `"gone"`)
}

// Teams that cannot be are no teams: the last good ones stay.
func TestReloadRefusesDamagedTeams(t *testing.T) {
	anything := func([]store.Team) error { return nil }
	for name, rows := range map[string][]store.Team{
		"circle":  {{ID: "x", Name: "x", Parent: "y"}, {ID: "y", Name: "y", Parent: "x"}},
		"parent":  {{ID: "x", Name: "x", Parent: "gone"}},
		"budgets": {{ID: "x", Name: "x", Budgets: "{"}},
		"period":  {{ID: "x", Name: "x", Budgets: `[{"amount":1,"period":"year"}]`}},
		"limits":  {{ID: "x", Name: "x", Limits: "[]"}},
	} {
		st := openStore(t, t.TempDir())
		r := openRing(t, st)
		text, _ := create(t, r, New{Name: "k"})
		for _, row := range rows {
			if err := st.CreateTeam(t.Context(), row, anything); err != nil {
				t.Fatal(err)
			}
		}
		if err := r.Reload(t.Context()); err == nil {
			t.Errorf("%s: it is taken", name)
		}
		authenticate(t, r, text, time.Now(), good)
	}
}
