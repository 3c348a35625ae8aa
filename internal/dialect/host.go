package dialect

import (
	"strconv"

	"github.com/limen-gateway/limen/internal/llm"
)

// Host is what the gateway runs itself for one call of a model whose upstream
// has no such tools: the upstream is told of functions, whose calls never
// reach the client as such.
type Host struct {
	Tools map[llm.ToolName]*HostedTool
	Told  []*llm.ServerCall // what was done before the model was asked
	Calls int               // how many more may be run
	// Requests is how often the upstream may be asked for one answer.
	Requests int
	// After is the choice of tools once that of the request was obeyed.
	After llm.ToolChoice
}

// HostedTool is a tool of the gateway's own.
type HostedTool struct {
	Kind  llm.ServerKind
	Label string // of its server, where it has one
	Name  string // as the client knows it
	Asks  bool   // the client must consent to each call
	// Barred: the client's choice of tools leaves it out.
	Barred bool
}

// HostedCall is a call that the gateway has to run.
type HostedCall struct {
	Tool *HostedTool
	ID   llm.Raw
	Args llm.Raw // a JSON string

	item    int  // of the client's
	told    bool // the client knows of it
	refused bool
	argued  bool // its arguments were told
	opaque  []llm.Opaque
	result  *HostedResult
}

// HostedResult is what came of a call.
type HostedResult struct {
	Call   *llm.ServerCall // as the client is told
	Text   llm.Raw         // as the model is
	Failed bool
}

// loop is one answer for which the gateway runs tools, and for which the
// upstream is asked several times.
type loop struct {
	host *Host
	req  *llm.Request // with what was said so far

	begun    bool
	requests int
	next     int // number of the client's next item
	usage    llm.Usage
	assumed  bool // usage has estimates

	// Of one request:
	fold     llm.Folder
	items    map[int]int // the client's numbers, by the upstream's
	calls    map[int]*HostedCall
	order    []*HostedCall
	others   bool // there are calls that the client runs
	finish   llm.Finish
	finished bool
	used     llm.Used
	counted  bool
	seen     int64
	events   []llm.Event // scratch

	sources []llm.Source // that searches have found
}

func newLoop(host *Host, req *llm.Request) *loop {
	l := &loop{host: host, req: req}
	l.ask()
	return l
}

// ask begins another request.
func (l *loop) ask() {
	l.requests++
	l.fold = llm.Folder{Keep: true}
	l.items, l.calls, l.order = map[int]int{}, map[int]*HostedCall{}, nil
	l.others, l.finished, l.counted, l.seen = false, false, false, 0
}

// event returns what the client is told of an event.
func (l *loop) event(e llm.Event) []llm.Event {
	out := l.events[:0]
	switch e := e.(type) {
	case llm.Start:
		if !l.begun {
			l.begun = true
			out = append(out, e)
			for _, call := range l.host.Told {
				out = l.whole(out, call)
			}
		}
		l.events = out
		return out
	case llm.Used:
		l.used, l.counted = e, e.Known
		e.Usage = l.usage.Plus(e.Usage)
		out = append(out, e)
	case llm.Finish:
		l.fold.Add(e)
		l.finish, l.finished = l.fold.Answer.Choices[0].Finish, true
	case llm.Open:
		l.fold.Add(e)
		out = l.open(out, e)
	default:
		out = l.inside(out, e)
	}
	l.events = out
	return out
}

// whole tells of something that is over.
func (l *loop) whole(out []llm.Event, call *llm.ServerCall) []llm.Event {
	out = append(out, llm.Open{Item: l.next, Kind: llm.ServerItem, Server: call.Kind}, llm.Close{Item: l.next, Server: call})
	l.next++
	return out
}

func (l *loop) open(out []llm.Event, e llm.Open) []llm.Event {
	tool := l.host.Tools[llm.ToolName{Namespace: e.Space, Name: e.Name}]
	if e.Kind != llm.CallItem || tool == nil {
		l.others = l.others || e.Kind == llm.CallItem
		l.items[e.Item] = l.next
		e.Item = l.next
		l.next++
		return append(out, e)
	}
	call := &HostedCall{Tool: tool, ID: e.CallID.Clone()}
	l.calls[e.Item] = call
	l.order = append(l.order, call)
	switch {
	case tool.Barred || l.host.Calls == 0 || l.requests >= l.host.Requests:
		call.refused = true
		return out
	case tool.Asks:
		return out
	}
	l.host.Calls--
	call.item, call.told = l.next, true
	l.next++
	return append(out, llm.Open{Item: call.item, Kind: llm.ServerItem, Server: tool.Kind, Live: true, Name: tool.Name, Space: tool.Label})
}

