package openaichat

import (
	"bytes"
	"regexp"
	"slices"
	"strconv"

	"github.com/limen-gateway/limen/internal/dialect"
	"github.com/limen-gateway/limen/internal/jsonedit"
	"github.com/limen-gateway/limen/internal/llm"
)

// Upstream is the dialect as upstreams speak it that clients of other dialects
// are sent to, and clients of this one where a server's form of it differs too
// much for their bytes to pass.
type Upstream struct{}

var _ dialect.Outbound = Upstream{}

// requestEncoder writes one request for a server. What the server differs in
// is told by its Caps.
type requestEncoder struct {
	req   *llm.Request
	caps  *llm.Caps
	chat  *llm.ChatCaps
	own   bool // the client wrote Chat Completions, too
	notes llm.Notes
	w     jsonedit.Writer

	functions []dialect.Function
	names     *dialect.Names
	written   map[string]bool // members so far
	callID    *regexp.Regexp
	unstrict  bool    // no function is strict
	marks     int     // breakpoints that are too many: the first ones go
	guide     llm.Raw // instructions that stand for a form of answers the server does not know
}

// Encode implements dialect.Outbound.
func (Upstream) Encode(req *llm.Request, caps *llm.Caps) (*dialect.Call, error) {
	e := &requestEncoder{req: req, caps: caps, chat: &caps.Chat, own: isOwn(req), notes: slices.Clone(req.Notes), written: map[string]bool{}, w: *jsonedit.NewWriter(req.Room())}
	if e.chat.CallID != "" {
		e.callID, _ = regexp.Compile(e.chat.CallID)
	}
	e.w.BeginObject()
	e.set("model", llm.Quote(caps.Model))
	for _, step := range []func() error{
		e.refusals, e.limits, e.sampling, e.format, e.meta, e.others, e.reasoning, e.tools, e.messages, e.stream,
	} {
		if err := step(); err != nil {
			return nil, err
		}
	}
	e.w.EndObject()
	return &dialect.Call{
		Path: "/chat/completions", Body: e.w.Bytes(), Stream: e.written["stream"],
		Notes: e.notes, Names: e.names, Tools: len(e.functions) > 0,
	}, nil
}

// usual are the members that servers of this dialect share. Others are told
// to OpenAI's own service, and to other servers only where the client, who may
// know the server, wrote them itself.
var usual = map[string]bool{
	"model": true, "messages": true, "stream": true, "stream_options": true, "tools": true, "tool_choice": true, "parallel_tool_calls": true,
	"max_tokens": true, "max_completion_tokens": true, "temperature": true, "top_p": true, "stop": true, "n": true, "seed": true,
	"presence_penalty": true, "frequency_penalty": true, "logit_bias": true, "logprobs": true, "top_logprobs": true,
	"response_format": true, "reasoning_effort": true, "user": true,
}

// set writes a member whatever the server is.
func (e *requestEncoder) set(name string, value llm.Raw) {
	e.written[name] = true
	e.w.RawName(llm.Quote(name)) // a client's own name may be anything
	e.w.Raw(value)
}

// takes reports whether the server can be told a member.
func (e *requestEncoder) takes(name string) bool {
	switch {
	case slices.Contains(e.chat.Drop, name):
		return false
	case usual[name] || e.renamed(name) != name:
		return true
	}
	return !e.chat.Strict && (e.own || e.chat.Native)
}

// renamed is what the server calls a member.
func (e *requestEncoder) renamed(name string) string {
	for _, pair := range e.chat.Rename {
		if pair[0] == name {
			return pair[1]
		}
	}
	return name
}

// put writes a member if it is given and the server takes it, by the server's
// name of it.
func (e *requestEncoder) put(name string, value llm.Raw) {
	if value == nil {
		return
	}
	to := e.renamed(name)
	switch {
	case !e.takes(name), e.written[to]:
		e.drop(name)
		return
	case to != name:
		e.notes.Rename(e.param(name))
	}
	e.set(to, value)
}

func (e *requestEncoder) drop(name string) { e.notes.Drop(e.param(name)) }

// param is the client's name of a member.
func (e *requestEncoder) param(name string) string { return e.req.Words.Param(name) }

