package openaichat

import (
	"strconv"

	"github.com/limen-gateway/limen/internal/dialect"
	"github.com/limen-gateway/limen/internal/dialect/openai"
	"github.com/limen-gateway/limen/internal/jsonedit"
	"github.com/limen-gateway/limen/internal/llm"
)

// streamEncoder tells an answer in chunks. A choice's role is told with its
// first content: until then a failure can still be an answer of its own.
type streamEncoder struct {
	ask  *dialect.Ask
	head []byte // what all chunks begin with; nil before the first

	start   llm.Start
	items   []streamItem
	choices []streamChoice
	usage   llm.Usage
	known   bool
}

var _ dialect.Encoder = (*streamEncoder)(nil)

// streamItem is an item of the answer, by its number.
type streamItem struct {
	kind   llm.ItemKind
	choice int
	call   int // number among the choice's calls; of a call
	custom bool
	hidden bool // a call that has no place
	at     detail
	before int // code points of the choice's text before the item's own
}

type streamChoice struct {
	begun   bool
	calls   int
	refused bool
	sounds  bool // the audio's ID is told
	length  int  // of the text, in code points
}

// Encode implements dialect.Inbound.
func (Dialect) Encode(ask *dialect.Ask) dialect.Encoder { return &streamEncoder{ask: ask} }

// Event implements dialect.Encoder.
func (s *streamEncoder) Event(dst []byte, e llm.Event) []byte {
	switch e := e.(type) {
	case llm.Start:
		s.start = llm.Start{Model: e.Model.Clone(), Created: e.Created}
	case llm.Open:
		return s.open(dst, e)
	case llm.Delta:
		return s.delta(dst, e)
	case llm.Annotate:
		item := &s.items[e.Item]
		var w jsonedit.Writer
		if writeAnnotation(&w, e.Annotation, item.before); w.Len() > 0 {
			return s.list(dst, item.choice, "annotations", w.Bytes())
		}
	case llm.Picture:
		return s.image(dst, s.items[e.Item].choice, e.Media)
	case llm.Logprobs:
		return s.logprobs(dst, s.items[e.Item].choice, e.Tokens)
	case llm.Seal:
		return s.seal(dst, &s.items[e.Item], e.Opaque)
	case llm.Close:
		if e.Server != nil && e.Server.Image != nil {
			return s.image(dst, s.items[e.Item].choice, e.Server.Image)
		}
	case llm.Used:
		s.usage, s.known = e.Usage, e.Known
	case llm.Finish:
		return s.finish(dst, e)
	case llm.Ping:
		if s.head != nil {
			return append(dst, ": ping\n\n"...)
		}
	}
	return dst
}

func (s *streamEncoder) choice(n int) *streamChoice {
	for len(s.choices) <= n {
		s.choices = append(s.choices, streamChoice{})
	}
	return &s.choices[n]
}

// begin appends the beginning of a chunk up to its choices.
func (s *streamEncoder) begin(dst []byte) []byte {
	if s.head == nil {
		h := append([]byte(`data: {"id":`), llm.Quote(idPrefix+s.ask.ID)...)
		h = append(h, `,"object":"chat.completion.chunk","created":`...)
		h = strconv.AppendInt(h, created(s.ask, s.start.Created), 10)
		h = append(h, `,"model":`...)
		h = append(h, modelOf(s.ask, s.start.Model)...)
		s.head = append(h, `,"choices":[`...)
	}
	return append(dst, s.head...)
}

// chunk appends a chunk of a choice up to the members of its delta. The first
// one of a choice has the role before it.
func (s *streamEncoder) chunk(dst []byte, choice int) []byte {
	if c := s.choice(choice); !c.begun {
		c.begun = true
		dst = s.chunk(dst, choice)
		dst = append(dst, `"role":"assistant","content":"","refusal":null`...)
		dst = endChunk(dst)
	}
	dst = append(s.begin(dst), `{"index":`...)
	dst = strconv.AppendInt(dst, int64(choice), 10)
	return append(dst, `,"delta":{`...)
}

func endChunk(dst []byte) []byte {
	return append(dst, `},"logprobs":null,"finish_reason":null}]}`+"\n\n"...)
}

// member appends a chunk whose delta has one member.
func (s *streamEncoder) member(dst []byte, choice int, name string, value []byte) []byte {
	dst = append(s.chunk(dst, choice), '"')
	dst = append(dst, name...)
	dst = append(dst, `":`...)
	dst = append(dst, value...)
	return endChunk(dst)
}

// list appends a chunk whose delta has a list of one entry.
func (s *streamEncoder) list(dst []byte, choice int, name string, entry []byte) []byte {
	dst = append(s.chunk(dst, choice), '"')
	dst = append(dst, name...)
	dst = append(dst, `":[`...)
	dst = append(dst, entry...)
	return endChunk(append(dst, ']'))
}

func (s *streamEncoder) open(dst []byte, e llm.Open) []byte {
	for len(s.items) <= e.Item {
		s.items = append(s.items, streamItem{})
	}
	c, item := s.choice(e.Choice), &s.items[e.Item]
	*item = streamItem{kind: e.Kind, choice: e.Choice, before: c.length, at: detail{id: e.ID.Clone(), index: e.Block}}
	if e.Kind != llm.CallItem {
		return dst
	}
	item.call, item.custom = c.calls, e.Call == llm.CustomCall
	c.calls++
	var w jsonedit.Writer
	w.BeginObject()
	if isOld(s.ask.Request) {
		item.hidden = item.call > 0 // there, only one call has a place
		if item.hidden {
			return dst
		}
		w.SetText("name", e.Name)
		w.SetText("arguments", "")
		w.EndObject()
		return s.member(dst, e.Choice, "function_call", w.Bytes())
	}
	w.SetInt("index", int64(item.call))
	writeCall(&w, e.CallID, e.Call, e.Name, llm.Raw(`""`), e.Opaque)
	w.EndObject()
	return s.list(dst, e.Choice, "tool_calls", w.Bytes())
}

