package upstream

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/iotest"
)

func segments(texts ...string) (list [][]byte, size int) {
	for _, s := range texts {
		list, size = append(list, []byte(s)), size+len(s)
	}
	return list, size
}

func TestBodyReads(t *testing.T) {
	for _, texts := range [][]string{nil, {""}, {"a"}, {"", "ab", "", "", "cde", ""}, {"abcdefgh", "i"}} {
		list, size := segments(texts...)
		want := bytes.Join(list, nil)
		body := NewBody(list, size, func() {})
		for name, wrap := range map[string]func(io.Reader) io.Reader{
			"whole": func(r io.Reader) io.Reader { return r }, "byte by byte": iotest.OneByteReader, "half of the room": iotest.HalfReader,
		} {
			s := body.open()
			got, err := io.ReadAll(wrap(s))
			if !bytes.Equal(got, want) || err != nil {
				t.Errorf("%q, %s: got %q, %v", texts, name, got, err)
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		}
		if err := iotest.TestReader(body.open(), want); err != nil {
			t.Errorf("%q: %v", texts, err)
		}
	}
}

// The memory is given back once, and only when nobody can read it any more,
// in whatever order that comes about.
func TestBodyReleasesOnce(t *testing.T) {
	const sendings = 3
	// Each number is who lets go: 0 the caller, others a sending.
	var orders [][]int
	var permute func(done, rest []int)
	permute = func(done, rest []int) {
		if len(rest) == 0 {
			orders = append(orders, slices.Clone(done))
		}
		for i := range rest {
			permute(append(done, rest[i]), slices.Concat(rest[:i], rest[i+1:]))
		}
	}
	permute(nil, []int{0, 1, 2, 3})
	for _, order := range orders {
		list, size := segments("a", "b")
		released := 0
		body := NewBody(list, size, func() { released++ })
		var open []*sending
		for range sendings {
			open = append(open, body.open())
		}
		for step, who := range order {
			if released != 0 {
				t.Fatalf("%v: released after %d steps", order, step)
			}
			if who == 0 {
				body.Done()
				continue
			}
			open[who-1].Close()
			open[who-1].Close() // transports close more than once
			if n, err := open[who-1].Read(make([]byte, 1)); n != 0 || !errors.Is(err, io.ErrClosedPipe) {
				t.Errorf("a closed sending reads %d bytes, %v", n, err)
			}
		}
		if released != 1 {
			t.Errorf("%v: released %d times, want once", order, released)
		}
	}
}

// A transport may close a body while it reads it, and the memory serves
// another request then. Run with -race this shows a read that comes too late.
func TestBodyIsNotReadAfterRelease(t *testing.T) {
	const size = 64 << 10
	for range 200 {
		memory := bytes.Repeat([]byte{'a'}, size)
		var released atomic.Bool
		body := NewBody([][]byte{memory}, size, func() {
			released.Store(true)
			for i := range memory {
				memory[i] = 'b' // another request's
			}
		})
		s := body.open()
		body.Done()
		var wg sync.WaitGroup
		started := make(chan struct{})
		wg.Go(func() {
			p := make([]byte, size)
			close(started)
			n, _ := s.Read(p)
			if bytes.IndexByte(p[:n], 'b') >= 0 {
				t.Error("bytes of another request were sent")
			}
		})
		<-started
		s.Close()
		wg.Wait()
		if !released.Load() {
			t.Fatal("not released")
		}
		if t.Failed() {
			return
		}
	}
}
