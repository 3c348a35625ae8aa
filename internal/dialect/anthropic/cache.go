package anthropic

import "github.com/limen-gateway/limen/internal/llm"

// maxBreakpoints is how many a request may have.
const maxBreakpoints = 4

// leastCached is how long a prompt must be, in bytes of JSON, for breakpoints
// to be put into it: no model caches less than 512 tokens. A model that caches
// only longer ones passes over a breakpoint at no cost.
const leastCached = 2048

// longTTL and shortTTL are the times to live that there are. The short one
// need not be said.
const (
	shortTTL = "5m"
	longTTL  = "1h"
)

// marked are all blocks that a breakpoint may stand on, in the order of the
// prefix that is cached: tools, instructions, messages.
func (o *outgoing) marked(tools []block) []*block {
	var all []*block
	for i := range tools {
		all = append(all, &tools[i])
	}
	for i := range o.system {
		all = append(all, &o.system[i])
	}
	for _, t := range o.turns {
		for i := range t.blocks {
			all = append(all, &t.blocks[i])
		}
	}
	return all
}

// placeCache puts breakpoints into a long prompt of a client that has none and
// could not have said them: after what stays the same, and after the last two
// turns of the user, so that the next request reads what this one wrote.
func (o *outgoing) placeCache(tools []block) {
	if !o.req.PlacesCache(o.caps) {
		return
	}
	size := 0
	for _, b := range o.marked(tools) {
		if b.cache != nil {
			return
		}
		size += b.size()
	}
	if size < leastCached {
		return
	}
	for _, blocks := range [][]block{tools, o.system} {
		if n := len(blocks); n > 0 {
			blocks[n-1].cache = &llm.Breakpoint{}
		}
	}
	placed := 0
	for i := len(o.turns) - 1; i >= 0 && placed < 2; i-- {
		if t := o.turns[i]; t.role == userRole {
			t.blocks[len(t.blocks)-1].cache = &llm.Breakpoint{}
			placed++
		}
	}
}

// settleCache keeps the last of too many breakpoints, and gives each a time to
// live that there is. A long one may not follow a short one.
func (o *outgoing) settleCache(tools []block) {
	allowed := maxBreakpoints
	if auto := o.req.Cache.Auto; auto != nil {
		allowed--
		o.auto = &llm.Breakpoint{TTL: o.ttl(auto.TTL)}
	}
	var points []*block
	for _, b := range o.marked(tools) {
		if b.cache != nil {
			points = append(points, b)
		}
	}
	if extra := len(points) - allowed; extra > 0 {
		o.notes.Drop(o.param("prompt_cache_breakpoint"))
		for _, b := range points[:extra] {
			b.cache = nil
		}
		points = points[extra:]
	}
	short := false
	for _, b := range points {
		point := llm.Breakpoint{TTL: o.ttl(b.cache.TTL)}
		if point.TTL == longTTL && short {
			o.notes.Clamp("cache_ttl")
			point.TTL = shortTTL
		}
		short = short || point.TTL != longTTL
		b.cache = &point
	}
}

// ttl is the time to live that comes nearest.
func (o *outgoing) ttl(said string) string {
	switch said {
	case "", shortTTL, longTTL:
		return said
	}
	o.notes.Clamp("cache_ttl")
	return longTTL
}