func (s *streamEncoder) delta(dst []byte, e llm.Delta) []byte {
	if e.Data.Blank() {
		return dst
	}
	item := &s.items[e.Item]
	c := s.choice(item.choice)
	switch e.Channel {
	case llm.TextChannel:
		c.length += codePoints(e.Data)
		return s.member(dst, item.choice, "content", e.Data)
	case llm.RefusalChannel:
		c.refused = true
		return s.member(dst, item.choice, "refusal", e.Data)
	case llm.AudioChannel, llm.TranscriptChannel:
		return s.sound(dst, item.choice, e)
	case llm.ThinkingChannel, llm.SummaryChannel:
		return s.thought(dst, item, e)
	default:
		return s.arguments(dst, item, e.Data)
	}
}

func (s *streamEncoder) thought(dst []byte, item *streamItem, e llm.Delta) []byte {
	dst = append(s.chunk(dst, item.choice), `"reasoning_content":`...)
	dst = append(dst, e.Data...)
	if formats[s.ask.Vendor] != "" {
		w := jsonedit.NewWriter(append(dst, `,"reasoning_details":[`...))
		item.at.text(w, llm.Thought{Text: e.Data, Summary: e.Channel == llm.SummaryChannel}, s.ask.Vendor)
		dst = append(w.Bytes(), ']')
	}
	return endChunk(dst)
}

func (s *streamEncoder) arguments(dst []byte, item *streamItem, data llm.Raw) []byte {
	switch {
	case item.hidden:
		return dst
	case isOld(s.ask.Request):
		dst = append(s.chunk(dst, item.choice), `"function_call":{"arguments":`...)
		return endChunk(append(append(dst, data...), '}'))
	}
	dst = append(s.chunk(dst, item.choice), `"tool_calls":[{"index":`...)
	dst = strconv.AppendInt(dst, int64(item.call), 10)
	if item.custom {
		dst = append(dst, `,"custom":{"input":`...)
	} else {
		dst = append(dst, `,"function":{"arguments":`...)
	}
	return endChunk(append(append(dst, data...), "}}]"...))
}

func (s *streamEncoder) sound(dst []byte, choice int, e llm.Delta) []byte {
	var w jsonedit.Writer
	w.BeginObject()
	if c := s.choice(choice); !c.sounds { // clients join texts, the ID too
		c.sounds = true
		w.SetText("id", "audio_"+s.ask.ID)
		w.SetInt("expires_at", created(s.ask, 0))
	}
	name := "data"
	if e.Channel == llm.TranscriptChannel {
		name = "transcript"
	}
	w.SetRaw(name, e.Data)
	w.EndObject()
	return s.member(dst, choice, "audio", w.Bytes())
}

func (s *streamEncoder) image(dst []byte, choice int, m *llm.Media) []byte {
	var w jsonedit.Writer
	writeImage(&w, m)
	return s.list(dst, choice, "images", w.Bytes())
}

func (s *streamEncoder) logprobs(dst []byte, choice int, tokens []llm.Raw) []byte {
	if len(tokens) == 0 {
		return dst
	}
	w := jsonedit.NewWriter(append(s.chunk(dst, choice), `},"logprobs":`...))
	writeLogprobs(w, tokens)
	return append(w.Bytes(), `,"finish_reason":null}]}`+"\n\n"...)
}

func (s *streamEncoder) seal(dst []byte, item *streamItem, o llm.Opaque) []byte {
	var w jsonedit.Writer
	if item.kind != llm.CallItem {
		if item.at.write(&w, o); w.Len() == 0 {
			return dst
		}
		return s.list(dst, item.choice, "reasoning_details", w.Bytes())
	}
	if item.hidden || isOld(s.ask.Request) || o.Kind != llm.ThoughtSignature {
		return dst
	}
	w.BeginObject()
	w.SetInt("index", int64(item.call))
	writeSignature(&w, o)
	w.EndObject()
	return s.list(dst, item.choice, "tool_calls", w.Bytes())
}

func (s *streamEncoder) finish(dst []byte, e llm.Finish) []byte {
	c := s.choice(e.Choice)
	if e.Turn != nil {
		var w jsonedit.Writer
		if writeTurn(&w, e.Turn, s.ask); w.Len() > 0 {
			dst = s.list(dst, e.Choice, "reasoning_details", w.Bytes())
		}
	}
	if !c.refused {
		if said := unspokenRefusal(e); said != nil {
			c.refused, e.Detail = true, said
			dst = s.member(dst, e.Choice, "refusal", said)
		}
	}
	dst = append(s.chunk(dst, e.Choice), `},"logprobs":null,"finish_reason":`...)
	dst = jsonedit.AppendQuote(dst, finishWord(e, c.calls > 0, isOld(s.ask.Request), c.refused))
	return append(dst, "}]}\n\n"...)
}

// End implements dialect.Encoder.
func (s *streamEncoder) End(dst []byte) []byte {
	if s.ask.Request != nil && s.ask.Request.WantsUsage && (s.known || s.usage.Total() > 0) {
		w := jsonedit.NewWriter(append(s.begin(dst), "],"...))
		writeUsage(w, s.usage, s.known, s.ask.Cost)
		dst = append(w.Bytes(), "}\n\n"...)
	}
	return append(dst, openai.DoneFrame...)
}

// Fail implements dialect.Encoder.
func (s *streamEncoder) Fail(dst []byte, e *llm.Error) []byte { return appendFailure(dst, e) }
