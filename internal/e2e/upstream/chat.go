package upstream

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
)

type chatRequest struct {
	Model         string          `json:"model"`
	Messages      []chatMessage   `json:"messages"`
	Stream        bool            `json:"stream"`
	StreamOptions *streamOptions  `json:"stream_options"`
	N             int             `json:"n"`
	Tools         []chatTool      `json:"tools"`
	ToolChoice    json.RawMessage `json:"tool_choice"`

	ReasoningEffort string `json:"reasoning_effort"`
	ResponseFormat  struct {
		Type       string `json:"type"`
		JSONSchema struct {
			Schema json.RawMessage `json:"schema"`
		} `json:"json_schema"`
	} `json:"response_format"`
}

type chatMessage struct {
	Role    string          `json:"role"`
	Content json.RawMessage `json:"content"`
}

type streamOptions struct {
	IncludeUsage bool `json:"include_usage"`
}

type chatTool struct {
	Type     string `json:"type"`
	Function struct {
		Name string `json:"name"`
	} `json:"function"`
}

func parseChat(_ *http.Request, body []byte) (door, error) {
	var r chatRequest
	err := json.Unmarshal(body, &r)
	return &r, err
}

func (r *chatRequest) prompt() prompt {
	p := prompt{
		model: r.Model, stream: r.Stream, choices: min(max(r.N, 1), 128),
		schema: r.ResponseFormat.JSONSchema.Schema,
		think:  r.ReasoningEffort != "" && r.ReasoningEffort != "none",
	}
	for _, m := range slices.Backward(r.Messages) {
		if m.Role == "tool" {
			p.told(text(m.Content))
		}
		if m.Role == "user" {
			p.user, p.image = text(m.Content), dataImage(m.Content)
			break
		}
	}
	for _, t := range r.Tools {
		if t.Type == "function" && !is(r.ToolChoice, "none") {
			p.tools = append(p.tools, t.Function.Name)
		}
	}
	return p
}

type chatCompletion struct {
	ID      string          `json:"id,omitempty"`
	Object  string          `json:"object"`
	Created int64           `json:"created"`
	Model   string          `json:"model"`
	Choices []chatChoice    `json:"choices"`
	Usage   json.RawMessage `json:"usage,omitempty"`
	Tier    string          `json:"service_tier"`
	Error   json.RawMessage `json:"error,omitempty"`
}

type chatChoice struct {
	Index        int             `json:"index"`
	Message      chatAnswer      `json:"message"`
	Logprobs     json.RawMessage `json:"logprobs"`
	FinishReason string          `json:"finish_reason"`
}

type chatAnswer struct {
	Role        string     `json:"role"`
	Content     *string    `json:"content"`
	Refusal     *string    `json:"refusal"`
	Annotations []struct{} `json:"annotations"`
	ToolCalls   []chatCall `json:"tool_calls,omitempty"`

	// As compatible servers have it: OpenAI's does not tell.
	ReasoningContent string `json:"reasoning_content,omitempty"`
}

// chatCall is a tool call: the whole of it in a message, a fragment in a delta, where
// alone it has an index.
type chatCall struct {
	Index    *int   `json:"index,omitempty"`
	ID       string `json:"id,omitempty"`
	Type     string `json:"type,omitempty"`
	Function struct {
		Name      string `json:"name,omitempty"`
		Arguments string `json:"arguments"`
	} `json:"function"`
}

func chatToolCall(id, choice, i int, c toolCall) chatCall {
	call := chatCall{ID: fmt.Sprintf("call_%d_%d_%d", id, choice, i), Type: "function"}
	call.Function.Name, call.Function.Arguments = c.name, c.arguments
	return call
}

func (r *chatRequest) whole(id int, said reply, u usage) any {
	c := &chatCompletion{
		ID: fmt.Sprintf("chatcmpl-%d", id), Object: "chat.completion", Created: epoch,
		Model: r.Model, Usage: chatUsage(u), Tier: "default",
	}
	for n := range r.prompt().choices {
		m := chatAnswer{Role: "assistant", Annotations: []struct{}{}, ReasoningContent: said.thought}
		if said.text != "" {
			m.Content = &said.text
		}
		for i, call := range said.calls {
			m.ToolCalls = append(m.ToolCalls, chatToolCall(id, n, i, call))
		}
		c.Choices = append(c.Choices, chatChoice{Index: n, Message: m, FinishReason: finish(said)})
	}
	return c
}

func finish(r reply) string {
	if len(r.calls) > 0 {
		return "tool_calls"
	}
	return "stop"
}

