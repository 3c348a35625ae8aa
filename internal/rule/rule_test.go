package rule

import (
	"strings"
	"testing"
)

type vars map[string]any

func (v vars) Var(name string) any { return v[name] }

var request = vars{
	"key": "agent", "team": "research", "model": "fast", "operation": "chat", "stream": true, "tokens": int64(1200),
	"headers":  map[string]string{"x-tier": "gold"},
	"metadata": map[string]string{"user": "u1"},
}

func TestHolds(t *testing.T) {
	for text, want := range map[string]bool{
		`key == "agent"`:                                  true,
		`team in ["ops", "research"] && stream`:           true,
		`tokens > 1000 && tokens < 1200`:                  false,
		`headers["x-tier"] == "gold"`:                     true,
		`headers["x-none"] == "gold"`:                     false,
		`headers["x-none"] != "gold"`:                     true,
		`"x-tier" in headers && !("x-none" in headers)`:   true,
		`metadata.user.startsWith("u")`:                   true,
		`model.matches("^f.*t$") && operation == "chat"`:  true,
		`["a", "b"].exists(x, x == key)`:                  false,
		`headers.all(name, name.startsWith("x-"))`:        true,
		`tokens / (tokens - 1200) > 0 || key == "agent"`:  true, // a failure that decides nothing
		`size(headers) == 1 && size(metadata["a"]) == 0`:  true,
		`double(tokens) * 1.5 > 1799.0 && int("3") == 3 `: true,
	} {
		r, err := Compile(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if got, err := r.Holds(request); got != want || err != nil {
			t.Errorf("%s is %v, %v", text, got, err)
		}
	}
}

func TestCompileRefuses(t *testing.T) {
	for text, want := range map[string]string{
		`keey == "a"`:        "undeclared reference to 'keey' (did you mean 'key'?) (column 1 of the rule)",
		`key = "a"`:          "column 5 of the rule",
		"true &&\n foo":      "(line 2, column 2 of the rule)",
		`tokens == "a"`:      "no matching overload",
		`key`:                "a rule is true or false, this one is of type string",
		``:                   "Syntax error",
		`has(metadata.user)`: "undeclared reference to 'has'",
		`!1`:                 "found no matching overload",
		strings.Repeat("(", 99) + "true" + strings.Repeat(")", 99): "recursion",
		`key == "` + strings.Repeat("x", maxText) + `"`:            "size exceeds limit",
	} {
		_, err := Compile(text)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%.40q: %v, want %q", text, err, want)
		}
	}
}

// A rule that cannot be evaluated is no rule that holds.
func TestHoldsFails(t *testing.T) {
	for text, want := range map[string]string{
		`tokens / (tokens - 1200) > 0`: "division by zero",
		`int(key) > 0`:                 "type conversion error",
		`[1,2,3,4,5,6,7,8,9,10,11,12].all(a, [1,2,3,4,5,6,7,8,9,10,11,12].all(b, [1,2,3,4,5,6,7,8,9,10,11,12].all(c, [1,2,3,4,5,6,7,8,9].all(d, a+b+c+d < 99 || tokens == a))))`: "cost limit",
	} {
		r, err := Compile(text)
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		if holds, err := r.Holds(request); holds || err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, %v, want %q", text, holds, err, want)
		}
	}
	r, _ := Compile(`team == "a"`)
	if holds, err := r.Holds(vars{}); holds || err == nil {
		t.Errorf("a variable that nobody tells: %v, %v", holds, err)
	}
}

func BenchmarkHolds(b *testing.B) {
	r, err := Compile(`team == "research" && headers["x-tier"] == "gold"`)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if holds, err := r.Holds(request); !holds || err != nil {
			b.Fatal(holds, err)
		}
	}
}
