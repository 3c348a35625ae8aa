package keys

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/limen-gateway/limen/internal/llm"
	"github.com/limen-gateway/limen/internal/store"
)

// newOperators are those of a new store, with the admin password "correct horse".
func newOperators(t *testing.T, dir string) (*Operators, *store.Store) {
	t.Helper()
	st, err := store.Open(context.Background(), dir, "")
	if err != nil {
		t.Fatal(err)
	}
	o := NewOperators(st, NewAdmin(st))
	if err := o.SetAdminPassword(context.Background(), "correct horse"); err != nil {
		t.Fatal(err)
	}
	return o, st
}

func login(t *testing.T, o *Operators, user, password string) string {
	t.Helper()
	text, _, err := o.Login(context.Background(), &Login{User: user, Password: password, From: "10.0.0.1", Agent: "Browser\x00\xff/1"})
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// A session ends half an hour after its last use, and twelve hours after its
// beginning however much it is used.
func TestSessionLifetime(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		ctx := context.Background()
		o, st := newOperators(t, dir)
		defer st.Close()
		check := func(text, want string) {
			t.Helper()
			who, err := o.Session(ctx, text, "")
			if got := outcome(err); got != want {
				t.Fatalf("got %s, want %s", got, want)
			}
			if err == nil && (who.Name != AdminUser || who.Via != ViaSession || !strings.HasPrefix(text, who.Session+"_")) {
				t.Fatalf("the session is that of %+v", who)
			}
		}
		idle, busy := login(t, o, "", "correct horse"), login(t, o, "admin", "correct horse")
		if idle == busy {
			t.Fatal("two logins have one session")
		}
		for range 29 {
			time.Sleep(time.Minute)
			check(busy, good)
		}
		time.Sleep(59 * time.Second)
		check(idle, good)
		time.Sleep(SessionIdle - time.Millisecond)
		check(idle, good)
		check(busy, wrong) // nobody used it for so long
		time.Sleep(SessionIdle)
		check(idle, wrong)

		busy = login(t, o, "", "correct horse")
		for range 12*6 - 1 {
			time.Sleep(10 * time.Minute)
			check(busy, good)
		}
		time.Sleep(10*time.Minute - time.Millisecond)
		check(busy, good)
		time.Sleep(time.Millisecond)
		check(busy, wrong)
		if list, err := o.Sessions(ctx); len(list) != 0 || err != nil {
			t.Errorf("sessions that ended are listed: %v, %v", list, err)
		}
		login(t, o, "", "correct horse")
		if rows, err := st.Sessions(ctx); len(rows) != 1 || err != nil {
			t.Errorf("sessions that ended are kept: %v, %v", rows, err)
		}
	})
}

func TestSessionsEnd(t *testing.T) {
	ctx := t.Context()
	o, st := newOperators(t, t.TempDir())
	defer st.Close()
	other := NewOperators(st, NewAdmin(st)) // of another gateway
	check := func(text, want string) {
		t.Helper()
		for _, o := range []*Operators{o, other} {
			if _, err := o.Session(ctx, text, ""); outcome(err) != want {
				t.Errorf("got %v, want %s", err, want)
			}
		}
	}
	a, b := login(t, o, "", "correct horse"), login(t, o, "", "correct horse")
	check(a, good)
	for _, bad := range []string{"", "x", a + "x", a[:len(a)-1], "limen_" + a, strings.Replace(a, a[20:22], "zz", 1), forged(a)} {
		check(bad, wrong)
	}
	rows, err := st.Sessions(ctx)
	if err != nil || len(rows) != 2 {
		t.Fatalf("got %v, %v", rows, err)
	}
	for _, row := range rows {
		if strings.Contains(a+b, row.Hash) || row.Address != "10.0.0.1" || row.Agent != "Browser??/1" {
			t.Errorf("stored is %+v", row)
		}
	}
	if err := other.Logout(ctx, a[:idLen]); err != nil {
		t.Fatal(err)
	}
	check(a, wrong)
	check(b, good)
	if err := o.Logout(ctx, a[:idLen]); outcome(err) != "not_found" {
		t.Errorf("a second logout: %v", err)
	}
	if err := other.SetAdminPassword(ctx, "battery staple"); err != nil {
		t.Fatal(err)
	}
	check(b, wrong)
	st.Close()
	for _, err := range []error{second(o.Session(ctx, b, "")), second(o.Bearer(ctx, "battery staple", ""))} {
		if llm.AsError(err).Kind != llm.Unavailable {
			t.Errorf("with the store away: %v", err)
		}
	}
}

// forged is a session with the ID of another and a secret of its own.
func forged(text string) string {
	made, _ := newToken("", text[:idLen])
	return made
}

func second[T any](_ T, err error) error { return err }

func TestAdminTokens(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		ctx := context.Background()
		o, st := newOperators(t, dir)
		defer st.Close()
		text, row, err := o.CreateToken(ctx, NewAdminToken{Name: " ci ", Scopes: []string{"keys", "usage"}, Expires: time.Now().Add(time.Hour)}, &Operator{Name: "admin"})
		if err != nil || row.Name != "ci" || row.By != "admin" || strings.Contains(text, row.Hash) {
			t.Fatalf("got %+v, %v", row, err)
		}
		check := func(text, want string) {
			t.Helper()
			who, err := o.Bearer(ctx, text, "10.0.0.1")
			if got := outcome(err); got != want {
				t.Fatalf("%s: got %s, want %s", text, got, want)
			}
			if err == nil && *who != (Operator{Name: "ci", Via: ViaToken, From: "10.0.0.1", Scopes: ScopeKeys | ScopeUsage}) {
				t.Errorf("the token is that of %+v", who)
			}
		}
		check(text, good)
		other, _ := newToken(adminPrefix, row.ID)
		for range 10 { // which makes nobody wait
			check(other, wrong)
			check(text+"x", wrong)
		}
		check(text, good)
		if _, ok := ParseToken(text); ok {
			t.Error("it looks like a key of a client")
		}
		for _, bad := range []NewAdminToken{
			{Scopes: []string{"read"}}, {Name: "a"}, {Name: "a", Scopes: []string{"write"}}, {Name: "a\n", Scopes: []string{"read"}, Expires: time.Now()}, {Name: "a\tb", Scopes: []string{"read"}},
		} {
			if _, _, err := o.CreateToken(ctx, bad, &Operator{}); !strings.HasPrefix(outcome(err), "invalid ") {
				t.Errorf("%+v: %v", bad, err)
			}
		}
		time.Sleep(time.Hour)
		check(text, wrong)
		if _, err := o.RevokeToken(ctx, "ci"); err != nil {
			t.Fatal(err)
		}
		if _, err := o.RevokeToken(ctx, "ci"); outcome(err) != "not_found" {
			t.Errorf("a second time: %v", err)
		}
	})
}
