// Package dialecttest holds what tests of all dialects share.
package dialecttest

import (
	"fmt"

	"github.com/limen-gateway/limen/internal/jsonedit"
	"github.com/limen-gateway/limen/internal/llm"
)

// Check reports the first rule of package llm's events that a list breaks.
// whole says that the answer ended well: then all that was begun is over.
func Check(events []llm.Event, whole bool) error {
	c := checker{open: map[int]llm.Open{}, args: map[int]string{}, finished: map[int]bool{}}
	for i, e := range events {
		if err := c.event(i, e); err != nil {
			return fmt.Errorf("event %d, %T: %w", i, e, err)
		}
	}
	if !whole {
		return nil
	}
	switch {
	case len(c.open) > 0:
		return fmt.Errorf("%d items are still open at the end", len(c.open))
	case len(c.finished) == 0:
		return fmt.Errorf("no choice has a Finish")
	}
	return nil
}

type checker struct {
	open     map[int]llm.Open
	args     map[int]string
	finished map[int]bool
	items    int
}

func (c *checker) event(at int, e llm.Event) error {
	if _, first := e.(llm.Start); first != (at == 0) {
		if _, note := e.(llm.Note); !note {
			return fmt.Errorf("the first event is a Start and no other is")
		}
	}
	switch e := e.(type) {
	case llm.Open:
		switch {
		case e.Item != c.items:
			return fmt.Errorf("item %d begins where %d is due", e.Item, c.items)
		case c.finished[e.Choice]:
			return fmt.Errorf("choice %d is finished", e.Choice)
		case e.Kind == llm.CallItem && (e.CallID.Blank() || e.Name == ""):
			return fmt.Errorf("a call without ID or name")
		}
		c.items++
		c.open[e.Item] = e
	case llm.Delta:
		if err := c.delta(e); err != nil {
			return err
		}
	case llm.Annotate:
		return c.isOpen(e.Item, llm.MessageItem)
	case llm.Picture:
		return c.isOpen(e.Item, llm.MessageItem)
	case llm.Logprobs:
		return c.isOpen(e.Item, llm.MessageItem)
	case llm.Seal:
		if _, ok := c.open[e.Item]; !ok {
			return fmt.Errorf("item %d is not open", e.Item)
		}
	case llm.Close:
		o, ok := c.open[e.Item]
		if !ok {
			return fmt.Errorf("item %d is not open", e.Item)
		}
		if o.Kind == llm.CallItem && c.args[e.Item] == "" {
			return fmt.Errorf("call %s has no arguments: an empty object is told as {}", o.CallID)
		}
		delete(c.open, e.Item)
	case llm.Used:
		u := e.Usage
		least := min(u.Input, u.CacheRead, u.CacheWrite, u.HourWrite, u.AudioIn, u.Output, u.Reasoning, u.AudioOut, u.ImageOut, u.Searches, u.Longest)
		if least < 0 || u.Stated < 0 || u.Longest > u.Prompt() {
			return fmt.Errorf("a count that cannot be in %+v", u)
		}
	case llm.Finish:
		if c.finished[e.Choice] {
			return fmt.Errorf("choice %d finishes twice", e.Choice)
		}
		for _, o := range c.open {
			if o.Choice == e.Choice {
				return fmt.Errorf("item %d of choice %d is still open", o.Item, e.Choice)
			}
		}
		c.finished[e.Choice] = true
	}
	return nil
}

var kinds = map[llm.Channel]llm.ItemKind{
	llm.TextChannel: llm.MessageItem, llm.RefusalChannel: llm.MessageItem, llm.AudioChannel: llm.MessageItem, llm.TranscriptChannel: llm.MessageItem,
	llm.ThinkingChannel: llm.ReasoningItem, llm.SummaryChannel: llm.ReasoningItem, llm.ArgsChannel: llm.CallItem,
}

func (c *checker) delta(e llm.Delta) error {
	if err := c.isOpen(e.Item, kinds[e.Channel]); err != nil {
		return err
	}
	if jsonedit.KindOf(e.Data) != jsonedit.KindString {
		return fmt.Errorf("%s is no string", e.Data)
	}
	if e.Channel == llm.ArgsChannel {
		c.args[e.Item] += string(e.Data.Inner())
	}
	return nil
}

func (c *checker) isOpen(item int, kind llm.ItemKind) error {
	o, ok := c.open[item]
	switch {
	case !ok:
		return fmt.Errorf("item %d is not open", item)
	case o.Kind != kind:
		return fmt.Errorf("item %d is of kind %d, not %d", item, o.Kind, kind)
	}
	return nil
}
