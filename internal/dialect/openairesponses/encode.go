package openairesponses

import (
	"slices"

	"github.com/limen-gateway/limen/internal/dialect"
	"github.com/limen-gateway/limen/internal/jsonedit"
	"github.com/limen-gateway/limen/internal/llm"
)

// Upstream is Responses as upstreams speak it. It is a type of its own because
// both directions have an Encode.
type Upstream struct{}

var _ dialect.Outbound = Upstream{}

// minTokens is the lowest limit that Responses takes; Chat Completions has
// none.
const minTokens = 16

// requestEncoder writes one request.
type requestEncoder struct {
	req   *llm.Request
	caps  *llm.Caps
	notes llm.Notes
	names *dialect.Names
	tools []dialect.Function
	w     *jsonedit.Writer

	include []string
	calls   map[string]llm.CallKind // of the history, by ID
}

// Encode implements dialect.Outbound.
func (Upstream) Encode(req *llm.Request, caps *llm.Caps) (*dialect.Call, error) {
	e := &requestEncoder{req: req, caps: caps, w: jsonedit.NewWriter(req.Room())}
	e.notes.Add(req.Notes)
	if err := e.possible(); err != nil {
		return nil, err
	}
	native := func(kind llm.CallKind) bool { return kind != llm.CustomCall || !caps.Chat.NoCustom }
	e.tools, e.names = dialect.Functions(req.Tools, &dialect.Grammar{Native: native}, &e.notes)
	if err := e.body(); err != nil {
		return nil, err
	}
	return &dialect.Call{Path: Dialect{}.Path(), Body: e.w.Bytes(), Stream: req.Stream, Notes: e.notes, Names: e.names, Tools: len(e.tools) > 0, Words: req.Words}, nil
}

// param is the client's name of a member.
func (e *requestEncoder) param(chat string) string { return e.req.Words.Param(chat) }

// possible refuses what cannot be asked of Responses, and what would change
// the answer if it were left out.
func (e *requestEncoder) possible() error {
	r := e.req
	refuse := func(chat, before, after string) error {
		name := e.param(chat)
		return dialect.NotPossible(name, "%s '%s' %s", before, name, after)
	}
	switch {
	case r.Choices > 1:
		return refuse("n", "The model's upstream gives one answer, and", "asks for more: set it to 1 and repeat the request.")
	case len(r.Limits.Stop) > 0:
		return refuse("stop", "The model's upstream knows no stop sequences: leave", "out and cut the answer yourself.")
	case r.Sampling.LogitBias.Given() && !emptyObject(r.Sampling.LogitBias):
		return refuse("logit_bias", "The model's upstream cannot weigh tokens: leave", "out.")
	case slices.Contains(r.Modalities, "audio"):
		return refuse("modalities", "The model's upstream cannot answer in audio: set", "to text alone.")
	case slices.ContainsFunc(r.Modalities, func(m string) bool { return m != "text" }):
		return refuse("modalities", "The model's upstream can answer in text only: set", "to that alone.")
	case r.Audio.Given():
		return refuse("audio", "The model's upstream cannot answer in audio: leave", "out.")
	case r.Format.Kind == llm.JSONSchema && e.caps.NoStructured:
		return refuse("response_format", "The model's upstream takes no JSON schema for answers: leave", "out and describe the form in the prompt.")
	case r.Format.Kind == llm.JSONSchema && e.caps.SchemaAlone && len(r.Tools) > 0:
		return refuse("response_format", "The model's upstream takes no JSON schema beside tools: leave", "or the tools out.")
	}
	return nil
}

func emptyObject(value llm.Raw) bool {
	for range jsonedit.Members(value) {
		return false
	}
	return value.Kind() == jsonedit.KindObject
}

// body writes the members in a fixed order: the same history gives the same
// bytes, and what grows stands last.
func (e *requestEncoder) body() error {
	r, w := e.req, e.w
	w.BeginObject()
	w.SetText("model", e.caps.Model)
	w.SetBool("store", r.State.Store != nil && *r.State.Store)
	if r.Stream {
		w.SetBool("stream", true)
	}
	e.reasoning()
	if r.Logprobs {
		e.include = append(e.include, includeLogprobs)
	}
	if len(e.include) > 0 {
		w.Array("include")
		for _, name := range e.include {
			w.Text(name)
		}
		w.EndArray()
	}
	if r.TopLogprob.Given() {
		w.SetRaw("top_logprobs", r.TopLogprob)
	}
	e.limits()
	e.sampling()
	e.text()
	e.meta()
	if err := e.writeTools(); err != nil {
		return err
	}
	w.Name("input")
	if err := e.input(); err != nil {
		return err
	}
	w.EndObject()
	return nil
}

func (e *requestEncoder) limits() {
	l := e.req.Limits
	if l.MaxTokens != nil {
		limit := *l.MaxTokens
		if e.caps.MaxOutput > 0 {
			limit = min(limit, e.caps.MaxOutput)
		}
		if limit = max(limit, minTokens); limit != *l.MaxTokens {
			e.notes.Clamp("max_output_tokens")
		}
		e.w.SetInt("max_output_tokens", limit)
	}
	e.w.SetRaw("max_tool_calls", l.MaxToolCalls)
	e.w.SetRaw("truncation", l.Truncation)
}

