package bedrock

import (
	"github.com/limen-gateway/limen/internal/jsonedit"
	"github.com/limen-gateway/limen/internal/llm"
)

// maxBreakpoints is how many marks for the prompt cache a request may have.
const maxBreakpoints = 4

// leastCached is how long a prompt must be, in bytes of JSON, for marks to be
// put into it: no model caches less than 512 tokens. A model that caches only
// longer ones passes over a mark at no cost.
const leastCached = 2048

// The times to live that there are. The short one need not be said.
const (
	shortTTL = "5m"
	longTTL  = "1h"
)

// caches reports whether the model takes marks. One that does not fails on
// them.
func (e *encoder) caches() bool {
	b := &e.caps.Bedrock
	return (b.Family == familyAnthropic || b.Family == familyNova) && !b.NoCachePoints
}

// mark settles where marks for the prompt cache stand: where the client has
// them, or else where they serve the next request.
func (e *encoder) mark() {
	e.toolMarks = make([]*llm.Breakpoint, len(e.functions))
	for i := range e.functions {
		if e.tools {
			e.toolMarks[i] = e.functions[i].Tool.Cache
		}
	}
	switch points := e.points(); {
	case !e.caches():
		e.unmark(points)
	case e.req.Cache.Auto != nil:
		e.markTurns(e.req.Cache.Auto)
	case e.req.PlacesCache(e.caps) && len(set(points)) == 0 && e.size() >= leastCached:
		e.markPrompt()
	}
	e.settleMarks()
}

// points are the places where a mark may stand, in the order of the prefix that
// is cached: tools, instructions, messages.
func (e *encoder) points() []**llm.Breakpoint {
	var all []**llm.Breakpoint
	for i := range e.toolMarks {
		all = append(all, &e.toolMarks[i])
	}
	for i := range e.system {
		all = append(all, &e.system[i].cache)
	}
	for _, t := range e.turns {
		for i := range t.blocks {
			all = append(all, &t.blocks[i].cache)
		}
	}
	return all
}

// set are the places that have a mark.
func set(points []**llm.Breakpoint) []**llm.Breakpoint {
	var marked []**llm.Breakpoint
	for _, p := range points {
		if *p != nil {
			marked = append(marked, p)
		}
	}
	return marked
}

// unmark takes marks away.
func (e *encoder) unmark(points []**llm.Breakpoint) {
	for _, p := range set(points) {
		*p = nil
		e.notes.Drop(e.param("prompt_cache_breakpoint"))
	}
}

// size is the length of what the model reads.
func (e *encoder) size() (n int) {
	if e.tools {
		for i := range e.functions {
			n += len(e.functions[i].Desc) + len(e.functions[i].Schema)
		}
	}
	for i := range e.system {
		n += e.system[i].size()
	}
	for _, t := range e.turns {
		for i := range t.blocks {
			n += t.blocks[i].size()
		}
	}
	return n
}

func (b *block) size() int {
	n := len(b.text) + len(b.data)
	for i := range b.parts {
		n += b.parts[i].size()
	}
	return n
}

// markPrompt puts marks after what stays the same, and after the last two turns of
// the user, so that the next request reads what this one wrote.
func (e *encoder) markPrompt() {
	if n := len(e.toolMarks); e.tools && n > 0 && e.marksTools() {
		e.toolMarks[n-1] = &llm.Breakpoint{}
	}
	if n := len(e.system); n > 0 {
		e.system[n-1].cache = &llm.Breakpoint{}
	}
	e.markTurns(&llm.Breakpoint{})
}

// marksTools reports whether marks may stand behind tools.
func (e *encoder) marksTools() bool { return e.caps.Bedrock.Family != familyNova }

func (e *encoder) markTurns(as *llm.Breakpoint) {
	placed := 0
	for i := len(e.turns) - 1; i >= 0 && placed < 2; i-- {
		t := e.turns[i]
		if t.role != userRole {
			continue
		}
		placed++
		if end := &t.blocks[len(t.blocks)-1]; end.cache == nil {
			end.cache = as
		}
	}
}

// settleMarks keeps the last of too many marks, which cover what the others
// do, and gives each a time to live that there is. A long one may not follow a
// short one.
func (e *encoder) settleMarks() {
	points := e.points()
	if !e.marksTools() {
		e.unmark(points[:len(e.toolMarks)])
	}
	marked := set(points)
	if extra := len(marked) - maxBreakpoints; extra > 0 {
		e.unmark(marked[:extra])
		marked = marked[extra:]
	}
	short := e.caps.Bedrock.Family == familyNova // which has no other
	for _, p := range marked {
		settled := llm.Breakpoint{TTL: (*p).TTL}
		switch {
		case settled.TTL == "" || settled.TTL == shortTTL:
			settled.TTL, short = "", true
		case short:
			e.notes.Clamp("cache_ttl")
			settled.TTL = ""
		case settled.TTL != longTTL:
			e.notes.Clamp("cache_ttl")
			settled.TTL = longTTL
		}
		*p = &settled
	}
}

// writeBreakpoint writes a mark for the prompt cache behind what it ends.
func writeBreakpoint(w *jsonedit.Writer, cache *llm.Breakpoint) {
	if cache == nil {
		return
	}
	w.BeginObject()
	w.Object("cachePoint")
	w.SetText("type", "default")
	if cache.TTL != "" {
		w.SetText("ttl", cache.TTL)
	}
	w.EndObject()
	w.EndObject()
}
