package bedrock

import (
	"slices"

	"github.com/limen-gateway/limen/internal/dialect"
	"github.com/limen-gateway/limen/internal/jsonedit"
	"github.com/limen-gateway/limen/internal/llm"
)

// The types of thinking of Anthropic's models.
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

// roomy is the limit of an answer that is assumed where none is said.
const roomy = 16384

// reason settles how the model thinks, in the words of its family.
func (e *encoder) reason() {
	wish := &e.req.Reasoning
	effort := wish.Effort
	if wish.Mode == llm.ThinkingOff {
		effort = "none"
	}
	if e.caps.ReasonsKnown && !e.caps.Reasons {
		if effort != "" && effort != "none" || wish.Mode > llm.ThinkingOff {
			e.notes.Drop(e.param("reasoning_effort"))
		}
		return
	}
	if e.caps.Bedrock.Family == familyAnthropic {
		e.think(effort)
		return
	}
	if effort == "" && wish.Mode == llm.ThinkingOn {
		effort = effortOf(wish.Budget)
	}
	if effort != "" {
		e.say(effort)
	}
}

// effortOf is the effort that comes nearest to a budget.
func effortOf(budget int64) string {
	switch {
	case budget == 0:
		return "medium"
	case budget < 4<<10:
		return "low"
	case budget < 16<<10:
		return "medium"
	}
	return "high"
}

// say writes an effort for families that have their own member for it.
func (e *encoder) say(effort string) {
	var w jsonedit.Writer
	switch e.caps.Bedrock.Family {
	case familyNova:
		w.BeginObject()
		if effort == "none" {
			w.SetText("type", "disabled")
		} else {
			w.SetText("type", "enabled")
			w.SetText("maxReasoningEffort", e.level(effort))
		}
		w.EndObject()
		e.extra = append(e.extra, llm.Member{Name: "reasoningConfig", Value: w.Bytes()})
	case familyOSS:
		e.extra = append(e.extra, llm.Member{Name: "reasoning_effort", Value: llm.Quote(e.level(effort))})
	case familyOpenAI:
		nearest := e.caps.NearestEffort(effort)
		if nearest == "" {
			e.notes.Drop(e.param("reasoning_effort"))
			return
		}
		if nearest != effort {
			e.notes.Clamp(e.param("reasoning_effort"))
		}
		w.BeginObject()
		w.SetText("effort", nearest)
		w.EndObject()
		e.extra = append(e.extra, llm.Member{Name: "reasoning", Value: w.Bytes()})
	default:
		e.notes.Drop(e.param("reasoning_effort"))
	}
}

// level is an effort out of the three that most families have.
func (e *encoder) level(effort string) string {
	switch effort {
	case "low", "medium", "high":
		return effort
	case "none":
		e.notes.Degrade("effort_none")
		return "low"
	case "minimal":
		e.notes.Clamp(e.param("reasoning_effort"))
		return "low"
	}
	e.notes.Clamp(e.param("reasoning_effort"))
	return "high"
}

// thinks reports whether a model of Anthropic's takes a type of thinking.
func (e *encoder) thinks(kind string) bool {
	if e.caps.Thinking == nil {
		return kind == adaptive || kind == disabled
	}
	return slices.Contains(e.caps.Thinking, kind)
}

