package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/limen-gateway/limen/internal/provider"
)

func TestRun(t *testing.T) {
	dir := t.TempDir()
	in, out, again := filepath.Join(dir, "in"), filepath.Join(dir, "out"), filepath.Join(dir, "again")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(in, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	const good = `{"provider":"zai","id":"glm","name":"GLM","release_date":"2026-01-02","cost":{"input":1.25}}` + "\n"
	write(good)
	for _, path := range []string{out, again} {
		if err := run(in, path); err != nil {
			t.Fatal(err)
		}
	}
	packed, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	facts, err := provider.ReadFacts(packed)
	if err != nil {
		t.Fatal(err)
	}
	if m, ok := facts.Model("zhipu", "glm"); !ok || m.Prices.String() != "1.25" || facts.Origin() != origin {
		t.Errorf("got %+v from %v", m, facts.Origin())
	}
	if second, err := os.ReadFile(again); err != nil || !bytes.Equal(packed, second) {
		t.Errorf("the same input gave other bytes, or %v", err)
	}

	for _, bad := range []string{good + "nonsense", good + `{"provider":"openai"}`} {
		write(bad)
		if err := run(in, filepath.Join(dir, "bad")); err == nil {
			t.Errorf("%q was taken", bad)
		}
	}
}
