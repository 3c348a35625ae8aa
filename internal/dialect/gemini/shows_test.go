package gemini

import (
	"testing"

	"github.com/limen-gateway/limen/internal/dialect"
	"github.com/limen-gateway/limen/internal/llm"
)

// Code that the upstream ran is noted for clients that cannot be shown it.
func TestCodeIsNoted(t *testing.T) {
	for name, c := range map[string]struct {
		shows []llm.ServerKind
		parts string
		want  string
	}{
		"code":   {nil, `{"executableCode":{"code":"1"}},{"codeExecutionResult":{"outcome":"OUTCOME_OK","output":"1"}}`, "skip:part:executableCode"},
		"result": {nil, `{"codeExecutionResult":{"outcome":"OUTCOME_OK","output":"1"}}`, "skip:part:codeExecutionResult"},
		"shown":  {[]llm.ServerKind{llm.CodeExecution}, `{"executableCode":{"code":"1"}}`, ""},
	} {
		call := &dialect.Call{Words: &llm.Words{Shows: c.shows}}
		a, err := dialect.Fold(Upstream{}.Answers(call, nil), []byte(one(c.parts+`,{"text":"a"}`, stop)))
		if err != nil || a.Notes.String() != c.want {
			t.Errorf("%s: notes %q, %v", name, a.Notes, err)
		}
	}
}

// A search cannot be told how much it may read.
func TestSearchContextSize(t *testing.T) {
	req := &llm.Request{
		Words: chat, Items: []llm.Item{&llm.Message{Parts: []llm.Part{&llm.Text{Text: llm.Raw(`"x"`)}}}},
		Tools: []llm.Tool{{Native: llm.Raw(`{"search_context_size":"low"}`), Server: &llm.ServerTool{Kind: llm.WebSearch}}},
	}
	call, err := Upstream{}.Encode(req, &llm.Caps{})
	if err != nil || call.Notes.String() != "drop:search_context_size" {
		t.Errorf("%v, notes %q", err, call.Notes)
	}
}