// refusals are of what would need a store, or more answers than one.
func (e *requestEncoder) refusals() error {
	s := &e.req.State
	for _, m := range []struct {
		name  string
		given bool
		else_ string
	}{
		{"previous_response_id", s.PreviousID.Given(), "send the whole history in '" + e.items() + "' instead"},
		{"conversation", s.Conversation.Given(), "send the whole history in '" + e.items() + "' instead"},
		{"prompt", s.Prompt.Given(), "send its text in '" + e.items() + "' instead"},
		{"background", s.Background, "leave it out and read the answer as a stream"},
		{"context_management", s.Context.Given(), "leave it out and shorten the history yourself"},
	} {
		if m.given {
			return dialect.NotServed(e.param(m.name), "The model's upstream keeps nothing between calls, as '%s' needs: %s.", e.param(m.name), m.else_)
		}
	}
	if e.req.Choices > 1 && e.chat.OneChoice {
		return dialect.NotPossible(e.param("n"), "The model's upstream gives only 1 answer to a call, so '%s' must be 1: send the request %d times instead.", e.param("n"), e.req.Choices)
	}
	return nil
}

// items is the client's name of the list of messages.
func (e *requestEncoder) items() string { return e.req.Words.List() }

func (e *requestEncoder) limits() error {
	l := &e.req.Limits
	if err := e.tokenLimit(); err != nil {
		return err
	}
	if len(l.Stop) > 4 && e.chat.Native {
		return dialect.NotPossible(e.param("stop"), "The model's upstream takes at most 4 stop sequences in '%s': leave some out.", e.param("stop"))
	}
	if len(l.Stop) > 0 {
		e.put("stop", list(l.Stop))
	}
	if l.Truncation.Given() {
		e.drop("truncation")
	}
	if l.MaxToolCalls.Given() {
		e.drop("max_tool_calls")
	}
	if n := e.req.Choices; n > 0 && !e.chat.OneChoice && !(n == 1 && e.chat.ManyOnly) {
		e.put("n", llm.Raw(strconv.Itoa(n)))
	}
	return nil
}

// tokenLimit says the limit under the one name that the server has for it.
func (e *requestEncoder) tokenLimit() error {
	limit := e.req.Limits.MaxTokens
	if limit == nil {
		return nil
	}
	said := "max_completion_tokens"
	name := e.chat.TokenLimit
	if name == "" {
		name = e.renamed(said)
	}
	if *limit < 1 {
		return dialect.NotPossible(e.param(said), "The model's upstream cannot answer with no tokens at all: set '%s' to 1 or more.", e.param(said))
	}
	if e.req.Limits.MaxTokensRaw != "" {
		said = e.req.Limits.MaxTokensRaw
	}
	if e.own && said != name {
		e.notes.Rename("max_tokens")
	}
	n := *limit
	if e.caps.MaxOutput > 0 && n > e.caps.MaxOutput {
		n = e.caps.MaxOutput
		e.notes.Clamp(e.param("max_tokens"))
	}
	e.set(name, llm.Raw(strconv.FormatInt(n, 10)))
	return nil
}

func (e *requestEncoder) sampling() error {
	s := &e.req.Sampling
	refused := e.caps.NoSampling || e.chat.NoThinkingSampling && e.thinks(e.chat.ThinksUnasked)
	temperature := s.Temperature
	if !refused {
		temperature = e.temperature(temperature)
	}
	for _, m := range []struct {
		name  string
		value llm.Raw
		knows bool // the server is known to take it
	}{
		{"temperature", temperature, true},
		{"top_p", s.TopP, true},
		{"presence_penalty", s.Presence, true},
		{"frequency_penalty", s.Frequency, true},
		{"top_k", s.TopK, e.chat.TopK},
		{"min_p", s.MinP, false},
		{"repetition_penalty", s.Repetition, false},
	} {
		switch {
		case m.value == nil:
		case refused:
			e.drop(m.name)
		case m.knows && !usual[m.name] && !slices.Contains(e.chat.Drop, m.name):
			e.set(m.name, m.value)
		case !m.knows && e.chat.Native && !e.own: // OpenAI's own service refuses what it does not know
			e.drop(m.name)
		default:
			e.put(m.name, m.value)
		}
	}
	e.seed(s.Seed)
	e.put("logit_bias", s.LogitBias)
	if e.req.Logprobs || e.req.TopLogprob != nil && !e.own {
		e.put("logprobs", jsonTrue)
	}
	e.put("top_logprobs", e.req.TopLogprob)
	return nil
}

