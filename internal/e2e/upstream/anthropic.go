package upstream

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
)

type anthropicRequest struct {
	Model      string               `json:"model"`
	MaxTokens  *int                 `json:"max_tokens"`
	Messages   []anthropicMessage   `json:"messages"`
	System     json.RawMessage      `json:"system"`
	Stream     bool                 `json:"stream"`
	Tools      []anthropicTool      `json:"tools"`
	ToolChoice *anthropicToolChoice `json:"tool_choice"`
	Thinking   anthropicThinking    `json:"thinking"`

	OutputConfig struct {
		Effort string `json:"effort"`
		Format *struct {
			Type   string          `json:"type"`
			Schema json.RawMessage `json:"schema"`
		} `json:"format"`
		TaskBudget json.RawMessage `json:"task_budget"`
	} `json:"output_config"`

	StopSequences []string `json:"stop_sequences"`
	Temperature   *float64 `json:"temperature"`
	TopP          *float64 `json:"top_p"`
	TopK          *int     `json:"top_k"`
	Metadata      *struct {
		UserID *string `json:"user_id"`
	} `json:"metadata"`
	CacheControl      json.RawMessage `json:"cache_control"`
	Container         json.RawMessage `json:"container"`
	ContextManagement json.RawMessage `json:"context_management"`
	Diagnostics       json.RawMessage `json:"diagnostics"`
	InferenceGeo      json.RawMessage `json:"inference_geo"`
	MCPServers        json.RawMessage `json:"mcp_servers"`
	ServiceTier       json.RawMessage `json:"service_tier"`
	Speed             json.RawMessage `json:"speed"`
	UserProfileID     json.RawMessage `json:"user_profile_id"`
	WorkspaceID       json.RawMessage `json:"workspace_id"`
}

type anthropicMessage struct {
	Role    string          `json:"role"`
	Content json.RawMessage `json:"content"`

	blocks []anthropicBlock // of Content
}

type anthropicTool struct {
	Type                string          `json:"type"`
	Name                string          `json:"name"`
	Description         string          `json:"description"`
	InputSchema         json.RawMessage `json:"input_schema"`
	Strict              *bool           `json:"strict"`
	CacheControl        json.RawMessage `json:"cache_control"`
	EagerInputStreaming *bool           `json:"eager_input_streaming"`
	DeferLoading        *bool           `json:"defer_loading"`
	AllowedCallers      []string        `json:"allowed_callers"`
	InputExamples       json.RawMessage `json:"input_examples"`
	MaxUses             *int            `json:"max_uses"`
	AllowedDomains      []string        `json:"allowed_domains"`
	BlockedDomains      []string        `json:"blocked_domains"`
	UserLocation        json.RawMessage `json:"user_location"`
}

type anthropicToolChoice struct {
	Type                   string `json:"type"`
	Name                   string `json:"name"`
	DisableParallelToolUse *bool  `json:"disable_parallel_tool_use"`
}

type anthropicThinking struct {
	Type         string          `json:"type"`
	BudgetTokens *int            `json:"budget_tokens"`
	Display      string          `json:"display"`
	BlockBinding json.RawMessage `json:"block_binding"`
}

// anthropicBlock has the members of every type of block; blockMembers says whose
// they are.
type anthropicBlock struct {
	Type         string           `json:"type"`
	Text         *string          `json:"text"`
	Source       *anthropicSource `json:"source"`
	ID           string           `json:"id"`
	Name         string           `json:"name"`
	Input        json.RawMessage  `json:"input"`
	Caller       json.RawMessage  `json:"caller"`
	ToolUseID    string           `json:"tool_use_id"`
	Content      json.RawMessage  `json:"content"`
	IsError      *bool            `json:"is_error"`
	Thinking     *string          `json:"thinking"`
	Signature    *string          `json:"signature"`
	Data         *string          `json:"data"`
	Title        *string          `json:"title"`
	Context      *string          `json:"context"`
	Citations    json.RawMessage  `json:"citations"`
	CacheControl json.RawMessage  `json:"cache_control"`
}

