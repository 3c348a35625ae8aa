package gateway

import (
	"container/list"
	"sync"

	"github.com/limen-gateway/limen/internal/llm"
)

// memory keeps, for clients that drop it, the opaque reasoning that belongs to
// calls of tools: a Chat Completions client sends back the calls it was given,
// by their IDs, and little more. It is bounded in bytes; what was used least
// recently goes first, and nothing outlives the process.
type memory struct {
	mu    sync.Mutex
	limit int
	size  int
	order *list.List // of *remembered, the latest in front
	byID  map[memoryKey]*list.Element
}

// memoryKey is a call of a tool, as one client key knows it: another key's
// calls are never recalled.
type memoryKey struct{ owner, origin, call string }

type remembered struct {
	key       memoryKey
	reasoning *llm.Reasoning // that led to the call; may be nil
	opaque    []llm.Opaque   // of the call itself
	size      int
}

// memoryLimit is how much reasoning is kept, in bytes.
const memoryLimit = 32 << 20

func newMemory() *memory {
	return &memory{limit: memoryLimit, order: list.New(), byID: map[memoryKey]*list.Element{}}
}

func (c *Call) memoryKey(call llm.Raw) memoryKey {
	return memoryKey{owner: c.Key.ID, origin: c.way.caps.Vendor + " " + c.way.caps.Origin, call: call.Text()}
}

// recall puts back what a request's calls have lost.
func (m *memory) recall(c *Call, req *llm.Request) {
	if !c.set.Remember || !forgetful(req.Items) {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	items := make([]llm.Item, 0, len(req.Items)+4)
	var last llm.Item
	for _, item := range req.Items {
		call, ok := item.(*llm.ToolCall)
		if ok && len(call.Opaque) == 0 {
			if e := m.byID[c.memoryKey(call.ID)]; e != nil {
				m.order.MoveToFront(e)
				r := e.Value.(*remembered)
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
func (m *memory) watch(c *Call) func(llm.Event) {
	if !c.set.Remember {
		return nil
	}
	w := &memoryWatch{memory: m, call: c}
	return w.event
}

// memoryWatch gathers the reasoning of an answer until calls follow it.
type memoryWatch struct {
	memory *memory
	call   *Call
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
		r := &remembered{key: w.call.memoryKey(item.ID), opaque: item.Opaque}
		if !w.used {
			r.reasoning, w.used = w.last, true
		}
		if r.reasoning != nil || len(r.opaque) > 0 {
			w.memory.keep(r)
		}
	}
}

func (m *memory) keep(r *remembered) {
	const overhead = 256
	r.size = overhead + len(r.key.call)
	for _, o := range r.opaque {
		r.size += len(o.Data)
	}
	if r.reasoning != nil {
		for _, t := range r.reasoning.Texts {
			r.size += len(t.Text)
		}
		for _, o := range r.reasoning.Opaque {
			r.size += len(o.Data)
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if old := m.byID[r.key]; old != nil {
		m.drop(old)
	}
	m.byID[r.key] = m.order.PushFront(r)
	m.size += r.size
	for m.size > m.limit && m.order.Len() > 0 {
		m.drop(m.order.Back())
	}
}

func (m *memory) drop(e *list.Element) {
	r := m.order.Remove(e).(*remembered)
	delete(m.byID, r.key)
	m.size -= r.size
}
