package store

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/limen-gateway/limen/internal/store/storetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// onEach runs a test on SQLite and, where LIMEN_TEST_POSTGRES_URL names a
// server, on Postgres in a schema of the test's own. open opens the same
// database each time it is called.
func onEach(t *testing.T, test func(t *testing.T, open func() *Store)) {
	t.Helper()
	opener := func(t *testing.T, dir, url string) func() *Store {
		return func() *Store {
			t.Helper()
			s, err := Open(t.Context(), dir, url)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { s.Close() })
			return s
		}
	}
	t.Run("sqlite", func(t *testing.T) { test(t, opener(t, t.TempDir(), "")) })
	t.Run("postgres", func(t *testing.T) { test(t, opener(t, "", storetest.Postgres(t))) })
}

func mustDo(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestOpenAgain(t *testing.T) {
	onEach(t, func(t *testing.T, open func() *Store) {
		first := open()
		mustDo(t, first.Ping(t.Context()))
		mustDo(t, first.SetSetting(t.Context(), "a", "1"))
		applied := func(s *Store) (names []string) {
			rows, err := s.read.Query("SELECT name, applied_ms FROM migrations ORDER BY name")
			mustDo(t, err)
			defer rows.Close()
			for rows.Next() {
				var name string
				var at int64
				mustDo(t, rows.Scan(&name, &at))
				names = append(names, fmt.Sprint(name, at))
			}
			mustDo(t, rows.Err())
			return names
		}
		before := applied(first)
		mustDo(t, first.Close())
		again := open()
		if after := applied(again); len(before) == 0 || !slices.Equal(after, before) {
			t.Errorf("migrations after the second open are %v, want %v", after, before)
		}
		if got, err := again.Setting(t.Context(), "a"); got != "1" || err != nil {
			t.Errorf("setting is %q, %v after the second open", got, err)
		}
	})
}

// Replicas that start together meet a database without a schema.
func TestOpenTogether(t *testing.T) {
	schema := storetest.Postgres(t) // one process has a SQLite file
	var wg sync.WaitGroup
	for range 6 {
		wg.Go(func() {
			s, err := Open(t.Context(), "", schema)
			if err != nil {
				t.Error(err)
				return
			}
			s.Close()
		})
	}
	wg.Wait()
}

func TestOpenMakesAPrivateFile(t *testing.T) {
	dir := t.TempDir()
	s, err := Open(t.Context(), dir, "")
	mustDo(t, err)
	defer s.Close()
	mustDo(t, s.SetSetting(t.Context(), "a", "1"))
	entries, err := os.ReadDir(dir)
	mustDo(t, err)
	for _, e := range entries {
		info, err := e.Info()
		mustDo(t, err)
		if info.Mode().Perm() != 0o600 {
			t.Errorf("%s has mode %v, want 0600", e.Name(), info.Mode())
		}
	}
}

// A file that is no database is never touched: it may be all that is left of
// one.
func TestOpenRefusesOtherFiles(t *testing.T) {
	const header = "SQLite format 3\x00"
	for name, content := range map[string]string{
		"text":                 strings.Repeat("not a database\n", 500),
		"one byte":             "x",
		"cut in the header":    header[:9],
		"header, then garbage": header + strings.Repeat("garbage ", 2000),
		"zeros":                strings.Repeat("\x00", 8192),
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, FileName)
			mustDo(t, os.WriteFile(path, []byte(content), 0o600))
			s, err := Open(t.Context(), dir, "")
			if err == nil {
				s.Close()
				t.Fatal("it was opened")
			}
			if !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), "backup") {
				t.Errorf("error does not say which file and what to do: %v", err)
			}
			if after, err := os.ReadFile(path); string(after) != content || err != nil {
				t.Errorf("the file was changed (%d bytes, were %d): %v", len(after), len(content), err)
			}
			if entries, _ := os.ReadDir(dir); len(entries) != 1 {
				t.Errorf("files were left beside it: %v", entries)
			}
		})
	}
}

func TestOpenWhereNothingCanBe(t *testing.T) {
	if _, err := Open(t.Context(), filepath.Join(t.TempDir(), "missing"), ""); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v, want that the directory does not exist", err)
	}
	_, err := Open(t.Context(), t.TempDir(), "mysql://root:canary@host/db")
	if err == nil || strings.Contains(err.Error(), "canary") {
		t.Errorf("got %v, want an error that does not repeat the URL", err)
	}
	_, err = Open(t.Context(), t.TempDir(), "postgres://root:canary@host:notaport/db")
	if err == nil || strings.Contains(err.Error(), "canary") {
		t.Errorf("got %v, want an error that does not repeat the password", err)
	}
}

