package config

import (
	"fmt"

	"github.com/limen-gateway/limen/internal/price"
)

func (d *decoder) validatePriceRules(r *PriceRules) {
	if d.flawed[r] {
		return
	}
	c := r.Ceiling
	if c == nil {
		if r.Unknown == UnknownCeiling {
			d.complain(d.at[&r.Unknown], "unknown: ceiling needs a ceiling beside it, with input and output")
		}
		return
	}
	switch list := c.Over(price.List{}); {
	case !list.Known():
		d.complain(d.at[&r.Ceiling], "a ceiling needs input and output")
	case !c.From.IsZero():
		d.complain(d.at[&c.From], "a ceiling has no date")
	}
	d.validatePrice(c)
}

// validatePrices refuses two prices of one time.
func (d *decoder) validatePrices(list Prices) {
	for i := range list {
		p := &list[i]
		if d.flawed[p] {
			continue
		}
		if p.silent() {
			d.complain(d.at[p], "a price that says nothing: name what is other than known, or write free")
			continue
		}
		d.validatePrice(p)
		for k := range i {
			if !list[k].From.Equal(p.From.Time) || d.flawed[&list[k]] {
				continue
			}
			if p.From.IsZero() {
				d.complain(d.at[p], "two prices that always counted: say from when on one does, with from")
			} else {
				d.complain(d.at[&p.From], fmt.Sprintf("two prices begin at %s", p.From))
			}
			break
		}
	}
}

func (d *decoder) validatePrice(p *Price) {
	if p.Is != "" && !p.bare() {
		d.complain(d.at[&p.Is], "what is free takes no other price")
	}
	least := 0
	for i := range p.Tiers {
		t := &p.Tiers[i]
		switch {
		case d.flawed[t]:
		case t.Over == 0:
			d.complain(d.at[t], "a tier needs over, the length of prompts beyond which it counts")
		case t.Over <= least:
			d.complain(d.at[&t.Over], "tiers stand in order, the one for the shortest prompts first")
		case t.TokenPrices == TokenPrices{}:
			d.complain(d.at[t], "a tier that says no price")
		}
		least = max(least, t.Over)
	}
}
