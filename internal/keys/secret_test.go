package keys

import (
	"crypto/sha256"
	"strings"
	"testing"
)

func TestNewToken(t *testing.T) {
	seen := map[string]bool{}
	for _, prefix := range Prefixes {
		for range 200 {
			text, want := newToken(prefix, "")
			got, ok := ParseToken(text)
			if !ok || got != want || got.Hash != sha256.Sum256([]byte(text)) {
				t.Fatalf("ParseToken(%q) = %v, %v, want %v", text, got, ok, want)
			}
			if !strings.HasPrefix(text, prefix+want.ID+"_") {
				t.Errorf("%q does not begin with %s and its ID %s", text, prefix, want.ID)
			}
			if seen[text] || seen[want.ID] {
				t.Fatalf("%q was made twice", text)
			}
			seen[text], seen[want.ID] = true, true
		}
	}
	if text, token := newToken("sk-", "abcdefghijkl"); token.ID != "abcdefghijkl" || !strings.HasPrefix(text, "sk-abcdefghijkl_") {
		t.Errorf("newToken with an ID made %q", text)
	}
}

// The form is a promise: keys that were issued once must parse for ever.
func TestParseTokenKnown(t *testing.T) {
	const text = "limen_0123456789ab_0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefg"
	sum := checksum(text)
	if got := string(sum[:]); got != "2RkOe7" {
		t.Errorf("checksum is %s, want 2RkOe7", got)
	}
	if token, ok := ParseToken(text + "2RkOe7"); !ok || token.ID != "0123456789ab" {
		t.Errorf("got %q, %v", token.ID, ok)
	}
}

// A key with any one character changed, left out, doubled or swapped with the
// next one is known to be mistyped without asking the store.
func TestParseTokenRefusesEveryTypo(t *testing.T) {
	for _, prefix := range Prefixes {
		text, _ := newToken(prefix, "")
		refuse := func(typo string) {
			t.Helper()
			if _, ok := ParseToken(typo); ok && typo != text {
				t.Errorf("%q passes for %q", typo, text)
			}
		}
		for i := range len(text) {
			for c := range 256 {
				refuse(text[:i] + string([]byte{byte(c)}) + text[i+1:])
			}
			refuse(text[:i] + text[i+1:])
			refuse(text[:i] + text[i:i+1] + text[i:])
			if i+1 < len(text) {
				refuse(text[:i] + text[i+1:i+2] + text[i:i+1] + text[i+2:])
			}
			refuse(text[:i])
		}
	}
}

func TestParseTokenRefuses(t *testing.T) {
	good, _ := newToken("limen_", "")
	short, _ := newToken("limen_", "short")
	other, _ := newToken("pk-", "")
	dash, _ := newToken("limen_", "abcde-ghijkl")
	for name, text := range map[string]string{
		"empty": "", "prefix alone": "limen_", "space in front": " " + good, "space behind": good + " ", "upper case": strings.ToUpper(good),
		"another prefix": strings.Replace(good, "limen_", "sk-", 1), "two prefixes": "limen_" + good, "OpenAI's": "sk-proj-" + strings.Repeat("a", 60),
		"short ID": short, "unknown prefix": other, "bad letter with a good checksum": dash, "long": good + strings.Repeat("a", 1<<20),
	} {
		if _, ok := ParseToken(text); ok {
			t.Errorf("%s: %.80q is taken for a key", name, text)
		}
	}
}

func TestRandomBase62(t *testing.T) {
	counts := map[rune]int{}
	const n = 62 * 1000
	text := randomBase62(n)
	if len(text) != n {
		t.Fatalf("got %d characters, want %d", len(text), n)
	}
	for _, c := range text {
		counts[c]++
	}
	for _, c := range alphabet {
		if counts[c] < 800 || counts[c] > 1200 { // 6 standard deviations
			t.Errorf("%c comes %d times in %d, want about 1000", c, counts[c], n)
		}
		delete(counts, c)
	}
	if len(counts) > 0 {
		t.Errorf("characters outside the alphabet: %v", counts)
	}
	if p := NewPassword(); len(p) != 24 || p == NewPassword() {
		t.Errorf("password %q", p)
	}
}

func FuzzParseToken(f *testing.F) {
	good, _ := newToken("limen_", "")
	second, _ := newToken("sk-", "")
	for _, seed := range []string{good, second, "", "sk-", "limen_", "sk-" + good, good[:len(good)-1], "limen_\xff", strings.Repeat("_", tailLen)} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		token, ok := ParseToken(text)
		if !ok {
			return
		}
		if token.Hash != sha256.Sum256([]byte(text)) {
			t.Errorf("%q: hash is not that of the text", text)
		}
		body, end := text[:len(text)-checksumLen], text[len(text)-checksumLen:]
		if sum := checksum(body); string(sum[:]) != end || !strings.Contains(body, token.ID+"_") {
			t.Errorf("%q passes with ID %q", text, token.ID)
		}
	})
}

// Of a key, others than its owner read its prefix and ID at most.
func TestMask(t *testing.T) {
	text, token := newToken("limen_", "")
	public := "limen_" + token.ID + "_…"
	for _, c := range []struct{ text, want string }{
		{"", ""},
		{"/v1/models", "/v1/models"},
		{text, public},
		{"/v1/" + text + "/models", "/v1/" + public + "/models"},
		{text[:30], public},
		{text[:18] + "x", "limen_…"},
		{"a " + text + " and sk-proj-abcdefghijklmnop.", "a " + public + " and sk-…."},
		{"risk-management-model-of-ours", "risk-management-model-of-ours"},
		{"sk-short", "sk-short"},
		{public, public},
	} {
		if got := Mask(c.text); got != c.want {
			t.Errorf("Mask(%q) = %q, want %q", c.text, got, c.want)
		}
	}
	for _, key := range []string{text, text[:40], "sk-proj-abcdefghijklmnop", "Qw3rTyUi0pAsDfGhJkLzXcVb", "short"} {
		e := wrongKey(key, "Incorrect API key provided: %s. Copy it whole.")
		if got := Hide(e.Message, key); strings.Contains(got, key[len(key)-4:]) || !strings.HasSuffix(got, "…. Copy it whole.") {
			t.Errorf("of %q others read %q", key, got)
		}
	}
}
