package route

import (
	"sync"
	"time"
)

// Bounds of what is remembered of conversations.
const (
	stickyShards = 64
	stickyShard  = 1024 // conversations
	stickyTTL    = time.Hour
)

// sticky remembers where conversations are. Those that were not heard of for
// longest go first.
type sticky [stickyShards]stickyPart

type stickyPart struct {
	mu      sync.Mutex
	at      map[uint64]int32
	entries []conversation // a ring through the first, which stands for none
	free    int32          // head of those that are not in the ring
}

type conversation struct {
	key        uint64
	used       int64
	health     *Health
	prev, next int32
}

func (s *sticky) part(key uint64) *stickyPart { return &s[key>>32%stickyShards] }

// find returns where a conversation is; nil when that is not known.
func (s *sticky) find(key uint64, now int64) *Health {
	p := s.part(key)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.expire(now)
	i, ok := p.at[key]
	if !ok {
		return nil
	}
	p.unlink(i)
	p.pushFront(i)
	p.entries[i].used = now
	return p.entries[i].health
}

// put says where a conversation is from now on.
func (s *sticky) put(key uint64, h *Health, now int64) {
	p := s.part(key)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.at == nil {
		p.at, p.entries = map[uint64]int32{}, make([]conversation, 1)
	}
	p.expire(now)
	i, ok := p.at[key]
	if ok {
		p.entries[i].health.held.Add(-1)
		p.unlink(i)
	} else {
		i = p.room()
		p.at[key] = i
	}
	h.held.Add(1)
	p.entries[i] = conversation{key: key, used: now, health: h}
	p.pushFront(i)
}

// expire forgets some of those that are over their time, so that nobody waits
// for all.
func (p *stickyPart) expire(now int64) {
	for range 4 {
		if len(p.at) == 0 {
			return
		}
		last := p.entries[0].prev
		if now-p.entries[last].used < int64(stickyTTL) {
			return
		}
		p.drop(last)
	}
}

// room finds a place for one more.
func (p *stickyPart) room() int32 {
	if len(p.at) >= stickyShard {
		p.drop(p.entries[0].prev)
	}
	if i := p.free; i != 0 {
		p.free = p.entries[i].next
		return i
	}
	p.entries = append(p.entries, conversation{})
	return int32(len(p.entries) - 1)
}

func (p *stickyPart) drop(i int32) {
	e := &p.entries[i]
	p.unlink(i)
	e.health.held.Add(-1)
	delete(p.at, e.key)
	*e = conversation{next: p.free}
	p.free = i
}

func (p *stickyPart) unlink(i int32) {
	e := p.entries[i]
	p.entries[e.prev].next = e.next
	p.entries[e.next].prev = e.prev
}

func (p *stickyPart) pushFront(i int32) {
	first := p.entries[0].next
	p.entries[i].prev, p.entries[i].next = 0, first
	p.entries[first].prev = i
	p.entries[0].next = i
}
