package keys

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/limen-gateway/limen/internal/llm"
	"github.com/limen-gateway/limen/internal/store"
)

// home is an address.
const home = "192.0.2.1"

// guarded is a guard whose passwords cost nothing; "right" is the right one.
type guarded struct{ *guard }

func (g guarded) say(name, address, password string) (evaluated bool, err error) {
	right, err := g.evaluate(name, address, func() (bool, error) { evaluated = true; return password == "right", nil })
	if evaluated && !right {
		err = wrongPassword("wrong")
	}
	return evaluated, err
}

func retryAfter(err error) time.Duration {
	if e, ok := errors.AsType[*llm.Error](err); ok {
		return e.RetryAfter
	}
	return 0
}

// Where somebody was let in before, five wrong ones are for nothing; then each
// takes twice as long as the one before, until it is forgotten.
func TestGuardAtHome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := guarded{newGuard()}
		for range 2 {
			if _, err := g.say("ann", home, "right"); err != nil {
				t.Fatal(err)
			}
			for range 5 {
				if evaluated, _ := g.say("ann", home, "guess"); !evaluated {
					t.Fatal("one of the first five is not evaluated")
				}
			}
			for _, want := range []time.Duration{time.Second, 2 * time.Second, 4 * time.Second, 8 * time.Second, 16 * time.Second, maxDelay, maxDelay} {
				if evaluated, err := g.say("ann", home, "right"); evaluated || retryAfter(err) != want {
					t.Fatalf("got %v, %v, want to wait %v", evaluated, err, want)
				}
				time.Sleep(want)
				if evaluated, _ := g.say("ann", home, "guess"); !evaluated {
					t.Fatalf("after %v: not evaluated", want)
				}
			}
			time.Sleep(maxDelay)
		}
		if _, err := g.say("ann", home, "right"); err != nil {
			t.Errorf("the right one, in time: %v", err)
		}
		for range 8 {
			g.say("ann", home, "guess")
		}
		time.Sleep(forgetAfter + maxDelay)
		for range 5 {
			if evaluated, _ := g.say("ann", home, "guess"); !evaluated {
				t.Error("what was wrong long ago still counts")
			}
		}
	})
}

// However often a password is guessed, and from however many addresses, ten are
// evaluated a minute. Who was let in before does not notice; who comes from
// another address is let in.
func TestGuardOfAccount(t *testing.T) {
	for _, addresses := range []int{1, 100, 1000} {
		t.Run(fmt.Sprint(addresses), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := guarded{newGuard()}
				if _, err := g.say("ann", home, "right"); err != nil {
					t.Fatal(err)
				}
				for minute := range 3 {
					evaluated := 0
					for i := range 1000 {
						if ok, _ := g.say("ann", fmt.Sprintf("198.51.%d.%d", i%addresses/256, i%addresses%256), "guess"); ok {
							evaluated++
						}
						time.Sleep(time.Minute / 1000)
					}
					if evaluated == 0 || evaluated > 10 {
						t.Errorf("minute %d: %d were evaluated", minute, evaluated)
					}
					if _, err := g.say("ann", home, "right"); err != nil {
						t.Errorf("where she was let in before: %v", err)
					}
				}
				if addresses == 1000 {
					return // so many come for the first time that one more is not told from them
				}
				// The one slot for those who come first may be taken for half a minute.
				abroad := "203.0.113.7"
				_, err := g.say("ann", abroad, "right")
				if wait := retryAfter(err); wait > 0 {
					for range int(wait / (10 * time.Millisecond)) {
						g.say("ann", "198.51.0.0", "guess")
						time.Sleep(10 * time.Millisecond)
					}
					time.Sleep(10 * time.Millisecond)
					_, err = g.say("ann", abroad, "right")
				}
				if err != nil {
					t.Errorf("from an address that was never wrong: %v", err)
				}
			})
		})
	}
}

// Who tries one name after another is slowed down by the address, and nobody
// else by that. Of IPv6, an address is a network.
func TestGuardOfAddress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := guarded{newGuard()}
		evaluated := 0
		for i := range 1000 {
			if ok, _ := g.say(fmt.Sprint("user", i), fmt.Sprintf("2001:db8::%x", i), "guess"); ok {
				evaluated++
			}
			time.Sleep(time.Minute / 1000)
		}
		if evaluated == 0 || evaluated > 10 {
			t.Errorf("%d were evaluated", evaluated)
		}
		for _, address := range []string{"2001:db8:0:1::1", home, ""} {
			if _, err := g.say("user999", address, "right"); err != nil {
				t.Errorf("from %q: %v", address, err)
			}
		}
	})
}

