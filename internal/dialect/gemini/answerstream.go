package gemini

import (
	"slices"

	"github.com/limen-gateway/limen/internal/dialect"
	"github.com/limen-gateway/limen/internal/jsonedit"
	"github.com/limen-gateway/limen/internal/llm"
	"github.com/limen-gateway/limen/internal/sse"
)

// answerEncoder tells an answer as a stream of GenerateContentResponses. Texts
// go out as they come; calls, and opaque state, when they are whole; what ends
// the candidates goes with the usage in the last chunk, as the API does it.
type answerEncoder struct {
	ask     *dialect.Ask
	model   llm.Raw
	items   []*told // by their numbers; nil when closed
	choices []*toldChoice
	usage   llm.Usage
	known   bool
}

// told is an item that is open.
type told struct {
	choice    int
	call      *llm.ToolCall
	reasoning *llm.Reasoning
	thought   llm.Raw // the reasoning's text so far, with its quotes
	before    int     // bytes of the choice's text before the item's
}

// toldChoice is what the end of a candidate needs.
type toldChoice struct {
	index       int
	text        []byte
	annotations []llm.Annotation
	tokens      []llm.Raw
	finish      *llm.Finish
}

// Encode implements dialect.Inbound.
func (Dialect) Encode(ask *dialect.Ask) dialect.Encoder {
	return &answerEncoder{ask: ask, model: llm.Quote(ask.Model)}
}

func (e *answerEncoder) choice(index int) *toldChoice {
	for _, c := range e.choices {
		if c.index == index {
			return c
		}
	}
	c := &toldChoice{index: index}
	e.choices = append(e.choices, c)
	return c
}

// Event implements dialect.Encoder.
func (e *answerEncoder) Event(dst []byte, event llm.Event) []byte {
	switch event := event.(type) {
	case llm.Start:
		e.model = model(event.Model, e.ask).Clone()
	case llm.Open:
		e.open(event)
	case llm.Delta:
		return e.delta(dst, event)
	case llm.Annotate:
		e.annotate(event)
	case llm.Picture:
		return e.parts(dst, e.items[event.Item].choice, func(p partWriter) { p.media(event.Media) })
	case llm.Logprobs:
		c := e.choice(e.items[event.Item].choice)
		for _, t := range event.Tokens {
			c.tokens = append(c.tokens, t.Clone())
		}
	case llm.Seal:
		return e.seal(dst, event)
	case llm.Close:
		return e.close(dst, event)
	case llm.Used:
		e.usage, e.known = event.Usage, event.Known
	case llm.Finish:
		event.Detail = event.Detail.Clone()
		e.choice(event.Choice).finish = &event
	case llm.Ping:
		return append(dst, ": ping\n\n"...)
	}
	return dst
}

func (e *answerEncoder) open(o llm.Open) {
	t := &told{choice: o.Choice, before: len(e.choice(o.Choice).text)}
	switch o.Kind {
	case llm.CallItem:
		t.call = &llm.ToolCall{ID: o.CallID.Clone(), Name: o.Name, Args: llm.Raw{'"'}, Opaque: kept(o.Opaque)}
	case llm.ReasoningItem:
		t.reasoning = &llm.Reasoning{ID: o.ID.Clone(), Opaque: kept(o.Opaque)}
		t.thought = llm.Raw{'"'}
	}
	e.items = append(e.items, t)
}

// kept is a copy that outlives the event.
func kept(list []llm.Opaque) []llm.Opaque {
	own := slices.Clone(list)
	for i := range own {
		own[i].Data, own[i].For = own[i].Data.Clone(), own[i].For.Clone()
	}
	return own
}

func (e *answerEncoder) delta(dst []byte, d llm.Delta) []byte {
	t := e.items[d.Item]
	if d.Channel == llm.ArgsChannel {
		t.call.Args = append(t.call.Args, d.Data.Inner()...)
		return dst
	}
	if d.Data.Blank() {
		return dst
	}
	switch d.Channel {
	case llm.TextChannel:
		c := e.choice(t.choice)
		c.text = append(c.text, d.Data.Inner()...)
	case llm.ThinkingChannel, llm.SummaryChannel:
		t.thought = append(t.thought, d.Data.Inner()...)
		return e.parts(dst, t.choice, func(p partWriter) { p.text(d.Data, true, nil) })
	case llm.AudioChannel:
		return e.parts(dst, t.choice, func(p partWriter) { p.media(&llm.Media{Kind: llm.Audio, Data: d.Data, MIME: "audio/pcm"}) })
	}
	return e.parts(dst, t.choice, func(p partWriter) { p.text(d.Data, false, nil) })
}

