package state

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

// box closes what is kept so that a copy of the store alone tells nothing:
// compressed where that pays, then sealed with AES-256-GCM, bound to its owner.
type box struct{ aead cipher.AEAD }

// KeySize is the length of the key that closes what is kept, in bytes.
const KeySize = 32

func newBox(key []byte) (box, error) {
	if len(key) != KeySize {
		return box{}, fmt.Errorf("state: the key has %d bytes, want %d", len(key), KeySize)
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return box{}, err
	}
	aead, err := cipher.NewGCM(block)
	return box{aead}, err
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

// close returns content closed for an owner.
func (b box) close(owner string, content []byte) []byte {
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

var errBox = errors.New("state: what is kept cannot be opened: it was changed, or closed with another key")

// open appends what was closed for an owner to dst.
func (b box) open(dst []byte, owner string, closed []byte) ([]byte, error) {
	size := b.aead.NonceSize()
	if len(closed) < size {
		return nil, errBox
	}
	inside, err := b.aead.Open(nil, closed[:size], closed[size:], []byte(owner))
	if err != nil || len(inside) == 0 {
		return nil, errBox
	}
	if inside[0] == plain {
		return append(dst, inside[1:]...), nil
	}
	out := bytes.NewBuffer(dst)
	r := flate.NewReader(bytes.NewReader(inside[1:]))
	if n, err := io.Copy(out, io.LimitReader(r, maxOpened+1)); err != nil || n > maxOpened {
		return nil, errBox
	}
	return out.Bytes(), nil
}
