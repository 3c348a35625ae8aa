package keys

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"strings"
	"time"

	"golang.org/x/crypto/argon2"

	"github.com/limen-gateway/limen/internal/llm"
	"github.com/limen-gateway/limen/internal/store"
)

// Admin checks the admin password, which is stored as an argon2id hash.
type Admin struct {
	store *store.Store
	guard *guard

	good     [sha256.Size]byte
	goodHash string // the stored hash that good was checked against
}

// NewAdmin returns the check of the password of a store.
func NewAdmin(st *store.Store) *Admin { return &Admin{store: st, guard: newGuard()} }

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

// Check reports whether the password is right that came with a request from an
// address: nil, an Unauthenticated error, a RateLimited one after wrong ones, or
// an Unavailable one when the store is away.
func (a *Admin) Check(ctx context.Context, password, from string) error {
	if password == "" {
		return llm.Errorf(llm.Unauthenticated, "This needs the admin password, as 'Authorization: Bearer PASSWORD'.")
	}
	return a.check(ctx, "bearer", password, from)
}

// Recognizes reports whether what should be the key of a client is the admin
// password. Clients with a wrong key come often: they make nobody wait who says
// the password where it belongs.
func (a *Admin) Recognizes(ctx context.Context, password, from string) bool {
	return password != "" && a.check(ctx, "key", password, from) == nil
}

// check checks a password that was said in one of several ways, whose wrong ones
// are counted apart.
func (a *Admin) check(ctx context.Context, way, password, from string) error {
	stored, err := a.store.Setting(ctx, store.SettingAdminHash)
	if errors.Is(err, store.ErrNotFound) {
		return llm.Errorf(llm.Unauthenticated, "No admin password is set; 'limen admin password' sets one.")
	}
	if err != nil {
		return &llm.Error{Kind: llm.Unavailable, Message: "The admin password cannot be checked now: the store is away.", RetryAfter: time.Second, Err: err}
	}
	right, err := a.guard.evaluate(way+" "+AdminUser, from, func() (bool, error) { return a.verify(stored, password) })
	if err == nil && !right {
		err = wrongPassword("Incorrect admin password.")
	}
	return err
}

// verify evaluates a password; one that was right before is known at once. It
// runs within the guard.
func (a *Admin) verify(stored, password string) (bool, error) {
	sum := sha256.Sum256([]byte(password))
	if a.goodHash == stored && subtle.ConstantTimeCompare(sum[:], a.good[:]) == 1 {
		return true, nil
	}
	right, err := verify(stored, password)
	if right {
		a.good, a.goodHash = sum, stored
	}
	return right, err
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
