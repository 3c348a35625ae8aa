package reconcile

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/big"
	"strings"
)

// page is an answer of OpenAI's costs or of Anthropic's cost report.
type page struct {
	Data    []bucket `json:"data"`
	HasMore bool     `json:"has_more"`
}

// bucket is a day. OpenAI tells when it begins in seconds, Anthropic as a text.
type bucket struct {
	StartTime  json.Number `json:"start_time"`
	StartingAt string      `json:"starting_at"`
	Results    []result    `json:"results"`
	Result     []result    `json:"result"` // as OpenAI's schema has it
}

// result is a cost. OpenAI's amount is an object in dollars, Anthropic's a text
// in cents.
type result struct {
	Amount      json.RawMessage `json:"amount"`
	Currency    string          `json:"currency"`
	LineItem    string          `json:"line_item"`
	Model       string          `json:"model"`
	Description string          `json:"description"`
	CostType    string          `json:"cost_type"`
}

// readPages reads pages; last says that one of them is the last there is.
func (e *Export) readPages(data []byte) (last bool, err error) {
	d := json.NewDecoder(bytes.NewReader(data))
	for {
		var raw json.RawMessage
		switch err := d.Decode(&raw); {
		case errors.Is(err, io.EOF):
			return last, nil
		case err != nil:
			return false, fmt.Errorf("it is no JSON: %w", err)
		}
		pages := make([]page, 1)
		if raw[0] == '[' {
			err = json.Unmarshal(raw, &pages)
		} else {
			err = json.Unmarshal(raw, &pages[0])
		}
		if err != nil {
			return false, fmt.Errorf("it is no page of costs: %w", err)
		}
		for i := range pages {
			if err := e.readPage(&pages[i]); err != nil {
				return false, err
			}
			last = last || !pages[i].HasMore
		}
	}
}

func (e *Export) readPage(p *page) error {
	if p.Data == nil {
		return errors.New("it is no page of costs: it has no data")
	}
	for i := range p.Data {
		b := &p.Data[i]
		start := b.StartTime.String()
		if start == "" {
			start = b.StartingAt
		}
		day, err := dayOf(start)
		if err != nil {
			return fmt.Errorf("it is no page of costs: where a day begins, %w", err)
		}
		e.covers(day)
		for _, r := range append(b.Results, b.Result...) {
			l, err := r.line(day)
			if err != nil {
				return fmt.Errorf("%s: %w", day, err)
			}
			e.add(l)
		}
	}
	return nil
}

func (r *result) line(day string) (l Line, err error) {
	l = Line{Day: day, Model: r.Model, What: firstOf(r.LineItem, r.Description, r.CostType)}
	switch {
	case len(r.Amount) == 0 || string(r.Amount) == "null":
		return l, errors.New("a result has no amount; is it an export of costs?")
	case r.Amount[0] == '{':
		l.Model = modelOf(r.LineItem)
		l.Cost, err = r.inDollars()
	default:
		l.Cost, err = r.inCents()
	}
	return l, err
}

// inDollars reads OpenAI's amount, whose value is a number or a text.
func (r *result) inDollars() (*big.Rat, error) {
	var a struct {
		Value    json.RawMessage `json:"value"`
		Currency string          `json:"currency"`
	}
	if err := json.Unmarshal(r.Amount, &a); err != nil {
		return nil, err
	}
	if err := dollars(a.Currency); err != nil {
		return nil, err
	}
	return amount(strings.Trim(string(a.Value), `"`))
}

// inCents reads Anthropic's amount.
func (r *result) inCents() (*big.Rat, error) {
	if err := dollars(r.Currency); err != nil {
		return nil, err
	}
	cents, err := amount(strings.Trim(string(r.Amount), `"`))
	if err != nil {
		return nil, err
	}
	return cents.Quo(cents, big.NewRat(100, 1)), nil
}

func firstOf(texts ...string) string {
	for _, text := range texts {
		if text != "" {
			return text
		}
	}
	return ""
}
