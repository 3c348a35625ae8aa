package store

import (
	"errors"
	"reflect"
	"slices"
	"sync"
	"testing"
)

// anyTeams finds no fault with teams.
func anyTeams([]Team) error { return nil }

func TestTeams(t *testing.T) {
	onEach(t, func(t *testing.T, open func() *Store) {
		s, ctx := open(), t.Context()
		if teams, err := s.Teams(ctx); len(teams) != 0 || err != nil {
			t.Fatalf("new store has %v, %v", teams, err)
		}
		web := Team{ID: "t1", Name: "web", Budgets: `[{"a":1}]`, Limits: `{"rpm":1}`, Created: 5}
		shop := Team{ID: "t2", Name: "ä \"shop\"", Parent: "t1", Budgets: "[]", Limits: "{}", Created: 6}
		mustDo(t, s.CreateTeam(ctx, web, anyTeams))
		mustDo(t, s.CreateTeam(ctx, shop, anyTeams))
		check := func(revision int64, want ...Team) {
			t.Helper()
			got, err := s.Teams(ctx)
			mustDo(t, err)
			if !reflect.DeepEqual(got, want) {
				t.Errorf("got  %+v\nwant %+v", got, want)
			}
			if at, err := s.KeysRevision(ctx); at != revision || err != nil {
				t.Errorf("the keys stand at revision %d, %v, want %d", at, err, revision)
			}
		}
		check(2, web, shop)

		mustDo(t, s.UpdateTeam(ctx, "t2", func(team *Team) error {
			if *team != shop {
				t.Errorf("what is to be changed is %+v", team)
			}
			team.ID, team.Created = "other", 99 // these stay
			team.Name, team.Parent, team.Budgets, team.Limits = "shop", "", "[2]", `{"tpm":3}`
			return nil
		}, anyTeams))
		shop = Team{ID: "t2", Name: "shop", Budgets: "[2]", Limits: `{"tpm":3}`, Created: 6}
		check(3, shop, web)

		// What is refused changes nothing, and does not count.
		refused := errors.New("refused")
		var seen []string
		invalid := func(all []Team) error {
			for _, team := range all {
				seen = append(seen, team.Name+"<"+team.Parent)
			}
			slices.Sort(seen)
			return refused
		}
		if err := s.CreateTeam(ctx, Team{ID: "t3", Name: "new", Parent: "t1"}, invalid); !errors.Is(err, refused) {
			t.Errorf("an invalid new team: %v", err)
		}
		if want := []string{"new<t1", "shop<", "web<"}; !slices.Equal(seen, want) {
			t.Errorf("a new team is looked at among %v, want %v", seen, want)
		}
		seen = nil
		if err := s.UpdateTeam(ctx, "t2", func(team *Team) error { team.Parent = "t1"; return nil }, invalid); !errors.Is(err, refused) {
			t.Errorf("an invalid change: %v", err)
		}
		if want := []string{"shop<t1", "web<"}; !slices.Equal(seen, want) {
			t.Errorf("a change is looked at among %v, want %v", seen, want)
		}
		if err := s.UpdateTeam(ctx, "t2", func(*Team) error { return refused }, anyTeams); !errors.Is(err, refused) {
			t.Errorf("a change that fails: %v", err)
		}
		if err := s.UpdateTeam(ctx, "none", func(*Team) error { return nil }, anyTeams); !errors.Is(err, ErrNotFound) {
			t.Errorf("a change of a missing team: %v", err)
		}
		if err := s.DeleteTeam(ctx, "none"); !errors.Is(err, ErrNotFound) {
			t.Errorf("a missing team is deleted: %v", err)
		}
		if err := s.CreateTeam(ctx, Team{ID: "t9", Name: "web"}, anyTeams); err == nil {
			t.Error("two teams have one name")
		}
		check(3, shop, web)
	})
}

