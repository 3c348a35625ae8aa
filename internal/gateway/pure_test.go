package gateway

import (
	"bytes"
	"errors"
	"github.com/limen-gateway/limen/internal/buffer"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"
)

func TestCredential(t *testing.T) {
	for name, tt := range map[string]struct {
		header http.Header
		want   string
	}{
		"none":                    {http.Header{}, ""},
		"bearer":                  {http.Header{"Authorization": {"Bearer k"}}, "k"},
		"scheme in another case":  {http.Header{"Authorization": {"bEARER k"}}, "k"},
		"with spaces":             {http.Header{"Authorization": {"  Bearer   k  "}}, "k"},
		"a space within":          {http.Header{"Authorization": {"Bearer a b"}}, "a b"},
		"no scheme":               {http.Header{"Authorization": {"k"}}, ""},
		"bearer without a key":    {http.Header{"Authorization": {"Bearer "}}, ""},
		"basic":                   {http.Header{"Authorization": {"Basic azo="}}, ""},
		"basic, and another":      {http.Header{"Authorization": {"Basic azo="}, "X-Api-Key": {"k"}}, "k"},
		"empty bearer, another":   {http.Header{"Authorization": {"Bearer"}, "Api-Key": {"k"}}, "k"},
		"api-key":                 {http.Header{"Api-Key": {" k "}}, "k"},
		"x-api-key":               {http.Header{"X-Api-Key": {"k"}}, "k"},
		"x-goog-api-key":          {http.Header{"X-Goog-Api-Key": {"k"}}, "k"},
		"the first of them":       {http.Header{"Authorization": {"Bearer 1"}, "Api-Key": {"2"}, "X-Api-Key": {"3"}, "X-Goog-Api-Key": {"4"}}, "1"},
		"an empty one in between": {http.Header{"Api-Key": {""}, "X-Api-Key": {"  "}, "X-Goog-Api-Key": {"4"}}, "4"},
		"of two the first":        {http.Header{"Authorization": {"Bearer 1", "Bearer 2"}}, "1"},
		"cookie":                  {http.Header{"Cookie": {"key=k"}}, ""},
	} {
		if got := credential(tt.header); got != tt.want {
			t.Errorf("%s: got %q, want %q", name, got, tt.want)
		}
	}
}

func TestCleanPath(t *testing.T) {
	for path, want := range map[string]string{
		"/": "/", "": "", "/v1": "/v1", "/v1/": "/v1", "/v1/models": "/v1/models", "//v1//models//": "/v1/models", "/v1/models/a//b": "/v1/models/a/b",
		"///": "/", "//": "/", "/v1/chat/completions/": "/v1/chat/completions", "/v1/../x": "/v1/../x", "/v1/./x": "/v1/./x", "/a b": "/a b",
	} {
		if got := cleanPath(path); got != want {
			t.Errorf("cleanPath(%q) = %q, want %q", path, got, want)
		}
		if got := cleanPath(cleanPath(path)); got != want {
			t.Errorf("cleanPath of the clean %q is %q", want, got)
		}
	}
}

func TestRetryAfter(t *testing.T) {
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	for name, tt := range map[string]struct {
		seconds, ms string
		want        time.Duration
	}{
		"none":                 {"", "", 0},
		"seconds":              {"7", "", 7 * time.Second},
		"fraction":             {"0.5", "", 500 * time.Millisecond},
		"milliseconds":         {"", "1500", 1500 * time.Millisecond},
		"both":                 {"9", "250", 250 * time.Millisecond},
		"bad milliseconds":     {"9", "soon", 9 * time.Second},
		"zero milliseconds":    {"9", "0", 9 * time.Second},
		"date":                 {"Fri, 20 Nov 2026 12:01:30 GMT", "", 90 * time.Second},
		"date that has passed": {"Fri, 20 Nov 2026 11:00:00 GMT", "", 0},
		"far date":             {"Fri, 20 Nov 2099 11:00:00 GMT", "", time.Hour},
		"long":                 {"86400", "", time.Hour},
		"infinite":             {"Inf", "", time.Hour},
		"endless milliseconds": {"", "1e300", time.Hour},
		"negative":             {"-5", "-5", 0},
		"no number":            {"NaN", "NaN", 0},
		"words":                {"later", "", 0},
	} {
		h := http.Header{}
		if tt.seconds != "" {
			h.Set("Retry-After", tt.seconds)
		}
		if tt.ms != "" {
			h.Set("Retry-After-Ms", tt.ms)
		}
		if got := retryAfter(h, now); got != tt.want {
			t.Errorf("%s: got %v, want %v", name, got, tt.want)
		}
	}
}

