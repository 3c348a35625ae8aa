package seal

import (
	"bytes"
	"compress/flate"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"sync"
)

// Box closes what is kept so that a copy of the store alone tells nothing:
// compressed where that pays, then sealed with AES-256-GCM, bound to its owner.
type Box struct{ aead cipher.AEAD }

// KeySize is the length of a box's key, in bytes.
const KeySize = 32

// NewBox makes a box of a key of [KeySize] bytes.
func NewBox(key []byte) (Box, error) {
	if len(key) != KeySize {
		return Box{}, fmt.Errorf("seal: the key has %d bytes, want %d", len(key), KeySize)
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return Box{}, err
	}
	aead, err := cipher.NewGCM(block)
	return Box{aead}, err
}

// How the content of a box is written, its first byte.
const (
	plain    = 0
	deflated = 1
)

// worthDeflating is the size from which compression pays: what is smaller takes
// about as long to compress as to store.
const worthDeflating = 2 << 10

// maxOpened bounds what a box may hold, in bytes.
const maxOpened = 256 << 20

var deflaters = sync.Pool{New: func() any {
	w, err := flate.NewWriter(nil, flate.BestSpeed)
	if err != nil {
		panic(err) // the level is a good one
	}
	return w
}}

// Close returns content closed for an owner.
func (b Box) Close(owner string, content []byte) []byte {
	inside := make([]byte, b.aead.NonceSize(), b.aead.NonceSize()+1+len(content)+b.aead.Overhead())
	rand.Read(inside) // never fails
	nonce := inside
	if len(content) >= worthDeflating {
		inside = deflate(append(inside, deflated), content)
	} else {
		inside = append(append(inside, plain), content...)
	}
	text := inside[len(nonce):]
	return b.aead.Seal(nonce, nonce, text, []byte(owner))
}

func deflate(dst, content []byte) []byte {
	out := bytes.NewBuffer(dst)
	w := deflaters.Get().(*flate.Writer)
	defer deflaters.Put(w)
	w.Reset(out)
	w.Write(content) // a buffer takes everything
	w.Close()
	return out.Bytes()
}

// ErrBox is what Open returns for what was not closed so.
var ErrBox = errors.New("seal: what is kept cannot be opened: it was changed, or closed with another key")

// Open appends what was closed for an owner to dst.
func (b Box) Open(dst []byte, owner string, closed []byte) ([]byte, error) {
	size := b.aead.NonceSize()
	if len(closed) < size {
		return nil, ErrBox
	}
	inside, err := b.aead.Open(nil, closed[:size], closed[size:], []byte(owner))
	if err != nil || len(inside) == 0 {
		return nil, ErrBox
	}
	if inside[0] == plain {
		return append(dst, inside[1:]...), nil
	}
	out := bytes.NewBuffer(dst)
	r := flate.NewReader(bytes.NewReader(inside[1:]))
	if n, err := io.Copy(out, io.LimitReader(r, maxOpened+1)); err != nil || n > maxOpened {
		return nil, ErrBox
	}
	return out.Bytes(), nil
}