// inside is an event of an item that is open, or of none.
func (l *loop) inside(out []llm.Event, e llm.Event) []llm.Event {
	at := itemOf(e)
	if at < 0 {
		return append(out, e)
	}
	if d, ok := e.(llm.Delta); ok {
		l.seen += int64(len(d.Data))
	}
	l.fold.Add(e)
	call := l.calls[at]
	if call == nil {
		if _, over := e.(llm.Close); over {
			out = l.cite(out, l.fold.Item(at), l.items[at])
		}
		return append(out, moved(e, l.items[at]))
	}
	switch e := e.(type) {
	case llm.Delta:
		if call.told && call.Tool.Kind == llm.MCP && e.Channel == llm.ArgsChannel {
			call.argued = true
			return append(out, moved(e, call.item))
		}
	case llm.Close:
		if asked, ok := l.fold.Item(at).(*llm.ToolCall); ok {
			if asked.Args.Blank() {
				asked.Args = llm.Raw(`"{}"`)
			}
			call.Args, call.opaque = asked.Args, asked.Opaque
		}
		if call.told {
			out = append(call.argue(out), llm.Running{Item: call.item})
		}
	}
	return out
}

// argue tells what a call was asked with, where its item has a place for it
// and it was not told yet.
func (c *HostedCall) argue(out []llm.Event) []llm.Event {
	told := c.Args
	switch {
	case c.Tool.Kind == llm.CodeExecution:
		object, _ := c.Args.Object()
		told = Member(object, "code")
	case c.Tool.Kind != llm.MCP || c.argued:
		return out
	}
	if !told.IsText() {
		return out
	}
	return append(out, llm.Delta{Item: c.item, Channel: llm.ArgsChannel, Data: told})
}

// moved is an event of an item, under another number.
func moved(e llm.Event, item int) llm.Event {
	switch e := e.(type) {
	case llm.Delta:
		e.Item = item
		return e
	case llm.Annotate:
		e.Item = item
		return e
	case llm.Picture:
		e.Item = item
		return e
	case llm.Logprobs:
		e.Item = item
		return e
	case llm.Seal:
		e.Item = item
		return e
	case llm.Running:
		e.Item = item
		return e
	case llm.Close:
		e.Item = item
		return e
	}
	return e
}

// cut reports whether the answer ended within its calls, which are not run
// then.
func (l *loop) cut() bool {
	return l.finish.Reason != llm.ToolsCalled && l.finish.Reason != llm.Stopped
}

// waiting are the calls that are to be run.
func (l *loop) waiting() (calls []*HostedCall) {
	for _, call := range l.order {
		if call.told && call.result == nil {
			calls = append(calls, call)
		}
	}
	return calls
}

// goesOn reports whether the upstream is to be asked again.
func (l *loop) goesOn() bool {
	if l.others || l.cut() || l.requests >= l.host.Requests {
		return false
	}
	for _, call := range l.order {
		if call.asks() {
			return false
		}
	}
	return true
}

// asks reports whether a call waits for the client's consent.
func (c *HostedCall) asks() bool { return c.Tool.Asks && !c.refused }

// proceed is the next request.
func (l *loop) proceed() *llm.Request {
	turn := nextTurn(l.req.Items)
	said := l.fold.Answer.Choices[0].Items
	for _, item := range said {
		place(item, turn)
	}
	if whole := l.finish.Turn; whole != nil {
		said = []llm.Item{&llm.NativeTurn{Pos: llm.Pos{Item: turn, Part: -1}, Opaque: *whole, Items: said}}
	}
	req := *l.req
	req.Items = append(req.Items[:len(req.Items):len(req.Items)], said...)
	for _, call := range l.order {
		turn++
		pos := llm.Pos{Item: turn, Part: -1}
		text, failed := noMoreCalls, true
		switch {
		case call.result != nil:
			text, failed = call.result.Text, call.result.Failed
		case call.Tool.Barred:
			text = notAllowed
		}
		req.Items = append(req.Items, &llm.ToolResult{Pos: pos, ID: call.ID, IsError: failed, Parts: []llm.Part{&llm.Text{Pos: pos, Text: text}}})
	}
	switch mode := req.ToolChoice.Mode; {
	case l.requests+1 >= l.host.Requests, l.host.Calls == 0 && l.only():
		req.ToolChoice = llm.ToolChoice{Mode: llm.ChoiceNone}
	case mode == llm.ChoiceRequired || mode == llm.ChoiceNamed: // which was obeyed
		req.ToolChoice = l.host.After
	}
	l.req = &req
	return &req
}

