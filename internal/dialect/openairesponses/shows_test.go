package openairesponses

import (
	"strings"
	"testing"

	"github.com/limen-gateway/limen/internal/dialect"
	"github.com/limen-gateway/limen/internal/llm"
	"github.com/limen-gateway/limen/internal/seal"
)

// Citations of the vendor's files are noted, those of the web told.
func TestFileCitationsAreNoted(t *testing.T) {
	body := `{"id":"r","object":"response","status":"completed","model":"m","output":[{"type":"message","role":"assistant","content":[{"type":"output_text","text":"a","annotations":[` +
		`{"type":"file_citation","file_id":"f","index":0},{"type":"url_citation","url":"u","title":"t","start_index":0,"end_index":1}]}]}]}`
	a, err := dialect.Fold(Upstream{}.Answers(nil, &llm.Caps{}), []byte(body))
	if err != nil || a.Notes.String() != "skip:annotation:file_citation" {
		t.Fatalf("%v, notes %q", err, a.Notes)
	}
	if told := a.Choices[0].Items[0].(*llm.Message).Parts[0].(*llm.Text).Annotations; len(told) != 1 || string(told[0].URL) != `"u"` {
		t.Errorf("got %v", told)
	}
}

// A refusal speaks of the member with which the client asked for probabilities.
func TestWordsOfLogprobs(t *testing.T) {
	for body, want := range map[string]string{
		`{"model":"m","input":"x","top_logprobs":2}`:                                            "top_logprobs",
		`{"model":"m","input":"x","top_logprobs":2,"include":["message.output_text.logprobs"]}`: "include",
		`{"model":"m","input":"x","include":["message.output_text.logprobs"]}`:                  "include",
	} {
		req, err := Dialect{}.Decode([]byte(body), seal.Key{})
		if err != nil || !req.Logprobs || req.Words.Param("logprobs") != want || req.Words.Param("n") != "n" {
			t.Errorf("%s: got %v, %v", body, req, err)
		}
	}
}

// What a client cannot be shown is noted, and never dropped without a word.
func TestHostedItemsAreNoted(t *testing.T) {
	const told = `{"type":"message","role":"assistant","content":[{"type":"output_text","text":"a"},{"type":"hologram","x":1}]}`
	items := func(kinds ...string) string {
		var list []string
		for _, kind := range kinds {
			list = append(list, `{"type":"`+kind+`","id":"i","call_id":"c","status":"completed"}`)
		}
		return strings.Join(append(list, told), ",")
	}
	for name, c := range map[string]struct {
		shows  []llm.ServerKind
		output string
		want   string
	}{
		"to a chat client": {nil, items("web_search_call", "file_search_call", "code_interpreter_call", "mcp_call", "mcp_list_tools", "mcp_approval_request", "computer_call", "local_shell_call", "shell_call", "apply_patch_call", "compaction", "tool_search_output", "hologram"),
			"skip:item:web_search_call,skip:item:file_search_call,skip:item:code_interpreter_call,skip:item:mcp_call,skip:item:mcp_list_tools,skip:item:mcp_approval_request,skip:item:computer_call," +
				"skip:item:local_shell_call,skip:item:shell_call,skip:item:apply_patch_call,skip:item:compaction,skip:item:tool_search_output,skip:item:hologram,skip:part:hologram"},
		"a picture":        {nil, `{"type":"image_generation_call","id":"i","status":"completed","result":"AA"}`, ""},
		"to one that sees": {[]llm.ServerKind{llm.WebSearch}, items("web_search_call", "mcp_call"), "skip:item:mcp_call,skip:part:hologram"},
	} {
		call := &dialect.Call{Words: &llm.Words{Shows: c.shows}}
		body := `{"id":"r","object":"response","status":"completed","model":"m","output":[` + c.output + `]}`
		a, err := dialect.Fold(Upstream{}.Answers(call, &llm.Caps{}), []byte(body))
		if err != nil || a.Notes.String() != c.want {
			t.Errorf("%s: %v, notes\n%q, want\n%q", name, err, a.Notes, c.want)
		}
	}
}
