package config

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"strconv"
	"strings"
	"time"
)

// A scalar reads itself from the text of one value. The error says what was expected and never repeats the text,
// which may be a secret; the decoder adds the text where it may be shown.
type scalar interface {
	parse(text string) error
	String() string
}

var (
	_ scalar = (*Duration)(nil)
	_ scalar = (*ByteSize)(nil)
	_ scalar = (*Percent)(nil)
	_ scalar = (*Upstream)(nil)
	_ scalar = (*Rate)(nil)
	_ scalar = (*Fee)(nil)
	_ scalar = (*Factor)(nil)
	_ scalar = (*Markup)(nil)
	_ scalar = (*Date)(nil)
	_ scalar = (*SecretURL)(nil)
)

// Secret is text that prints as "[redacted]" everywhere but through Reveal. Empty, it prints as nothing.
// Keep it in exported fields: package fmt prints what it finds in unexported ones without asking.
type Secret string

const redacted = "[redacted]"

// Reveal is the secret itself, for the one place that sends it.
func (s Secret) Reveal() string { return string(s) }

func (s Secret) String() string {
	if s == "" {
		return ""
	}
	return redacted
}

func (s Secret) GoString() string { return strconv.Quote(s.String()) }

// Format covers the verbs that would pass String by, such as %x and %d.
func (s Secret) Format(f fmt.State, verb rune) {
	text := s.String()
	if verb == 'q' || verb == 'v' && f.Flag('#') {
		text = s.GoString()
	}
	_, _ = io.WriteString(f, text)
}

// MarshalText serves JSON, YAML and text logs alike.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

func (s Secret) LogValue() slog.Value { return slog.StringValue(s.String()) }

// Duration is written as Go writes it: 1h, 1m30s, 250ms; whole days also as 30d.
type Duration time.Duration

const (
	millisecond = Duration(time.Millisecond)
	second      = Duration(time.Second)
	minute      = Duration(time.Minute)
	hour        = Duration(time.Hour)
	day         = Duration(24 * time.Hour)
)

// Std is the duration as package time has it.
func (d Duration) Std() time.Duration { return time.Duration(d) }

// String drops the zero parts that package time prints: 1h, not 1h0m0s.
func (d Duration) String() string {
	if d >= 2*day && d%day == 0 {
		return strconv.FormatInt(int64(d/day), 10) + "d"
	}
	text := time.Duration(d).String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

func (d Duration) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

func (d *Duration) parse(text string) error {
	if days, found := strings.CutSuffix(text, "d"); found {
		n, err := strconv.ParseInt(days, 10, 32)
		if err != nil || n > int64(math.MaxInt64/day) || n < int64(math.MinInt64/day) {
			return errors.New("expected a duration such as 30s, 12h or 30d")
		}
		*d = Duration(n) * day
		return nil
	}
	parsed, err := time.ParseDuration(text)
	if err != nil {
		return errors.New("expected a duration such as 30s, 12h or 30d")
	}
	*d = Duration(parsed)
	return nil
}

// ByteSize is a number of bytes, written with a unit (64MiB, 10MB) or plainly.
type ByteSize int64

const (
	kibibyte ByteSize = 1 << 10
	mebibyte ByteSize = 1 << 20
	gigabyte ByteSize = 1e9
)

// byteUnits are ordered so that the first that divides a size evenly is the best to print it with.
func byteUnits() []byteUnit {
	return []byteUnit{
		{"GiB", 1 << 30}, {"GB", 1e9}, {"MiB", 1 << 20}, {"MB", 1e6}, {"KiB", 1 << 10}, {"KB", 1e3}, {"B", 1},
	}
}

type byteUnit struct {
	name string
	size int64
}

func (b ByteSize) String() string {
	for _, unit := range byteUnits() {
		if n := int64(b); n != 0 && n%unit.size == 0 {
			return strconv.FormatInt(n/unit.size, 10) + unit.name
		}
	}
	return "0B"
}

func (b ByteSize) MarshalText() ([]byte, error) { return []byte(b.String()), nil }

func (b *ByteSize) parse(text string) error {
	size := int64(1)
	for _, unit := range byteUnits() {
		if number, found := strings.CutSuffix(text, unit.name); found {
			text, size = strings.TrimSuffix(number, " "), unit.size
			break
		}
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n > math.MaxInt64/size || n < math.MinInt64/size {
		return errors.New("expected a size such as 64MiB")
	}
	*b = ByteSize(n * size)
	return nil
}

// Percent is a share, written as 10% or 10.
type Percent int64

func (p Percent) String() string { return strconv.FormatInt(int64(p), 10) + "%" }

func (p Percent) MarshalText() ([]byte, error) { return []byte(p.String()), nil }

func (p *Percent) parse(text string) error {
	n, err := strconv.ParseInt(strings.TrimSuffix(text, "%"), 10, 64)
	if err != nil || n > 100 {
		return errors.New("expected a share such as 10%")
	}
	*p = Percent(n)
	return nil
}

// Upstream is a model at a provider. The model's name may contain slashes, the provider's may not.
type Upstream struct {
	Provider string
	Model    string
}

func (u Upstream) String() string { return u.Provider + "/" + u.Model }

func (u *Upstream) parse(text string) error {
	provider, model, found := strings.Cut(text, "/")
	if !found || provider == "" || model == "" || strings.ContainsAny(text, " \t\n") {
		return errors.New("expected provider/upstream-model")
	}
	u.Provider, u.Model = provider, model
	return nil
}

// Pattern is a name in which * stands for any run of characters, none included.
type Pattern string

// Literal reports whether the pattern is a plain name.
func (p Pattern) Literal() bool { return !strings.Contains(string(p), "*") }

// Match reports whether the whole name fits. Case counts.
func (p Pattern) Match(name string) bool {
	head, rest, found := strings.Cut(string(p), "*")
	if !found {
		return head == name
	}
	name, fits := strings.CutPrefix(name, head)
	if !fits {
		return false
	}
	// Between stars, the leftmost occurrence is always as good as a later one.
	for {
		part, next, found := strings.Cut(rest, "*")
		if !found {
			return strings.HasSuffix(name, part)
		}
		i := strings.Index(name, part)
		if i < 0 {
			return false
		}
		name, rest = name[i+len(part):], next
	}
}
