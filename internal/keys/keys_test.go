package keys

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/limen-gateway/limen/internal/budget"
	"github.com/limen-gateway/limen/internal/llm"
	"github.com/limen-gateway/limen/internal/store"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func openStore(t *testing.T, dir string) *store.Store {
	t.Helper()
	st, err := store.Open(context.Background(), dir, "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { st.Close() })
	return st
}

func openRing(t *testing.T, st *store.Store) *Keyring {
	t.Helper()
	r, err := Open(context.Background(), st, openBooks(t, st), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func openBooks(t *testing.T, st *store.Store) *budget.Books {
	t.Helper()
	books := budget.NewBooks(st, "node", true, slog.New(slog.DiscardHandler))
	if err := errors.Join(books.Start(t.Context()), books.CloseFormer(t.Context())); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { books.Close(context.Background()) })
	return books
}

func newRing(t *testing.T) *Keyring { return openRing(t, openStore(t, t.TempDir())) }

func create(t *testing.T, r *Keyring, n New) (string, *Key) {
	t.Helper()
	text, k, err := r.Create(context.Background(), n)
	if err != nil {
		t.Fatal(err)
	}
	return text, k
}

// outcome is what became of an attempt, in a word: "ok", or the kind of error
// and its code.
func outcome(err error) string {
	var e *llm.Error
	switch {
	case err == nil:
		return "ok"
	case !errors.As(err, &e):
		return "internal: " + err.Error()
	case e.Code == "":
		return e.Kind.String()
	}
	return e.Kind.String() + " " + e.Code
}

const (
	good  = "ok"
	wrong = "unauthenticated invalid_api_key"
)

func authenticate(t *testing.T, r *Keyring, text string, now time.Time, want string) {
	t.Helper()
	k, err := r.Authenticate(text, now)
	if got := outcome(err); got != want {
		t.Errorf("got %s (%v), want %s", got, err, want)
	}
	if (k == nil) != (err != nil) {
		t.Errorf("got key %v and error %v", k, err)
	}
}

func TestAuthenticate(t *testing.T) {
	r := newRing(t)
	text, made := create(t, r, New{Name: " first ", Owner: "o"})
	now := time.Now()
	k, err := r.Authenticate(text, now)
	if err != nil || k.ID != made.ID || k.Name != "first" || k.KeyName() != "first" || k.Owner != "o" {
		t.Errorf("got %+v, %v, want key %s", k, err, made.ID)
	}
	unknown, _ := newToken("limen_", "")
	samePlace, _ := newToken("limen_", made.ID)
	for name, tt := range map[string]struct{ text, want string }{
		"none":                        {"", "unauthenticated"},
		"not a key":                   {"sk-1234", wrong},
		"well-formed, never issued":   {unknown, wrong},
		"another secret of a good ID": {samePlace, wrong},
		"its ID":                      {made.ID, wrong},
		"its hash":                    {made.Hash, wrong},
	} {
		t.Run(name, func(t *testing.T) { authenticate(t, r, tt.text, now, tt.want) })
	}
}

// A refusal shows enough of a key to tell which it was, and no more.
func TestRefusalShowsLittle(t *testing.T) {
	r := newRing(t)
	text, _ := newToken("limen_", "")
	for _, presented := range []string{text, "hunter2-hunter2", "short\r\n", "abc\x00\x1b[31m" + strings.Repeat("é", 40) + "\nxyz\x07"} {
		_, err := r.Authenticate(presented, time.Now())
		var e *llm.Error
		if !errors.As(err, &e) {
			t.Fatalf("%q: got %v", presented, err)
		}
		for i := 0; i+8 <= len(presented); i++ {
			if strings.Contains(e.Message, presented[i:i+8]) {
				t.Errorf("message %q repeats %q", e.Message, presented[i:i+8])
			}
		}
		if strings.ContainsFunc(e.Message, func(r rune) bool { return r < ' ' || r == 0x7f }) {
			t.Errorf("message %q has control characters", e.Message)
		}
	}
	if _, err := r.Authenticate(text, time.Now()); !strings.Contains(err.Error(), text[len(text)-4:]) {
		t.Errorf("message %q does not say which key it was", err)
	}
}

func TestPrefixes(t *testing.T) {
	r := newRing(t)
	for prefix, want := range map[string]string{"": "limen_", "limen_": "limen_", "sk-": "sk-"} {
		text, k := create(t, r, New{Name: "k" + prefix, Prefix: prefix})
		if !strings.HasPrefix(text, want) || k.Prefix != want {
			t.Errorf("prefix %q: got %.8s and %q", prefix, text, k.Prefix)
		}
		authenticate(t, r, text, time.Now(), good)
		next, k, err := r.Rotate(t.Context(), k.ID, 0)
		if err != nil || !strings.HasPrefix(next, want) || k.Prefix != want {
			t.Errorf("rotated: got %.8s, %v", next, err)
		}
	}
}

func TestExpiry(t *testing.T) {
	r := newRing(t)
	end := time.Now().Add(time.Hour).Truncate(time.Millisecond)
	text, _ := create(t, r, New{Name: "k", Expires: end})
	authenticate(t, r, text, end.Add(-time.Millisecond), good)
	authenticate(t, r, text, end, wrong)
	if _, err := r.Authenticate(text, end); !strings.Contains(err.Error(), "expired") {
		t.Errorf("message %q does not say that the key has expired", err)
	}
}

func TestRevokeAndRestore(t *testing.T) {
	r := newRing(t)
	text, k := create(t, r, New{Name: "k"})
	other, _ := create(t, r, New{Name: "other"})
	if k, err := r.Revoke(t.Context(), k.ID); err != nil || k.Revoked == 0 {
		t.Fatalf("got %+v, %v", k, err)
	}
	authenticate(t, r, text, time.Now(), wrong)
	authenticate(t, r, other, time.Now(), good)
	if _, err := r.Authenticate(text, time.Now()); !strings.Contains(err.Error(), "revoked") {
		t.Errorf("message %q does not say that the key was revoked", err)
	}
	authenticate(t, openRing(t, r.store), text, time.Now(), wrong)
	if k, err := r.Restore(t.Context(), "k"); err != nil || k.Revoked != 0 {
		t.Fatalf("got %+v, %v", k, err)
	}
	authenticate(t, r, text, time.Now(), good)
}

func TestRotate(t *testing.T) {
	for name, overlap := range map[string]time.Duration{"at once": 0, "with overlap": time.Hour} {
		t.Run(name, func(t *testing.T) {
			r := newRing(t)
			first, k := create(t, r, New{Name: "k", Models: []string{"a"}})
			second, rotated, err := r.Rotate(t.Context(), "k", overlap)
			if err != nil || rotated.ID != k.ID || rotated.Models[0] != "a" || second == first {
				t.Fatalf("got %+v, %v", rotated, err)
			}
			now := time.Now()
			authenticate(t, r, second, now, good)
			authenticate(t, r, second, now.Add(100*24*time.Hour), good)
			if overlap == 0 {
				authenticate(t, r, first, now, wrong)
				return
			}
			until := time.UnixMilli(rotated.OldUntil)
			if left := until.Sub(now); left < overlap-time.Minute || left > overlap {
				t.Errorf("the overlap lasts %v, want %v", left, overlap)
			}
			authenticate(t, r, first, until.Add(-time.Millisecond), good)
			authenticate(t, r, first, until, wrong)

			// The next rotation ends the first key: one is replaced, not two.
			third, _, err := r.Rotate(t.Context(), "k", overlap)
			if err != nil {
				t.Fatal(err)
			}
			authenticate(t, r, first, now, wrong)
			authenticate(t, r, second, now, good)
			authenticate(t, r, third, now, good)

			// Revocation ends all of them.
			if _, err := r.Revoke(t.Context(), "k"); err != nil {
				t.Fatal(err)
			}
			authenticate(t, r, second, now, wrong)
			authenticate(t, r, third, now, wrong)
		})
	}
	if _, _, err := newRing(t).Rotate(t.Context(), "k", -1); outcome(err) != "invalid invalid_value" {
		t.Errorf("negative overlap: got %v", err)
	}
}

func TestLimitsOfAKey(t *testing.T) {
	r := newRing(t)
	_, all := create(t, r, New{Name: "all"})
	_, some := create(t, r, New{Name: "some", Models: []string{"openai/*", "echo", "*-mini"}, Operations: []string{OpChat, OpModels}})
	for model, want := range map[string]bool{"openai/gpt": true, "openai/": true, "echo": true, "x/o5-mini": true, "echo2": false, "Echo": false, "": false, "azure/gpt": false} {
		if got := some.Sees(model); got != want {
			t.Errorf("Sees(%q) = %v, want %v", model, got, want)
		}
		if !all.Sees(model) {
			t.Errorf("a key without patterns does not see %q", model)
		}
	}
	for _, op := range Operations {
		if got, want := some.Allows(op), op == OpChat || op == OpModels; got != want {
			t.Errorf("Allows(%s) = %v, want %v", op, got, want)
		}
		if !all.Allows(op) {
			t.Errorf("a key without operations does not allow %s", op)
		}
	}
}

func TestCreateRefuses(t *testing.T) {
	r := newRing(t)
	long := strings.Repeat("x", maxName+1)
	for param, tries := range map[string][]New{
		"name":       {{}, {Name: "  "}, {Name: long}, {Name: "a\nb"}, {Name: "a", Owner: "\x7f"}, {Name: "a", Owner: long}},
		"prefix":     {{Name: "a", Prefix: "pk-"}},
		"expires":    {{Name: "a", Expires: time.Now().Add(-time.Second)}, {Name: "a", Expires: time.Unix(0, 0)}},
		"operations": {{Name: "a", Operations: []string{"chat", "Chat"}}},
		"models":     {{Name: "a", Models: []string{""}}, {Name: "a", Models: []string{long}}},
	} {
		for _, n := range tries {
			text, k, err := r.Create(t.Context(), n)
			var e *llm.Error
			if !errors.As(err, &e) || e.Kind != llm.Invalid || e.Param != param || text != "" || k != nil {
				t.Errorf("%.60v: got %v, want an error about %s", n, err, param)
			}
		}
	}
	if got := r.All(); len(got) != 0 {
		t.Errorf("%d keys were made", len(got))
	}
}

func TestFind(t *testing.T) {
	r := newRing(t)
	_, alone := create(t, r, New{Name: "alone"})
	_, twin1 := create(t, r, New{Name: "twin"})
	_, twin2 := create(t, r, New{Name: "twin"})
	for ref, want := range map[string]*Key{"alone": alone, alone.ID: alone, twin1.ID: twin1, twin2.ID: twin2} {
		if got, err := r.Find(ref); err != nil || got.ID != want.ID {
			t.Errorf("Find(%q) = %v, %v", ref, got, err)
		}
	}
	_, err := r.Find("twin")
	if outcome(err) != "invalid invalid_value" || !strings.Contains(err.Error(), twin1.ID) || !strings.Contains(err.Error(), twin2.ID) {
		t.Errorf("ambiguous name: got %v, want an error with both IDs", err)
	}
	for _, change := range []func(context.Context, string) (*Key, error){r.Revoke, r.Restore} {
		if _, err := change(t.Context(), "twin"); outcome(err) != "invalid invalid_value" {
			t.Errorf("change by an ambiguous name: got %v", err)
		}
		if _, err := change(t.Context(), "nobody"); outcome(err) != "not_found" {
			t.Errorf("change of a missing key: got %v", err)
		}
	}
	var names []string
	for _, k := range r.All() {
		names = append(names, k.Name)
	}
	if want := []string{"alone", "twin", "twin"}; !slices.Equal(slices.Sorted(slices.Values(names)), want) {
		t.Errorf("All() has %v, want %v", names, want)
	}
}

// A store that is away stops no known key. Of an unknown one it is soon not
// known any more whether it is wrong.
func TestStoreAway(t *testing.T) {
	st := openStore(t, t.TempDir())
	r := openRing(t, st)
	text, _ := create(t, r, New{Name: "k"})
	unknown, _ := newToken("limen_", "")
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	if err := r.look(t.Context()); err == nil {
		t.Fatal("a closed store could be looked at")
	}
	now := time.Now()
	for _, later := range []time.Duration{0, fresh - time.Second, fresh + time.Second, 24 * time.Hour} {
		authenticate(t, r, text, now.Add(later), good)
		authenticate(t, r, "sk-mistyped", now.Add(later), wrong)
		want := wrong
		if later > fresh {
			want = "unavailable"
		}
		authenticate(t, r, unknown, now.Add(later), want)
	}
	var e *llm.Error
	if _, err := r.Authenticate(unknown, now.Add(time.Hour)); !errors.As(err, &e) || e.RetryAfter <= 0 {
		t.Errorf("got %v, want an error that says when to try again", err)
	}
	if _, _, err := r.Create(context.Background(), New{Name: "n"}); err == nil {
		t.Error("a key was made in a closed store")
	}
	if len(r.All()) != 1 {
		t.Errorf("there are %d keys, want the one", len(r.All()))
	}
}

// A key can get a new secret elsewhere, too, while the store is away.
func TestStoreAwayAfterRotationElsewhere(t *testing.T) {
	dir := t.TempDir()
	here, there := openRing(t, openStore(t, dir)), openRing(t, openStore(t, dir))
	create(t, there, New{Name: "k"})
	if err := here.look(t.Context()); err != nil {
		t.Fatal(err)
	}
	next, _, err := there.Rotate(t.Context(), "k", 0)
	if err != nil {
		t.Fatal(err)
	}
	authenticate(t, here, next, time.Now().Add(fresh+time.Second), "unavailable")
}

// What another process changes in the store counts here after a look.
func TestChangesElsewhere(t *testing.T) {
	dir := t.TempDir()
	here, there := openRing(t, openStore(t, dir)), openRing(t, openStore(t, dir))
	look := func() {
		t.Helper()
		if err := here.look(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	text, k := create(t, there, New{Name: "k"})
	authenticate(t, here, text, time.Now(), wrong)
	look()
	authenticate(t, here, text, time.Now(), good)
	if _, err := there.Revoke(t.Context(), k.ID); err != nil {
		t.Fatal(err)
	}
	look()
	authenticate(t, here, text, time.Now(), wrong)
	before := here.snapshot.Load()
	before.seen.Store(0)
	look()
	if here.snapshot.Load() != before || before.seen.Load() == 0 {
		t.Error("a look that finds no change reads all keys anew, or does not count as a look")
	}
}

// Watch looks by itself, says once that the store is away, and ends.
func TestWatch(t *testing.T) {
	dir := t.TempDir()
	there := openRing(t, openStore(t, dir))
	synctest.Test(t, func(t *testing.T) {
		st, err := store.Open(context.Background(), dir, "")
		if err != nil {
			t.Fatal(err)
		}
		var log strings.Builder
		here, err := Open(context.Background(), st, openBooks(t, st), slog.New(slog.NewTextHandler(&log, nil)))
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan struct{})
		go func() { defer close(done); here.Watch(ctx) }()
		text, _, err := there.Create(context.Background(), New{Name: "k"})
		if err != nil {
			t.Fatal(err)
		}
		authenticate(t, here, text, time.Now(), wrong)
		time.Sleep(pollEvery + time.Millisecond)
		synctest.Wait()
		authenticate(t, here, text, time.Now(), good)

		st.Close()
		time.Sleep(10 * pollEvery)
		synctest.Wait()
		if n := strings.Count(log.String(), "\n"); n != 1 {
			t.Errorf("an outage is logged in %d lines, want 1:\n%s", n, log.String())
		}
		cancel()
		<-done
	})
}

func TestReloadRefusesADamagedRow(t *testing.T) {
	st := openStore(t, t.TempDir())
	r := openRing(t, st)
	text, _ := create(t, r, New{Name: "k"})
	if err := st.CreateKey(t.Context(), store.Key{ID: "bad", Hash: "zz"}); err != nil {
		t.Fatal(err)
	}
	if err := r.Reload(t.Context()); err == nil || !strings.Contains(err.Error(), "bad") {
		t.Errorf("got %v, want an error that names the key", err)
	}
	authenticate(t, r, text, time.Now(), good)
}
