package keys

import (
	"testing"
	"time"
)

func TestLink(t *testing.T) {
	now := time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)
	o := &Operators{}
	for _, text := range []string{"", "0", "0000000000000000000000000000000000000000000"} {
		if o.link.use(text, now) == nil {
			t.Errorf("%q is taken where there is no link", text)
		}
	}
	first := o.NewLink(now)
	second := o.NewLink(now)
	if o.link.use(first, now) == nil {
		t.Error("a link is taken that was replaced")
	}
	if err := o.link.use(second, now.Add(LinkLife-1)); err != nil {
		t.Error(err)
	}
	if o.link.use(second, now) == nil {
		t.Error("a link is taken twice")
	}
	if third := o.NewLink(now); o.link.use(third, now.Add(LinkLife)) == nil {
		t.Error("a link is taken that is too old")
	}
}
