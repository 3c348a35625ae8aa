package provider

import (
	"encoding/json"

	"github.com/limen-gateway/limen/internal/money"
	"github.com/limen-gateway/limen/internal/price"
)

// perToken are prices as OpenRouter lists them, and those who list as it does:
// dollars per token, in quotes. A number, or a negative one, is not a price there.
type perToken struct {
	Prompt     json.RawMessage `json:"prompt"`
	Completion json.RawMessage `json:"completion"`
	CacheRead  json.RawMessage `json:"input_cache_read"`
	CacheWrite json.RawMessage `json:"input_cache_write"`
	Reasoning  json.RawMessage `json:"internal_reasoning"`
	HourWrite  json.RawMessage `json:"input_cache_write_1h"`
	AudioIn    json.RawMessage `json:"audio"`
	AudioOut   json.RawMessage `json:"audio_output"`
	ImageOut   json.RawMessage `json:"image_output"`
	Request    json.RawMessage `json:"request"`    // each
	Search     json.RawMessage `json:"web_search"` // each
}

// list are the prices listed.
func (l *perToken) list() price.List {
	return price.List{Rates: l.rates(), Call: fee(l.Request), Search: fee(l.Search)}
}

// fee is what one of something costs. A zero says that it has no price of its
// own.
func fee(listed json.RawMessage) (f price.Fee) {
	var text string
	if json.Unmarshal(listed, &text) != nil {
		return f
	}
	if a, err := money.Parse(text); err == nil && a > 0 {
		f = price.FeeOf(a)
	}
	return f
}

// rates are those of tokens. Where tokens cost anything, a zero for one kind
// of them says that it has no price of its own.
func (l *perToken) rates() price.Rates {
	var r price.Rates
	listed := [...]json.RawMessage{l.Prompt, l.Completion, l.CacheRead, l.CacheWrite, l.Reasoning, l.AudioIn, l.AudioOut, l.HourWrite, l.ImageOut}
	kinds := [...]*price.Rate{&r.Input, &r.Output, &r.CacheRead, &r.CacheWrite, &r.Reasoning, &r.AudioIn, &r.AudioOut, &r.HourWrite, &r.ImageOut}
	for i, rate := range kinds {
		var text string
		if json.Unmarshal(listed[i], &text) == nil {
			*rate, _ = price.ParsePerToken(text)
		}
	}
	free := price.RateOf(0)
	if r.Input == free && r.Output == free {
		return r
	}
	for _, rate := range kinds[2:] {
		if *rate == free {
			*rate = price.Rate{}
		}
	}
	return r
}
