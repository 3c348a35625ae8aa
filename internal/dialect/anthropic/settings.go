package anthropic

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/limen-gateway/limen/internal/dialect"
	"github.com/limen-gateway/limen/internal/jsonedit"
	"github.com/limen-gateway/limen/internal/llm"
)

// settings writes the members that are neither conversation, tools nor
// thinking, and notes those that have no place here.
func (o *outgoing) settings() {
	o.sampling()
	o.stops()
	o.user()
	o.tier()
	r := o.req
	for _, m := range []struct {
		name  string
		value llm.Raw
	}{
		{"verbosity", r.Verbosity}, {"seed", r.Sampling.Seed},
		{"presence_penalty", r.Sampling.Presence}, {"frequency_penalty", r.Sampling.Frequency},
		{"repetition_penalty", r.Sampling.Repetition}, {"min_p", r.Sampling.MinP}, {"logit_bias", r.Sampling.LogitBias},
		{"top_logprobs", r.TopLogprob}, {"prediction", r.Meta.Prediction}, {"moderation", r.Meta.Moderation},
		{"safetySettings", r.Meta.Safety}, {"max_tool_calls", r.Limits.MaxToolCalls},
		{"prompt_cache_key", r.Cache.Key},
	} {
		if m.value.Given() {
			o.notes.Drop(o.param(m.name))
		}
	}
	if r.Meta.Metadata.Given() && !empty(r.Meta.Metadata) {
		o.notes.Drop(o.param("metadata"))
	}
	if r.Limits.Truncation.Given() && r.Limits.Truncation.Text() != "disabled" {
		o.notes.Drop(o.param("truncation"))
	}
	if r.State.Store != nil && *r.State.Store {
		o.notes.Drop(o.param("store"))
	}
	if r.Cache.TTL != "" {
		o.notes.Drop(o.param("prompt_cache_retention"))
	}
	for _, m := range r.Other {
		if m.Name != "output_config" && m.Name != "thinking" && m.Value.Given() {
			o.notes.Drop(m.Name)
		}
	}
}

// sampling writes what steers the choice of tokens, as far as the model takes
// it: it refuses the two knobs together, and a budget to think excludes most.
func (o *outgoing) sampling() {
	s := o.req.Sampling
	if o.caps.NoSampling || o.version() >= noSampling {
		for _, m := range []struct {
			name  string
			value llm.Raw
		}{{"temperature", s.Temperature}, {"top_p", s.TopP}, {"top_k", s.TopK}} {
			if m.value.Given() {
				o.notes.Drop(o.param(m.name))
			}
		}
		return
	}
	if s.Temperature.Given() {
		o.temperature(s.Temperature)
	}
	switch {
	case !s.TopP.Given():
	case s.Temperature.Given(), o.budgeted && number(s.TopP) < leastTopP:
		o.notes.Drop(o.param("top_p"))
	default:
		o.w.SetRaw("top_p", s.TopP)
	}
	switch {
	case !s.TopK.Given():
	case o.budgeted:
		o.notes.Drop(o.param("top_k"))
	default:
		o.w.SetRaw("top_k", s.TopK)
	}
}

// leastTopP is the least that is allowed beside a budget to think.
const leastTopP = 0.95

func (o *outgoing) temperature(value llm.Raw) {
	t := number(value)
	switch {
	case o.budgeted && t != 1:
		o.notes.Drop(o.param("temperature"))
	case t > 1:
		o.notes.Clamp(o.param("temperature"))
		o.w.SetInt("temperature", 1)
	case t < 0:
		o.notes.Clamp(o.param("temperature"))
		o.w.SetInt("temperature", 0)
	default:
		o.w.SetRaw("temperature", value)
	}
}

// number is a JSON number; what is none reads 0.
func number(value llm.Raw) float64 {
	f, _ := strconv.ParseFloat(string(value), 64)
	return f
}

// stops writes the sequences that end the answer. Those of white space alone
// are refused.
func (o *outgoing) stops() {
	begun := false
	for i, s := range o.req.Limits.Stop {
		if s.White() {
			o.notes.Drop(fmt.Sprintf("%s[%d]", o.param("stop"), i))
			continue
		}
		if !begun {
			o.w.Array("stop_sequences")
			begun = true
		}
		o.w.Raw(s)
	}
	if begun {
		o.w.EndArray()
	}
}

// maxUser bounds the ID of a user.
const maxUser = 256

// user tells who asks: an opaque ID, never an address.
func (o *outgoing) user() {
	id, name := o.req.Meta.SafetyID, "safety_identifier"
	if !id.Given() {
		id, name = o.req.Meta.User, "user"
	}
	if id.Blank() {
		return
	}
	if strings.Contains(id.Text(), "@") || len(id.Text()) > maxUser {
		o.notes.Drop(o.param(name))
		return
	}
	o.w.Object("metadata")
	o.w.SetRaw("user_id", id)
	o.w.EndObject()
}

// tier writes the service tier, which other dialects have more words for.
func (o *outgoing) tier() {
	switch tier := o.req.Meta.ServiceTier; {
	case tier == "":
	case tier == "auto" || tier == "priority":
		o.w.SetText("service_tier", "auto")
	case tier == "default" || tier == "standard_only":
		o.w.SetText("service_tier", "standard_only")
	case tier == "fast" && o.caps.Anthropic.FastSpeed:
		o.w.SetText("speed", "fast")
		o.betas = append(o.betas, fastBeta)
	default:
		o.notes.Drop(o.param("service_tier"))
	}
}

// outputConfig writes effort and format. Members that a client wrote for this
// dialect itself are kept.
func (o *outgoing) outputConfig() error {
	var own llm.Raw
	for _, m := range o.req.Other {
		if m.Name == "output_config" && m.Value.Kind() == jsonedit.KindObject {
			own = m.Value
		}
	}
	schema := o.req.Format.Kind == llm.JSONSchema
	if o.effort == "" && !schema && (own == nil || empty(own)) {
		return nil
	}
	o.w.Object("output_config")
	for name, value := range jsonedit.Members(own) {
		if string(name) == `"effort"` && o.effort != "" || string(name) == `"format"` && schema {
			continue
		}
		o.w.RawName(name)
		o.w.Raw(value)
	}
	if o.effort != "" {
		o.w.SetText("effort", o.effort)
	}
	if schema {
		if o.req.Format.Schema.Kind() != jsonedit.KindObject {
			param := o.param("response_format")
			return dialect.NotPossible(param, "'%s' needs a JSON schema that is an object; give one.", param)
		}
		o.w.Object("format")
		o.w.SetText("type", "json_schema")
		o.w.SetRaw("schema", o.fitSchema(o.req.Format.Schema, true))
		o.w.EndObject()
	}
	o.w.EndObject()
	return nil
}
