package bedrock

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/limen-gateway/limen/internal/dialect"
	"github.com/limen-gateway/limen/internal/jsonedit"
	"github.com/limen-gateway/limen/internal/llm"
)

// encoder writes one request.
type encoder struct {
	req   *llm.Request
	caps  *llm.Caps
	call  *dialect.Call
	notes *llm.Notes

	functions []dialect.Function
	names     *dialect.Names
	tools     bool // the model is told of them
	flat      bool // calls and results of the past are told as text
	system    []block
	turns     []*turn

	thinking  llm.Raw // Anthropic's object
	budgeted  bool    // it is of type enabled
	effort    string
	extra     []llm.Member // additionalModelRequestFields
	documents map[string]bool
	toolMarks []*llm.Breakpoint // behind the tools
}

// Encode implements dialect.Outbound.
func (Upstream) Encode(req *llm.Request, caps *llm.Caps) (*dialect.Call, error) {
	e := &encoder{req: req, caps: caps, documents: map[string]bool{}}
	e.call = &dialect.Call{Path: path(caps, req.Stream), Stream: req.Stream, Notes: slices.Clone(req.Notes)}
	e.notes = &e.call.Notes
	if err := e.refuse(); err != nil {
		return nil, err
	}
	e.functions, e.names = dialect.Functions(req.Tools, nil, e.notes)
	e.call.Names, e.call.Tools = e.names, len(e.functions) > 0
	if err := e.hosted(); err != nil {
		return nil, err
	}
	e.tools = len(e.functions) > 0 && req.ToolChoice.Mode != llm.ChoiceNone
	e.flat = !e.tools // the service demands tools beside their blocks
	if err := e.conversation(); err != nil {
		return nil, err
	}
	e.reason()
	e.mark()
	w := jsonedit.NewWriter(req.Room())
	w.BeginObject()
	e.inference(w)
	choice := e.toolConfig(w)
	e.writeBlocks(w, "system", e.system)
	e.output(w)
	e.more(w, choice)
	e.meta(w)
	w.Array("messages")
	for _, t := range e.turns {
		w.BeginObject()
		w.SetText("role", t.role)
		e.writeBlocks(w, "content", t.blocks)
		w.EndObject()
	}
	w.EndArray()
	w.EndObject()
	e.call.Body = w.Bytes()
	return e.call, nil
}

func (e *encoder) param(chat string) string { return e.req.Words.Param(chat) }

// place is where an item or a part stood in the client's request.
func (e *encoder) place(p llm.Pos) string { return e.req.Words.Place(p, "") }

// refuse refuses what the service cannot do, and what it would need a store
// for.
func (e *encoder) refuse() error {
	r := e.req
	for _, m := range []struct {
		name  string
		given bool
	}{
		{"previous_response_id", r.State.PreviousID.Given()},
		{"conversation", r.State.Conversation.Given()},
		{"prompt", r.State.Prompt.Given()},
		{"background", r.State.Background},
		{"context_management", r.State.Context.Given()},
	} {
		if m.given {
			p := e.param(m.name)
			return dialect.NotServed(p, "'%s' needs state that this gateway does not keep for this model. Leave it out and send the whole conversation.", p)
		}
	}
	spoken := slices.ContainsFunc(r.Modalities, func(m string) bool { return m != "text" })
	for _, m := range []struct {
		name, why string
		given     bool
	}{
		{"n", "it gives one answer; ask several times", r.Choices > 1},
		{"logprobs", "it tells no probabilities; leave it out", r.Logprobs},
		{"modalities", "it gives no audio or images; ask for text", spoken},
		{"audio", "it gives no audio; leave it out", r.Audio.Given()},
		{"logit_bias", "it takes no bias; leave it out", !empty(r.Sampling.LogitBias)},
		{"response_format", "it keeps to schemas only; give a JSON schema, or ask for JSON in the prompt", r.Format.Kind == llm.JSONObject},
		{"response_format", "it keeps to no schema; ask for JSON in the prompt", r.Format.Kind == llm.JSONSchema && e.caps.NoStructured},
		{"response_format", "it keeps to no schema beside tools; leave out one of them", r.Format.Kind == llm.JSONSchema && e.caps.SchemaAlone && len(r.Tools) > 0},
	} {
		if m.given {
			p := e.param(m.name)
			return dialect.NotPossible(p, "'%s' is not possible with this model: %s.", p, m.why)
		}
	}
	if n := r.Limits.MaxTokens; n != nil && *n < 1 {
		p := e.param("max_completion_tokens")
		if r.Limits.MaxTokensRaw != "" {
			p = r.Limits.MaxTokensRaw
		}
		return dialect.NotPossible(p, "'%s' must be at least 1 for this model. Raise it, or leave it out.", p)
	}
	return nil
}

