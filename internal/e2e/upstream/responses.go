package upstream

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
)

type responsesRequest struct {
	Model      string          `json:"model"`
	Input      json.RawMessage `json:"input"`
	Stream     bool            `json:"stream"`
	Background bool            `json:"background"`
	Tools      []responsesTool `json:"tools"`

	Include   []string `json:"include"`
	Reasoning struct {
		Effort  string `json:"effort"`
		Summary string `json:"summary"`
	} `json:"reasoning"`
	Text struct {
		Format struct {
			Schema json.RawMessage `json:"schema"`
		} `json:"format"`
	} `json:"text"`

	// Echoed in the Response object.
	Instructions       json.RawMessage `json:"instructions"`
	PreviousResponseID json.RawMessage `json:"previous_response_id"`
	ToolChoice         json.RawMessage `json:"tool_choice"`
	ParallelToolCalls  json.RawMessage `json:"parallel_tool_calls"`
	Temperature        json.RawMessage `json:"temperature"`
	TopP               json.RawMessage `json:"top_p"`
	MaxOutputTokens    json.RawMessage `json:"max_output_tokens"`
	Store              json.RawMessage `json:"store"`
	Metadata           json.RawMessage `json:"metadata"`
	SafetyIdentifier   json.RawMessage `json:"safety_identifier"`
	PromptCacheKey     json.RawMessage `json:"prompt_cache_key"`
}

// responsesTool is a tool as it came, with what a reply needs to know of it.
type responsesTool struct {
	kind, name string
	raw        json.RawMessage
}

func (t *responsesTool) UnmarshalJSON(b []byte) error {
	var head struct{ Type, Name string }
	if err := json.Unmarshal(b, &head); err != nil {
		return err
	}
	t.kind, t.name, t.raw = head.Type, head.Name, slices.Clone(b)
	return nil
}

// MarshalJSON echoes a function tool with all five of its members, others as they came.
func (t responsesTool) MarshalJSON() ([]byte, error) {
	if t.kind != "function" {
		return t.raw, nil
	}
	echo := struct {
		Type        string          `json:"type"`
		Name        string          `json:"name"`
		Description json.RawMessage `json:"description"`
		Parameters  json.RawMessage `json:"parameters"`
		Strict      json.RawMessage `json:"strict"`
	}{}
	if err := json.Unmarshal(t.raw, &echo); err != nil {
		return nil, err
	}
	return json.Marshal(echo)
}

func parseResponses(_ *http.Request, body []byte) (door, error) {
	var r responsesRequest
	if err := json.Unmarshal(body, &r); err != nil {
		return &r, err
	}
	return &r, r.checkState()
}

// parseResponsesCount is for counting, which knows fewer members.
func parseResponsesCount(_ *http.Request, body []byte) (door, error) {
	var known struct {
		Model             json.RawMessage `json:"model"`
		Input             json.RawMessage `json:"input"`
		Instructions      json.RawMessage `json:"instructions"`
		Tools             json.RawMessage `json:"tools"`
		ToolChoice        json.RawMessage `json:"tool_choice"`
		ParallelToolCalls json.RawMessage `json:"parallel_tool_calls"`
		Reasoning         json.RawMessage `json:"reasoning"`
		Text              json.RawMessage `json:"text"`
		Truncation        json.RawMessage `json:"truncation"`
	}
	switch unknown, err := strictly(body, &known); {
	case unknown != "":
		return nil, refusedf("Unknown parameter: '%s'.", unknown)
	case err != nil:
		return nil, err
	}
	return parseResponses(nil, body)
}

// checkState refuses encrypted reasoning that is not what this server made.
func (r *responsesRequest) checkState() error {
	var items []struct {
		EncryptedContent *string `json:"encrypted_content"`
	}
	if json.Unmarshal(r.Input, &items) != nil {
		return nil
	}
	for _, i := range items {
		if e := i.EncryptedContent; e != nil && *e != signature("item") {
			return refusedf("The encrypted content %s... could not be verified. Reason: Encrypted content could not be decrypted or parsed.", firstRunes(*e, 4))
		}
	}
	return nil
}

// thinks says whether the reasoning shall be told of.
func (r *responsesRequest) thinks() bool {
	return (r.Reasoning.Effort != "" && r.Reasoning.Effort != "none") || r.Reasoning.Summary != ""
}

