package tokens

import "slices"

// merger finds how many tokens a piece of text becomes: beginning with its
// bytes, of all neighbours that are a token together those of the lowest rank
// are joined, the first of equals, until none are left. It can be used again.
type merger struct {
	parts []part
	heap  []candidate
}

// part is what has been joined so far, in a list by the offsets where parts
// begin.
type part struct {
	before, next int32
	rank         uint32 // of this part and the next together
}

// candidate is a pair that can be joined: rank, then the offset of the first,
// so that the smallest number goes first.
type candidate uint64

// count is the number of tokens of a piece.
func (m *merger) count(v *vocabulary, piece string) int {
	if len(piece) == 1 || v.rank(piece) != noRank {
		return 1
	}
	m.start(v, piece)
	tokens := len(piece)
	for len(m.heap) > 0 {
		c := m.pop()
		at := int32(uint32(c))
		p := &m.parts[at]
		if p.rank != uint32(c>>32) {
			continue // one of the two was joined to another since
		}
		tokens--
		gone := &m.parts[p.next]
		gone.rank = noRank
		p.next = gone.next
		if int(p.next) < len(piece) {
			m.parts[p.next].before = at
		}
		m.offer(v, piece, at)
		if p.before >= 0 {
			m.offer(v, piece, p.before)
		}
	}
	return tokens
}

// start begins with single bytes.
func (m *merger) start(v *vocabulary, piece string) {
	m.parts, m.heap = slices.Grow(m.parts[:0], len(piece)), m.heap[:0]
	for i := range len(piece) {
		p := part{before: int32(i) - 1, next: int32(i) + 1, rank: noRank}
		if i+1 < len(piece) {
			p.rank = v.rank(piece[i : i+2])
		}
		m.parts = append(m.parts, p)
		if p.rank != noRank {
			m.push(candidate(p.rank)<<32 | candidate(i))
		}
	}
}

// offer makes a candidate of a part and the next.
func (m *merger) offer(v *vocabulary, piece string, at int32) {
	p := &m.parts[at]
	p.rank = noRank
	if int(p.next) == len(piece) {
		return
	}
	p.rank = v.rank(piece[at:m.parts[p.next].next])
	if p.rank != noRank {
		m.push(candidate(p.rank)<<32 | candidate(at))
	}
}

// push and pop keep a binary heap.
func (m *merger) push(c candidate) {
	m.heap = append(m.heap, c)
	i := len(m.heap) - 1
	for i > 0 {
		above := (i - 1) / 2
		if m.heap[above] <= c {
			break
		}
		m.heap[i] = m.heap[above]
		i = above
	}
	m.heap[i] = c
}

func (m *merger) pop() candidate {
	top := m.heap[0]
	last := len(m.heap) - 1
	c := m.heap[last]
	m.heap = m.heap[:last]
	i := 0
	for {
		below := 2*i + 1
		if below >= last {
			break
		}
		if below+1 < last && m.heap[below+1] < m.heap[below] {
			below++
		}
		if m.heap[below] >= c {
			break
		}
		m.heap[i] = m.heap[below]
		i = below
	}
	if last > 0 {
		m.heap[i] = c
	}
	return top
}
