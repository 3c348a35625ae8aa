// Package http1 is a lean HTTP/1.1 client for one host: a call costs one
// write, the reads of its answer, and no goroutine. net/http's transport spends
// more on handing a call between three goroutines than a gateway spends on all
// the rest of it.
//
// It knows nothing of TLS, HTTP/2 or proxies; those are net/http's. It sends a
// request once: whether to try again is for the caller to decide.
package http1

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/limen-gateway/limen/internal/buffer"
)

const (
	// maxIdle bounds the connections kept for later calls.
	maxIdle = 256
	// idleTime is how long one is kept: servers close theirs after a minute
	// or more.
	idleTime = 55 * time.Second
)

// Transport calls one host. It implements http.RoundTripper.
type Transport struct {
	address string
	dial    func(ctx context.Context, network, address string) (net.Conn, error)

	mu    sync.Mutex
	idle  []*conn     // the last used is the last
	sweep *time.Timer // closes idle connections; nil while there are none
}

var _ http.RoundTripper = (*Transport)(nil)

// New returns a transport to an address, host:port.
func New(address string, dial func(ctx context.Context, network, address string) (net.Conn, error)) *Transport {
	return &Transport{address: address, dial: dial}
}

// Segmented is a request body that is in memory: it is written as it lies
// there, without a copy. Its Read is not called then.
type Segmented interface {
	Segments() [][]byte
}

// RoundTrip implements http.RoundTripper. Redirects, cookies and compression
// are not its business; the header of the answer holds all fields.
func (t *Transport) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Body != nil {
		defer req.Body.Close()
	}
	ctx := req.Context()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	c, err := t.get(ctx)
	if err != nil {
		return nil, err
	}
	// A context that ends makes every read and write of the connection fail.
	c.release = context.AfterFunc(ctx, c.abort)
	resp, err := c.exchange(req)
	if err != nil {
		c.close()
		if cause := ctx.Err(); cause != nil {
			err = cause
		}
		return nil, err
	}
	return resp, nil
}

// get returns a connection that is alive, or a new one.
func (t *Transport) get(ctx context.Context) (*conn, error) {
	for {
		t.mu.Lock()
		var c *conn
		if n := len(t.idle); n > 0 {
			c, t.idle[n-1], t.idle = t.idle[n-1], nil, t.idle[:n-1]
		}
		t.mu.Unlock()
		if c == nil {
			break
		}
		if alive(c.Conn) {
			return c, nil
		}
		c.Conn.Close()
	}
	raw, err := t.dial(ctx, "tcp", t.address)
	if err != nil {
		return nil, err
	}
	return &conn{Conn: raw, transport: t}, nil
}

// put keeps a connection for later calls.
func (t *Transport) put(c *conn) {
	c.since = time.Now()
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.idle) >= maxIdle {
		c.Conn.Close()
		return
	}
	t.idle = append(t.idle, c)
	if t.sweep == nil {
		t.sweep = time.AfterFunc(idleTime, t.expire)
	}
}

// expire closes what was idle for too long.
func (t *Transport) expire() {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := 0
	for n < len(t.idle) && time.Since(t.idle[n].since) >= idleTime {
		t.idle[n].Conn.Close()
		n++
	}
	t.idle = append(t.idle[:0], t.idle[n:]...)
	if len(t.idle) == 0 {
		t.sweep = nil
		return
	}
	t.sweep.Reset(max(idleTime-time.Since(t.idle[0].since), time.Second))
}

// CloseIdleConnections closes the connections that no call uses.
func (t *Transport) CloseIdleConnections() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, c := range t.idle {
		c.Conn.Close()
	}
	t.idle = nil
	if t.sweep != nil {
		t.sweep.Stop()
		t.sweep = nil
	}
}

// conn is one connection. It belongs to one call at a time.
type conn struct {
	net.Conn
	transport *Transport
	release   func() bool // undoes the link to the call's context
	since     time.Time   // idle since

	buf        []byte // what was read and not yet used is buf[start:end]
	start, end int
	pooled     *[]byte // where buf came from
}

// past is a deadline that is over.
var past = time.Unix(1, 0)

// abort ends the call that runs on the connection.
func (c *conn) abort() { c.SetDeadline(past) }

// close ends the call and the connection.
func (c *conn) close() {
	c.release()
	c.Conn.Close()
	c.drop()
}

// keep ends the call; the connection serves the next one, if the call's
// context did not end in this very moment.
func (c *conn) keep() {
	if !c.release() || c.start != c.end {
		c.Conn.Close() // bytes after the answer belong to no call
		c.drop()
		return
	}
	c.drop()
	c.transport.put(c)
}

// bufferSize is what a call reads into at first. A connection that no call uses
// has no buffer.
const bufferSize = 4 << 10

// drop gives the buffer back.
func (c *conn) drop() {
	if c.pooled != nil {
		buffer.Put(c.pooled)
	}
	c.buf, c.pooled, c.start, c.end = nil, nil, 0, 0
}

// fill reads more into the buffer. It grows for a head that is longer, up to
// maxHead.
func (c *conn) fill() error {
	if c.buf == nil {
		c.pooled = buffer.Get(bufferSize)
		c.buf = (*c.pooled)[:bufferSize]
	}
	if c.start > 0 {
		copy(c.buf, c.buf[c.start:c.end])
		c.start, c.end = 0, c.end-c.start
	}
	if c.end == len(c.buf) {
		if c.end >= maxHead {
			return errLongHead
		}
		larger := make([]byte, 2*len(c.buf))
		copy(larger, c.buf)
		c.buf = larger
	}
	n, err := c.Conn.Read(c.buf[c.end:])
	c.end += n
	if n > 0 {
		return nil
	}
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}

// maxHead bounds the head of an answer, all its interim answers included.
const maxHead = 256 << 10

var errLongHead = errors.New("http1: the head of the answer is too long")
