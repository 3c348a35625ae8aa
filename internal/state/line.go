package state

import "sync"

// line is a thread's items in memory, from the first on. Turns only ever add
// to it: what was read of it before stays as it was.
type line struct {
	mu    sync.Mutex
	items []byte          // joined by commas
	ends  []int           // where each item ends in items
	calls map[string]span // by the ID of the call
	// compactions are the items that stand for all before them: how many
	// items the line had with each.
	compactions []int
}

// span is from which item on a call is known, and from which its result; 0 is
// not at all.
type span struct{ called, answered int }

// past is what came before a turn: the first length items of a line.
type past struct {
	line   *line
	length int
}

// bytes are the items, joined by commas: those from the last compaction on,
// which stands for the others.
func (p past) bytes() []byte {
	if p.length == 0 {
		return nil
	}
	p.line.mu.Lock()
	defer p.line.mu.Unlock()
	start, end := 0, p.line.ends[p.length-1]
	for _, n := range p.line.compactions {
		if n > 1 && n <= p.length {
			start = p.line.ends[n-2] + 1
		}
	}
	return p.line.items[start:end:end]
}

// extend returns the past of what follows a turn that had items.
func (p past) extend(items []item) past {
	l := p.line
	if l == nil {
		l = &line{calls: map[string]span{}}
	}
	l.mu.Lock()
	if len(l.ends) > p.length { // others went on from here
		l = l.fork(p.length)
		l.mu.Lock()
	}
	defer l.mu.Unlock()
	for _, it := range items {
		if !it.passing {
			l.add(it)
		}
	}
	return past{l, len(l.ends)}
}

// fork copies the first items of a line. It gives mu back.
func (l *line) fork(length int) *line {
	defer l.mu.Unlock()
	own := &line{calls: make(map[string]span, len(l.calls))}
	if length > 0 {
		own.items = append(own.items, l.items[:l.ends[length-1]]...)
		own.ends = append(own.ends, l.ends[:length]...)
	}
	for _, n := range l.compactions {
		if n <= length {
			own.compactions = append(own.compactions, n)
		}
	}
	for id, s := range l.calls {
		if s.called > length {
			s.called = 0
		}
		if s.answered > length {
			s.answered = 0
		}
		if s != (span{}) {
			own.calls[id] = s
		}
	}
	return own
}

// add appends an item; mu is held.
func (l *line) add(it item) {
	if len(l.items) > 0 {
		l.items = append(l.items, ',')
	}
	l.items = append(l.items, it.json...)
	l.ends = append(l.ends, len(l.items))
	if it.compaction {
		l.compactions = append(l.compactions, len(l.ends))
	}
	if it.call == "" {
		return
	}
	s := l.calls[it.call]
	switch {
	case it.result && s.answered == 0:
		s.answered = len(l.ends)
	case !it.result && s.called == 0:
		s.called = len(l.ends)
	}
	l.calls[it.call] = s
}

// size is about the memory that the line takes, in bytes.
func (l *line) size() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return cap(l.items) + 8*cap(l.ends) + 64*len(l.calls) + 256
}

// unmatched returns the ID of a result among items whose call is neither there
// nor in the past, and that of a call of the past that has no result in either.
func (p past) unmatched(items []item) (result, call string) {
	known, answered := map[string]bool{}, map[string]bool{}
	for _, it := range items {
		switch {
		case it.call == "":
		case it.result:
			answered[it.call] = true
		default:
			known[it.call] = true
		}
	}
	var calls map[string]span
	if p.line != nil {
		p.line.mu.Lock()
		defer p.line.mu.Unlock()
		calls = p.line.calls
	}
	for _, it := range items {
		if s, ok := calls[it.call]; it.result && !known[it.call] && !(ok && s.called > 0 && s.called <= p.length) {
			result = it.call
			break
		}
	}
	first := 0
	for id, s := range calls {
		open := s.called > 0 && s.called <= p.length && (s.answered == 0 || s.answered > p.length)
		if open && !answered[id] && (first == 0 || s.called < first) {
			call, first = id, s.called
		}
	}
	return result, call
}
