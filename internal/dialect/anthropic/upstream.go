package anthropic

import (
	"io"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/limen-gateway/limen/internal/dialect"
	"github.com/limen-gateway/limen/internal/jsonedit"
	"github.com/limen-gateway/limen/internal/llm"
)

// Upstream is Messages, as upstreams speak it to clients of other dialects.
type Upstream struct{}

var _ dialect.Outbound = Upstream{}

// Failed implements dialect.Outbound.
func (Upstream) Failed(status int, body []byte, wait time.Duration) *llm.Error {
	return failed(status, body, wait)
}

// Frames implements dialect.Outbound.
func (Upstream) Frames(r io.Reader, max int) dialect.Frames { return dialect.SSE(r, max) }

// Answers implements dialect.Outbound.
func (Upstream) Answers(call *dialect.Call, caps *llm.Caps) dialect.Decoder {
	r := newReader(caps)
	if call != nil {
		r.body, r.rounds = call.Body, call.Rounds
	}
	return r
}

// The versions of the API.
const (
	firstVersion  = "2023-06-01"
	noSampling    = "2026-10-21" // has no temperature and its like
	vertexVersion = "vertex-2023-10-16"
	fastBeta      = "fast-mode-2026-02-01"
)

// Encode implements dialect.Outbound.
func (Upstream) Encode(req *llm.Request, caps *llm.Caps) (*dialect.Call, error) {
	o := &outgoing{w: *jsonedit.NewWriter(req.Room()), req: req, caps: caps, words: req.Words, notes: slices.Clone(req.Notes), betas: slices.Clone(caps.Anthropic.Betas)}
	if err := o.refusals(); err != nil {
		return nil, err
	}
	functions, names := dialect.Functions(req.Tools, &dialect.Grammar{MaxName: 128}, &o.notes)
	o.functions, o.names = functions, names
	if err := o.conversation(); err != nil {
		return nil, err
	}
	o.limit()
	o.think()
	hosted, err := o.hosted()
	if err != nil {
		return nil, err
	}
	tools := o.toolList(hosted)
	o.placeCache(tools)
	o.settleCache(tools)
	if err := o.write(tools); err != nil {
		return nil, err
	}
	return o.call(), nil
}

// outgoing is a request while it is written.
type outgoing struct {
	req   *llm.Request
	caps  *llm.Caps
	words *llm.Words
	notes llm.Notes
	betas []string

	functions []dialect.Function
	names     *dialect.Names
	system    []block
	turns     []*bodyTurn
	auto      *llm.Breakpoint // that the vendor places

	maxTokens int64
	thinking  llm.Raw // the object; nil when nothing is said
	budgeted  bool    // it is of type enabled
	effort    string

	w jsonedit.Writer
}

// param is the client's name of a member.
func (o *outgoing) param(chat string) string { return o.words.Param(chat) }

// refusals are what no upstream of this dialect can do, and what dropping
// would change the answer that was asked for.
func (o *outgoing) refusals() error {
	r := o.req
	not := dialect.NotPossible
	switch {
	case r.Choices > 1:
		return not(o.param("n"), "'%s' above 1 is not possible with this model, which gives one answer; ask with '%[1]s' of 1, several times if need be.", o.param("n"))
	case r.Logprobs:
		return not(o.param("logprobs"), "'%s' are not possible with this model, which tells none; leave them out or use a model that has them.", o.param("logprobs"))
	case slices.ContainsFunc(r.Modalities, func(m string) bool { return m != "text" }):
		return not(o.param("modalities"), "'%s' beyond text are not possible with this model, which answers without audio or images; ask for text or use a model that has them.", o.param("modalities"))
	case r.Audio.Given():
		return not(o.param("audio"), "'%s' is not possible with this model, which answers in text; leave it out or use a model that speaks.", o.param("audio"))
	case r.Sampling.LogitBias.Given() && !empty(r.Sampling.LogitBias):
		return not(o.param("logit_bias"), "'%s' is not possible with this model, which takes no bias; leave it out or use another model.", o.param("logit_bias"))
	case r.State.PreviousID.Given():
		return stored("previous_response_id")
	case r.State.Conversation.Given():
		return stored("conversation")
	case r.State.Prompt.Given():
		return stored("prompt")
	case r.State.Background:
		return stored("background")
	case r.State.Context.Given():
		return stored("context_management")
	}
	switch f := r.Format; {
	case f.Kind == llm.JSONObject:
		return not(o.param("response_format"), "'%s' without a schema is not possible with this model; give a JSON schema, or ask for JSON in the prompt.", o.param("response_format"))
	case f.Kind == llm.JSONSchema && o.caps.NoStructured:
		return not(o.param("response_format"), "'%s' is not possible with this model, which keeps to no schema; ask for JSON in the prompt or use another model.", o.param("response_format"))
	case f.Kind == llm.JSONSchema && o.caps.SchemaAlone && len(r.Tools) > 0:
		return not(o.param("response_format"), "'%s' with a schema is not possible beside tools with this model; leave out one of the two.", o.param("response_format"))
	}
	return nil
}