// noMoreCalls is what the model is told of calls beyond the limit.
var noMoreCalls = llm.Quote("This call was not run: no more calls of tools are possible in this answer.")

// notAllowed is what the model is told of calls that the client's choice of
// tools leaves out.
var notAllowed = llm.Quote("This call was not run: the tool may not be called in this answer.")

// only reports whether all tools are the gateway's own.
func (l *loop) only() bool {
	for i := range l.req.Tools {
		t := &l.req.Tools[i]
		if t.Server == nil && l.host.Tools[llm.ToolName{Namespace: t.Namespace, Name: t.Name}] == nil {
			return false
		}
	}
	return true
}

// nextTurn is the number of the turn that comes behind a history.
func nextTurn(items []llm.Item) int {
	turn := len(items)
	if turn > 0 {
		turn = max(turn, items[turn-1].Turn()+1)
	}
	return turn
}

// place says in which turn an item stood.
func place(item llm.Item, turn int) {
	pos := llm.Pos{Item: turn, Part: -1}
	switch item := item.(type) {
	case *llm.Message:
		item.Pos = pos
	case *llm.Reasoning:
		item.Pos = pos
	case *llm.ToolCall:
		item.Pos = pos
	case *llm.ServerCall:
		item.Pos = pos
	}
}

// rest is the end of the answer, with the questions to the client before it.
func (l *loop) rest() (out []llm.Event) {
	for _, call := range l.order {
		if call.asks() && !l.cut() {
			step := &llm.MCPStep{Kind: llm.MCPAsked, Label: call.Tool.Label, Name: call.Tool.Name, Args: call.Args}
			out = l.whole(out, &llm.ServerCall{Kind: call.Tool.Kind, MCP: step, Opaque: call.opaque})
		}
	}
	if l.assumed {
		out = append(out, llm.Used{Usage: l.usage, Known: true})
	}
	if l.finished {
		if len(l.order) > 0 && !l.others && l.finish.Reason == llm.ToolsCalled {
			l.finish.Reason = llm.Stopped
		}
		out = append(out, l.finish)
	}
	return out
}

// count adds up what a request used that is over. size is that of its body.
func (l *loop) count(size int) {
	if l.counted {
		l.usage = l.usage.Plus(l.used.Usage)
		return
	}
	l.usage, l.assumed = l.usage.Plus(llm.Estimate(int64(size), l.seen)), true
}

// unasked refuses a consent to a call that nobody here will run.
func unasked(req *llm.Request) error {
	for _, item := range req.Items {
		if call, ok := item.(*llm.ServerCall); ok && call.MCP != nil && call.MCP.Kind == llm.MCPAnswered {
			at := "input[" + strconv.Itoa(call.Pos.Item) + "].type"
			return NotServed(at, "An item of the type %q in 'input' cannot be sent to the model's upstream: leave it out, or say it as a message.", "mcp_approval_response")
		}
	}
	return nil
}

// Host has the gateway run tools for the answer.
func (t *Translation) Host(host *Host, req *llm.Request) { t.loop = newLoop(host, req) }

// Waiting are the calls that the gateway is to run now, after each of which Ran
// is called, and Proceed after the last. paused is false when the answer does
// not wait for the gateway.
func (t *Translation) Waiting() (calls []*HostedCall, paused bool) {
	if !t.paused {
		return nil, false
	}
	return t.loop.waiting(), true
}

// Cut reports whether the answer ended within its calls, so that they are not
// to be run.
func (t *Translation) Cut() bool { return t.loop.cut() }

// Ran tells what came of a call.
func (t *Translation) Ran(dst []byte, call *HostedCall, result *HostedResult) []byte {
	call.result = result
	result.Call.Opaque = call.opaque
	t.loop.sources = append(t.loop.sources, result.Call.Sources...)
	return t.put(dst, llm.Close{Item: call.item, Server: result.Call})
}

// Proceed goes on when all calls were run: with another request, which Resume
// returns, or with the end of the answer.
func (t *Translation) Proceed(dst []byte) ([]byte, error) {
	l := t.loop
	t.paused = false
	l.count(len(t.Call.Body))
	if !l.goesOn() {
		for _, e := range l.rest() {
			dst = t.put(dst, e)
		}
		return t.conclude(dst), nil
	}
	call, err := t.outbound.Encode(l.proceed(), t.caps)
	if err != nil {
		return dst, err
	}
	call.Rounds = t.Call.Rounds
	t.Call, t.next = call, call
	t.decoder, t.restore = t.outbound.Answers(call, t.caps), NewRestore(call.Names)
	l.ask()
	return dst, nil
}