// temperature is a temperature within the server's bounds; nil is one that
// was said otherwise.
func (e *requestEncoder) temperature(said llm.Raw) llm.Raw {
	low, high := e.chat.Temperature[0], e.chat.Temperature[1]
	if said == nil || e.chat.ZeroTemperature == "" && high == 0 {
		return said
	}
	n, err := strconv.ParseFloat(string(said), 64)
	switch {
	case err != nil:
		return said
	case n == 0 && e.chat.ZeroTemperature != "":
		e.notes.Rename(e.param("temperature"))
		e.spread(e.chat.ZeroTemperature)
		return nil
	case high > 0 && (n < low || n > high):
		e.notes.Clamp(e.param("temperature"))
		return strconv.AppendFloat(nil, min(max(n, low), high), 'g', -1, 64)
	}
	return said
}

func (e *requestEncoder) seed(seed llm.Raw) {
	if seed == nil || e.chat.Seed == "" || e.chat.Seed == "seed" || slices.Contains(e.chat.Drop, "seed") {
		e.put("seed", seed)
		return
	}
	e.notes.Rename(e.param("seed"))
	e.set(e.chat.Seed, seed)
}

// format says which form the answer must have.
func (e *requestEncoder) format() error {
	f, param := &e.req.Format, e.param("response_format")
	knows := func(form string) bool {
		return (e.chat.Formats == nil || slices.Contains(e.chat.Formats, form)) && !(form == "json_schema" && e.caps.NoStructured)
	}
	switch {
	case f.Kind == llm.FreeText:
	case f.Kind == llm.JSONObject && e.chat.NoThinkingJSON && e.thinks(e.chat.ThinksUnasked):
		e.notes.Degrade("response_format")
		e.guide = llm.Quote("Answer with a JSON object.")
	case f.Kind == llm.JSONObject && knows("json_object"):
		if e.chat.JSONWord && !saysJSON(e.req.Items) {
			e.notes.Degrade("response_format")
			e.guide = llm.Quote("Answer with a JSON object.")
		}
		e.put("response_format", llm.Raw(`{"type":"json_object"}`))
	case f.Kind == llm.JSONObject && knows("json_schema"):
		e.notes.Degrade("response_format")
		e.put("response_format", schemaFormat(&llm.Format{Name: llm.Quote("json_object"), Schema: openObject}))
	case f.Kind == llm.JSONSchema && e.caps.SchemaAlone && e.hasFunctions():
		return dialect.NotPossible(param, "The model's upstream takes no JSON schema in '%s' beside tools: leave out the one or the other.", param)
	case f.Kind == llm.JSONSchema && knows("json_schema"):
		said := *f
		said.Schema = e.schema(f.Schema)
		e.put("response_format", schemaFormat(&said))
	case f.Kind == llm.JSONSchema && knows("json_object"):
		// The server holds the model to JSON, the instructions to the schema.
		e.notes.Degrade("response_format")
		e.put("response_format", llm.Raw(`{"type":"json_object"}`))
		e.guide = llm.Concat("", llm.Quote("Answer with a JSON object that matches this JSON schema:\n"), llm.QuoteJSON(f.Schema))
	default:
		return dialect.NotPossible(param, "The model's upstream cannot be held to the form in '%s': ask for it in the instructions, and check the answer.", param)
	}
	return nil
}

// saysJSON reports whether a message speaks of JSON.
func saysJSON(items []llm.Item) bool {
	for _, item := range flat(items) {
		m, ok := item.(*llm.Message)
		if !ok {
			continue
		}
		for _, text := range textsOf(m.Parts) {
			if bytes.Contains(bytes.ToLower(text), []byte("json")) {
				return true
			}
		}
	}
	return false
}

func (e *requestEncoder) hasFunctions() bool {
	return slices.ContainsFunc(e.req.Tools, func(t llm.Tool) bool { return t.Server == nil })
}

