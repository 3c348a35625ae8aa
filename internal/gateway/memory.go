package gateway

import (
	"github.com/limen-gateway/limen/internal/llm"
	"github.com/limen-gateway/limen/internal/lru"
)

// memory keeps, for clients that drop it, the opaque reasoning that belongs to
// calls of tools: a Chat Completions client sends back the calls it was given,
// by their IDs, and little more. It is bounded in bytes; what was used least
// recently goes first, and nothing outlives the process.
type memory struct {
	calls *lru.Cache[memoryKey, *remembered]
}

// memoryKey is a call of a tool, as one client key knows it: another key's
// calls are never recalled.
type memoryKey struct{ owner, origin, call string }

type remembered struct {
	reasoning *llm.Reasoning // that led to the call; may be nil
	opaque    []llm.Opaque   // of the call itself
}

// memoryLimit is how much reasoning is kept, in bytes.
const memoryLimit = 32 << 20

func newMemory() *memory { return &memory{lru.New[memoryKey, *remembered](memoryLimit)} }

func (a *attempt) memoryKey(call llm.Raw) memoryKey {
	return memoryKey{owner: a.Key.ID, origin: a.way.caps.Vendor + " " + a.way.caps.Origin, call: call.Text()}
}

// recall puts back what a request's calls have lost.
func (m *memory) recall(a *attempt, req *llm.Request) {
	if !a.set.Remember || !forgetful(req.Items) {
		return
	}
	items := make([]llm.Item, 0, len(req.Items)+4)
	var last llm.Item
	for _, item := range req.Items {
		call, ok := item.(*llm.ToolCall)
		if ok && len(call.Opaque) == 0 {
			if r, ok := m.calls.Get(a.memoryKey(call.ID)); ok {
				call.Opaque = r.opaque
				if _, thought := last.(*llm.Reasoning); r.reasoning != nil && !thought {
					own := *r.reasoning
					own.Pos = call.Pos
					items = insertBefore(items, &own)
				}
			}
		}
		items = append(items, item)
		last = item
	}
	req.Items = items
}

// insertBefore puts reasoning in front of the turn that it led to.
func insertBefore(items []llm.Item, r *llm.Reasoning) []llm.Item {
	at := len(items)
	for at > 0 {
		if m, ok := items[at-1].(*llm.Message); !ok || m.Role != llm.Assistant || m.Turn() != r.Turn() {
			break
		}
		at--
	}
	items = append(items, nil)
	copy(items[at+1:], items[at:])
	items[at] = r
	return items
}

// forgetful reports whether there are calls, and nothing opaque with any.
func forgetful(items []llm.Item) bool {
	calls := false
	for _, item := range items {
		switch item := item.(type) {
		case *llm.ToolCall:
			calls = calls || len(item.Opaque) == 0
		case *llm.NativeTurn:
			return false
		}
	}
	return calls
}

// watch returns what listens to the events of a call's answer.
func (m *memory) watch(a *attempt) func(llm.Event) {
	if !a.set.Remember {
		return nil
	}
	w := &memoryWatch{memory: m, of: a}
	return w.event
}

// memoryWatch gathers the reasoning of an answer until calls follow it.
type memoryWatch struct {
	memory *memory
	of     *attempt
	fold   llm.Folder
	at     map[int]int // their numbers in fold
	last   *llm.Reasoning
	used   bool
}

func (w *memoryWatch) event(e llm.Event) {
	switch e := e.(type) {
	case llm.Open:
		if e.Kind != llm.ReasoningItem && e.Kind != llm.CallItem {
			return
		}
		if w.at == nil {
			w.at = map[int]int{}
			w.fold.Keep = true
		}
		n := len(w.at)
		w.at[e.Item] = n
		own := e
		own.Item, own.Choice = n, 0
		w.fold.Add(own)
	case llm.Delta:
		if n, ok := w.at[e.Item]; ok && e.Channel != llm.ArgsChannel {
			own := e
			own.Item = n
			w.fold.Add(own)
		}
	case llm.Seal:
		if n, ok := w.at[e.Item]; ok {
			own := e
			own.Item = n
			w.fold.Add(own)
		}
	case llm.Close:
		if n, ok := w.at[e.Item]; ok {
			w.fold.Add(llm.Close{Item: n})
			w.closed(w.fold.Item(n))
		}
	}
}

func (w *memoryWatch) closed(item llm.Item) {
	switch item := item.(type) {
	case *llm.Reasoning:
		if len(item.Opaque) > 0 {
			w.last, w.used = item, false
		}
	case *llm.ToolCall:
		r := &remembered{opaque: item.Opaque}
		if !w.used {
			r.reasoning, w.used = w.last, true
		}
		if r.reasoning != nil || len(r.opaque) > 0 {
			w.memory.keep(w.of.memoryKey(item.ID), r)
		}
	}
}

func (m *memory) keep(key memoryKey, r *remembered) {
	const overhead = 256
	size := overhead + len(key.call)
	for _, o := range r.opaque {
		size += len(o.Data)
	}
	if r.reasoning != nil {
		for _, t := range r.reasoning.Texts {
			size += len(t.Text)
		}
		for _, o := range r.reasoning.Opaque {
			size += len(o.Data)
		}
	}
	m.calls.Put(key, r, size)
}
