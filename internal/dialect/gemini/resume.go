package gemini

import (
	"unicode/utf8"

	"github.com/limen-gateway/limen/internal/jsonedit"
	"github.com/limen-gateway/limen/internal/llm"
)

// continued is the finish of an answer that is longer than one request may
// give: the same request goes on with it, when it says the token that came
// with the finish.
const continued = "CONTINUATION"

// pauses reports whether the answer is to be gone on with, and keeps the token
// for it.
func (d *decoder) pauses(token llm.Raw) bool {
	if token.Blank() || d.rounds == 0 || d.want > 1 || len(d.choices) > 1 {
		return false
	}
	d.token = token.Clone()
	return true
}

// pause tells what is known only at the end of a request. What is open goes on
// with the next.
func (c *choice) pause(dst []llm.Event) []llm.Event {
	dst = c.tokens(dst)
	dst = c.sources(dst)
	if c.grounding.Given() {
		dst = c.end(dst)
		dst = c.search(dst)
	}
	c.points += utf8.RuneCountInString(c.answered())
	c.from = len(c.text)
	c.grounding, c.citations = nil, nil
	return dst
}

// Resume implements dialect.Resumer. The usage may come after the finish.
func (d *decoder) Resume(closed bool) []byte {
	if d.token == nil || !closed && !d.settled {
		return nil
	}
	var w jsonedit.Writer
	w.BeginObject()
	for name, value := range jsonedit.Members(d.body) {
		if string(name) != `"continuationToken"` {
			w.RawName(name)
			w.Raw(value)
		}
	}
	w.SetRaw("continuationToken", d.token)
	w.EndObject()
	d.token, d.settled = nil, false
	d.spent, d.used = d.spent.Plus(d.used), llm.Usage{}
	d.counted, d.billed = false, false
	for _, c := range d.choices {
		c.searched = 0
	}
	d.rounds--
	return w.Bytes()
}
