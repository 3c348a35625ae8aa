package provider

import (
	"encoding/json"

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
	AudioIn    json.RawMessage `json:"audio"`
	AudioOut   json.RawMessage `json:"audio_output"`
}

// rates are the prices listed. Where tokens cost anything, a zero for one kind
// of them says that it has no price of its own.
func (l *perToken) rates() price.Rates {
	var r price.Rates
	listed := [...]json.RawMessage{l.Prompt, l.Completion, l.CacheRead, l.CacheWrite, l.Reasoning, l.AudioIn, l.AudioOut}
	kinds := [...]*price.Rate{&r.Input, &r.Output, &r.CacheRead, &r.CacheWrite, &r.Reasoning, &r.AudioIn, &r.AudioOut}
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
