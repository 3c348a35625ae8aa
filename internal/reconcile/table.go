package reconcile

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
)

// The names under which columns are known, the best first: in lower case, with
// _ for what is neither letter nor digit.
var (
	dayColumns      = []string{"date", "day", "usage_date", "usage_date_utc", "date_utc", "start_time_iso", "starting_at", "start_time", "time"}
	modelColumns    = []string{"model", "model_name", "model_version"}
	wordColumns     = []string{"line_item", "description"}
	costColumns     = []string{"cost", "amount", "cost_usd", "amount_usd", "amount_value", "total_cost", "total_cost_usd", "cost_in_usd", "spend"}
	currencyColumns = []string{"currency", "amount_currency"}
)

// readTable reads a table with a line of names. Cells stand apart by commas,
// semicolons or tabs.
func (e *Export) readTable(data []byte) error {
	r := csv.NewReader(bytes.NewReader(data))
	head, _, _ := bytes.Cut(data, []byte("\n"))
	for _, mark := range []rune{';', '\t'} {
		if bytes.Count(head, []byte(string(mark))) > bytes.Count(head, []byte(string(r.Comma))) {
			r.Comma = mark
		}
	}
	r.FieldsPerRecord = -1
	names, err := r.Read()
	if err != nil {
		return fmt.Errorf("it is neither JSON nor CSV: %w", err)
	}
	day, cost := columnOf(names, dayColumns), columnOf(names, costColumns)
	if day < 0 || cost < 0 {
		return fmt.Errorf("it has no column for %s: one is named date or day, one cost or amount; there are %.200q", missing(day, cost), names)
	}
	model, currency := columnOf(names, modelColumns), columnOf(names, currencyColumns)
	worded := false // what a cost is for, in words
	if model < 0 {
		model = columnOf(names, wordColumns)
		worded = model >= 0
	}
	for {
		row, err := r.Read()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
		cell := func(column int) string {
			if column < 0 || column >= len(row) {
				return ""
			}
			return strings.TrimSpace(row[column])
		}
		if cell(day) == "" || cell(cost) == "" {
			continue // a line of sums, or a day without costs
		}
		line, _ := r.FieldPos(0)
		l := Line{What: cell(model)}
		if l.Model = l.What; worded {
			l.Model = modelOf(l.What)
		}
		if l.Day, err = dayOf(cell(day)); err == nil {
			err = dollars(cell(currency))
		}
		if err == nil {
			l.Cost, err = amount(plainNumber(cell(cost)))
		}
		if err != nil {
			return fmt.Errorf("line %d: %w", line, err)
		}
		e.add(l)
	}
}

func missing(day, cost int) string {
	switch {
	case day < 0 && cost < 0:
		return "days and costs"
	case day < 0:
		return "days"
	}
	return "costs"
}

var notInNames = regexp.MustCompile(`[^a-z0-9]+`)

// columnOf finds the column with the best of the known names; -1 is none.
func columnOf(names, known []string) int {
	plain := make([]string, len(names))
	for i, name := range names {
		plain[i] = strings.Trim(notInNames.ReplaceAllString(strings.ToLower(name), "_"), "_")
	}
	for _, name := range known {
		if i := slices.Index(plain, name); i >= 0 {
			return i
		}
	}
	return -1
}

var grouped = regexp.MustCompile(`^[0-9]{1,3}(,[0-9]{3})+(\.[0-9]+)?$`)

// plainNumber takes the sign of dollars and the commas between thousands out of
// a number.
func plainNumber(text string) string {
	digits, negative := strings.CutPrefix(text, "-")
	digits = strings.TrimPrefix(digits, "$")
	if grouped.MatchString(digits) {
		digits = strings.ReplaceAll(digits, ",", "")
	}
	if negative {
		return "-" + digits
	}
	return digits
}