func TestNewRequestID(t *testing.T) {
	form := regexp.MustCompile(`^req_[0-9a-f]{12}7[0-9a-f]{3}[89ab][0-9a-f]{15}$`)
	start := time.UnixMilli(0x0192_5f3c_ffff)
	seen := map[string]bool{}
	var last []string
	for step := range 3 {
		var ids []string
		for range 1000 {
			id := newRequestID(start.Add(time.Duration(step) * time.Millisecond))
			if !form.MatchString(id) || seen[id] {
				t.Fatalf("%s is no UUIDv7, or there twice", id)
			}
			seen[id] = true
			ids = append(ids, id)
		}
		if step > 0 && slices.Max(last) >= slices.Min(ids) {
			t.Errorf("%s comes after %s, which is a millisecond younger", slices.Max(last), slices.Min(ids))
		}
		last = ids
	}
	if id := newRequestID(start); !strings.HasPrefix(id, "req_01925f3cffff7") {
		t.Errorf("%s does not begin with its time", id)
	}
}

func TestClip(t *testing.T) {
	for name, want := range map[string]string{
		"": "", "model": "model", strings.Repeat("x", 200): strings.Repeat("x", 200), strings.Repeat("x", 5000): strings.Repeat("x", 200),
		// What is cut must stay text: labels and databases take no other.
		strings.Repeat("é", 150):        strings.Repeat("é", 100),
		"x" + strings.Repeat("é", 150):  "x" + strings.Repeat("é", 99),
		"xy" + strings.Repeat("😀", 150): "xy" + strings.Repeat("😀", 49),
	} {
		if got := clip(name); got != want {
			t.Errorf("%.20q of %d bytes became %q", name, len(name), got)
		}
	}
}

func TestReadAll(t *testing.T) {
	const limit = 100_000
	for _, size := range []int{0, 1, 4095, 4096, 8191, 8192, 8193, limit - 1, limit} {
		want := bytes.Repeat([]byte("0123456789"), size/10+1)[:size]
		for _, length := range []int64{-1, int64(size), 0, 1, limit} { // a peer can say anything
			for name, wrap := range map[string]func(io.Reader) io.Reader{
				"whole": func(r io.Reader) io.Reader { return r }, "halves": iotest.HalfReader, "with its EOF": iotest.DataErrReader,
			} {
				total := 0
				buf, err := readAll(wrap(bytes.NewReader(want)), length, limit, func(n int) { total += n })
				if err != nil || !bytes.Equal(*buf, want) {
					t.Fatalf("%d bytes, said to be %d, %s: %v", size, length, name, err)
				}
				if total != size {
					t.Errorf("%d bytes were told as %d", size, total)
				}
				buffer.Put(buf)
			}
		}
	}
}

func TestReadAllRefuses(t *testing.T) {
	const limit = 10_000
	var unread readCounter
	if _, err := readAll(&unread, limit+1, limit, func(int) {}); !errors.Is(err, errOver) || unread != 0 {
		t.Errorf("a length over the limit: got %v after %d reads, want none", err, unread)
	}
	for _, length := range []int64{-1, 5, limit} {
		if _, err := readAll(bytes.NewReader(make([]byte, limit+1)), length, limit, func(int) {}); !errors.Is(err, errOver) {
			t.Errorf("one byte over the limit, said to be %d: got %v", length, err)
		}
	}
	broken := errors.New("broken")
	if _, err := readAll(io.MultiReader(strings.NewReader("abc"), iotest.ErrReader(broken)), -1, limit, func(int) {}); !errors.Is(err, broken) {
		t.Errorf("got %v, want the reader's error", err)
	}
}

// A length that a peer states is no reason to take much memory.
func TestReadAllTakesLittleMemory(t *testing.T) {
	buf, err := readAll(strings.NewReader("abc"), 1<<40, 1<<41, func(int) {})
	if err != nil || cap(*buf) > firstRead {
		t.Errorf("3 bytes that were said to be 1 TiB are in %d bytes, %v", cap(*buf), err)
	}
	buf, err = readAll(bytes.NewReader(make([]byte, 3<<20)), -1, 1<<30, func(int) {})
	if err != nil || cap(*buf) > 16<<20 {
		t.Errorf("3 MiB are in %d bytes, %v", cap(*buf), err)
	}
}

type readCounter int

func (c *readCounter) Read([]byte) (int, error) { *c++; return 0, io.EOF }