func (r *responsesRequest) prompt() prompt {
	p := prompt{model: r.Model, stream: r.Stream, choices: 1, think: r.thinks(), schema: r.Text.Format.Schema}
	if json.Unmarshal(r.Input, &p.user) != nil {
		p.lastTurn(r.Input)
	}
	for _, t := range r.Tools {
		if t.kind == "function" && !is(r.ToolChoice, "none") {
			p.tools = append(p.tools, t.name)
		}
	}
	return p
}

// lastTurn reads the last user message of the input items, and the results of tools
// that came after it.
func (p *prompt) lastTurn(input json.RawMessage) {
	var items []struct {
		Type, Role string
		Content    json.RawMessage
		Output     json.RawMessage
	}
	if json.Unmarshal(input, &items) != nil {
		return
	}
	for _, i := range slices.Backward(items) {
		if strings.HasSuffix(i.Type, "_call_output") {
			p.told(text(i.Output))
		}
		if i.Role == "user" {
			p.user, p.image = text(i.Content), dataImage(i.Content)
			return
		}
	}
}

// response is the Response object; every member is in every snapshot.
type response struct {
	ID                 string          `json:"id,omitempty"`
	Object             string          `json:"object"`
	CreatedAt          int64           `json:"created_at"`
	CompletedAt        *int64          `json:"completed_at"`
	Status             string          `json:"status"`
	Background         bool            `json:"background"`
	Error              *responseError  `json:"error"`
	IncompleteDetails  json.RawMessage `json:"incomplete_details"`
	Instructions       json.RawMessage `json:"instructions"`
	MaxOutputTokens    json.RawMessage `json:"max_output_tokens"`
	MaxToolCalls       json.RawMessage `json:"max_tool_calls"`
	Model              string          `json:"model"`
	Output             []item          `json:"output"`
	ParallelToolCalls  json.RawMessage `json:"parallel_tool_calls"`
	PreviousResponseID json.RawMessage `json:"previous_response_id"`
	PresencePenalty    float64         `json:"presence_penalty"`
	FrequencyPenalty   float64         `json:"frequency_penalty"`
	TopLogprobs        int             `json:"top_logprobs"`
	Reasoning          json.RawMessage `json:"reasoning"`
	ServiceTier        string          `json:"service_tier"`
	Store              json.RawMessage `json:"store"`
	Temperature        json.RawMessage `json:"temperature"`
	Text               json.RawMessage `json:"text"`
	ToolChoice         json.RawMessage `json:"tool_choice"`
	Tools              []responsesTool `json:"tools"`
	TopP               json.RawMessage `json:"top_p"`
	Truncation         string          `json:"truncation"`
	Usage              json.RawMessage `json:"usage"`
	User               json.RawMessage `json:"user"`
	SafetyIdentifier   json.RawMessage `json:"safety_identifier"`
	PromptCacheKey     json.RawMessage `json:"prompt_cache_key"`
	Metadata           json.RawMessage `json:"metadata"`
}

type responseError struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

// item is an output item: a message, whose content is never nil, or a function call,
// whose arguments are not.
type item struct {
	ID        string  `json:"id,omitempty"`
	Type      string  `json:"type"`
	Status    string  `json:"status,omitempty"`
	Role      string  `json:"role,omitempty"`
	Content   []part  `json:"content,omitzero"`
	CallID    string  `json:"call_id,omitempty"`
	Name      string  `json:"name,omitempty"`
	Arguments *string `json:"arguments,omitempty"`

	// Of reasoning.
	Summary          []part `json:"summary,omitzero"`
	EncryptedContent string `json:"encrypted_content,omitempty"`
}

type part struct {
	Type        string     `json:"type"`
	Text        string     `json:"text"`
	Annotations []struct{} `json:"annotations,omitzero"`
	Logprobs    []struct{} `json:"logprobs,omitzero"`
}

func outputText(text string) part {
	return part{Type: "output_text", Text: text, Annotations: []struct{}{}, Logprobs: []struct{}{}}
}

