package openaichat

import (
	"bytes"

	"github.com/limen-gateway/limen/internal/jsonedit"
	"github.com/limen-gateway/limen/internal/llm"
)

// What stands before and after thinking within a text.
const (
	thinkBegin = "<think>"
	thinkEnd   = "</think>"
)

// tags tells thinking within a text from the text. It comes first or not at
// all: a tag later on is something that the model writes about.
type tags struct {
	at   tagPlace
	held []byte // may be the beginning of a tag
}

// tagPlace is where in a text tags are looked for.
type tagPlace uint8

const (
	tagsBegin tagPlace = iota // nothing has come but white space
	tagsWithin
	tagsAfter // at white space behind the thinking
	tagsOver
)

const space = " \t\r\n"

// tagged tells a piece of a text that may be thinking.
func (d *answerDecoder) tagged(c *decodedChoice, piece llm.Raw) {
	text, _ := jsonedit.Unquote(piece)
	c.tags.held = append(c.tags.held, text...)
	if c.tags.at == tagsBegin && !d.tagBegins(c) {
		return
	}
	if c.tags.at == tagsWithin && !d.tagEnds(c) {
		return
	}
	if c.tags.held = bytes.TrimLeft(c.tags.held, space); len(c.tags.held) > 0 {
		c.tags.at = tagsOver
		d.untag(c)
	}
}

// tagBegins reports whether it is known what a text begins with.
func (d *answerDecoder) tagBegins(c *decodedChoice) bool {
	said := bytes.TrimLeft(c.tags.held, space)
	switch {
	case bytes.HasPrefix(said, []byte(thinkBegin)):
		c.tags.at, c.tags.held = tagsWithin, said[len(thinkBegin):]
	case bytes.HasPrefix([]byte(thinkBegin), said):
		return false
	default:
		c.tags.at = tagsOver
		d.untag(c)
	}
	return true
}

// tagEnds tells what is known to be thinking, and reports whether it is over.
func (d *answerDecoder) tagEnds(c *decodedChoice) bool {
	thought, after, over := bytes.Cut(c.tags.held, []byte(thinkEnd))
	if !over {
		thought = c.tags.held[:len(c.tags.held)-beginning(c.tags.held, thinkEnd)]
		after = c.tags.held[len(thought):]
	}
	if len(thought) > 0 {
		d.think(c, noThought, llm.ThinkingChannel, jsonedit.AppendQuote(nil, string(thought)))
	}
	c.tags.held = after
	if over {
		c.tags.at = tagsAfter
	}
	return over
}

// beginning is how much of a tag's beginning stands at the end of a text.
func beginning(text []byte, tag string) int {
	for n := min(len(tag)-1, len(text)); n > 0; n-- {
		if string(text[len(text)-n:]) == tag[:n] {
			return n
		}
	}
	return 0
}

// untag tells what was held back, which was no tag.
func (d *answerDecoder) untag(c *decodedChoice) {
	held := c.tags.held
	c.tags.held = nil
	if len(held) == 0 || c.tags.at == tagsAfter {
		return
	}
	text := llm.Raw(jsonedit.AppendQuote(nil, string(held)))
	if c.tags.at == tagsWithin {
		d.think(c, noThought, llm.ThinkingChannel, text)
		return
	}
	d.speak(c, llm.TextChannel, text)
}

// unsaid is what a piece of reasoning adds to those before it, where a server
// repeats them.
func (c *decodedChoice) unsaid(key thoughtKey, text llm.Raw) llm.Raw {
	if c.thought != key {
		c.snapshot = c.snapshot[:0]
	}
	said := text.Inner()
	if n := len(c.snapshot); n > 0 && bytes.HasPrefix(said, c.snapshot) {
		c.snapshot = append(c.snapshot, said[n:]...)
		return append(append(append(make(llm.Raw, 0, len(said)-n+2), '"'), said[n:]...), '"')
	}
	c.snapshot = append(c.snapshot, said...)
	return text
}
