package keys

import (
	"errors"
	"strings"
	"testing"

	"github.com/limen-gateway/limen/internal/llm"
	"github.com/limen-gateway/limen/internal/store"
)

func TestAdminPassword(t *testing.T) {
	st := openStore(t, t.TempDir())
	a := NewAdmin(st)
	check := func(a *Admin, password, want string) {
		t.Helper()
		if got := outcome(a.Check(t.Context(), password, home)); got != want {
			t.Errorf("%q: got %s, want %s", password, got, want)
		}
	}
	exists := func(want bool) {
		t.Helper()
		if got, err := a.Exists(t.Context()); got != want || err != nil {
			t.Errorf("Exists() = %v, %v, want %v", got, err, want)
		}
	}
	exists(false)
	check(a, "anything", "unauthenticated")
	if err := a.SetPassword(t.Context(), "1234567"); outcome(err) != "invalid invalid_value" {
		t.Errorf("short password: got %v", err)
	}
	exists(false)
	if err := a.SetPassword(t.Context(), "correct horse"); err != nil {
		t.Fatal(err)
	}
	exists(true)
	for range 2 { // evaluated, then remembered
		check(a, "correct horse", good)
	}
	check(a, "", "unauthenticated")
	check(a, "correct horse ", wrong)
	check(a, "Correct horse", wrong)

	stored, err := st.Setting(t.Context(), store.SettingAdminHash)
	if err != nil || strings.Contains(stored, "correct") || !strings.HasPrefix(stored, "$argon2id$") {
		t.Errorf("stored is %q, %v", stored, err)
	}
	check(a, stored, wrong)

	// A change made elsewhere counts at once, also for what was remembered.
	if err := NewAdmin(st).SetPassword(t.Context(), "battery staple"); err != nil {
		t.Fatal(err)
	}
	check(a, "correct horse", wrong)
	check(a, "battery staple", good)
}

func TestAdminStoreAway(t *testing.T) {
	st := openStore(t, t.TempDir())
	a := NewAdmin(st)
	if err := a.SetPassword(t.Context(), "correct horse"); err != nil {
		t.Fatal(err)
	}
	st.Close()
	for _, password := range []string{"correct horse", "wrong horse"} {
		var e *llm.Error
		if err := a.Check(t.Context(), password, home); !errors.As(err, &e) || e.Kind != llm.Unavailable || e.RetryAfter <= 0 {
			t.Errorf("%q: got %v, want unavailable", password, err)
		}
	}
	if _, err := a.Exists(t.Context()); err == nil {
		t.Error("Exists() does not say that the store is away")
	}
}

func TestAdminDamagedHash(t *testing.T) {
	st := openStore(t, t.TempDir())
	for _, stored := range []string{"", "x", "$argon2id$v=19$m=19456,t=2,p=1$", "$argon2id$v=19$m=19456,t=2,p=1$!!$!!", "$argon2id$v=19$m=1,t=1,p=1$AAAA$AAAA"} {
		if err := st.SetSetting(t.Context(), store.SettingAdminHash, stored); err != nil {
			t.Fatal(err)
		}
		var e *llm.Error
		if err := NewAdmin(st).Check(t.Context(), "any password", home); err == nil || errors.As(err, &e) {
			t.Errorf("%q: got %v, want an internal error", stored, err)
		}
	}
}
