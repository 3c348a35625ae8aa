package store

import (
	"errors"
	"fmt"
	"reflect"
	"sync"
	"sync/atomic"
	"testing"
)

func TestConfigVersions(t *testing.T) {
	onEach(t, func(t *testing.T, open func() *Store) {
		s, ctx := open(), t.Context()
		if _, err := s.Config(ctx, 0); !errors.Is(err, ErrNotFound) {
			t.Errorf("the newest of none: %v", err)
		}
		revision := func(want int64) {
			t.Helper()
			if got, err := s.ConfigRevision(ctx); got != want || err != nil {
				t.Errorf("revision %d, %v, want %d", got, err, want)
			}
		}
		revision(0)
		first := ConfigVersion{At: 1, By: "admin", Note: "n", Text: "a: 1\n"}
		second := ConfigVersion{At: 2, By: "ann", Text: "a: 2\n"}
		mustDo(t, s.AddConfig(ctx, &first, 0, ConfigSecret{"openai", "sealed", 1}))
		mustDo(t, s.AddConfig(ctx, &second, 1))
		for _, base := range []int64{0, 1, 3, 99} {
			late := ConfigVersion{Text: "late"}
			if err := s.AddConfig(ctx, &late, base, ConfigSecret{"late", "s", 1}); !errors.Is(err, ErrConflict) {
				t.Errorf("on %d: %v, want a conflict", base, err)
			}
		}
		revision(2)
		for version, want := range map[int64]ConfigVersion{0: second, 1: first, 2: second} {
			if got, err := s.Config(ctx, version); err != nil || *got != want {
				t.Errorf("version %d is %+v, %v, want %+v", version, got, err, want)
			}
		}
		first.Text, second.Text = "", ""
		if got, err := s.ConfigVersions(ctx, 0, 10); err != nil || !reflect.DeepEqual(got, []ConfigVersion{second, first}) {
			t.Errorf("versions are %+v, %v", got, err)
		}
		if got, err := s.ConfigVersions(ctx, 2, 10); err != nil || !reflect.DeepEqual(got, []ConfigVersion{first}) {
			t.Errorf("versions before 2 are %+v, %v", got, err)
		}
		secrets := func(want ...ConfigSecret) {
			t.Helper()
			if got, err := s.ConfigSecrets(ctx); err != nil || !reflect.DeepEqual(got, want) {
				t.Errorf("secrets are %+v, %v, want %+v", got, err, want)
			}
		}
		secrets(ConfigSecret{"openai", "sealed", 1}) // none of those that met a conflict
		mustDo(t, s.SetConfigSecret(ctx, &ConfigSecret{"openai", "another", 5}))
		mustDo(t, s.SetConfigSecret(ctx, &ConfigSecret{"lab", "x", 6}))
		secrets(ConfigSecret{"lab", "x", 6}, ConfigSecret{"openai", "another", 5})
		if err := s.DeleteConfigSecret(ctx, "lab", 1); !errors.Is(err, ErrNotFound) {
			t.Errorf("deleted, seen from an old version: %v", err)
		}
		mustDo(t, s.DeleteConfigSecret(ctx, "lab", 2))
		secrets(ConfigSecret{"openai", "another", 5})
		revision(5)
	})
}

// Of several that build on one version, one is first.
func TestConfigTogether(t *testing.T) {
	onEach(t, func(t *testing.T, open func() *Store) {
		s := open()
		var won atomic.Int64
		var wg sync.WaitGroup
		for i := range 8 {
			wg.Go(func() {
				switch err := s.AddConfig(t.Context(), &ConfigVersion{Text: fmt.Sprint(i)}, 0); {
				case err == nil:
					won.Add(1)
				case !errors.Is(err, ErrConflict):
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if won.Load() != 1 {
			t.Errorf("%d versions were written on the same", won.Load())
		}
	})
}

func TestConfigHistory(t *testing.T) {
	onEach(t, func(t *testing.T, open func() *Store) {
		s, ctx := open(), t.Context()
		for base := range int64(ConfigHistory + 3) {
			mustDo(t, s.AddConfig(ctx, &ConfigVersion{}, base))
		}
		list, err := s.ConfigVersions(ctx, 0, 2*ConfigHistory)
		mustDo(t, err)
		if len(list) != ConfigHistory || list[0].Version != ConfigHistory+3 || list[len(list)-1].Version != 4 {
			t.Errorf("%d versions are left, from %d to %d", len(list), list[0].Version, list[len(list)-1].Version)
		}
	})
}
