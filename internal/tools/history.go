package tools

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"strconv"

	"github.com/limen-gateway/limen/internal/dialect"
	"github.com/limen-gateway/limen/internal/llm"
)

// stepOf is what an item tells of a server of tools; nil when it does not.
func stepOf(item llm.Item) *llm.MCPStep {
	if call, ok := item.(*llm.ServerCall); ok {
		return call.MCP
	}
	return nil
}

// remember says what was done with servers in earlier turns as calls of
// functions, and does what the client has consented to since. A call stands
// where it was asked for, whenever its result came: what follows never
// changes what is before.
func (r *Run) remember(ctx context.Context, req *llm.Request) error {
	h := &history{run: r, asked: map[string]bool{}, answers: map[string]*llm.MCPStep{}, results: map[string]*llm.MCPStep{}}
	if err := h.read(req.Items); err != nil {
		return err
	}
	items := make([]llm.Item, 0, len(req.Items)+8)
	for _, item := range req.Items {
		call, _ := item.(*llm.ServerCall)
		switch {
		case call == nil:
			items = append(items, item)
			continue
		case call.Kind == llm.WebSearch && r.search != nil:
			items = append(items, searchedFor(call, r.search.name)...)
			continue
		case call.MCP == nil:
			items = append(items, item)
			continue
		}
		switch step := call.MCP; step.Kind {
		case llm.MCPCalled:
			if !h.asked[step.Approval.Text()] {
				items = append(items, spoken(call, step, step)...)
			}
		case llm.MCPAsked:
			result, err := h.result(ctx, call)
			if err != nil {
				return err
			}
			items = append(items, spoken(call, step, result)...)
		}
	}
	req.Items = items
	return nil
}

// history is what happened in earlier turns.
type history struct {
	run     *Run
	asked   map[string]bool         // questions, by their items' IDs
	answers map[string]*llm.MCPStep // by the questions' IDs
	results map[string]*llm.MCPStep // likewise
}

func (h *history) read(items []llm.Item) error {
	for _, item := range items {
		call, _ := item.(*llm.ServerCall)
		if call == nil || call.MCP == nil {
			continue
		}
		question := call.MCP.Approval.Text()
		switch call.MCP.Kind {
		case llm.MCPAsked:
			h.asked[call.ID.Text()] = true
		case llm.MCPCalled:
			if question != "" {
				h.results[question] = call.MCP
			}
		case llm.MCPAnswered:
			if !h.asked[question] {
				at := "input[" + strconv.Itoa(call.Pos.Item) + "].approval_request_id"
				return llm.InvalidParam("invalid_value", at, "Invalid '%s': there is no mcp_approval_request of that ID before it.", at)
			}
			h.answers[question] = call.MCP
		}
	}
	return nil
}

// What the model is told of calls that the client did not consent to.
const (
	denied     = "The user denied this call."
	unanswered = "The user did not consent to this call."
)

// result is what came of a question.
func (h *history) result(ctx context.Context, question *llm.ServerCall) (*llm.MCPStep, error) {
	id := question.ID.Text()
	if done := h.results[id]; done != nil {
		return done, nil
	}
	answer := h.answers[id]
	switch {
	case answer == nil:
		return &llm.MCPStep{Error: llm.Quote(unanswered)}, nil
	case !answer.Approved:
		return &llm.MCPStep{Error: llm.Concat(" ", llm.Quote(denied), answer.Reason)}, nil
	}
	return h.run.consented(ctx, question)
}

// consented runs a call that the client has consented to.
func (r *Run) consented(ctx context.Context, question *llm.ServerCall) (*llm.MCPStep, error) {
	step := question.MCP
	s := r.servers[step.Label]
	if s == nil {
		at := "input[" + strconv.Itoa(question.Pos.Item) + "].server_label"
		return nil, llm.InvalidParam("invalid_value", at, "Invalid '%s': there is no server with that label in 'tools'.", at)
	}
	call := &dialect.HostedCall{Tool: &dialect.HostedTool{Kind: llm.MCP, Label: step.Label, Name: step.Name}, Args: step.Args}
	var result *dialect.HostedResult
	switch {
	case r.Host.Calls == 0:
		result = Skipped(call, "This call was not run: no more calls of tools are possible in this answer.")
	case !s.offers(s.known[step.Name]):
		result = Skipped(call, "The server has no such tool.")
	default:
		r.Host.Calls--
		text, failed := s.call(ctx, step.Name, step.Args)
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		result = called(call, text, failed)
	}
	result.Call.MCP.Approval = question.ID
	r.Host.Told = append(r.Host.Told, result.Call)
	return result.Call.MCP, nil
}

// searchedFor is a search of an earlier turn as the model knows it. What the
// pages said is not kept.
func searchedFor(item *llm.ServerCall, name llm.ToolName) []llm.Item {
	query := llm.Raw(`""`)
	if len(item.Queries) > 0 && item.Queries[0].IsText() {
		query = item.Queries[0]
	}
	found := []llm.Raw{llm.Quote("Found:")}
	for _, s := range item.Sources {
		found = append(found, s.URL)
	}
	id := callID(item.ID)
	return []llm.Item{
		&llm.ToolCall{Pos: item.Pos, ID: id, Namespace: name.Namespace, Name: name.Name, Args: llm.QuoteJSON(append(append(llm.Raw(`{"query":`), query...), '}'))},
		&llm.ToolResult{Pos: item.Pos, ID: id, IsError: item.Failed, Parts: []llm.Part{&llm.Text{Pos: item.Pos, Text: llm.Concat("\n", found...)}}},
	}
}

// spoken is a call of a server's tool, and what came of it, as the model knows
// them.
func spoken(item *llm.ServerCall, call, result *llm.MCPStep) []llm.Item {
	id := callID(item.ID)
	text := result.Output
	if result.Error != nil {
		text = result.Error
	}
	if !text.IsText() {
		text = llm.Raw(`""`)
	}
	args := call.Args
	if args.Blank() {
		args = llm.Raw(`"{}"`)
	}
	return []llm.Item{
		&llm.ToolCall{Pos: item.Pos, ID: id, Namespace: space(call.Label), Name: call.Name, Args: args},
		&llm.ToolResult{Pos: item.Pos, ID: id, IsError: result.Error != nil, Parts: []llm.Part{&llm.Text{Pos: item.Pos, Text: text}}},
	}
}

// callID is the ID of a call, made of that of its item in the same way in each
// turn.
func callID(item llm.Raw) llm.Raw {
	sum := sha256.Sum256([]byte(item.Text()))
	return llm.Quote("call_" + hex.EncodeToString(sum[:12]))
}
