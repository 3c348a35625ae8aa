package anthropic

import (
	"slices"

	"github.com/limen-gateway/limen/internal/dialect"
	"github.com/limen-gateway/limen/internal/jsonedit"
	"github.com/limen-gateway/limen/internal/llm"
)

// The types of thinking.
const (
	adaptive     = "adaptive"
	enabled      = "enabled"
	disabled     = "disabled"
	betweenTools = "between_tools"
)

// minBudget is the least budget to think.
const minBudget = 1024

// budgets are what efforts are worth on models that take a budget.
var budgets = map[string]int64{"minimal": 1024, "low": 2048, "medium": 8192, "high": 16384, "xhigh": 32768, "max": 32768}

// thinks reports whether the model takes a type of thinking.
func (o *outgoing) thinks(kind string) bool {
	if o.caps.Thinking == nil {
		return kind == adaptive || kind == disabled
	}
	return slices.Contains(o.caps.Thinking, kind)
}

// think settles how the model thinks.
func (o *outgoing) think() {
	wish := o.req.Reasoning
	native := wish.Native
	for _, m := range o.req.Other {
		if m.Name == "thinking" && m.Value.Kind() == jsonedit.KindObject {
			native = m.Value
		}
	}
	switch {
	case native != nil: // written for this dialect: as it is
		o.thinking, o.budgeted = native, dialect.Text(native, "type") == enabled
		o.sayEffort(wish.Effort)
	case o.caps.ReasonsKnown && !o.caps.Reasons:
		if wish.Effort != "" && wish.Effort != "none" || wish.Mode > llm.ThinkingOff {
			o.notes.Drop(o.param("reasoning_effort"))
		}
	case wish.Mode == llm.ThinkingOff || wish.Effort == "none":
		o.thinkNot()
	case wish.Mode == llm.ThinkingBetweenTools:
		o.thinkBetween(wish.Effort)
	case wish.Mode == llm.ThinkingOn && wish.Budget > 0:
		o.thinkFor(wish.Budget)
	case wish.Effort != "":
		o.thinkHard(wish.Effort)
	case wish.Mode == llm.ThinkingOn || wish.Mode == llm.ThinkingAdaptive:
		o.thinkFreely()
	}
	if o.budgeted && o.openToolTurn() {
		o.notes.Degrade("thinking_off")
		o.turnOff()
	}
}

// sayEffort says an effort, in a word that the model takes.
func (o *outgoing) sayEffort(wish string) {
	if wish == "" || wish == "none" {
		return
	}
	effort := wish
	if wish == "minimal" {
		effort = "low" // there is none below
	}
	if effort = o.caps.NearestEffort(effort); effort == "" {
		o.notes.Drop(o.param("reasoning_effort"))
		return
	}
	if effort != wish {
		o.notes.Clamp(o.param("reasoning_effort"))
	}
	o.effort = effort
}

// turnOff switches thinking off, where that can be said.
func (o *outgoing) turnOff() {
	o.thinking, o.budgeted = nil, false
	if o.thinks(disabled) {
		o.thinking = dialect.Thinking(disabled, "", 0)
	}
}

// thinkNot keeps the model from thinking, or as near to that as it takes.
func (o *outgoing) thinkNot() {
	switch {
	case o.thinks(disabled):
		o.thinking = dialect.Thinking(disabled, "", 0)
		return
	case o.thinks(betweenTools):
		o.thinking = dialect.Thinking(betweenTools, "", 0)
	case o.thinks(adaptive):
		o.thinking = dialect.Thinking(adaptive, dialect.ThinkingDisplay(o.req), 0)
		o.effort = o.caps.NearestEffort("low")
	}
	o.notes.Degrade("effort_none")
}

func (o *outgoing) thinkBetween(effort string) {
	if !o.thinks(betweenTools) {
		o.notes.Degrade("thinking")
		o.turnOff()
		return
	}
	if effort == "xhigh" || effort == "max" { // this type goes to high
		o.notes.Clamp(o.param("reasoning_effort"))
		effort = "high"
	}
	o.thinking = dialect.Thinking(betweenTools, "", 0)
	o.sayEffort(effort)
}

// thinkHard thinks with an effort.
func (o *outgoing) thinkHard(effort string) {
	switch {
	case o.thinks(adaptive):
		o.thinking = dialect.Thinking(adaptive, dialect.ThinkingDisplay(o.req), 0)
		o.sayEffort(effort)
	case o.thinks(enabled):
		budget, known := budgets[effort]
		if !known {
			budget = budgets["medium"]
		}
		o.budget(max(minBudget, min(budget, o.maxTokens/2)))
	default:
		o.notes.Drop(o.param("reasoning_effort"))
	}
}

// thinkFor thinks with a budget.
func (o *outgoing) thinkFor(budget int64) {
	switch {
	case o.thinks(enabled):
		fit := max(minBudget, min(budget, o.maxTokens-1))
		if fit != budget {
			o.notes.Clamp("thinking_budget")
		}
		o.budget(fit)
	case o.thinks(adaptive):
		o.notes.Degrade("thinking_budget")
		effort := o.req.Reasoning.Effort
		switch {
		case effort != "":
		case budget < 4096:
			effort = "low"
		case budget < 16384:
			effort = "medium"
		default:
			effort = "high"
		}
		o.thinkHard(effort)
	default:
		o.notes.Drop("thinking_budget")
	}
}

// thinkFreely thinks as the model likes.
func (o *outgoing) thinkFreely() {
	if o.thinks(adaptive) {
		o.thinking = dialect.Thinking(adaptive, dialect.ThinkingDisplay(o.req), 0)
		return
	}
	o.thinkHard("medium")
}

// budget thinks with a budget that fits below the limit of the answer; a limit
// that leaves no room switches thinking off.
func (o *outgoing) budget(tokens int64) {
	if o.maxTokens <= minBudget {
		o.notes.Degrade("thinking_off")
		o.turnOff()
		return
	}
	display := ""
	if dialect.ThinkingDisplay(o.req) == "omitted" {
		display = "omitted"
	}
	o.thinking, o.budgeted = dialect.Thinking(enabled, display, tokens), true
}

// openToolTurn reports whether the conversation ends in results of tools whose
// turn does not begin with signed thinking: a budget to think demands that it
// does, and a signature cannot be made.
func (o *outgoing) openToolTurn() bool {
	last := len(o.turns) - 1
	if last < 1 || !o.turns[last].hasResults() {
		return false
	}
	first := last - 1
	for first >= 2 && o.turns[first-1].onlyResults() {
		first -= 2
	}
	if t := o.turns[first]; t.role == assistantRole && len(t.blocks) > 0 {
		return !t.blocks[0].thinks()
	}
	return false
}