// Who comes before the time that was said is no longer one who comes first.
func TestGuardOfTheImpatient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := guarded{newGuard()}
		for i := range 2 {
			g.say("ann", fmt.Sprintf("198.51.100.%d", i), "guess")
			g.say("ann", fmt.Sprintf("198.51.100.%d", i), "guess")
		}
		_, patient := g.say("ann", "203.0.113.1", "right")
		_, hasty := g.say("ann", "203.0.113.2", "guess")
		if retryAfter(patient) != 15*time.Second || retryAfter(hasty) != 15*time.Second {
			t.Fatalf("got %v and %v", patient, hasty)
		}
		time.Sleep(14 * time.Second)
		for range 4 {
			g.say("ann", "203.0.113.2", "guess")
			g.say("ann", "198.51.100.1", "guess")
		}
		time.Sleep(time.Second)
		if ok, _ := g.say("ann", "203.0.113.2", "guess"); ok {
			t.Error("the impatient one is evaluated as those who come first are")
		}
		if _, err := g.say("ann", "203.0.113.1", "right"); err != nil {
			t.Errorf("the patient one: %v", err)
		}
	})
}

// What is known of those who guess is bounded, and a check that fails counts
// for nothing.
func TestGuardIsBounded(t *testing.T) {
	g := guarded{newGuard()}
	for range 20 {
		if _, err := g.evaluate("ann", home, func() (bool, error) { return false, store.ErrNotFound }); !errors.Is(err, store.ErrNotFound) {
			t.Fatal(err)
		}
	}
	for i := range 2 * maxGuarded {
		address := fmt.Sprintf("10.%d.%d.%d", i>>16, i>>8&255, i&255)
		g.say(fmt.Sprint("user", i), address, "guess")
		g.say(fmt.Sprint("other", i), address, "right")
	}
	if ok, _ := g.say("user0", "10.0.0.0", "guess"); !ok {
		t.Error("a guess of long ago is not forgotten")
	}
}

// Names that nobody has wait as others do, and take as long. The ways to say the
// admin password are counted apart.
func TestLoginSlowsGuessing(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		ctx := context.Background()
		o, st := newOperators(t, dir)
		defer st.Close()
		if _, _, err := o.CreateUser(ctx, NewUser{Name: "ann", Role: Viewer, Password: "correct horse"}); err != nil {
			t.Fatal(err)
		}
		for i, name := range []string{"admin", "ann", "nobody", ""} {
			from := fmt.Sprintf("192.0.2.%d", i)
			for n, want := range []string{wrong, wrong, wrong, "rate_limited"} {
				in := Login{User: name, Password: "a wrong guess", From: from}
				if name == "" && n < 3 { // it is the admin's account, which somebody guessed at already
					want = []string{wrong, "rate_limited", "rate_limited"}[n]
				}
				if _, _, err := o.Login(ctx, &in); outcome(err) != want {
					t.Fatalf("%q, %d: got %v, want %s", name, n, err, want)
				}
				if known := map[string]string{"": "admin", "nobody": ""}; in.Account != name && in.Account != known[name] {
					t.Errorf("%q: the account is %q", name, in.Account)
				}
			}
		}
		if _, err := o.Bearer(ctx, "correct horse", "192.0.2.0"); err != nil {
			t.Errorf("as a bearer: %v", err)
		}
		if !o.admin.Recognizes(ctx, "correct horse", "192.0.2.0") || o.admin.Recognizes(ctx, "", "192.0.2.0") {
			t.Error("the admin password is not recognized in place of a key, or none is")
		}
	})
}

// What takes time is done for names that nobody has, too.
func TestUnknownNameTakesAsLong(t *testing.T) {
	o, st := newOperators(t, t.TempDir())
	defer st.Close()
	if _, _, err := o.CreateUser(t.Context(), NewUser{Name: "ann", Role: Viewer, Password: "correct horse"}); err != nil {
		t.Fatal(err)
	}
	took := func(name string) time.Duration {
		shortest := time.Hour
		for i := range 3 {
			begin := time.Now()
			if _, _, err := o.Login(t.Context(), &Login{User: name, Password: "a wrong guess", From: fmt.Sprint(name, i)}); outcome(err) != wrong && outcome(err) != "rate_limited" {
				t.Fatal(err)
			} else if outcome(err) == wrong {
				shortest = min(shortest, time.Since(begin))
			}
		}
		return shortest
	}
	if known, unknown := took("ann"), took("nobody"); unknown < known/50 { // without the hash it is a thousandth
		t.Errorf("a name that nobody has takes %v, another %v", unknown, known)
	}
}
