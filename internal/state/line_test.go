package state

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
)

// TestLines goes on from random places of a tree of turns, and compares each
// with a model that copies everything.
func TestLines(t *testing.T) {
	for seed := range uint64(200) {
		random := rand.New(rand.NewPCG(seed, 0))
		type node struct {
			past  past
			items []item
		}
		nodes := []node{{}}
		for range 60 {
			from := nodes[random.IntN(len(nodes))]
			if random.IntN(2) == 0 {
				from = nodes[len(nodes)-1]
			}
			var items []item
			for range random.IntN(4) {
				items = append(items, randomItem(random))
			}
			next := node{from.past.extend(items), append(from.items[:len(from.items):len(from.items)], items...)}
			nodes = append(nodes, next)
		}
		for i, n := range nodes {
			var texts []string
			for _, it := range n.items {
				texts = append(texts, string(it.json))
			}
			if got, want := string(n.past.bytes()), strings.Join(texts, ","); got != want {
				t.Fatalf("seed %d, turn %d: got %s, want %s", seed, i, got, want)
			}
			var on []item
			for range random.IntN(4) {
				on = append(on, randomItem(random))
			}
			result, call := n.past.unmatched(on)
			wantResult, wantCall := unmatchedInModel(n.items, on)
			if result != wantResult || call != wantCall {
				t.Fatalf("seed %d, turn %d: %v and then %v: got %q and %q, want %q and %q", seed, i, n.items, on, result, call, wantResult, wantCall)
			}
		}
	}
}

// randomItem is a message, a call, or a result; with few IDs of calls, so that
// they meet.
func randomItem(random *rand.Rand) item {
	n := random.IntN(9)
	it := item{id: fmt.Sprint("i", n), json: fmt.Appendf(nil, `{"n":%d}`, random.IntN(1000))}
	if n > 2 {
		it.call, it.result = fmt.Sprint("c", random.IntN(5)), n > 5
	}
	return it
}

// unmatchedInModel says the same as unmatched from a plain list.
func unmatchedInModel(before, on []item) (result, call string) {
	has := func(list []item, id string, result bool) bool {
		for _, it := range list {
			if it.call == id && it.result == result {
				return true
			}
		}
		return false
	}
	for _, it := range on {
		if it.result && result == "" && !has(on, it.call, false) && !has(before, it.call, false) {
			result = it.call
		}
	}
	for _, it := range before {
		if it.call != "" && !it.result && call == "" && !has(before, it.call, true) && !has(on, it.call, true) {
			call = it.call
		}
	}
	return result, call
}

// TestLineAtOnce has many that go on from one place at once, and others that
// read what was there.
func TestLineAtOnce(t *testing.T) {
	base := past{}.extend([]item{{id: "a", json: []byte(`{"a":1}`), call: "c"}})
	var running sync.WaitGroup
	for i := range 16 {
		running.Go(func() {
			at := base
			want := `{"a":1}`
			for n := range 50 {
				json := fmt.Sprintf(`{"%d":%d}`, i, n)
				at = at.extend([]item{{id: "x", json: []byte(json), call: "c", result: true}})
				want += "," + json
				if got := string(at.bytes()); got != want {
					t.Errorf("got %s, want %s", got, want)
					return
				}
				if got := string(base.bytes()); got != `{"a":1}` {
					t.Errorf("where it began: %s", got)
					return
				}
				if _, call := base.unmatched(nil); call != "c" {
					t.Errorf("the open call: %q", call)
				}
				at.line.size()
			}
		})
	}
	running.Wait()
}
