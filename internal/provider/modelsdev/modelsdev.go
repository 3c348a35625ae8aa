// Package modelsdev reads what models.dev publishes of models and their prices.
package modelsdev

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/limen-gateway/limen/internal/price"
	"github.com/limen-gateway/limen/internal/provider"
)

// URL is where models.dev publishes its list.
const URL = "https://models.dev/api.json"

// MaxSize bounds the list. That of models.dev is about a tenth of it.
const MaxSize = 32 << 20

// vendorOf maps the providers whose name here is another. Of two that map to
// the same, the first in the list counts, model by model.
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

// Read reads a list in either of two forms: that of api.json, an object of
// providers with their models by ID; or models one after the other, as in JSON
// Lines, each with its provider's name as "provider". A model that lacks what
// all have, or has it in another type, is skipped.
func Read(r io.Reader) (rows []provider.Row, skipped int, err error) {
	text, err := io.ReadAll(io.LimitReader(r, MaxSize+1))
	if err != nil {
		return nil, 0, err
	}
	if err := suspect(text); err != nil {
		return nil, 0, err
	}
	for dec := json.NewDecoder(bytes.NewReader(text)); ; {
		var value json.RawMessage
		err := dec.Decode(&value)
		if errors.Is(err, io.EOF) {
			break
		}
		if errors.Is(err, io.ErrUnexpectedEOF) {
			return nil, 0, errors.New("it ends in the middle")
		}
		if err != nil {
			return nil, 0, fmt.Errorf("it is not JSON: %w", err)
		}
		more, bad, err := read(value)
		if err != nil {
			return nil, 0, err
		}
		rows, skipped = append(rows, more...), skipped+bad
	}
	if len(rows) == 0 {
		return nil, 0, errors.New("no model is in it")
	}
	return rows, skipped, nil
}

// suspect tells of what is no list at a glance.
func suspect(text []byte) error {
	start := bytes.TrimSpace(text)
	switch {
	case len(text) > MaxSize:
		return fmt.Errorf("it has more than %d bytes", MaxSize)
	case len(start) == 0:
		return errors.New("it is empty")
	case start[0] == '<':
		return errors.New("it is a web page, not JSON")
	}
	return nil
}

// read reads one model, or an object of providers.
func read(value json.RawMessage) (rows []provider.Row, skipped int, err error) {
	var members map[string]json.RawMessage
	if json.Unmarshal(value, &members) != nil {
		return nil, 0, errors.New("it is JSON, but no list of models.dev")
	}
	var slug string
	if json.Unmarshal(members["provider"], &slug) == nil {
		row, ok := readModel(slug, "", value)
		if !ok {
			return nil, 1, nil
		}
		return []provider.Row{row}, 0, nil
	}
	for _, slug := range slices.Sorted(maps.Keys(members)) {
		var p struct {
			Models map[string]json.RawMessage `json:"models"`
		}
		if json.Unmarshal(members[slug], &p) != nil {
			skipped++
			continue
		}
		for _, id := range slices.Sorted(maps.Keys(p.Models)) {
			row, ok := readModel(slug, id, p.Models[id])
			if !ok {
				skipped++
				continue
			}
			rows = append(rows, row)
		}
	}
	return rows, skipped, nil
}

type model struct {
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
	Cost json.RawMessage `json:"cost"`
}

func readModel(slug, id string, value json.RawMessage) (provider.Row, bool) {
	var m model
	if json.Unmarshal(value, &m) != nil {
		return provider.Row{}, false
	}
	released, err := time.Parse("2006-01-02", m.ReleaseDate)
	if err != nil {
		released, err = time.Parse("2006-01", m.ReleaseDate)
	}
	m.ID = cmp.Or(m.ID, id)
	if err != nil || slug == "" || m.ID == "" || m.Limit.Context < 0 || m.Limit.Output < 0 {
		return provider.Row{}, false
	}
	var efforts []string
	for _, o := range m.ReasoningOptions {
		if o.Type == "effort" {
			efforts = o.Values
		}
	}
	return provider.Row{
		Vendor: cmp.Or(vendorOf[slug], slug),
		Model: provider.Model{
			ID: m.ID, Name: cmp.Or(strings.TrimSpace(m.Name), m.ID), Created: released.Unix(), Knowledge: m.Knowledge,
			Context: m.Limit.Context, MaxOutput: m.Limit.Output, Input: m.Modalities.Input, Output: m.Modalities.Output,
			Tools: ability(m.ToolCall), Reasoning: ability(m.Reasoning), Structured: ability(m.StructuredOutput),
			Attachments: ability(m.Attachment), Temperature: ability(m.Temperature), Efforts: efforts, Prices: prices(m.Cost),
		},
	}, true
}

func ability(b *bool) provider.Ability {
	switch {
	case b == nil:
		return provider.Unknown
	case *b:
		return provider.Yes
	}
	return provider.No
}

// An amount is dollars per million tokens. What is no price is not known.
type amount struct{ price.Rate }

func (a *amount) UnmarshalJSON(text []byte) error {
	a.Rate, _ = price.ParseRate(string(text))
	return nil
}

type rates struct {
	Input       amount `json:"input"`
	Output      amount `json:"output"`
	CacheRead   amount `json:"cache_read"`
	CacheWrite  amount `json:"cache_write"`
	CachedInput amount `json:"cached_input"` // other names of the two, with some models
	CachedWrite amount `json:"cached_write"`
	Reasoning   amount `json:"reasoning"`
	AudioIn     amount `json:"input_audio"`
	AudioOut    amount `json:"output_audio"`
}

func (r *rates) known() price.Rates {
	return price.Rates{
		Input: r.Input.Rate, Output: r.Output.Rate, Reasoning: r.Reasoning.Rate, AudioIn: r.AudioIn.Rate, AudioOut: r.AudioOut.Rate,
		CacheRead: cmp.Or(r.CacheRead, r.CachedInput).Rate, CacheWrite: cmp.Or(r.CacheWrite, r.CachedWrite).Rate,
	}
}

// tier holds for prompts of more than Size tokens. A Type other than "context"
// goes by something else.
type tier struct {
	Tier struct {
		Type string `json:"type"`
		Size int    `json:"size"`
	} `json:"tier"`
	rates
}

// prices reads the "cost" of a model. context_over_200k is the older way to say
// a tier, and wrong beside a tier that begins elsewhere.
func prices(text json.RawMessage) price.List {
	var cost struct {
		rates
		Tiers []tier `json:"tiers"`
		Over  *rates `json:"context_over_200k"`
	}
	if json.Unmarshal(text, &cost) != nil {
		return price.List{}
	}
	p := price.List{Rates: cost.known()}
	for _, t := range cost.Tiers {
		if (t.Tier.Type == "" || t.Tier.Type == "context") && t.Tier.Size > 0 {
			p.Tiers = append(p.Tiers, price.Tier{Over: t.Tier.Size, Rates: t.known()})
		}
	}
	slices.SortStableFunc(p.Tiers, func(a, b price.Tier) int { return a.Over - b.Over })
	if len(cost.Tiers) == 0 && cost.Over != nil {
		p.Tiers = []price.Tier{{Over: 200_000, Rates: cost.Over.known()}}
	}
	return p
}
