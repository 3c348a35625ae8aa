package keys

import (
	"crypto/rand"
	"crypto/sha256"
	"hash/crc32"
	"strings"
)

// A key is PREFIX + id + "_" + secret + checksum, in base62:
//
//	limen_4f8dK2mP0aZx_<43 characters, 256 bit><6 characters, CRC32>
//
// The id is public and finds the row; the checksum tells a mistyped or made-up
// key from a real one without asking anything, and lets scanners recognise a
// leaked key offline.
const (
	idLen       = 12
	secretLen   = 43
	checksumLen = 6
	tailLen     = idLen + 1 + secretLen + checksumLen
)

// Prefixes that issued keys may begin with. The first is the default; tools
// that check the looks of a key know the second.
var Prefixes = []string{"limen_", "sk-"}

// Token is a key as a client presents it, taken apart.
type Token struct {
	ID   string
	Hash [sha256.Size]byte // of the whole key
}

// ParseToken checks the form of a key: prefix, length, alphabet, checksum.
func ParseToken(text string) (Token, bool) {
	for _, prefix := range Prefixes {
		if t, ok := parseToken(text, prefix); ok {
			return t, true
		}
	}
	return Token{}, false
}

// parseToken is ParseToken for what begins with a prefix, which may be empty.
func parseToken(text, prefix string) (Token, bool) {
	tail, ok := strings.CutPrefix(text, prefix)
	if !ok || len(tail) != tailLen || tail[idLen] != '_' {
		return Token{}, false
	}
	for i := range len(tail) {
		if i != idLen && !isBase62(tail[i]) {
			return Token{}, false
		}
	}
	body, sum := text[:len(text)-checksumLen], text[len(text)-checksumLen:]
	if checksum(body) != [checksumLen]byte([]byte(sum)) {
		return Token{}, false
	}
	return Token{ID: tail[:idLen], Hash: sha256.Sum256([]byte(text))}, true
}

// Public returns what is public of a key, also of one that is wrong or was not
// copied whole: its prefix and its ID. Either may be empty.
func Public(text string) (prefix, id string) {
	for _, prefix := range Prefixes {
		tail, ok := strings.CutPrefix(text, prefix)
		if !ok {
			continue
		}
		if id, _, ok := strings.Cut(tail, "_"); ok && len(id) == idLen && strings.IndexFunc(id, func(r rune) bool { return r > 'z' || !isBase62(byte(r)) }) < 0 {
			return prefix, id
		}
		return prefix, ""
	}
	return "", ""
}

// Mask returns a text in which of everything that looks like a key there is
// no more than what is public of it.
func Mask(text string) string {
	var out strings.Builder
	for rest := text; ; {
		at, end := findKey(rest)
		if at < 0 {
			if out.Len() == 0 {
				return text
			}
			out.WriteString(rest)
			return out.String()
		}
		prefix, id := Public(rest[at:end])
		if id != "" {
			id += "_"
		}
		out.WriteString(rest[:at] + prefix + id)
		rest = rest[end:]
		if !strings.HasPrefix(rest, "…") { // else it was masked before
			out.WriteString("…")
		}
	}
}

// findKey finds where in a text something that looks like a key begins and
// ends; -1 where there is none.
func findKey(text string) (at, end int) {
	at = -1
	for _, prefix := range Prefixes {
		for from := 0; ; {
			i := strings.Index(text[from:], prefix)
			if i < 0 {
				break
			}
			i += from
			from = i + len(prefix)
			if prefix == "sk-" && i > 0 && isBase62(text[i-1]) {
				continue // it is the end of a word, such as task
			}
			n := from
			for n < len(text) && (isBase62(text[n]) || text[n] == '_' || text[n] == '-') {
				n++
			}
			if n-from >= idLen {
				if at < 0 || i < at {
					at, end = i, n
				}
				break
			}
		}
	}
	return at, end
}

// newToken makes a key; an empty id makes a new one.
func newToken(prefix, id string) (text string, token Token) {
	if id == "" {
		id = randomBase62(idLen)
	}
	body := prefix + id + "_" + randomBase62(secretLen)
	sum := checksum(body)
	text = body + string(sum[:])
	return text, Token{ID: id, Hash: sha256.Sum256([]byte(text))}
}

const alphabet = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

func isBase62(c byte) bool {
	return '0' <= c && c <= '9' || 'A' <= c && c <= 'Z' || 'a' <= c && c <= 'z'
}

// randomBase62 returns n characters, each uniform over the alphabet.
func randomBase62(n int) string {
	out := make([]byte, 0, n)
	var buf [64]byte
	for len(out) < n {
		rand.Read(buf[:]) // never fails
		for _, b := range buf {
			if b < 248 && len(out) < n { // 4 × 62: what is above would favour the first characters
				out = append(out, alphabet[b%62])
			}
		}
	}
	return string(out)
}

func checksum(body string) (sum [checksumLen]byte) {
	n := crc32.ChecksumIEEE([]byte(body))
	for i := checksumLen - 1; i >= 0; i-- {
		sum[i] = alphabet[n%62]
		n /= 62
	}
	return sum
}

// NewPassword makes a password of 24 characters (142 bit) for people to paste.
func NewPassword() string { return randomBase62(24) }