// empty reports whether an object is absent or has no members.
func empty(object llm.Raw) bool {
	for range jsonedit.Members(object) {
		return false
	}
	return true
}

// maxTokens is the limit of the answer; 0 leaves it to the model.
func (e *encoder) maxTokens() int64 {
	n, top := e.caps.DefaultMaxTokens, e.caps.MaxOutput
	if said := e.req.Limits.MaxTokens; said != nil {
		n = *said
		if top > 0 && n > top {
			e.notes.Clamp("maxTokens")
		}
	}
	if top > 0 {
		n = min(n, top)
	}
	return n
}

// inference writes inferenceConfig.
func (e *encoder) inference(to *jsonedit.Writer) {
	var w jsonedit.Writer
	w.BeginObject()
	if n := e.maxTokens(); n > 0 {
		if e.req.Limits.MaxTokens == nil {
			e.notes.Default("max_tokens")
		}
		w.SetInt("maxTokens", n)
	}
	e.sampling(&w)
	e.stops(&w)
	w.EndObject()
	if w.Len() > len("{}") {
		to.SetRaw("inferenceConfig", w.Bytes())
	}
}

// sampling writes what steers the choice of tokens. Anthropic's models take
// one of the two knobs, and none beside a budget to think.
func (e *encoder) sampling(w *jsonedit.Writer) {
	s := &e.req.Sampling
	claude := e.caps.Bedrock.Family == familyAnthropic
	for _, m := range []struct {
		name, chat string
		value      llm.Raw
		unknown    bool
	}{
		{"temperature", "temperature", s.Temperature, e.caps.NoSampling || e.budgeted && number(s.Temperature) != 1},
		{"topP", "top_p", s.TopP, e.caps.NoSampling || claude && s.Temperature.Given() || e.budgeted},
	} {
		switch {
		case !m.value.Given():
		case m.unknown:
			e.notes.Drop(e.param(m.chat))
		case m.name == "temperature" && number(m.value) > 1:
			e.notes.Clamp(e.param(m.chat))
			w.SetInt(m.name, 1)
		default:
			w.SetRaw(m.name, m.value)
		}
	}
	if s.TopK.Given() {
		if claude && !e.caps.NoSampling && !e.budgeted {
			e.extra = append(e.extra, llm.Member{Name: "top_k", Value: s.TopK})
		} else {
			e.notes.Drop(e.param("top_k"))
		}
	}
}

func number(value llm.Raw) float64 {
	f, _ := strconv.ParseFloat(string(value), 64)
	return f
}

func (e *encoder) stops(w *jsonedit.Writer) {
	stops := e.req.Limits.Stop
	if e.caps.Bedrock.NoStopSeqs && len(stops) > 0 {
		e.notes.Drop(e.param("stop"))
		return
	}
	var kept []llm.Raw
	for i, s := range stops {
		if s.White() {
			e.notes.Drop(fmt.Sprintf("%s[%d]", e.param("stop"), i))
			continue
		}
		kept = append(kept, s)
	}
	if len(kept) == 0 {
		return
	}
	w.Array("stopSequences")
	for _, s := range kept {
		w.Raw(s)
	}
	w.EndArray()
}

