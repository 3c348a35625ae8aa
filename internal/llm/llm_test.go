package llm

import (
	"errors"
	"fmt"
	"io"
	"math"
	"testing"
)

func TestWithin(t *testing.T) {
	for _, tt := range []struct{ whole, part, rest, clamped int64 }{
		{10, 4, 6, 4}, {10, 0, 10, 0}, {10, 10, 0, 10}, {0, 0, 0, 0},
		{10, 11, 0, 10}, {10, -1, 10, 0}, {-5, 3, 0, 0}, {-5, -3, 0, 0},
		{math.MaxInt64, 1, maxTokens - 1, 1}, {math.MaxInt64, math.MaxInt64, 0, maxTokens}, {math.MinInt64, math.MinInt64, 0, 0},
	} {
		if rest, clamped := Within(tt.whole, tt.part); rest != tt.rest || clamped != tt.clamped {
			t.Errorf("Within(%d, %d) = %d, %d, want %d, %d", tt.whole, tt.part, rest, clamped, tt.rest, tt.clamped)
		}
	}
}

func TestEstimate(t *testing.T) {
	for _, tt := range []struct{ in, out, input, output int64 }{{0, 0, 0, 0}, {1, 4, 1, 1}, {5, 8, 2, 2}, {4000, 0, 1000, 0}} {
		want := Usage{Input: tt.input, Output: tt.output, Estimated: true}
		if got := Estimate(tt.in, tt.out); got != want {
			t.Errorf("Estimate(%d, %d) = %+v, want %+v", tt.in, tt.out, got, want)
		}
	}
}

func TestTotal(t *testing.T) {
	u := Usage{
		Input: 1, CacheRead: 20, CacheWrite: 300, HourWrite: 4000, AudioIn: 50_000, Output: 600_000, Reasoning: 7_000_000, AudioOut: 80_000_000, ImageOut: 900_000_000,
		Searches: 5, Service: Batch, Estimated: true,
	}
	if got := u.Total(); got != 987654321 {
		t.Errorf("got %d, want every counter once", got)
	}
}

// A price goes by the prompt of each request, not by the sum of several.
func TestLongestPrompt(t *testing.T) {
	one, other := Usage{Input: 100, CacheRead: 5}, Usage{Input: 200}
	for name, test := range map[string]struct {
		usage   Usage
		longest int64
	}{
		"one":              {one, 105},
		"and none":         {one.Plus(Usage{Output: 9}), 105},
		"two":              {one.Plus(other), 200},
		"the other way":    {other.Plus(one), 200},
		"three":            {one.Plus(other).Plus(one), 200},
		"sums of each two": {one.Plus(one).Plus(other.Plus(one)), 200},
	} {
		if got := test.usage.LongestPrompt(); got != test.longest {
			t.Errorf("%s: got %d, want %d", name, got, test.longest)
		}
	}
	if got := one.Plus(Usage{}); got != one {
		t.Errorf("with nothing added it is %+v", got)
	}
}

func TestServiceNames(t *testing.T) {
	for s := Standard; s <= Other; s++ {
		if got := ServiceOf(s.String()); got != s {
			t.Errorf("%d is called %q, which is %d", s, s, got)
		}
	}
}

// Records, logs and metrics tell kinds apart by these names.
func TestKindNames(t *testing.T) {
	seen := map[string]Kind{}
	for k := Internal; k <= Canceled; k++ {
		if other, taken := seen[k.String()]; taken || k.String() == "" {
			t.Errorf("kind %d is called %q, as kind %d", k, k, other)
		}
		seen[k.String()] = k
	}
	if len(kindNames) != int(Canceled)+1 {
		t.Errorf("there are %d names for %d kinds", len(kindNames), Canceled+1)
	}
}

func TestAsError(t *testing.T) {
	known := Errorf(NoModel, "no %s", "x")
	if got := AsError(fmt.Errorf("wrapped: %w", known)); got != known {
		t.Errorf("a wrapped error became %v", got)
	}
	for _, cause := range []error{nil, io.ErrUnexpectedEOF, errors.New("canary: open /etc/secret")} {
		got := AsError(cause)
		if got.Kind != Internal || got.Err != cause || got.Message != AsError(nil).Message {
			t.Errorf("%v became %+v: want an internal error that keeps it and does not show it", cause, got)
		}
		if cause != nil && !errors.Is(got, cause) {
			t.Errorf("%v is not found in %v", cause, got)
		}
	}
	if got := InvalidParam("c", "p", "m %d", 1); got.Kind != Invalid || got.Code != "c" || got.Param != "p" || got.Error() != "m 1" {
		t.Errorf("got %+v", got)
	}
}
