package dialect

import (
	"github.com/limen-gateway/limen/internal/jsonedit"
	"github.com/limen-gateway/limen/internal/llm"
)

// Claude is told how to think in the same words by Messages and by Converse.

// ThinkingDisplay says whether a request's client wants to see summaries of
// the thinking.
func ThinkingDisplay(req *llm.Request) string {
	wish := &req.Reasoning
	switch {
	case wish.Display != "":
		return wish.Display
	case wish.Summary != nil && !wish.Summary.Given():
		return "omitted"
	}
	return "summarized"
}

// Thinking is the object that says how to think. display may be empty; a
// budget, in tokens, may be 0.
func Thinking(kind, display string, budget int64) llm.Raw {
	var w jsonedit.Writer
	w.BeginObject()
	w.SetText("type", kind)
	if display != "" {
		w.SetText("display", display)
	}
	if budget > 0 {
		w.SetInt("budget_tokens", budget)
	}
	w.EndObject()
	return w.Bytes()
}