// snapshot is the response while it runs.
func (r *responsesRequest) snapshot(id int) response {
	return response{
		ID: responseID(id), Object: "response", CreatedAt: epoch, Status: "in_progress", Background: r.Background,
		Model: r.Model, Output: []item{}, ServiceTier: "default", Truncation: "disabled",
		Reasoning:          json.RawMessage(`{"effort":null,"summary":null}`),
		Text:               json.RawMessage(`{"format":{"type":"text"}}`),
		Instructions:       r.Instructions,
		PreviousResponseID: r.PreviousResponseID,
		MaxOutputTokens:    r.MaxOutputTokens,
		SafetyIdentifier:   r.SafetyIdentifier,
		PromptCacheKey:     r.PromptCacheKey,
		Temperature:        given(r.Temperature, "1"),
		TopP:               given(r.TopP, "1"),
		Store:              given(r.Store, "true"),
		ParallelToolCalls:  given(r.ParallelToolCalls, "true"),
		ToolChoice:         given(r.ToolChoice, `"auto"`),
		Metadata:           given(r.Metadata, "{}"),
		Tools:              append([]responsesTool{}, r.Tools...),
	}
}

// given is a member of the request, or its default if it was absent or null.
func given(raw json.RawMessage, otherwise string) json.RawMessage {
	if len(raw) == 0 || string(raw) == "null" {
		return json.RawMessage(otherwise)
	}
	return raw
}

// completed is the response at its good end.
func (r *responsesRequest) completed(id int, said reply, u usage) response {
	s := r.snapshot(id)
	s.Status, s.CompletedAt = "completed", new(int64(epoch+1))
	s.Usage = responsesUsage(u)
	s.Output = r.outputs(id, said)
	return s
}

func responsesUsage(u usage) json.RawMessage {
	return fmt.Appendf(nil, `{"input_tokens":%s,"input_tokens_details":{"cached_tokens":%s,"cache_write_tokens":%s},`+
		`"output_tokens":%s,"output_tokens_details":{"reasoning_tokens":%s},"total_tokens":%s}`,
		u.input, u.read, u.written, u.output, u.thought, u.total)
}

// outputs are the output items in their final form: the reasoning, and one message or
// the calls.
func (r *responsesRequest) outputs(id int, said reply) (list []item) {
	if said.thought != "" {
		rs := item{ID: fmt.Sprintf("rs_%d", id), Type: "reasoning", Summary: []part{}}
		if r.Reasoning.Summary != "" {
			rs.Summary = append(rs.Summary, part{Type: "summary_text", Text: said.thought})
		}
		if slices.Contains(r.Include, "reasoning.encrypted_content") {
			rs.EncryptedContent = signature("item")
		}
		list = append(list, rs)
	}
	for i := range max(len(said.calls), 1) {
		list = append(list, outputItem(id, i, said))
	}
	return list
}

// outputItem is the message, or the i-th call.
func outputItem(id, i int, said reply) item {
	if len(said.calls) == 0 {
		return item{
			ID: fmt.Sprintf("msg_%d_%d", id, i), Type: "message", Status: "completed",
			Role: "assistant", Content: []part{outputText(said.text)},
		}
	}
	c := said.calls[i]
	return item{
		ID: fmt.Sprintf("fc_%d_%d", id, i), Type: "function_call", Status: "completed",
		CallID: fmt.Sprintf("call_%d_%d", id, i), Name: c.name, Arguments: &c.arguments,
	}
}

func (r *responsesRequest) whole(id int, said reply, u usage) any {
	if r.Background {
		queued := r.snapshot(id)
		queued.Status = "queued"
		return &queued
	}
	return new(r.completed(id, said, u))
}

// event is one event of the stream. The members after the number belong to some
// types only.
type event struct {
	Type           string          `json:"type"`
	SequenceNumber int             `json:"sequence_number"` // given when written
	Response       *response       `json:"response,omitempty"`
	OutputIndex    *int            `json:"output_index,omitempty"`
	Item           *item           `json:"item,omitempty"`
	ItemID         string          `json:"item_id,omitempty"`
	ContentIndex   *int            `json:"content_index,omitempty"`
	SummaryIndex   *int            `json:"summary_index,omitempty"`
	Part           *part           `json:"part,omitempty"`
	Delta          *string         `json:"delta,omitempty"`
	Text           *string         `json:"text,omitempty"`
	Name           string          `json:"name,omitempty"`
	Arguments      *string         `json:"arguments,omitempty"`
	Logprobs       []struct{}      `json:"logprobs,omitzero"`
	Code           *string         `json:"code,omitempty"`
	Message        string          `json:"message,omitempty"`
	Param          json.RawMessage `json:"param,omitempty"`
	Error          any             `json:"error,omitempty"`
}

