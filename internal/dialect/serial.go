package dialect

import "github.com/limen-gateway/limen/internal/llm"

// Serial puts the items of an answer one after the other, for dialects in
// which only one may be open: the first that is open goes through as it comes,
// what belongs to others waits until it is closed.
type Serial struct {
	open    int // the item that goes through; -1 when none
	waiting []waitingItem
	after   []llm.Event // of no item, held until nothing waits
}

type waitingItem struct {
	item   int
	closed bool
	events []llm.Event
}

// NewSerial starts with no item open.
func NewSerial() *Serial { return &Serial{open: -1} }

// Event appends the events that may be told now that e has come.
func (s *Serial) Event(dst []llm.Event, e llm.Event) []llm.Event {
	item := itemOf(e)
	switch {
	case item < 0 && len(s.waiting) == 0:
		return append(dst, e)
	case item < 0:
		if _, finish := e.(llm.Finish); finish {
			s.after = append(s.after, e)
			return dst
		}
		return append(dst, e)
	case s.open < 0:
		if _, closing := e.(llm.Close); !closing {
			s.open = item
		}
		return append(dst, e)
	case item != s.open:
		s.hold(item, e)
		return dst
	}
	dst = append(dst, e)
	if _, closing := e.(llm.Close); closing {
		dst = s.next(dst)
	}
	return dst
}

// next lets what waited through, up to an item that is still open.
func (s *Serial) next(dst []llm.Event) []llm.Event {
	s.open = -1
	for len(s.waiting) > 0 {
		w := s.waiting[0]
		s.waiting = s.waiting[1:]
		dst = append(dst, w.events...)
		if !w.closed {
			s.open = w.item
			return dst
		}
	}
	dst = append(dst, s.after...)
	s.after = nil
	return dst
}

func (s *Serial) hold(item int, e llm.Event) {
	_, closing := e.(llm.Close)
	for i := range s.waiting {
		if w := &s.waiting[i]; w.item == item {
			w.add(e)
			w.closed = closing
			return
		}
	}
	w := waitingItem{item: item, closed: closing}
	w.add(e)
	s.waiting = append(s.waiting, w)
}

// add keeps an event beyond the frame that it came from. Pieces of one text
// grow together.
func (w *waitingItem) add(e llm.Event) {
	d, ok := e.(llm.Delta)
	if !ok {
		w.events = append(w.events, cloned(e))
		return
	}
	if n := len(w.events); n > 0 {
		if last, ok := w.events[n-1].(llm.Delta); ok && last.Channel == d.Channel && last.Part == d.Part {
			last.Data = append(append(last.Data[:len(last.Data)-1], d.Data.Inner()...), '"')
			w.events[n-1] = last
			return
		}
	}
	d.Data = d.Data.Clone()
	w.events = append(w.events, d)
}

func cloned(e llm.Event) llm.Event {
	switch e := e.(type) {
	case llm.Open:
		e.ID, e.CallID, e.Phase = e.ID.Clone(), e.CallID.Clone(), e.Phase.Clone()
		own := make([]llm.Opaque, len(e.Opaque))
		for i, o := range e.Opaque {
			o.Data, o.For = o.Data.Clone(), o.For.Clone()
			own[i] = o
		}
		e.Opaque = own
		return e
	case llm.Annotate:
		a := &e.Annotation
		a.URL, a.Title, a.Native = a.URL.Clone(), a.Title.Clone(), a.Native.Clone()
		return e
	case llm.Seal:
		e.Opaque.Data, e.Opaque.For = e.Opaque.Data.Clone(), e.Opaque.For.Clone()
		return e
	case llm.Logprobs:
		tokens := make([]llm.Raw, len(e.Tokens))
		for i, t := range e.Tokens {
			tokens[i] = t.Clone()
		}
		e.Tokens = tokens
		return e
	case llm.Picture:
		m := *e.Media
		m.Data, m.URL = m.Data.Clone(), m.URL.Clone()
		e.Media = &m
		return e
	case llm.Close:
		if e.Server != nil {
			own := *e.Server
			own.Clone()
			e.Server = &own
		}
		return e
	}
	return e
}

// itemOf is the item that an event belongs to, -1 for none.
func itemOf(e llm.Event) int {
	switch e := e.(type) {
	case llm.Open:
		return e.Item
	case llm.Delta:
		return e.Item
	case llm.Annotate:
		return e.Item
	case llm.Picture:
		return e.Item
	case llm.Logprobs:
		return e.Item
	case llm.Seal:
		return e.Item
	case llm.Running:
		return e.Item
	case llm.Close:
		return e.Item
	}
	return -1
}
