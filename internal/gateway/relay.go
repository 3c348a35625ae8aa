package gateway

import (
	"bytes"
	"io"
	"net/http"
	"strings"

	"github.com/limen-gateway/limen/internal/buffer"
	"github.com/limen-gateway/limen/internal/dialect"
	"github.com/limen-gateway/limen/internal/llm"
	"github.com/limen-gateway/limen/internal/sse"
)

// relay hands an upstream's answer on to the client. What the client asked
// for decides the form: a client that waits for a stream takes plain JSON for
// an empty answer.
func (g *Gateway) relay(c *Call, resp *http.Response) error {
	media, _, _ := strings.Cut(resp.Header.Get("Content-Type"), ";")
	media = strings.ToLower(strings.TrimSpace(media))
	switch {
	case media == "text/html":
		return &llm.Error{Kind: llm.UpstreamInvalid, Message: "The upstream answered with a web page; is its base_url right?"}
	case c.Request.Stream && !strings.HasSuffix(media, "json"):
		return g.relayStream(c, resp.Body)
	default:
		return g.relayAnswer(c, resp)
	}
}

// relayAnswer hands on an answer that came whole.
func (g *Gateway) relayAnswer(c *Call, resp *http.Response) error {
	return c.readAnswer(resp, func(body []byte) error {
		if err := c.commit(body, c.Request.Stream); err != nil {
			return err
		}
		return g.conclude(c, body, c.Request.Stream)
	})
}

// readAnswer reads an answer that came whole, in one request or, where the
// upstream pauses, in several, and has it used as long as its memory is lent.
func (c *Call) readAnswer(resp *http.Response, use func(body []byte) error) error {
	var body []byte
	for resp != nil {
		buf, err := readAll(resp.Body, resp.ContentLength, c.set.MaxAnswer, func(int) { c.answer.progress() })
		if err != nil {
			return c.readError(err)
		}
		defer buffer.Put(buf) // the answer shares its memory
		if body, err = c.whole(body, *buf); err != nil {
			return c.redacted(err)
		}
		if c.paused() {
			body, _, err = c.runCalls(body, func(out []byte) ([]byte, error) { return out, nil })
			c.Usage = c.way.translation.Usage(c.BytesIn)
			if err != nil {
				return err
			}
		}
		if resp, err = c.resume(true); err != nil {
			return err
		}
		if resp != nil {
			defer resp.Body.Close()
		}
	}
	return use(body)
}

// conclude records a call whose answer is whole, and gives the answer out: as
// frames where the client waits for a stream.
func (g *Gateway) conclude(c *Call, body []byte, stream bool) (err error) {
	c.BytesOut = int64(len(body))
	if err := g.account(c); err != nil {
		return err
	}
	c.processingTime()
	if stream {
		err = c.answer.write(body)
	} else {
		err = c.answer.writeJSON(http.StatusOK, body)
	}
	if err != nil {
		return clientLeft(err)
	}
	return nil
}

// firstOut is the room for frames on their way to the client.
const firstOut = 4 << 10

// relayStream hands on a stream: the frames' own bytes, while a follower
// looks on. Frames that came together go together. The stream ends well only
// with the upstream's terminal event, and only after the call is recorded.
func (g *Gateway) relayStream(c *Call, upstream io.Reader) error {
	follower := c.follow()
	c.follower = follower
	c.processingTime()
	reader := c.frames(upstream)
	defer reader.Close()
	buf := buffer.Get(firstOut)
	defer func() { buffer.Put(buf) }()
	out := *buf
	last := 0 // where in out the frame begins that ended the stream

	for !follower.Done() {
		var err error
		if out, last, err = followBuffered(out, reader, follower); err != nil {
			if follower.Begun() && c.answer.isCommitted() && len(out) > 0 {
				c.answer.write(out) // what came before the failure is the client's
			}
			return c.redacted(err)
		}
		if follower.Done() {
			break
		}
		if len(out) > 0 && follower.Begun() {
			if out, err = c.hand(out); err != nil {
				return err
			}
		}
		if c.paused() {
			if out, last, err = c.runCalls(out, c.hand); err != nil {
				return err
			}
			continue
		}
		switch err := reader.Fill(); {
		case err == io.EOF:
			last = len(out)
			if out, err = follower.End(out); err != nil {
				return err
			}
		case err == sse.ErrTooLong:
			return &llm.Error{Kind: llm.UpstreamInvalid, Code: "upstream_malformed_output", Message: "The upstream's stream has an event that is larger than this gateway takes.", Err: err}
		case err != nil:
			return c.readError(err)
		}
	}
	*buf = out
	if err := c.commit(out[last:], true); err != nil {
		if c.answer.isCommitted() && last > 0 {
			c.answer.write(out[:last])
		}
		c.unkept = bytes.Clone(out[last:])
		return err
	}
	c.Usage = follower.Usage(c.BytesIn)
	c.BytesOut = c.answer.sent() + int64(len(out))
	if err := g.account(c); err != nil {
		return err
	}
	if err := c.answer.write(out); err != nil {
		return clientLeft(err)
	}
	c.drain(upstream)
	return nil
}

// hand writes frames to the client; the room is for the next.
func (c *Call) hand(out []byte) ([]byte, error) {
	if err := c.answer.write(out); err != nil {
		return out, clientLeft(err)
	}
	return out[:0], nil
}

// followBuffered handles the frames that are in the reader's buffer. last is
// where in out the last of them begins.
func followBuffered(out []byte, reader dialect.Frames, follower interface {
	Frame([]byte, sse.Frame) ([]byte, bool, error)
	Done() bool
}) (_ []byte, last int, err error) {
	for !follower.Done() {
		frame, ok := reader.Next()
		if !ok {
			break
		}
		if len(frame.Data) == 0 {
			continue // the gateway sends its own when there is silence
		}
		var pass bool
		last = len(out)
		if out, pass, err = follower.Frame(out, frame); err != nil {
			return out, last, err
		}
		if pass {
			out = append(out, frame.Raw...)
		}
	}
	return out, last, nil
}

// drain reads an upstream's answer to its end after its content was complete,
// so that the connection can serve again. Most ends have come already.
func (c *Call) drain(upstream io.Reader) {
	c.answer.enter(draining)
	var scrap [512]byte
	for range 8 {
		if _, err := upstream.Read(scrap[:]); err != nil {
			return
		}
	}
}

// redacted takes the upstream's secrets out of what it said.
func (c *Call) redacted(err error) error {
	e := llm.AsError(err)
	e.Message = c.Target.Upstream.Redact(e.Message)
	return e
}
