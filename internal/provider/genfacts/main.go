// Command genfacts writes the facts about models that package provider embeds.
//
//	genfacts models.jsonl facts.tsv.gz
//
// models.jsonl is a list of models.dev in either form that package modelsdev
// reads. The same input always gives the same bytes.
package main

import (
	"fmt"
	"os"

	"github.com/limen-gateway/limen/internal/provider"
	"github.com/limen-gateway/limen/internal/provider/modelsdev"
)

// origin is that of the list from which the facts of this release are made.
var origin = provider.Origin{Source: "models.dev", Date: "2026-07-02"}

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: genfacts models.jsonl facts.tsv.gz")
		os.Exit(2)
	}
	if err := run(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "genfacts:", err)
		os.Exit(1)
	}
}

// run refuses a list of which anything would be missing.
func run(in, out string) error {
	f, err := os.Open(in)
	if err != nil {
		return err
	}
	defer f.Close()
	rows, skipped, err := modelsdev.Read(f)
	if err != nil {
		return fmt.Errorf("%s: %w", in, err)
	}
	if skipped > 0 {
		return fmt.Errorf("%s: %d models cannot be read", in, skipped)
	}
	packed, err := provider.PackFacts(origin, rows)
	if err != nil {
		return err
	}
	return os.WriteFile(out, packed, 0o644)
}
