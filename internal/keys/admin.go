package keys

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"golang.org/x/crypto/argon2"

	"github.com/limen-gateway/limen/internal/llm"
	"github.com/limen-gateway/limen/internal/store"
)

// Admin checks the admin password, which is stored as an argon2id hash.
type Admin struct {
	store *store.Store

	mu       sync.Mutex // one evaluation at a time: it costs 19 MiB
	good     [sha256.Size]byte
	goodHash string // the stored hash that good was checked against
	guesses  guesses
}

// NewAdmin returns the check of the password of a store.
func NewAdmin(st *store.Store) *Admin { return &Admin{store: st} }

// Exists reports whether a password was ever set.
func (a *Admin) Exists(ctx context.Context) (bool, error) {
	_, err := a.store.Setting(ctx, store.SettingAdminHash)
	if errors.Is(err, store.ErrNotFound) {
		return false, nil
	}
	return err == nil, err
}

// SetPassword replaces the password.
func (a *Admin) SetPassword(ctx context.Context, password string) error {
	if len(password) < minPassword {
		return llm.InvalidParam("invalid_value", "password", "The admin password has at least %d characters.", minPassword)
	}
	return a.store.SetSetting(ctx, store.SettingAdminHash, hashPassword(password))
}

// minPassword is the length of the shortest password, in bytes.
const minPassword = 8

// maxDelay is the longest pause after wrong passwords.
const maxDelay = 30 * time.Second

// guesses are wrong passwords, one after another. They make the next
// evaluation wait, longer each time.
type guesses struct {
	wrong int
	after time.Time // no evaluation before
}

// wait refuses an evaluation that is too early.
func (g *guesses) wait() error {
	if wait := time.Until(g.after); wait > 0 {
		return &llm.Error{Kind: llm.RateLimited, Message: fmt.Sprintf("Too many wrong passwords. Please try again in %s.", wait.Round(time.Second)), RetryAfter: wait}
	}
	return nil
}

func (g *guesses) add() {
	g.wrong++
	if g.wrong > 5 {
		g.after = time.Now().Add(min(time.Second<<min(g.wrong-6, 5), maxDelay))
	}
}

// Check reports whether the password is right: nil, an Unauthenticated error,
// or an Unavailable one when the store is away. Wrong passwords make the next
// evaluation wait, longer each time; one that was right before is not
// evaluated again, so that it works at once.
func (a *Admin) Check(ctx context.Context, password string) error {
	if password == "" {
		return llm.Errorf(llm.Unauthenticated, "This needs the admin password, as 'Authorization: Bearer PASSWORD'.")
	}
	stored, err := a.store.Setting(ctx, store.SettingAdminHash)
	if errors.Is(err, store.ErrNotFound) {
		return llm.Errorf(llm.Unauthenticated, "No admin password is set; 'limen admin password' sets one.")
	}
	if err != nil {
		return &llm.Error{Kind: llm.Unavailable, Message: "The admin password cannot be checked now: the store is away.", RetryAfter: time.Second, Err: err}
	}
	sum := sha256.Sum256([]byte(password))

	a.mu.Lock()
	defer a.mu.Unlock()
	if a.goodHash == stored && subtle.ConstantTimeCompare(sum[:], a.good[:]) == 1 {
		return nil
	}
	if err := a.guesses.wait(); err != nil {
		return err
	}
	ok, err := verify(stored, password)
	if err != nil {
		return err
	}
	if !ok {
		a.guesses.add()
		return wrongPassword("Incorrect admin password.")
	}
	a.good, a.goodHash, a.guesses = sum, stored, guesses{}
	return nil
}

func wrongPassword(message string) error {
	return &llm.Error{Kind: llm.Unauthenticated, Code: "invalid_api_key", Message: message}
}

const argonPrefix = "$argon2id$v=19$m=19456,t=2,p=1$"

func argon(password string, salt []byte) []byte {
	return argon2.IDKey([]byte(password), salt, 2, 19456, 1, 32)
}

// hashPassword is what is stored of a password.
func hashPassword(password string) string {
	var salt [16]byte
	rand.Read(salt[:]) // never fails
	return argonPrefix + base64.RawStdEncoding.EncodeToString(salt[:]) + "$" + base64.RawStdEncoding.EncodeToString(argon(password, salt[:]))
}

func verify(stored, password string) (bool, error) {
	salt64, hash64, ok := strings.Cut(strings.TrimPrefix(stored, argonPrefix), "$")
	salt, err := base64.RawStdEncoding.DecodeString(salt64)
	hash, err2 := base64.RawStdEncoding.DecodeString(hash64)
	if !ok || err != nil || err2 != nil || !strings.HasPrefix(stored, argonPrefix) {
		return false, errors.New("keys: the stored admin hash cannot be read; 'limen admin password' sets a new one")
	}
	return subtle.ConstantTimeCompare(hash, argon(password, salt)) == 1, nil
}