type anthropicSource struct {
	Type      string          `json:"type"`
	MediaType string          `json:"media_type"`
	Data      string          `json:"data"`
	URL       string          `json:"url"`
	FileID    string          `json:"file_id"`
	Content   json.RawMessage `json:"content"`
}

func parseAnthropic(r *http.Request, body []byte) (door, error) {
	return readAnthropic(r, body, true)
}

// parseAnthropicCount is for counting, where there is no limit to an answer.
func parseAnthropicCount(r *http.Request, body []byte) (door, error) {
	return readAnthropic(r, body, false)
}

func readAnthropic(r *http.Request, body []byte, limited bool) (door, error) {
	if r.Header.Get("Anthropic-Version") == "" {
		return nil, refusal("anthropic-version: header is required")
	}
	req := &anthropicRequest{}
	switch unknown, err := strictly(body, req); {
	case unknown != "":
		return nil, refusedf("%s: Extra inputs are not permitted", unknown)
	case err != nil:
		return nil, err
	case req.MaxTokens == nil && limited:
		return nil, refusal("max_tokens: Field required")
	}
	return req, req.check()
}

func (r *anthropicRequest) thinks() bool {
	return r.Thinking.Type == "adaptive" || r.Thinking.Type == "enabled"
}

func (r *anthropicRequest) prompt() prompt {
	p := prompt{model: r.Model, stream: r.Stream, choices: 1, think: r.thinks()}
	if r.OutputConfig.Format != nil {
		p.schema = r.OutputConfig.Format.Schema
	}
	for _, m := range slices.Backward(r.Messages) {
		if m.Role != "user" {
			continue
		}
		var b strings.Builder
		var results []string
		for _, block := range m.blocks {
			switch block.Type {
			case "text":
				b.WriteString(*block.Text)
			case "image":
				p.image = block.Source.MediaType
			case "tool_result":
				results = append(results, text(block.Content))
			}
		}
		if len(results) == 0 {
			p.user = b.String()
			break
		}
		p.told(results...)
	}
	for _, t := range r.Tools {
		if len(t.InputSchema) > 0 && (r.ToolChoice == nil || r.ToolChoice.Type != "none") {
			p.tools = append(p.tools, t.Name)
		}
	}
	return p
}

// anthropicAnswer is a message of the assistant.
type anthropicAnswer struct {
	ID           string          `json:"id"`
	Type         string          `json:"type"`
	Role         string          `json:"role"`
	Model        string          `json:"model"`
	Content      []any           `json:"content"`
	StopReason   *string         `json:"stop_reason"`
	StopSequence *string         `json:"stop_sequence"`
	StopDetails  *struct{}       `json:"stop_details"`
	Usage        json.RawMessage `json:"usage,omitempty"`
}

type textBlock struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

type thinkingBlock struct {
	Type      string `json:"type"`
	Thinking  string `json:"thinking"`
	Signature string `json:"signature"`
}

type toolUseBlock struct {
	Type   string          `json:"type"`
	ID     string          `json:"id"`
	Name   string          `json:"name"`
	Input  json.RawMessage `json:"input"`
	Caller json.RawMessage `json:"caller"`
}

// blocks are the content of the answer. Each thinking is signed; hidden thinking has
// the signature alone.
func (r *anthropicRequest) blocks(id int, said reply) (list []any) {
	if said.thought != "" {
		shown := said.thought
		if r.Thinking.Display == "omitted" {
			shown = ""
		}
		list = append(list, thinkingBlock{"thinking", shown, signature("thinking", shown)})
	}
	if said.text != "" {
		list = append(list, textBlock{"text", said.text})
	}
	for i, c := range said.calls {
		list = append(list, toolUseBlock{"tool_use", fmt.Sprintf("toolu_%d_%d", id, i), c.name, json.RawMessage(c.arguments), json.RawMessage(`{"type":"direct"}`)})
	}
	return list
}