// stored refuses a member that needs a store.
func stored(param string) error {
	return dialect.NotServed(param, "'%s' needs a store that this model's upstream does not have; send the whole conversation instead.", param)
}

// empty reports whether an object or array has nothing in it.
func empty(value llm.Raw) bool {
	c := jsonedit.Compact(nil, value)
	return len(c) == len("{}")
}

// limit settles how long the answer may be. A limit must be said.
func (o *outgoing) limit() {
	top := o.caps.MaxOutput
	if said := o.req.Limits.MaxTokens; said != nil {
		o.maxTokens = *said
		if top > 0 && o.maxTokens > top {
			o.maxTokens = top
			o.notes.Clamp("max_tokens")
		}
		return
	}
	o.notes.Default("max_tokens")
	if o.maxTokens = o.caps.DefaultMaxTokens; o.maxTokens == 0 {
		o.maxTokens = defaultMaxTokens
	}
	if top > 0 {
		o.maxTokens = min(o.maxTokens, top)
	}
}

// defaultMaxTokens leaves room for an agent's longest edits; every model since
// Claude 4 gives as much.
const defaultMaxTokens = 16384

// write writes the body.
func (o *outgoing) write(tools []block) error {
	w, r := &o.w, o.req
	w.BeginObject()
	if o.caps.Anthropic.InPath {
		w.SetText("anthropic_version", vertexVersion)
		if len(o.betas) > 0 {
			w.Array("anthropic_beta")
			for _, beta := range o.betas {
				w.Text(beta)
			}
			w.EndArray()
		}
	} else {
		w.SetText("model", o.caps.Model)
	}
	w.SetInt("max_tokens", o.maxTokens)
	if r.Stream {
		w.SetBool("stream", true)
	}
	o.settings()
	w.SetRaw("thinking", o.thinking)
	if err := o.outputConfig(); err != nil {
		return err
	}
	o.writeBlocks("tools", tools)
	o.toolChoice(len(tools) > 0)
	if o.auto != nil {
		w.Name("cache_control")
		o.writeCache(o.auto)
	}
	o.writeBlocks("system", o.system)
	w.Array("messages")
	for _, t := range o.turns {
		w.BeginObject()
		w.SetText("role", t.role)
		w.Array("content")
		for i := range t.blocks {
			o.writeBlock(&t.blocks[i])
		}
		w.EndArray()
		w.EndObject()
	}
	w.EndArray()
	w.EndObject()
	return nil
}

func (o *outgoing) writeBlocks(name string, blocks []block) {
	if len(blocks) == 0 {
		return
	}
	o.w.Array(name)
	for i := range blocks {
		o.writeBlock(&blocks[i])
	}
	o.w.EndArray()
}

// call is the whole of what is sent.
func (o *outgoing) call() *dialect.Call {
	c := &dialect.Call{Path: Dialect{}.Path(), Body: o.w.Bytes(), Stream: o.req.Stream, Notes: o.notes, Names: o.names, Tools: len(o.functions) > 0}
	if o.caps.Anthropic.InPath {
		c.Path = "/" + url.PathEscape(o.caps.Model) + ":rawPredict"
		if o.req.Stream {
			c.Path = "/" + url.PathEscape(o.caps.Model) + ":streamRawPredict"
		}
		return c
	}
	c.Header = append(c.Header, dialect.Header{Name: versionHeader, Value: o.version()})
	if len(o.betas) > 0 {
		c.Header = append(c.Header, dialect.Header{Name: betaHeader, Value: strings.Join(o.betas, ",")})
	}
	return c
}

func (o *outgoing) version() string {
	if o.caps.Anthropic.Version == "" {
		return firstVersion
	}
	return o.caps.Anthropic.Version
}