// output writes outputConfig.
func (e *encoder) output(w *jsonedit.Writer) {
	f := &e.req.Format
	if f.Kind != llm.JSONSchema && e.effort == "" {
		return
	}
	w.Object("outputConfig")
	if f.Kind == llm.JSONSchema {
		name := f.Name
		if name.Blank() {
			name = llm.Raw(`"response"`)
		}
		schema := f.Schema
		if !schema.Given() {
			schema = llm.Raw("{}")
		}
		w.Object("textFormat")
		w.SetText("type", "json_schema")
		w.Object("structure")
		w.Object("jsonSchema")
		w.SetRaw("name", name)
		if f.Desc.Given() {
			w.SetRaw("description", f.Desc)
		}
		w.SetRaw("schema", llm.QuoteJSON(schema))
		w.EndObject()
		w.EndObject()
		w.EndObject()
	}
	if e.effort != "" {
		w.SetText("effort", e.effort)
	}
	w.EndObject()
}

// more writes additionalModelRequestFields, what Converse itself has no member
// for. choice is Anthropic's tool choice, nil when there is none to say.
func (e *encoder) more(w *jsonedit.Writer, choice llm.Raw) {
	betas := e.caps.Anthropic.Betas
	if len(e.extra) == 0 && e.thinking == nil && choice == nil && len(betas) == 0 {
		return
	}
	w.Object("additionalModelRequestFields")
	w.SetRaw("thinking", e.thinking)
	w.SetRaw("tool_choice", choice)
	for _, m := range e.extra {
		w.SetRaw(m.Name, m.Value)
	}
	if len(betas) > 0 {
		w.Array("anthropic_beta")
		for _, beta := range betas {
			w.Text(beta)
		}
		w.EndArray()
	}
	w.EndObject()
}

// meta writes the service tier, and notes what has no place.
func (e *encoder) meta(w *jsonedit.Writer) {
	r := e.req
	switch tier := r.Meta.ServiceTier; tier {
	case "", "auto":
	case "default", "flex", "priority":
		w.Object("serviceTier")
		w.SetText("type", tier)
		w.EndObject()
	case "standard_only":
		w.Object("serviceTier")
		w.SetText("type", "default")
		w.EndObject()
	default:
		e.notes.Drop(e.param("service_tier"))
	}
	for _, m := range []struct {
		name  string
		given bool
	}{
		{"verbosity", r.Verbosity.Given()}, {"seed", r.Sampling.Seed.Given()},
		{"presence_penalty", r.Sampling.Presence.Given()}, {"frequency_penalty", r.Sampling.Frequency.Given()},
		{"repetition_penalty", r.Sampling.Repetition.Given()}, {"min_p", r.Sampling.MinP.Given()},
		{"logit_bias", r.Sampling.LogitBias.Given()}, {"top_logprobs", r.TopLogprob.Given()},
		{"prediction", r.Meta.Prediction.Given()}, {"moderation", r.Meta.Moderation.Given()}, {"safety_settings", r.Meta.Safety.Given()},
		{"user", r.Meta.User.Given()}, {"safety_identifier", r.Meta.SafetyID.Given()}, {"metadata", !empty(r.Meta.Metadata)},
		{"store", r.State.Store != nil && *r.State.Store},
		{"truncation", r.Limits.Truncation.Given() && r.Limits.Truncation.Text() != "disabled"},
		{"max_tool_calls", r.Limits.MaxToolCalls.Given()}, {"prompt_cache_key", r.Cache.Key.Given()},
		{"prompt_cache_retention", r.Cache.TTL != ""}, {"prompt_cache_options", r.Cache.Mode != "" && !e.caches()}, {"cache_control", r.Cache.Auto != nil && !e.caches()},
	} {
		if m.given {
			e.notes.Drop(e.param(m.name))
		}
	}
	for _, m := range r.Other {
		if m.Value.Given() && m.Name != "thinking" {
			e.notes.Drop(m.Name)
		}
	}
}
