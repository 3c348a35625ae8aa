package upstream

import (
	"io"
	"sync"
	"sync/atomic"
)

// Body is a request body in segments that share memory with the client's. It
// can be sent several times; the memory under it is given back when nobody
// reads it any more, which can be after the answer has come.
type Body struct {
	segments [][]byte
	length   int64
	users    atomic.Int32
	release  func()
}

// NewBody returns a body over segments of a total length. release is called
// once, after Done and after the last sending ended.
func NewBody(segments [][]byte, length int, release func()) *Body {
	b := &Body{segments: segments, length: int64(length), release: release}
	b.users.Store(1)
	return b
}

// Done says that the body will not be sent again.
func (b *Body) Done() {
	if b.users.Add(-1) == 0 {
		b.release()
	}
}

// open starts one sending. A transport may close it after RoundTrip returned.
func (b *Body) open() *sending {
	b.users.Add(1)
	return &sending{body: b, rest: b.segments}
}

// sending reads a Body once. A transport may close it while it still reads: the
// memory is not touched after Close returned.
type sending struct {
	body *Body

	mu     sync.Mutex
	rest   [][]byte
	at     int // in rest[0]
	closed bool
}

func (s *sending) Read(p []byte) (n int, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return 0, io.ErrClosedPipe
	}
	for len(s.rest) > 0 && n < len(p) {
		copied := copy(p[n:], s.rest[0][s.at:])
		n += copied
		s.at += copied
		if s.at == len(s.rest[0]) {
			s.rest, s.at = s.rest[1:], 0
		}
	}
	if n == 0 && len(s.rest) == 0 {
		return 0, io.EOF
	}
	return n, nil
}

// Segments implements http1.Segmented.
func (s *sending) Segments() [][]byte { return s.body.segments }

func (s *sending) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.closed = true
		s.body.Done()
	}
	return nil
}