func chatUsage(u usage) json.RawMessage {
	return fmt.Appendf(nil, `{"prompt_tokens":%s,"completion_tokens":%s,"total_tokens":%s,`+
		`"prompt_tokens_details":{"cached_tokens":%s,"audio_tokens":0},`+
		`"completion_tokens_details":{"reasoning_tokens":%s,"audio_tokens":0,"accepted_prediction_tokens":0,"rejected_prediction_tokens":0}}`,
		u.input, u.output, u.total, u.read, u.thought)
}

type chatChunk struct {
	ID      string          `json:"id,omitempty"`
	Object  string          `json:"object"`
	Created int64           `json:"created"`
	Model   string          `json:"model"`
	Choices []chunkChoice   `json:"choices"`
	Usage   json.RawMessage `json:"usage,omitempty"`
	Error   json.RawMessage `json:"error,omitempty"`
}

type chunkChoice struct {
	Index        int             `json:"index"`
	Delta        chatDelta       `json:"delta"`
	Logprobs     json.RawMessage `json:"logprobs"`
	FinishReason *string         `json:"finish_reason"`
}

// chatDelta is one step of a message. Content and refusal are raw because the first
// delta says null or "" and later ones must not have the member at all.
type chatDelta struct {
	Role      string          `json:"role,omitempty"`
	Content   json.RawMessage `json:"content,omitempty"`
	Refusal   json.RawMessage `json:"refusal,omitempty"`
	ToolCalls []chatCall      `json:"tool_calls,omitempty"`

	ReasoningContent string `json:"reasoning_content,omitempty"`
}

// null is JSON's.
var null = json.RawMessage("null")

// doneFrame ends a stream of chunks.
var doneFrame = frame{data: json.RawMessage("[DONE]"), terminal: true}

func (r *chatRequest) stream(id int, said reply, u usage) []frame {
	withUsage := r.StreamOptions != nil && r.StreamOptions.IncludeUsage
	var frames []frame
	emit := func(usage json.RawMessage, choices ...chunkChoice) {
		frames = append(frames, frame{data: &chatChunk{
			ID: fmt.Sprintf("chatcmpl-%d", id), Object: "chat.completion.chunk", Created: epoch, Model: r.Model,
			Choices: append([]chunkChoice{}, choices...), Usage: usage,
		}})
	}
	var running json.RawMessage
	if withUsage {
		running = null
	}
	for n := range r.prompt().choices {
		for _, d := range deltas(id, n, said) {
			emit(running, chunkChoice{Index: n, Delta: d})
		}
		emit(running, chunkChoice{Index: n, FinishReason: new(finish(said))})
	}
	if withUsage {
		emit(chatUsage(u))
	}
	return append(frames, doneFrame)
}

// deltas are the steps of one choice, the finish not among them.
func deltas(id, choice int, said reply) []chatDelta {
	if len(said.calls) == 0 {
		list := append([]chatDelta{{Role: "assistant", Content: json.RawMessage(`""`), Refusal: null}}, thoughts(said)...)
		for _, piece := range pieces(said.text) {
			list = append(list, chatDelta{Content: quoted(piece)})
		}
		return list
	}
	list := append([]chatDelta{{Role: "assistant", Content: null, Refusal: null}}, thoughts(said)...)
	for i, c := range said.calls {
		head := chatToolCall(id, choice, i, c)
		head.Index = &i
		head.Function.Arguments = ""
		list = append(list, chatDelta{ToolCalls: []chatCall{head}})
		for _, half := range halves(c.arguments) {
			tail := chatCall{Index: &i}
			tail.Function.Arguments = half
			list = append(list, chatDelta{ToolCalls: []chatCall{tail}})
		}
	}
	return list
}

func thoughts(said reply) (list []chatDelta) {
	if said.thought == "" {
		return nil
	}
	for _, piece := range pieces(said.thought) {
		list = append(list, chatDelta{ReasoningContent: piece})
	}
	return list
}

func quoted(s string) json.RawMessage {
	raw, err := json.Marshal(s)
	if err != nil {
		panic(err) // strings always marshal
	}
	return raw
}

// halves cuts arguments in two, so that no client can do without joining them.
func halves(s string) []string {
	cut := len(firstRunes(s, len(s)/2))
	return []string{s[:cut], s[cut:]}
}

func (r *chatRequest) failure(_ int, e apiError, _ errorShape) []frame {
	return []frame{{data: errorBody{e}}, doneFrame}
}
