package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/limen-gateway/limen/internal/admin"
	"github.com/limen-gateway/limen/internal/budget"
	"github.com/limen-gateway/limen/internal/limit"
)

// terms are the flags of what a key or a team may spend, and how much it may
// ask for.
type terms struct {
	budgets []string
	limits  limit.Rates
}

// termsHelp explains them.
const termsHelp = `A budget is an amount of dollars for a day, week or month, which begins anew by the clock of
UTC or of a zone, or in total. Calls that could go over it are refused; where it is soft,
going over it is only told. A key spends of its own budgets, of those of its team and of all
teams above. Limits count likewise: requests and tokens a minute, requests a day, and calls
at once.`

func (t *terms) flags(c *cobra.Command) {
	flags := c.Flags()
	flags.StringSliceVar(&t.budgets, "budget", nil, "dollars to spend: 5/month, 0.5/day, 20/week@Europe/Berlin, 100/total, '4/month soft', several with commas; or none")
	flags.Int64Var(&t.limits.Requests, "rpm", 0, "requests a minute; 0 is no limit")
	flags.Int64Var(&t.limits.Tokens, "tpm", 0, "tokens a minute; 0 is no limit")
	flags.Int64Var(&t.limits.Daily, "rpd", 0, "requests a day; 0 is no limit")
	flags.Int64Var(&t.limits.Concurrency, "concurrency", 0, "calls at once; 0 is no limit")
}

// parsed are the budgets that the flags say.
func (t *terms) parsed() ([]budget.Budget, error) {
	if len(t.budgets) == 1 && t.budgets[0] == "none" {
		return []budget.Budget{}, nil
	}
	budgets := make([]budget.Budget, 0, len(t.budgets))
	for _, text := range t.budgets {
		b, err := budget.Parse(text)
		if err != nil {
			return nil, usageError("--budget: %v", err)
		}
		budgets = append(budgets, b)
	}
	return budgets, nil
}

// termsChange is what the flags change; absent members stay.
type termsChange struct {
	Budgets *[]budget.Budget `json:"budgets,omitempty"`
	Limits  *limitsChange    `json:"limits,omitempty"`
}

type limitsChange struct {
	Requests    *int64 `json:"rpm,omitempty"`
	Tokens      *int64 `json:"tpm,omitempty"`
	Daily       *int64 `json:"rpd,omitempty"`
	Concurrency *int64 `json:"concurrency,omitempty"`
}

func (t *terms) change(c *cobra.Command) (termsChange, error) {
	budgets, err := t.parsed()
	if err != nil {
		return termsChange{}, err
	}
	change := termsChange{Budgets: given(c, "budget", budgets)}
	limits := limitsChange{
		given(c, "rpm", t.limits.Requests), given(c, "tpm", t.limits.Tokens),
		given(c, "rpd", t.limits.Daily), given(c, "concurrency", t.limits.Concurrency),
	}
	if limits != (limitsChange{}) {
		change.Limits = &limits
	}
	return change, nil
}

// given is the value of a flag that was given, else nil.
func given[T any](c *cobra.Command, flag string, value T) *T {
	if !c.Flags().Changed(flag) {
		return nil
	}
	return &value
}

// something refuses a change without any member.
func something(c *cobra.Command, change any) error {
	if text, err := json.Marshal(change); err != nil || string(text) != "{}" {
		return err
	}
	return usageError("say what to change\nSee '%s --help'", c.CommandPath())
}

// printTerms shows budgets, with what was spent of them, and limits.
func printTerms(w io.Writer, budgets []admin.Budget, limits limit.Rates) {
	for _, b := range budgets {
		fmt.Fprintf(w, "Budget\t%s", b)
		if b.Standing != nil {
			fmt.Fprintf(w, ": %s spent, %s left", b.Spent, b.Left)
		}
		if b.Standing != nil && !b.Renews.IsZero() {
			fmt.Fprintf(w, ", renewed %s", orNever(b.Renews))
		}
		fmt.Fprintln(w)
	}
	if len(budgets) == 0 {
		fmt.Fprintln(w, "Budget\tnone")
	}
	fmt.Fprintf(w, "Limits\t%s\n", limitsText(limits))
}

// spentOf is a list of budgets in a cell.
func spentOf(budgets []admin.Budget) string {
	texts := make([]string, len(budgets))
	for i, b := range budgets {
		texts[i] = fmt.Sprintf("%s of %s", b.Spent, b)
	}
	return orDash(strings.Join(texts, ", "))
}

func limitsText(l limit.Rates) string {
	var texts []string
	for _, one := range []struct {
		value int64
		name  string
	}{{l.Requests, "rpm"}, {l.Tokens, "tpm"}, {l.Daily, "rpd"}, {l.Concurrency, "at once"}} {
		if one.value != 0 {
			texts = append(texts, fmt.Sprintf("%d %s", one.value, one.name))
		}
	}
	return orDash(strings.Join(texts, ", "))
}
