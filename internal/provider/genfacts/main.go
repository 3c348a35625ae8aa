// Command genfacts writes the facts about models that package provider embeds.
//
//	genfacts models.jsonl facts.tsv.gz
//
// models.jsonl holds one model of models.dev in each line, as its api.json has
// it, with the slug of its provider added as "provider". Prices are left out.
// The same input always gives the same bytes.
package main

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
)

const header = `# limen model facts, schema 1
# Source: models.dev as of 2026-07-02, MIT License, Copyright (c) 2025 spin.dev
# vendor, id, name, released, context, output, modalities in, modalities out, abilities, efforts, knowledge
# abilities: tools, reasoning, structured output, attachments, temperature; y yes, n no, - not known
`

// vendorOf maps the providers whose name here is another. Of two that map to
// the same, the first in the input counts, model by model.
var vendorOf = map[string]string{
	"alibaba":        "qwen",
	"amazon-bedrock": "bedrock",
	"fireworks-ai":   "fireworks",
	"google":         "gemini",
	"moonshotai":     "moonshot",
	"ollama-cloud":   "ollama",
	"togetherai":     "together",
	"zai":            "zhipu",
	"zhipuai":        "zhipu",
}

type model struct {
	Provider    string `json:"provider"`
	ID          string `json:"id"`
	Name        string `json:"name"`
	ReleaseDate string `json:"release_date"`
	Knowledge   string `json:"knowledge"`

	ToolCall         *bool `json:"tool_call"`
	Reasoning        *bool `json:"reasoning"`
	StructuredOutput *bool `json:"structured_output"`
	Attachment       *bool `json:"attachment"`
	Temperature      *bool `json:"temperature"`

	ReasoningOptions []struct {
		Type   string   `json:"type"`
		Values []string `json:"values"`
	} `json:"reasoning_options"`
	Limit struct {
		Context int `json:"context"`
		Output  int `json:"output"`
	} `json:"limit"`
	Modalities struct {
		Input  []string `json:"input"`
		Output []string `json:"output"`
	} `json:"modalities"`
}

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

func run(in, out string) error {
	f, err := os.Open(in)
	if err != nil {
		return err
	}
	defer f.Close()
	models, err := read(f)
	if err != nil {
		return fmt.Errorf("%s: %w", in, err)
	}
	packed, err := pack(models)
	if err != nil {
		return err
	}
	return os.WriteFile(out, packed, 0o644)
}

// read returns the models sorted by vendor and ID, each once. Provider becomes
// the name of our vendor.
func read(r io.Reader) ([]model, error) {
	var models []model
	for dec := json.NewDecoder(r); ; {
		var m model
		err := dec.Decode(&m)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		if v, ok := vendorOf[m.Provider]; ok {
			m.Provider = v
		}
		models = append(models, m)
	}
	order := func(a, b model) int {
		return cmp.Or(strings.Compare(a.Provider, b.Provider), strings.Compare(a.ID, b.ID))
	}
	slices.SortStableFunc(models, order)
	return slices.CompactFunc(models, func(a, b model) bool { return order(a, b) == 0 }), nil
}

func pack(models []model) ([]byte, error) {
	var buf bytes.Buffer
	z, err := gzip.NewWriterLevel(&buf, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	if _, err := io.WriteString(z, header); err != nil {
		return nil, err
	}
	for _, m := range models {
		if _, err := io.WriteString(z, m.line()); err != nil {
			return nil, err
		}
	}
	if err := z.Close(); err != nil {
		return nil, err
	}
	return buf.Bytes(), nil
}

func (m *model) line() string {
	var efforts []string
	for _, o := range m.ReasoningOptions {
		if o.Type == "effort" {
			efforts = o.Values
		}
	}
	released := m.ReleaseDate
	if len(released) == len("2006-01") {
		released += "-01"
	}
	columns := []string{
		m.Provider,
		m.ID,
		m.Name,
		released,
		strconv.Itoa(m.Limit.Context),
		strconv.Itoa(m.Limit.Output),
		strings.Join(m.Modalities.Input, ","),
		strings.Join(m.Modalities.Output, ","),
		known(m.ToolCall) + known(m.Reasoning) + known(m.StructuredOutput) + known(m.Attachment) + known(m.Temperature),
		strings.Join(efforts, ","),
		m.Knowledge,
	}
	for i, c := range columns {
		columns[i] = strings.Join(strings.Fields(c), " ") // some names hold tabs
	}
	return strings.Join(columns, "\t") + "\n"
}

func known(b *bool) string {
	switch {
	case b == nil:
		return "-"
	case *b:
		return "y"
	default:
		return "n"
	}
}
