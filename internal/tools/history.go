package tools

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"slices"
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
	told := retold{items: make([]llm.Item, 0, len(req.Items)+8)}
	for _, item := range req.Items {
		call, _ := item.(*llm.ServerCall)
		switch {
		case call == nil, r.standIns[call.Kind] == nil && call.MCP == nil:
			told.item(item)
		case call.MCP == nil:
			told.call(r.standIns[call.Kind].again(call))
		default:
			if err := h.step(ctx, &told, call); err != nil {
				return err
			}
		}
	}
	req.Items = told.items
	return nil
}

// retold is a history that is said anew.
type retold struct {
	items []llm.Item
	// results is where those of the last turn begin, while more calls of that
	// turn may come; 0 when none can.
	results int
}

// item adds what stays as it is.
func (t *retold) item(item llm.Item) {
	if call, ok := item.(*llm.ToolCall); ok && t.joins(call) {
		t.join(call)
		return
	}
	t.items, t.results = append(t.items, item), 0
}

// call adds a call and its result.
func (t *retold) call(call *llm.ToolCall, result *llm.ToolResult) {
	if t.joins(call) {
		t.join(call)
		t.items = append(t.items, result)
		return
	}
	t.items = append(t.items, call, result)
	if t.results = 0; len(call.Opaque) > 0 {
		t.results = len(t.items) - 1
	}
}

// joins reports whether a call was asked for together with the one before it.
// Of the calls of one turn, the first has the state of all: what follows it and
// has none is of the same turn, and would lack it in another.
func (t *retold) joins(call *llm.ToolCall) bool { return t.results > 0 && len(call.Opaque) == 0 }

func (t *retold) join(call *llm.ToolCall) {
	t.items = slices.Insert(t.items, t.results, llm.Item(call))
	t.results++
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

// step tells of what was done with a server.
func (h *history) step(ctx context.Context, told *retold, item *llm.ServerCall) error {
	switch step := item.MCP; {
	case step.Kind == llm.MCPCalled && !h.asked[step.Approval.Text()]:
		told.call(spoken(item, step, step))
	case step.Kind == llm.MCPAsked:
		result, err := h.result(ctx, item)
		if err != nil {
			return err
		}
		told.call(spoken(item, step, result))
	default:
		told.results = 0
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

// spoken is a call of a server's tool, and what came of it, as the model knows
// them.
func spoken(item *llm.ServerCall, call, result *llm.MCPStep) (*llm.ToolCall, *llm.ToolResult) {
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
	return paired(item, llm.ToolName{Namespace: space(call.Label), Name: call.Name}, args, text, result.Error != nil)
}

// paired are a call of a function and its result, which an item of an earlier
// turn stands for.
func paired(item *llm.ServerCall, name llm.ToolName, args, text llm.Raw, failed bool) (*llm.ToolCall, *llm.ToolResult) {
	id := callID(item.ID)
	return &llm.ToolCall{Pos: item.Pos, ID: id, Namespace: name.Namespace, Name: name.Name, Args: args, Opaque: item.Opaque},
		&llm.ToolResult{Pos: item.Pos, ID: id, IsError: failed, Parts: []llm.Part{&llm.Text{Pos: item.Pos, Text: text}}}
}

// callID is the ID of a call, made of that of its item in the same way in each
// turn.
func callID(item llm.Raw) llm.Raw {
	sum := sha256.Sum256([]byte(item.Text()))
	return llm.Quote("call_" + hex.EncodeToString(sum[:12]))
}