// reasoning asks for thinking as it was wished for, and for its state: it does
// not stay with the upstream.
func (e *requestEncoder) reasoning() {
	wish := e.req.Reasoning
	effort := e.effort()
	asked := effort != "" || wish.Summary != nil || wish.Display != ""
	if e.caps.ReasonsKnown && !e.caps.Reasons {
		if asked && effort != "none" {
			e.notes.Drop(e.param("reasoning_effort"))
		}
		return
	}
	if effort == "none" {
		e.w.Object("reasoning")
		e.w.SetText("effort", effort)
		e.w.EndObject()
		return
	}
	if !asked && !e.caps.Reasons && !wish.Sealed {
		return // of a model that is not known to think
	}
	e.include = append(e.include, includeReasoning)
	if !asked {
		return
	}
	summary := wish.Summary
	if summary == nil && wish.Display != "omitted" {
		summary = llm.Raw(`"auto"`)
	}
	if effort == "" && !summary.Given() {
		return
	}
	e.w.Object("reasoning")
	if effort != "" {
		e.w.SetText("effort", effort)
	}
	if summary.Given() {
		e.w.SetRaw("summary", summary)
	}
	e.w.EndObject()
}

// Budgets of thinking, in tokens, from which on an effort is higher.
const (
	mediumBudget = 4 << 10
	highBudget   = 16 << 10
)

// effort is the effort that a wish comes to; "" when nothing is said.
func (e *requestEncoder) effort() string {
	wish := e.req.Reasoning
	effort := wish.Effort
	switch {
	case wish.Mode == llm.ThinkingOff:
		effort = "none"
	case effort != "":
	case wish.Mode == llm.ThinkingAdaptive:
		effort = "high"
	case wish.Mode != llm.ThinkingOn && wish.Mode != llm.ThinkingBetweenTools:
		return ""
	case wish.Budget <= 0:
		effort = "medium"
	case wish.Budget < mediumBudget:
		effort = "low"
	case wish.Budget < highBudget:
		effort = "medium"
	default:
		effort = "high"
	}
	if e.caps.Reasons && e.caps.TakesEffort(effort) || !e.caps.ReasonsKnown && e.caps.Efforts == nil {
		return effort
	}
	nearest := e.caps.NearestEffort(effort)
	if nearest != effort {
		if nearest == "" {
			e.notes.Drop(e.param("reasoning_effort"))
		} else {
			e.notes.Clamp(e.param("reasoning_effort"))
		}
	}
	return nearest
}

func (e *requestEncoder) sampling() {
	s := e.req.Sampling
	for _, m := range [...]struct {
		name  string
		value llm.Raw
	}{{"temperature", s.Temperature}, {"top_p", s.TopP}} {
		switch {
		case !m.value.Given():
		case e.caps.NoSampling:
			e.notes.Drop(e.param(m.name))
		default:
			e.w.SetRaw(m.name, m.value)
		}
	}
	for _, m := range [...]struct {
		name  string
		value llm.Raw
	}{
		{"top_k", s.TopK}, {"min_p", s.MinP}, {"seed", s.Seed}, {"presence_penalty", s.Presence}, {"frequency_penalty", s.Frequency},
		{"repetition_penalty", s.Repetition}, {"logit_bias", s.LogitBias}, {"prediction", e.req.Meta.Prediction}, {"safety_settings", e.req.Meta.Safety},
	} {
		if m.value.Given() {
			e.notes.Drop(e.param(m.name))
		}
	}
}

// text writes the form of the answer.
func (e *requestEncoder) text() {
	f := e.req.Format
	if f.Kind == llm.FreeText && !e.req.Verbosity.Given() {
		return
	}
	w := e.w
	w.Object("text")
	switch f.Kind {
	case llm.JSONObject:
		w.Object("format")
		w.SetText("type", "json_object")
		w.EndObject()
	case llm.JSONSchema:
		w.Object("format")
		w.SetText("type", "json_schema")
		name := f.Name
		if name.Blank() {
			name = llm.Raw(`"answer"`) // there must be one, and it means nothing
		}
		w.SetRaw("name", name)
		if f.Desc.Given() {
			w.SetRaw("description", f.Desc)
		}
		w.SetRaw("schema", f.Schema)
		if f.Strict != nil {
			w.SetBool("strict", *f.Strict)
		}
		w.EndObject()
	}
	if e.req.Verbosity.Given() {
		w.SetRaw("verbosity", e.req.Verbosity)
	}
	w.EndObject()
}

// tiers are the service tiers that Responses knows.
var tiers = []string{"auto", "default", "flex", "scale", "priority", "fast", "ultrafast"}

func (e *requestEncoder) meta() {
	r, w := e.req, e.w
	if r.Parallel != nil {
		if e.caps.NoParallel {
			e.notes.Drop(e.param("parallel_tool_calls"))
		} else {
			w.SetBool("parallel_tool_calls", *r.Parallel)
		}
	}
	for _, m := range [...]struct {
		name  string
		value llm.Raw
	}{
		{"metadata", r.Meta.Metadata}, {"user", r.Meta.User}, {"safety_identifier", r.Meta.SafetyID}, {"prompt_cache_key", r.Cache.Key}, {"moderation", r.Meta.Moderation},
	} {
		if m.value.Given() {
			w.SetRaw(m.name, m.value)
		}
	}
	switch tier := r.Meta.ServiceTier; {
	case tier == "":
	case tier == "standard_only":
		w.SetText("service_tier", "default")
	case slices.Contains(tiers, tier):
		w.SetText("service_tier", tier)
	default:
		e.notes.Drop(e.param("service_tier"))
	}
	if r.Cache.Mode != "" || r.Cache.TTL != "" {
		w.Object("prompt_cache_options")
		if r.Cache.Mode != "" {
			w.SetText("mode", r.Cache.Mode)
		}
		if r.Cache.TTL != "" {
			w.SetText("ttl", r.Cache.TTL)
		}
		w.EndObject()
	}
	if r.State.Context.Given() {
		w.SetRaw("context_management", r.State.Context)
	}
	for _, m := range r.Other {
		e.notes.Drop(m.Name)
	}
}