func (e *answerEncoder) annotate(a llm.Annotate) {
	t := e.items[a.Item]
	c := e.choice(t.choice)
	own := a.Annotation
	own.URL, own.Title, own.Native = own.URL.Clone(), own.Title.Clone(), nil
	shift([]llm.Annotation{own}, c.text[:t.before], &c.annotations)
}

// seal keeps opaque state until its item is whole, but for the signature of a
// text, which may follow with an empty one.
func (e *answerEncoder) seal(dst []byte, s llm.Seal) []byte {
	t := e.items[s.Item]
	own := kept([]llm.Opaque{s.Opaque})
	switch {
	case t.call != nil:
		t.call.Opaque = append(t.call.Opaque, own...)
	case t.reasoning != nil:
		t.reasoning.Opaque = append(t.reasoning.Opaque, own...)
	default:
		if signature := ownSignature(own); signature != nil {
			return e.parts(dst, t.choice, func(p partWriter) { p.text(llm.Raw(`""`), false, signature) })
		}
	}
	return dst
}

func (e *answerEncoder) close(dst []byte, c llm.Close) []byte {
	t := e.items[c.Item]
	e.items[c.Item] = nil
	switch {
	case t.call != nil:
		t.call.Args = append(t.call.Args, '"')
		return e.parts(dst, t.choice, func(p partWriter) { p.call(t.call) })
	case t.reasoning != nil && len(t.reasoning.Opaque) > 0:
		t.reasoning.Texts = []llm.Thought{{Text: append(t.thought, '"')}}
		return e.parts(dst, t.choice, func(p partWriter) { p.reasoning(t.reasoning) })
	case c.Server != nil:
		return e.parts(dst, t.choice, func(p partWriter) { p.served(c.Server) })
	}
	return dst
}

// parts appends a chunk with what write says, if that is anything.
func (e *answerEncoder) parts(dst []byte, choice int, write func(partWriter)) []byte {
	var said jsonedit.Writer
	said.BeginArray()
	write(partWriter{&said, e.ask})
	said.EndArray()
	if said.Len() == len("[]") {
		return dst
	}
	var w jsonedit.Writer
	w.BeginObject()
	w.Array("candidates")
	w.BeginObject()
	e.content(&w, said.Bytes())
	w.SetInt("index", int64(choice))
	w.EndObject()
	w.EndArray()
	return e.frame(dst, &w)
}

func (e *answerEncoder) content(w *jsonedit.Writer, parts []byte) {
	w.Object("content")
	w.SetText("role", "model")
	w.SetRaw("parts", parts)
	w.EndObject()
}

// frame ends a chunk.
func (e *answerEncoder) frame(dst []byte, w *jsonedit.Writer) []byte {
	w.SetRaw("modelVersion", e.model)
	w.SetText("responseId", e.ask.ID)
	w.EndObject()
	return sse.Append(dst, nil, w.Bytes())
}

// End implements dialect.Encoder.
func (e *answerEncoder) End(dst []byte) []byte {
	var w jsonedit.Writer
	w.BeginObject()
	w.Array("candidates")
	for _, c := range e.choices {
		if c.finish == nil {
			continue
		}
		w.BeginObject()
		e.content(&w, []byte("[]"))
		writeEnd(&w, *c.finish, c.text, c.annotations, c.tokens)
		w.EndObject()
	}
	w.EndArray()
	if e.known {
		writeUsage(&w, e.usage)
	}
	return e.frame(dst, &w)
}

// Fail implements dialect.Encoder.
func (e *answerEncoder) Fail(dst []byte, err *llm.Error) []byte {
	return sse.Append(dst, nil, Dialect{}.AppendError(nil, err, ""))
}