func schemaFormat(f *llm.Format) llm.Raw {
	name := f.Name
	if name.Blank() {
		name = llm.Quote("response")
	}
	var w jsonedit.Writer
	w.BeginObject()
	w.SetText("type", "json_schema")
	w.Object("json_schema")
	w.SetRaw("name", name)
	w.SetRaw("description", f.Desc)
	w.SetRaw("schema", f.Schema)
	if f.Strict != nil {
		w.SetBool("strict", *f.Strict)
	}
	w.EndObject()
	w.EndObject()
	return w.Bytes()
}

// meta is what is said about the call rather than to the model.
func (e *requestEncoder) meta() error {
	m, c := &e.req.Meta, &e.req.Cache
	e.put("user", m.User)
	e.put("safety_identifier", m.SafetyID)
	e.put("metadata", m.Metadata)
	e.put("prediction", m.Prediction)
	e.put("moderation", m.Moderation)
	e.put("verbosity", e.req.Verbosity)
	e.put("prompt_cache_key", c.Key)
	if c.Mode != "" || c.TTL != "" {
		e.put("prompt_cache_options", cacheOptions(c))
	}
	e.countMarks()
	if c.Auto != nil {
		if e.marked() {
			e.set("cache_control", ephemeral(c.Auto))
		} else {
			e.drop("cache_control")
		}
	}
	if store := e.req.State.Store; store != nil && (e.own || *store) {
		e.put("store", llm.Raw(strconv.FormatBool(*store)))
	}
	if tier := m.ServiceTier; tier != "" && (tier != "auto" || e.own || e.chat.Native) {
		e.put("service_tier", llm.Quote(tier))
	}
	if m.Safety.Given() {
		if e.own {
			e.put("safety_settings", m.Safety)
		} else {
			e.drop("safetySettings")
		}
	}
	return e.modalities()
}

func (e *requestEncoder) modalities() error {
	spoken := slices.ContainsFunc(e.req.Modalities, func(m string) bool { return m != "text" })
	if !spoken {
		if e.req.Audio != nil {
			e.drop("audio") // the voice of no answer
		}
		return nil
	}
	if !e.takes("modalities") {
		param := e.param("modalities")
		return dialect.NotPossible(param, "The model's upstream answers in text only, not in audio or images: leave '%s' out.", param)
	}
	var w jsonedit.Writer
	w.BeginArray()
	for _, m := range e.req.Modalities {
		w.Text(m)
	}
	w.EndArray()
	e.set("modalities", w.Bytes())
	e.put("audio", e.req.Audio)
	return nil
}

func cacheOptions(c *llm.Cache) llm.Raw {
	var w jsonedit.Writer
	w.BeginObject()
	if c.Mode != "" {
		w.SetText("mode", c.Mode)
	}
	if c.TTL != "" {
		w.SetText("ttl", c.TTL)
	}
	w.EndObject()
	return w.Bytes()
}

// ephemeral is a breakpoint as Anthropic writes it.
func ephemeral(b *llm.Breakpoint) llm.Raw {
	var w jsonedit.Writer
	w.BeginObject()
	w.SetText("type", "ephemeral")
	if b.TTL != "" {
		w.SetText("ttl", b.TTL)
	}
	w.EndObject()
	return w.Bytes()
}

// others are the members that only this dialect's clients and servers know.
func (e *requestEncoder) others() error {
	for _, m := range e.req.Other {
		if !e.own {
			e.notes.Drop(m.Name) // it means something else here, or nothing
			continue
		}
		e.put(m.Name, m.Value)
	}
	return nil
}

// stream says how the answer comes.
func (e *requestEncoder) stream() error {
	if !e.req.Stream {
		return nil
	}
	if e.chat.SchemaWhole && e.req.Format.Kind == llm.JSONSchema {
		e.notes.Degrade("stream") // it comes whole, and is told as a stream
		return nil
	}
	e.set("stream", jsonTrue)
	if len(e.functions) > 0 {
		e.spread(e.chat.ToolStream)
	}
	knows := !e.chat.NoStreamUsage && e.takes("stream_options")
	switch {
	case knows && (e.req.WantsUsage || e.chat.AskUsage):
		e.set("stream_options", askUsage)
	case e.own && e.req.WantsUsage:
		e.drop("stream_options")
	}
	return nil
}

func list(values []llm.Raw) llm.Raw {
	var w jsonedit.Writer
	w.BeginArray()
	for _, v := range values {
		w.Raw(v)
	}
	w.EndArray()
	return w.Bytes()
}