// A team stays while a key or a team belongs to it, and what belongs to a team
// belongs to one that exists.
func TestTeamsHaveMembers(t *testing.T) {
	onEach(t, func(t *testing.T, open func() *Store) {
		s, ctx := open(), t.Context()
		mustDo(t, s.CreateTeam(ctx, Team{ID: "t1", Name: "top"}, anyTeams))
		mustDo(t, s.CreateTeam(ctx, Team{ID: "t2", Name: "sub", Parent: "t1"}, anyTeams))
		if err := s.CreateKey(ctx, Key{ID: "k", TeamID: "none"}); !errors.Is(err, ErrNoTeam) {
			t.Errorf("a key of a missing team: %v", err)
		}
		full := Key{
			ID: "k", Name: "n", Prefix: "sk-", Hash: "aa", OldHash: "bb", OldUntil: 3, Created: 1, Revoked: 4, LastUsed: 5,
			TeamID: "t2", Budgets: `[{"x":1}]`, Limits: `{"rpm":2}`, Models: []string{"m"}, Operations: []string{"chat"},
		}
		mustDo(t, s.CreateKey(ctx, full))
		for _, id := range []string{"t1", "t2"} {
			if err := s.DeleteTeam(ctx, id); !errors.Is(err, ErrInUse) {
				t.Errorf("%s is deleted with its members: %v", id, err)
			}
		}
		checkKey := func(want Key) {
			t.Helper()
			if keys, _, err := s.Keys(ctx); err != nil || len(keys) != 1 || !reflect.DeepEqual(keys[0], want) {
				t.Errorf("got  %+v, %v\nwant %+v", keys, err, want)
			}
		}
		checkKey(full)
		if err := s.UpdateKey(ctx, "k", func(k *Key) error { k.TeamID = "none"; return nil }); !errors.Is(err, ErrNoTeam) {
			t.Errorf("a key goes to a missing team: %v", err)
		}
		refused := errors.New("refused")
		if err := s.UpdateKey(ctx, "k", func(k *Key) error { k.TeamID = ""; return refused }); !errors.Is(err, refused) {
			t.Errorf("a change that fails: %v", err)
		}
		if err := s.UpdateKey(ctx, "none", func(*Key) error { return nil }); !errors.Is(err, ErrNotFound) {
			t.Errorf("a change of a missing key: %v", err)
		}
		checkKey(full)
		mustDo(t, s.UpdateKey(ctx, "k", func(k *Key) error {
			*k = Key{
				ID: "other", Name: "n2", Owner: "o2", Prefix: "x", Hash: "x", Created: 9, // of these only the names change
				Budgets: "[]", Limits: "{}", Models: []string{"a", "b"}, Operations: []string{"models"}, Strict: true, NoStore: true, Expires: 8,
			}
			return nil
		}))
		full.Name, full.Owner, full.TeamID, full.Budgets, full.Limits = "n2", "o2", "", "[]", "{}"
		full.Models, full.Operations, full.Strict, full.NoStore, full.Expires = []string{"a", "b"}, []string{"models"}, true, true, 8
		checkKey(full)
		for i, id := range []string{"t2", "t1"} {
			mustDo(t, s.DeleteTeam(ctx, id))
			if teams, err := s.Teams(ctx); len(teams) != 1-i || err != nil {
				t.Errorf("after %s there are %v, %v", id, teams, err)
			}
		}
		if revision, err := s.KeysRevision(ctx); revision != 6 || err != nil {
			t.Errorf("six changes come to revision %d, %v", revision, err)
		}
	})
}

// However changes of several gateways meet, what each found to be so is so when
// it is done: two teams never become each other's parents, and no key is left
// with a team that was deleted.
func TestTeamsChangeTogether(t *testing.T) {
	onEach(t, func(t *testing.T, open func() *Store) {
		stores := []*Store{open(), open()}
		ctx := t.Context()
		cycle := errors.New("cycle")
		noCycle := func(all []Team) error {
			parents := map[string]string{}
			for _, team := range all {
				parents[team.ID] = team.Parent
			}
			for _, team := range all {
				if team.Parent != "" && parents[team.Parent] == team.ID {
					return cycle
				}
			}
			return nil
		}
		for range 20 {
			mustDo(t, stores[0].CreateTeam(ctx, Team{ID: "a", Name: "a"}, anyTeams))
			mustDo(t, stores[0].CreateTeam(ctx, Team{ID: "b", Name: "b"}, anyTeams))
			var wg sync.WaitGroup
			for i, s := range stores {
				wg.Go(func() {
					child, parent := []string{"a", "b"}[i], []string{"b", "a"}[i]
					err := s.UpdateTeam(ctx, child, func(team *Team) error { team.Parent = parent; return nil }, noCycle)
					if err != nil && !errors.Is(err, cycle) {
						t.Error(err)
					}
				})
			}
			wg.Wait()
			teams, err := stores[0].Teams(ctx)
			mustDo(t, err)
			if err := noCycle(teams); err != nil {
				t.Fatalf("%v: %+v", err, teams)
			}
			for _, id := range []string{"a", "b", "a"} { // the child first
				if err := stores[0].DeleteTeam(ctx, id); err != nil && !errors.Is(err, ErrInUse) && !errors.Is(err, ErrNotFound) {
					t.Fatal(err)
				}
			}
		}
		mustDo(t, stores[0].CreateKey(ctx, Key{ID: "k"}))
		for range 20 {
			mustDo(t, stores[0].CreateTeam(ctx, Team{ID: "a", Name: "a"}, anyTeams))
			var joined, deleted error
			var wg sync.WaitGroup
			wg.Go(func() {
				joined = stores[0].UpdateKey(ctx, "k", func(k *Key) error { k.TeamID = "a"; return nil })
			})
			wg.Go(func() { deleted = stores[1].DeleteTeam(ctx, "a") })
			wg.Wait()
			if errors.Is(joined, ErrNoTeam) == errors.Is(deleted, ErrInUse) {
				t.Fatalf("to join: %v; to delete: %v", joined, deleted)
			}
			mustDo(t, stores[0].UpdateKey(ctx, "k", func(k *Key) error { k.TeamID = ""; return nil }))
			if err := stores[0].DeleteTeam(ctx, "a"); err != nil && !errors.Is(err, ErrNotFound) {
				t.Fatal(err)
			}
		}
	})
}