func TestOpenRefusesOtherSchemas(t *testing.T) {
	for name, tt := range map[string]struct{ change, want string }{
		"newer":   {"INSERT INTO migrations (name, sha256, applied_ms) VALUES ('9999_future.sql', 'ff', 1)", "9999_future.sql"},
		"changed": {"UPDATE migrations SET sha256 = 'ff'", "another form"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			s, err := Open(t.Context(), dir, "")
			mustDo(t, err)
			_, err = s.write.Exec(tt.change)
			mustDo(t, err)
			mustDo(t, s.Close())
			if s, err = Open(t.Context(), dir, ""); err == nil {
				s.Close()
				t.Fatal("it was opened")
			}
			if !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want an error with %q", err, tt.want)
			}
		})
	}
}

// A migration that fails half way leaves nothing behind and is tried again.
func TestMigrationIsWholeOrNotAtAll(t *testing.T) {
	onEach(t, func(t *testing.T, open func() *Store) {
		s := open()
		conn, err := s.write.Conn(t.Context())
		mustDo(t, err)
		defer conn.Close()
		const text = "CREATE TABLE half (id TEXT PRIMARY KEY); CREATE TABLE half (id TEXT PRIMARY KEY);"
		if err := applyMigration(t.Context(), conn, "0002_bad.sql", text, "ff"); err == nil || !strings.Contains(err.Error(), "0002_bad.sql") {
			t.Fatalf("got %v, want an error that names the migration", err)
		}
		mustDo(t, applyMigration(t.Context(), conn, "0002_bad.sql", "CREATE TABLE half (id TEXT PRIMARY KEY);", "ff"))
	})
}

func TestSettings(t *testing.T) {
	onEach(t, func(t *testing.T, open func() *Store) {
		s := open()
		if v, err := s.Setting(t.Context(), "none"); v != "" || !errors.Is(err, ErrNotFound) {
			t.Errorf("missing setting: got %q, %v, want ErrNotFound", v, err)
		}
		for _, value := range []string{"1", "", "ключ \"'; DROP TABLE settings; --"} {
			mustDo(t, s.SetSetting(t.Context(), "a", value))
			if got, err := s.Setting(t.Context(), "a"); got != value || err != nil {
				t.Errorf("got %q, %v, want %q", got, err, value)
			}
		}
	})
}

func TestModelLists(t *testing.T) {
	onEach(t, func(t *testing.T, open func() *Store) {
		s := open()
		if _, err := s.ModelList(t.Context(), "p"); !errors.Is(err, ErrNotFound) {
			t.Errorf("missing list: got %v, want ErrNotFound", err)
		}
		for i, body := range []string{`[{"ID":"a"}]`, "[]"} {
			want := ModelList{Provider: "p", Fetched: time.UnixMilli(int64(1000 + i)), Body: []byte(body)}
			mustDo(t, s.SetModelList(t.Context(), want))
			got, err := s.ModelList(t.Context(), "p")
			if err != nil || got.Provider != want.Provider || !got.Fetched.Equal(want.Fetched) || string(got.Body) != body {
				t.Errorf("got %+v, %v, want %+v", got, err, want)
			}
		}
		mustDo(t, s.SetModelList(t.Context(), ModelList{Provider: "q", Body: []byte("[]")}))
		for range 2 { // also when it is gone
			mustDo(t, s.DeleteModelList(t.Context(), "p"))
		}
		if _, err := s.ModelList(t.Context(), "p"); !errors.Is(err, ErrNotFound) {
			t.Errorf("deleted list: got %v, want ErrNotFound", err)
		}
		if _, err := s.ModelList(t.Context(), "q"); err != nil {
			t.Errorf("another list: got %v", err)
		}
	})
}

func TestClosedStore(t *testing.T) {
	s, err := Open(t.Context(), t.TempDir(), "")
	mustDo(t, err)
	mustDo(t, s.Close())
	ctx := context.Background()
	_, settingErr := s.Setting(ctx, "a")
	_, listErr := s.ModelList(ctx, "p")
	_, _, keysErr := s.Keys(ctx)
	_, usageErr := s.Usage(ctx, Filter{}, nil, time.UTC)
	_, callsErr := s.Calls(ctx, CallFilter{}, "", 1)
	for name, err := range map[string]error{
		"Ping": s.Ping(ctx), "Setting": settingErr, "SetSetting": s.SetSetting(ctx, "a", "b"),
		"ModelList": listErr, "SetModelList": s.SetModelList(ctx, ModelList{}), "DeleteModelList": s.DeleteModelList(ctx, "p"), "Keys": keysErr, "CreateKey": s.CreateKey(ctx, Key{}),
		"AddCalls": s.AddCalls(ctx, []Call{{ID: "a"}}), "Usage": usageErr, "Calls": callsErr,
	} {
		if err == nil || errors.Is(err, ErrNotFound) {
			t.Errorf("%s of a closed store: got %v, want that it is closed", name, err)
		}
	}
}