// think settles how a model of Anthropic's thinks.
func (e *encoder) think(effort string) {
	wish := &e.req.Reasoning
	native := wish.Native
	for _, m := range e.req.Other {
		if m.Name == "thinking" {
			native = m.Value
		}
	}
	written := slices.Contains([]string{adaptive, enabled, disabled, betweenTools}, dialect.Text(native, "type"))
	switch {
	case written: // for this family, by the client itself
		e.thinking, e.budgeted = native, dialect.Text(native, "type") == enabled
		if effort != "none" {
			e.sayEffort(effort)
		}
	case effort == "none":
		e.thinkNot()
	case wish.Mode == llm.ThinkingBetweenTools && e.thinks(betweenTools):
		e.thinking = dialect.Thinking(betweenTools, "", 0)
		if effort == "xhigh" || effort == "max" {
			e.notes.Clamp(e.param("reasoning_effort"))
			effort = "high"
		}
		e.sayEffort(effort)
	case wish.Mode == llm.ThinkingOn && wish.Budget > 0 && e.thinks(enabled):
		fit := max(minBudget, min(wish.Budget, e.room()-1))
		if fit != wish.Budget {
			e.notes.Clamp("thinking_budget")
		}
		e.thinkWithin(fit)
	case effort != "":
		e.thinkHard(effort)
	case wish.Mode == llm.ThinkingOn && wish.Budget > 0:
		e.notes.Degrade("thinking_budget")
		e.thinkHard(effortOf(wish.Budget))
	case wish.Mode != llm.ThinkingUnset && e.thinks(adaptive):
		e.thinking = dialect.Thinking(adaptive, dialect.ThinkingDisplay(e.req), 0)
	case wish.Mode != llm.ThinkingUnset:
		e.thinkHard("medium")
	}
	if e.budgeted && e.openToolTurn() {
		e.turnOff()
	}
}

// room is how many tokens the answer may have.
func (e *encoder) room() int64 {
	if n := e.maxTokens(); n > 0 {
		return n
	}
	return roomy
}

func (e *encoder) sayEffort(wish string) {
	if wish == "" {
		return
	}
	effort := wish
	if wish == "minimal" {
		effort = "low" // there is none below
	}
	if effort = e.caps.NearestEffort(effort); effort == "" {
		e.notes.Drop(e.param("reasoning_effort"))
		return
	}
	if effort != wish {
		e.notes.Clamp(e.param("reasoning_effort"))
	}
	e.effort = effort
}

// turnOff switches thinking off for this call.
func (e *encoder) turnOff() {
	e.notes.Degrade("thinking_off")
	e.thinking, e.budgeted = nil, false
	if e.thinks(disabled) {
		e.thinking = dialect.Thinking(disabled, "", 0)
	}
}

// thinkNot keeps the model from thinking, or as near to that as it takes.
func (e *encoder) thinkNot() {
	switch {
	case e.thinks(disabled):
		e.thinking = dialect.Thinking(disabled, "", 0)
		return
	case e.thinks(betweenTools):
		e.thinking = dialect.Thinking(betweenTools, "", 0)
	case e.thinks(adaptive):
		e.thinking = dialect.Thinking(adaptive, dialect.ThinkingDisplay(e.req), 0)
		e.effort = e.caps.NearestEffort("low")
	}
	e.notes.Degrade("effort_none")
}

func (e *encoder) thinkHard(effort string) {
	switch {
	case e.thinks(adaptive):
		e.thinking = dialect.Thinking(adaptive, dialect.ThinkingDisplay(e.req), 0)
		e.sayEffort(effort)
	case e.thinks(enabled):
		budget, known := budgets[effort]
		if !known {
			budget = budgets["medium"]
		}
		e.thinkWithin(max(minBudget, min(budget, e.room()/2)))
	default:
		e.notes.Drop(e.param("reasoning_effort"))
	}
}

// thinkWithin thinks with a budget, which must fit below the limit of the answer.
func (e *encoder) thinkWithin(budget int64) {
	if e.room() <= minBudget {
		e.turnOff()
		return
	}
	e.thinking, e.budgeted = dialect.Thinking(enabled, "", budget), true
}

// openToolTurn reports whether the conversation ends in results of tools whose
// turn does not begin with signed thinking: a budget demands that it does, and
// a signature cannot be made.
func (e *encoder) openToolTurn() bool {
	at := len(e.turns) - 1
	if at < 1 || !e.turns[at].has(resultBlock) {
		return false
	}
	for at -= 1; at >= 2 && e.turns[at-1].only(resultBlock); {
		at -= 2
	}
	t := e.turns[at]
	return t.role == assistantRole && t.blocks[0].kind != thoughtBlock && t.blocks[0].kind != redactedBlock
}
