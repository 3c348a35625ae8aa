package money

import (
	"encoding/json"
	"math"
	"testing"
)

func TestParse(t *testing.T) {
	for text, want := range map[string]struct {
		amount Amount
		text   string
	}{
		"0": {0, "0"}, "0.0": {0, "0"}, "-0": {0, "0"}, ".5": {Dollar / 2, "0.5"}, "5": {5 * Dollar, "5"}, "5.": {5 * Dollar, "5"},
		"0.000000001": {1, "0.000000001"}, "-12.25": {-12_250_000_000, "-12.25"}, "1.500000000000": {1_500_000_000, "1.5"},
		"9223372036.854775807": {Max, "9223372036.854775807"}, "-9223372036.854775807": {Min, "-9223372036.854775807"},
	} {
		got, err := Parse(text)
		if err != nil || got != want.amount || got.String() != want.text {
			t.Errorf("%s: %d %s %v", text, got, got, err)
		}
	}
	for _, text := range []string{"", ".", "-", "+1", "1,5", "1e3", "0.0000000001", "9223372036.854775808", "$5", "1.2.3", "--1", "NaN"} {
		if got, err := Parse(text); err == nil {
			t.Errorf("%q is read as %s", text, got)
		}
	}
}

// Sums stay at the bounds: an amount never changes its sign by growing.
func TestSumsAreBounded(t *testing.T) {
	for _, test := range []struct{ got, want Amount }{
		{Max.Plus(1), Max}, {Max.Plus(Max), Max}, {Min.Plus(-1), Min}, {Min.Minus(Max), Min}, {Max.Minus(Min), Max},
		{Amount(math.MinInt64).Plus(0), math.MinInt64}, {Amount(0).Minus(math.MinInt64), Max}, {Amount(3).Minus(5), -2}, {Max.Plus(Min), 0},
	} {
		if test.got != test.want {
			t.Errorf("got %d, want %d", test.got, test.want)
		}
	}
	if s := Amount(math.MinInt64).String(); s != "-9223372036.854775808" {
		t.Error(s)
	}
}

func TestJSON(t *testing.T) {
	var back struct{ A, B Amount }
	if err := json.Unmarshal([]byte(`{"A": 0.25, "B": "3"}`), &back); err != nil || back.A != Dollar/4 || back.B != 3*Dollar {
		t.Errorf("%v %v", back, err)
	}
	if text, err := json.Marshal(back); err != nil || string(text) != `{"A":0.25,"B":3}` {
		t.Errorf("%s %v", text, err)
	}
}

func TestScaled(t *testing.T) {
	for _, test := range []struct {
		text   string
		places int
		want   int64
	}{
		{"0", 9, 0}, {"0.95", 9, 950_000_000}, {"1.2e-05", 9, 12_000}, {"1E3", 0, 1000}, {".5", 1, 5},
		{"0.00014760000001", 9, 147_600}, {"0.0000000005", 9, 1}, {"0.00000000049", 9, 0}, {"1e-99", 9, 0},
		{"37756000", -1, 3_775_600}, {"5", -1, 1}, {"4", -1, 0}, {"5", -2, 0}, {"9223372036.85477", 9, 9_223_372_036_854_770_000},
	} {
		if got, ok := Scaled(test.text, test.places); !ok || got != test.want {
			t.Errorf("%s by %d: got %d, %v, want %d", test.text, test.places, got, ok, test.want)
		}
	}
	for _, text := range []string{"", ".", "-1", "+1", "1e", "1e999", "NaN", "1.2.3", "9223372037", "1e99"} {
		if got, ok := Scaled(text, 9); ok {
			t.Errorf("%q is read as %d", text, got)
		}
	}
}