func eventFrame(e event) frame { return frame{event: e.Type, data: &e} }

func (r *responsesRequest) stream(id int, said reply, u usage) []frame {
	frames := []frame{
		eventFrame(event{Type: "response.created", Response: new(r.snapshot(id))}),
		eventFrame(event{Type: "response.in_progress", Response: new(r.snapshot(id))}),
	}
	for i, final := range r.outputs(id, said) {
		switch final.Type {
		case "message":
			frames = append(frames, messageFrames(i, final)...)
		case "reasoning":
			frames = append(frames, reasoningFrames(i, final)...)
		default:
			frames = append(frames, callFrames(i, final)...)
		}
	}
	last := eventFrame(event{Type: "response.completed", Response: new(r.completed(id, said, u))})
	last.terminal = true
	return append(frames, last)
}

func messageFrames(i int, final item) []frame {
	open := final
	open.Status, open.Content = "in_progress", []part{}
	full := final.Content[0]
	about := func(kind string) event {
		return event{Type: kind, OutputIndex: &i, ItemID: final.ID, ContentIndex: new(0)}
	}
	var frames []frame
	emit := func(e event) { frames = append(frames, eventFrame(e)) }

	emit(event{Type: "response.output_item.added", OutputIndex: &i, Item: &open})
	added := about("response.content_part.added")
	added.Part = new(outputText(""))
	emit(added)
	for _, piece := range pieces(full.Text) {
		delta := about("response.output_text.delta")
		delta.Delta, delta.Logprobs = &piece, []struct{}{}
		emit(delta)
	}
	said := about("response.output_text.done")
	said.Text, said.Logprobs = &full.Text, []struct{}{}
	emit(said)
	ended := about("response.content_part.done")
	ended.Part = &full
	emit(ended)
	emit(event{Type: "response.output_item.done", OutputIndex: &i, Item: &final})
	return frames
}

func reasoningFrames(i int, final item) []frame {
	open := final
	open.Summary, open.EncryptedContent = []part{}, ""
	frames := []frame{eventFrame(event{Type: "response.output_item.added", OutputIndex: &i, Item: &open})}
	for n, full := range final.Summary {
		emit := func(kind string, fill func(*event)) {
			e := event{Type: "response.reasoning_summary_" + kind, OutputIndex: &i, ItemID: final.ID, SummaryIndex: &n}
			fill(&e)
			frames = append(frames, eventFrame(e))
		}
		emit("part.added", func(e *event) { e.Part = &part{Type: full.Type} })
		for _, piece := range pieces(full.Text) {
			emit("text.delta", func(e *event) { e.Delta = &piece })
		}
		emit("text.done", func(e *event) { e.Text = &full.Text })
		emit("part.done", func(e *event) { e.Part = &full })
	}
	return append(frames, eventFrame(event{Type: "response.output_item.done", OutputIndex: &i, Item: &final}))
}

func callFrames(i int, final item) []frame {
	open := final
	open.Status, open.Arguments = "in_progress", new("")
	frames := []frame{eventFrame(event{Type: "response.output_item.added", OutputIndex: &i, Item: &open})}
	for _, half := range halves(*final.Arguments) {
		frames = append(frames, eventFrame(event{
			Type: "response.function_call_arguments.delta", OutputIndex: &i, ItemID: final.ID, Delta: &half,
		}))
	}
	return append(frames,
		eventFrame(event{
			Type: "response.function_call_arguments.done", OutputIndex: &i, ItemID: final.ID,
			Name: final.Name, Arguments: final.Arguments,
		}),
		eventFrame(event{Type: "response.output_item.done", OutputIndex: &i, Item: &final}))
}

// failed is the terminal event of a response that failed.
func (r *responsesRequest) failed(id int, e apiError) frame {
	s := r.snapshot(id)
	s.Status, s.Error = "failed", &responseError{Code: "server_error", Message: e.Message}
	f := eventFrame(event{Type: "response.failed", Response: &s})
	f.terminal = true
	return f
}

func (r *responsesRequest) failure(id int, e apiError, shape errorShape) []frame {
	end := r.failed(id, e)
	switch shape {
	case failedOnly:
		return []frame{end}
	case nested:
		return []frame{eventFrame(event{Type: "error", Error: e}), end}
	default:
		return []frame{eventFrame(event{Type: "error", Code: new("server_error"), Message: e.Message, Param: null}), end}
	}
}
