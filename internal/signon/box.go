package signon

import (
	"crypto/hkdf"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"

	"github.com/limen-gateway/limen/internal/seal"
)

// box seals what browsers keep, so that they can neither read nor change it.
type box struct{ seal.Box }

// purpose tells what is in the box from what others close with keys of the
// same secret.
const purpose = "login"

func newBox(secret []byte) (box, error) {
	key, err := hkdf.Key(sha256.New, secret, nil, purpose, seal.KeySize)
	if err != nil {
		return box{}, err
	}
	inner, err := seal.NewBox(key)
	return box{inner}, err
}

func (b box) seal(l *login) string {
	plain, _ := json.Marshal(l) // texts and a number
	return base64.RawURLEncoding.EncodeToString(b.Close(purpose, plain))
}

func (b box) open(text string) (*login, bool) {
	sealed, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil {
		return nil, false
	}
	plain, err := b.Open(nil, purpose, sealed)
	if err != nil {
		return nil, false
	}
	var l login
	return &l, json.Unmarshal(plain, &l) == nil
}