func stopReason(r reply) string {
	if len(r.calls) > 0 {
		return "tool_use"
	}
	return "end_turn"
}

func anthropicUsage(u usage, output string) json.RawMessage {
	return fmt.Appendf(nil, `{"input_tokens":%s,"cache_creation_input_tokens":%s,"cache_read_input_tokens":%s,`+
		`"cache_creation":{"ephemeral_5m_input_tokens":%[2]s,"ephemeral_1h_input_tokens":0},"output_tokens":%[4]s,"service_tier":"standard"}`,
		u.fresh, u.written, u.read, output)
}

func (r *anthropicRequest) whole(id int, said reply, u usage) any {
	return &anthropicAnswer{
		ID: fmt.Sprintf("msg_%d", id), Type: "message", Role: "assistant", Model: r.Model,
		Content: r.blocks(id, said), StopReason: new(stopReason(said)), Usage: anthropicUsage(u, u.output),
	}
}

// anthropicEvent is one event of the stream.
type anthropicEvent struct {
	Type         string           `json:"type"`
	Message      *anthropicAnswer `json:"message,omitempty"`
	Index        *int             `json:"index,omitempty"`
	ContentBlock any              `json:"content_block,omitempty"`
	Delta        any              `json:"delta,omitempty"`
	Usage        json.RawMessage  `json:"usage,omitempty"`
}

type stopDelta struct {
	StopReason   string    `json:"stop_reason"`
	StopSequence *string   `json:"stop_sequence"`
	StopDetails  *struct{} `json:"stop_details"`
}

func (r *anthropicRequest) stream(id int, said reply, u usage) []frame {
	var frames []frame
	emit := func(e anthropicEvent) { frames = append(frames, frame{event: e.Type, data: &e}) }
	begun := r.whole(id, reply{}, u).(*anthropicAnswer)
	begun.Content, begun.StopReason, begun.Usage = []any{}, nil, anthropicUsage(u, "1")
	emit(anthropicEvent{Type: "message_start", Message: begun})
	emit(anthropicEvent{Type: "ping"})
	for i, block := range r.blocks(id, said) {
		open, deltas := unfold(block)
		emit(anthropicEvent{Type: "content_block_start", Index: &i, ContentBlock: open})
		for _, d := range deltas {
			emit(anthropicEvent{Type: "content_block_delta", Index: &i, Delta: d})
		}
		emit(anthropicEvent{Type: "content_block_stop", Index: &i})
	}
	emit(anthropicEvent{
		Type: "message_delta", Delta: stopDelta{StopReason: stopReason(said)}, Usage: anthropicUsage(u, u.output),
	})
	frames[len(frames)-1].finish = true
	emit(anthropicEvent{Type: "message_stop"})
	frames[len(frames)-1].terminal = true
	return frames
}

// unfold is a block as it opens, and the deltas that fill it.
func unfold(block any) (open any, deltas []any) {
	delta := func(kind, member, value string) {
		deltas = append(deltas, map[string]string{"type": kind, member: value})
	}
	switch b := block.(type) {
	case textBlock:
		for _, piece := range pieces(b.Text) {
			delta("text_delta", "text", piece)
		}
		b.Text = ""
		open = b
	case thinkingBlock:
		if b.Thinking != "" {
			for _, piece := range pieces(b.Thinking) {
				delta("thinking_delta", "thinking", piece)
			}
		}
		delta("signature_delta", "signature", b.Signature)
		b.Thinking, b.Signature = "", ""
		open = b
	case toolUseBlock:
		if string(b.Input) != "{}" { // without arguments there is no delta
			delta("input_json_delta", "partial_json", "")
			for _, half := range halves(string(b.Input)) {
				delta("input_json_delta", "partial_json", half)
			}
		}
		b.Input = json.RawMessage("{}")
		open = b
	}
	return open, deltas
}

func (r *anthropicRequest) failure(id int, e apiError, _ errorShape) []frame {
	body := anthropicFailure(id, http.StatusInternalServerError, e)
	return []frame{{event: "error", data: body, terminal: true}}
}
