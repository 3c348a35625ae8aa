package gateway

import (
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/cespare/xxhash/v2"

	"github.com/limen-gateway/limen/internal/dialect"
	"github.com/limen-gateway/limen/internal/llm"
	"github.com/limen-gateway/limen/internal/lru"
)

// sessionHeaders are where clients say which conversation a call belongs to.
var sessionHeaders = []string{"Session-Id", "Session_id", "X-Session-Id", "X-Session-Affinity", "X-Claude-Code-Session-Id", "Thread-Id"}

// threadOf is a number that the turns of a conversation have in common, by what
// the client calls it or, without a name, by how it opens. It is the same in
// every process.
func threadOf(p *dialect.Prompt, header http.Header) uint64 {
	if len(p.Thread) > len(`""`) {
		return xxhash.Sum64(p.Thread)
	}
	for _, name := range sessionHeaders {
		if id := header[name]; len(id) > 0 && id[0] != "" {
			return xxhash.Sum64String(id[0])
		}
	}
	return p.Opening()
}

// minCached is the smallest prompt, in bytes, that upstreams are taken to keep:
// about 1,024 tokens, which most of them have for a minimum.
const minCached = 4 << 10

// shortestKept is how long upstreams keep a prompt at least.
const shortestKept = 5 * time.Minute

// A fingerprint has hashes of a conversation's beginnings, at most marksKept of
// them, whose lengths are multiples of a power of two: so those of a longer one
// are among them.
const (
	marksKept = 64
	minStride = 256
)

type fingerprint struct {
	tools, instructions uint64
	stride              int
	marks               []uint64
}

// fingerprintOf returns nil for a prompt that is too short to be cached.
func fingerprintOf(p *dialect.Prompt) *fingerprint {
	if len(p.Tools)+len(p.Instructions)+len(p.Items) < minCached {
		return nil
	}
	f := &fingerprint{tools: xxhash.Sum64(p.Tools), instructions: xxhash.Sum64(p.Instructions), stride: minStride}
	items := p.Items[:max(len(p.Items)-1, 0)] // the closing bracket moves
	for len(items)/f.stride > marksKept {
		f.stride *= 2
	}
	f.marks = make([]uint64, 0, len(items)/f.stride)
	var d xxhash.Digest
	d.Reset()
	for ; len(items) >= f.stride; items = items[f.stride:] {
		d.Write(items[:f.stride])
		f.marks = append(f.marks, d.Sum64())
	}
	return f
}

// difference says where a prompt departs from the one of the turn before; ""
// when it goes on from it.
func (f *fingerprint) difference(before *fingerprint) string {
	switch {
	case f.tools != before.tools:
		return "the tools changed"
	case f.instructions != before.instructions:
		return "the instructions changed"
	}
	stride := max(f.stride, before.stride)
	for end := stride; ; end += stride {
		i, j := end/f.stride-1, end/before.stride-1
		if j >= len(before.marks) {
			return ""
		}
		if i >= len(f.marks) || f.marks[i] != before.marks[j] {
			return fmt.Sprintf("the conversation changed between its bytes %d and %d", end-stride, end)
		}
	}
}

// cacheWatch knows the last turn of conversations, to say why a prompt cache
// was not read although it was expected to be.
type cacheWatch struct {
	shards [16]*lru.Cache[uint64, *turnSeen]
	caches sync.Map // upstream/model -> true, once it told of a cache
}

// turnSeen is a turn whose prompt may be in a cache.
type turnSeen struct {
	print          *fingerprint
	account, model string
	at             time.Time
}

// turnSize is what a turn is taken to need, in bytes.
const turnSize = 1 << 10

func newCacheWatch() *cacheWatch {
	w := &cacheWatch{}
	for i := range w.shards {
		w.shards[i] = lru.New[uint64, *turnSeen](1 << 20)
	}
	return w
}

// see takes a turn that ended well, and returns why it read no cache although
// the turn before gave reason to expect it; "" when it did, or there was none.
func (w *cacheWatch) see(thread uint64, now *turnSeen, usage llm.Usage) (missed string) {
	if now.print == nil || usage.Estimated {
		return ""
	}
	shard := w.shards[thread%uint64(len(w.shards))]
	target := now.account + "\n" + now.model
	if usage.CacheRead+usage.CacheWrite > 0 {
		w.caches.LoadOrStore(target, true)
	}
	before, ok := shard.Get(thread)
	if ok && usage.CacheRead == 0 {
		missed = now.missed(before)
	}
	if _, caches := w.caches.Load(target); caches {
		shard.Put(thread, now, turnSize)
	}
	return missed
}

func (t *turnSeen) missed(before *turnSeen) string {
	switch {
	case t.account != before.account:
		return fmt.Sprintf("another account answered: %s after %s", t.account, before.account)
	case t.model != before.model:
		return fmt.Sprintf("another model answered: %s after %s", t.model, before.model)
	}
	if difference := t.print.difference(before.print); difference != "" {
		return difference
	}
	passed := t.at.Sub(before.at).Round(time.Second)
	if passed > shortestKept {
		return fmt.Sprintf("%s had passed since the turn before", passed)
	}
	return fmt.Sprintf("the upstream did not read it, %s after the turn before", passed)
}
