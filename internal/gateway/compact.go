package gateway

import (
	"net/http"

	"github.com/limen-gateway/limen/internal/buffer"
	"github.com/limen-gateway/limen/internal/dialect"
)

// compaction says how a client asked that a conversation be compacted.
type compaction uint8

const (
	notCompacted compaction = iota
	inBand                  // by the last item of a request
	byOperation             // by the operation that there is for it
)

// compactPath is the operation's, below that of Responses.
const compactPath = "/compact"

// compactionOf is what a request that Inspect accepted asks for.
func (c *Call) compactionOf(body []byte) compaction {
	d, ok := c.Dialect.(dialect.Stateful)
	switch {
	case !ok:
		return notCompacted
	case c.compaction == byOperation:
		c.Request.Context.Store, c.Request.Context.Background, c.Request.Context.Itemized = false, false, true
		return byOperation
	case d.Compacts(body, &c.Request):
		return inBand
	}
	return notCompacted
}

// summed reports whether the conversation is summed up here. OpenAI's service
// does it itself when a request asks.
func (a *attempt) summed() bool {
	return a.compaction != notCompacted && !(a.compaction == inBand && a.Target.Upstream.Vendor.Quirks.Native)
}

// summarize makes a request for a summary the call's.
func (c *Call) summarize(body []byte) (*[]byte, error) {
	summary := buffer.Get(len(body) + 4<<10)
	*summary = c.stateful().Summarize(*summary, body)
	told := c.Request.Told
	if err := c.Dialect.Inspect(*summary, &c.Request); err != nil {
		buffer.Put(summary)
		return nil, err
	}
	c.Request.Told = told
	return summary, nil
}

// compact has the target's model sum up the conversation of a request, and
// gives out what stands for it. It takes over body.
func (g *Gateway) compact(c *Call, header http.Header, body *[]byte) error {
	d := c.stateful()
	defer buffer.Put(body)
	summary, err := c.summarize(*body)
	if err != nil {
		return err
	}
	if c.streams {
		c.answer.wantStream()
	}
	a, err := g.obtain(c, header, summary)
	if err != nil {
		return err
	}
	return a.rest(func(response []byte) error {
		id := c.id()
		item, err := d.Compacted(response, id, g.seal)
		if err != nil {
			return err
		}
		if c.compaction == byOperation {
			return g.conclude(a, d.Compaction(*body, response, item, id, c.Started.Unix()), false)
		}
		response = d.WithOutput(response, item)
		if err := c.commit(response, false); err != nil {
			return err
		}
		if c.streams {
			response = c.Dialect.Replay(nil, response, &c.Request)
		}
		return g.conclude(a, response, c.streams)
	})
}
