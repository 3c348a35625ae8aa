package gateway

import (
	"bytes"
	"net/http"

	"github.com/limen-gateway/limen/internal/llm"
)

// relay hands the answer of an attempt on to the client.
func (g *Gateway) relay(a *attempt) error {
	if a.stream != nil {
		return g.relayStream(a)
	}
	return a.rest(func(body []byte) error {
		if err := a.commit(body, a.Request.Stream); err != nil {
			return err
		}
		return g.conclude(a, body, a.Request.Stream)
	})
}

// rest reads what is still to come of an answer that comes whole, where the
// upstream pauses or waits for tools, and has all of it used.
func (a *attempt) rest(use func(body []byte) error) error {
	for {
		if a.paused() {
			var err error
			a.whole, _, err = a.runCalls(a.whole, func(out []byte) ([]byte, error) { return out, nil })
			a.Usage = a.way.translation.Usage(a.BytesIn)
			if err != nil {
				return err
			}
		}
		resp, err := a.resume(true)
		if err != nil {
			return err
		}
		if resp == nil {
			return use(a.whole)
		}
		err = a.readWhole(resp)
		resp.Body.Close()
		if err != nil {
			return err
		}
	}
}

// conclude records a call whose answer is whole, and gives the answer out: as
// frames where the client waits for a stream.
func (g *Gateway) conclude(a *attempt, body []byte, stream bool) (err error) {
	a.BytesOut = int64(len(body))
	a.use(a.Usage)
	if err := g.account(a.Call); err != nil {
		return err
	}
	a.tellCost()
	if stream {
		err = a.answer.write(body)
	} else {
		err = a.answer.writeJSON(http.StatusOK, body)
	}
	if err != nil {
		return clientLeft(err)
	}
	return nil
}

// relayStream hands on a stream: the frames' own bytes, while a follower
// looks on. Frames that came together go together. The stream ends well only
// with the upstream's terminal event, and only after the call is recorded.
func (g *Gateway) relayStream(a *attempt) error {
	for {
		err := a.pass()
		if err == nil {
			return g.concludeStream(a)
		}
		next := g.carryOn(a, err)
		if next == nil {
			return err
		}
		a = next
	}
}

// pass hands on a stream up to its end, which is still to be told.
func (a *attempt) pass() (err error) {
	s := a.stream
	for !s.follower.Done() {
		if len(s.out) > 0 && s.follower.Begun() {
			if s.out, err = a.hand(s.out); err != nil {
				return err
			}
		}
		if a.paused() {
			s.out, s.last, err = a.runCalls(s.out, a.hand)
		} else if err = a.fill(); err == nil && !s.follower.Done() {
			err = a.listen()
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// concludeStream records a call whose stream has come to its end, and tells
// that end.
func (g *Gateway) concludeStream(a *attempt) error {
	s := a.stream
	if err := a.commit(s.out[s.last:], true); err != nil {
		if a.answer.isCommitted() && s.last > 0 {
			a.answer.write(s.out[:s.last])
		}
		a.unkept = bytes.Clone(s.out[s.last:])
		return err
	}
	a.use(s.follower.Usage(a.BytesIn))
	a.BytesOut = a.answer.sent() + int64(len(s.out))
	if err := g.account(a.Call); err != nil {
		return err
	}
	a.tellCost()
	if err := a.answer.write(s.out); err != nil {
		return clientLeft(err)
	}
	a.drain()
	return nil
}

// hand writes frames to the client; the room is for the next.
func (a *attempt) hand(out []byte) ([]byte, error) {
	if err := a.there.announced(a.Call, out); err != nil {
		return out, err
	}
	if err := a.answer.write(out); err != nil {
		return out, clientLeft(err)
	}
	return out[:0], nil
}

// drain reads an upstream's answer to its end after its content was complete,
// so that the connection can serve again. Most ends have come already.
func (a *attempt) drain() {
	a.answer.enter(draining)
	var scrap [512]byte
	for range 8 {
		if _, err := a.resp.Body.Read(scrap[:]); err != nil {
			return
		}
	}
}

// redacted takes the upstream's secrets out of what it said.
func (a *attempt) redacted(err error) error {
	e := llm.AsError(err)
	e.Message = a.Target.Upstream.Redact(e.Message)
	return e
}
