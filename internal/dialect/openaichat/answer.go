package openaichat

import (
	"github.com/limen-gateway/limen/internal/dialect"
	"github.com/limen-gateway/limen/internal/dialect/openai"
	"github.com/limen-gateway/limen/internal/jsonedit"
	"github.com/limen-gateway/limen/internal/llm"
	"github.com/limen-gateway/limen/internal/seal"
)

// idPrefix begins the ID of every answer.
const idPrefix = "chatcmpl-"

// unsaid is the refusal where a model refuses without a word.
var unsaid = llm.Raw(`"The model declined to answer."`)

// created is when an answer was begun, which clients read as an integer.
func created(ask *dialect.Ask, said int64) int64 {
	if said > 0 {
		return said
	}
	return max(ask.Begun.Unix(), 0)
}

// modelOf is who answered: as the upstream says, or else as was asked for.
func modelOf(ask *dialect.Ask, said llm.Raw) llm.Raw {
	if said.IsText() && !said.Blank() {
		return said
	}
	return llm.Quote(ask.Model)
}

// AppendAnswer implements dialect.Inbound.
func (Dialect) AppendAnswer(dst []byte, a *llm.Answer, ask *dialect.Ask) []byte {
	w := jsonedit.NewWriter(dst)
	w.BeginObject()
	w.SetText("id", idPrefix+ask.ID)
	w.SetText("object", "chat.completion")
	w.SetInt("created", created(ask, a.Created))
	w.SetRaw("model", modelOf(ask, a.Model))
	w.Array("choices")
	for i := range a.Choices {
		newAnswerChoice(&a.Choices[i], ask).write(w, i)
	}
	w.EndArray()
	if a.Known || a.Usage.Total() > 0 {
		writeUsage(w, a.Usage, a.Known, ask.Cost)
	}
	w.EndObject()
	return w.Bytes()
}

// writeUsage writes the counters as this dialect has them: the cached within
// the prompt, reasoning within the completion. Sound and pictures are told where
// there are any, and the service where it is not the usual one.
func writeUsage(w *jsonedit.Writer, u llm.Usage, known bool, cost dialect.Cost) {
	w.Object("usage")
	w.SetInt("prompt_tokens", u.Prompt())
	w.SetInt("completion_tokens", u.Completion())
	w.SetInt("total_tokens", u.Total())
	w.Object("prompt_tokens_details")
	w.SetInt("cached_tokens", u.CacheRead)
	w.SetInt("cache_write_tokens", u.CacheWrite+u.HourWrite)
	openai.WriteSome(w, "audio_tokens", u.AudioIn)
	w.EndObject()
	w.Object("completion_tokens_details")
	w.SetInt("reasoning_tokens", u.Reasoning)
	openai.WriteSome(w, "audio_tokens", u.AudioOut)
	openai.WriteSome(w, "image_tokens", u.ImageOut)
	w.EndObject()
	cost.Write(w, u, known)
	w.EndObject()
	if tier := openai.ServiceTier(u.Service); tier != "" {
		w.SetText("service_tier", tier)
	}
}

// answerChoice is one choice of a whole answer, taken apart into the members
// of a message.
type answerChoice struct {
	ask    *dialect.Ask
	finish llm.Finish

	texts, refusals, thoughts []llm.Raw
	calls                     []*llm.ToolCall
	images                    []*llm.Media
	sound                     *llm.Media
	logprobs                  []llm.Raw
	annotations               jsonedit.Writer
	details                   jsonedit.Writer
	length                    int // of the texts so far, in code points
}

func newAnswerChoice(c *llm.Choice, ask *dialect.Ask) *answerChoice {
	a := &answerChoice{ask: ask, finish: c.Finish}
	for _, item := range c.Items {
		switch item := item.(type) {
		case *llm.Message:
			a.message(item)
		case *llm.Reasoning:
			a.reasoning(item)
		case *llm.ToolCall:
			a.calls = append(a.calls, item)
		case *llm.ServerCall:
			if item.Image != nil {
				a.images = append(a.images, item.Image)
			}
		}
	}
	if turn := c.Finish.Turn; turn != nil {
		writeTurn(&a.details, turn, ask)
	}
	if len(a.refusals) == 0 {
		if said := unspokenRefusal(c.Finish); said != nil {
			a.refusals = append(a.refusals, said)
			a.finish.Detail = said
		}
	}
	return a
}

// unspokenRefusal is what to tell where a choice was refused or filtered, and
// the model itself said nothing of it; nil when there is nothing to tell.
func unspokenRefusal(f llm.Finish) llm.Raw {
	switch {
	case f.Reason != llm.Refused && f.Reason != llm.Filtered:
		return nil
	case f.Detail.IsText() && !f.Detail.Blank():
		return f.Detail
	case f.Reason == llm.Refused:
		return unsaid
	}
	return nil
}

func (a *answerChoice) message(m *llm.Message) {
	before := a.length
	for _, p := range m.Parts {
		switch p := p.(type) {
		case *llm.Text:
			for _, an := range p.Annotations {
				writeAnnotation(&a.annotations, an, before)
			}
			a.texts, a.length = append(a.texts, p.Text), a.length+codePoints(p.Text)
			a.logprobs = append(a.logprobs, p.Logprobs...)
			for _, o := range p.Opaque {
				detail{index: m.Pos.Part}.write(&a.details, o)
			}
		case *llm.Refusal:
			a.refusals = append(a.refusals, p.Text)
		case *llm.Media:
			if p.Kind == llm.Audio {
				a.sound = p
			} else {
				a.images = append(a.images, p)
			}
		}
	}
}

func (a *answerChoice) reasoning(r *llm.Reasoning) {
	at := detail{id: r.ID, index: r.Pos.Part}
	opaque := r.Opaque
	var signature *llm.Opaque
	if len(opaque) > 0 && opaque[0].Kind == llm.Signature {
		signature, opaque = &opaque[0], opaque[1:]
	}
	for i, t := range r.Texts {
		a.thoughts = append(a.thoughts, t.Text)
		entry := at
		if i == len(r.Texts)-1 && signature != nil {
			entry.signature, signature = signature.Data, nil
		}
		entry.text(&a.details, t, a.ask.Vendor)
	}
	if signature != nil {
		at.write(&a.details, *signature)
	}
	for _, o := range opaque {
		at.write(&a.details, o)
	}
}

func (a *answerChoice) write(w *jsonedit.Writer, index int) {
	w.BeginObject()
	w.SetInt("index", int64(index))
	w.Object("message")
	w.SetText("role", "assistant")
	w.Name("content")
	if len(a.texts) == 0 && (len(a.calls) > 0 || len(a.refusals) > 0 || a.sound != nil) {
		w.Null()
	} else {
		w.Raw(llm.Concat("", a.texts...))
	}
	w.Name("refusal")
	if len(a.refusals) == 0 {
		w.Null()
	} else {
		w.Raw(llm.Concat("", a.refusals...))
	}
	w.Array("annotations")
	if list := a.annotations.Bytes(); len(list) > 0 {
		w.Raw(list)
	}
	w.EndArray()
	if thought := llm.Concat("", a.thoughts...); !thought.Blank() {
		w.SetRaw("reasoning_content", thought)
	}
	if list := a.details.Bytes(); len(list) > 0 {
		w.Array("reasoning_details")
		w.Raw(list)
		w.EndArray()
	}
	if len(a.images) > 0 {
		w.Array("images")
		for _, m := range a.images {
			writeImage(w, m)
		}
		w.EndArray()
	}
	if a.sound != nil {
		a.writeSound(w)
	}
	a.writeCalls(w)
	w.EndObject()
	w.Name("logprobs")
	writeLogprobs(w, a.logprobs)
	w.SetText("finish_reason", finishWord(a.finish, len(a.calls) > 0, isOld(a.ask.Request), len(a.refusals) > 0))
	w.EndObject()
}

func (a *answerChoice) writeCalls(w *jsonedit.Writer) {
	switch {
	case len(a.calls) == 0:
	case isOld(a.ask.Request): // there, only one call has a place
		w.Object("function_call")
		w.SetText("name", a.calls[0].Name)
		w.SetRaw("arguments", orEmpty(a.calls[0].Args))
		w.EndObject()
	default:
		w.Array("tool_calls")
		for _, c := range a.calls {
			w.BeginObject()
			writeCall(w, c.ID, c.Kind, c.Name, orEmpty(c.Args), c.Opaque)
			w.EndObject()
		}
		w.EndArray()
	}
}

func (a *answerChoice) writeSound(w *jsonedit.Writer) {
	w.Object("audio")
	w.SetText("id", "audio_"+a.ask.ID)
	w.SetRaw("data", orEmpty(a.sound.Data))
	w.SetInt("expires_at", created(a.ask, 0)) // it is kept nowhere
	w.SetRaw("transcript", orEmpty(a.sound.Transcript))
	w.EndObject()
}

// orEmpty is a text, "" where there is none.
func orEmpty(text llm.Raw) llm.Raw {
	if text == nil {
		return llm.Raw(`""`)
	}
	return text
}

// writeCall writes the members of a call.
func writeCall(w *jsonedit.Writer, id llm.Raw, kind llm.CallKind, name string, args llm.Raw, opaque []llm.Opaque) {
	w.SetRaw("id", id)
	if kind == llm.CustomCall {
		w.SetText("type", "custom")
		w.Object("custom")
		w.SetText("name", name)
		w.SetRaw("input", args)
	} else {
		w.SetText("type", "function")
		w.Object("function")
		w.SetText("name", name)
		w.SetRaw("arguments", args)
	}
	w.EndObject()
	for _, o := range opaque {
		if o.Kind == llm.ThoughtSignature {
			writeSignature(w, o)
			return
		}
	}
}

// writeSignature writes a thought signature where Google's own endpoint of
// this dialect has it.
func writeSignature(w *jsonedit.Writer, o llm.Opaque) {
	w.Object("extra_content")
	w.Object("google")
	w.SetRaw("thought_signature", o.Data)
	w.EndObject()
	w.EndObject()
}

// writeImage writes an image in the form that clients of OpenRouter know.
func writeImage(w *jsonedit.Writer, m *llm.Media) {
	w.BeginObject()
	w.SetText("type", "image_url")
	w.Object("image_url")
	w.SetRaw("url", imageURL(m))
	w.EndObject()
	w.EndObject()
}

// imageURL is where an image is, or its data as a URL.
func imageURL(m *llm.Media) llm.Raw {
	if m.Data == nil {
		return orEmpty(m.URL)
	}
	mime := m.MIME
	if mime == "" {
		mime = "image/png"
	}
	return inlineURL(m, mime)
}

// inlineURL is inline data as a URL.
func inlineURL(m *llm.Media, mime string) llm.Raw {
	head := jsonedit.AppendQuote(make([]byte, 0, len(mime)+len(m.Data)+20), "data:"+mime+";base64,")
	return append(append(head[:len(head)-1], m.Data.Inner()...), '"')
}

// writeAnnotation writes a citation of what lies on the web; others have no
// place in this dialect. before is how much text stands before the item's.
func writeAnnotation(w *jsonedit.Writer, a llm.Annotation, before int) {
	if a.URL.Blank() {
		return
	}
	w.BeginObject()
	w.SetText("type", "url_citation")
	w.Object("url_citation")
	w.SetRaw("url", a.URL)
	w.SetRaw("title", orEmpty(a.Title))
	w.SetInt("start_index", int64(before+a.Start))
	w.SetInt("end_index", int64(before+a.End))
	w.EndObject()
	w.EndObject()
}

func writeLogprobs(w *jsonedit.Writer, tokens []llm.Raw) {
	if len(tokens) == 0 {
		w.Null()
		return
	}
	w.BeginObject()
	w.Array("content")
	for _, t := range tokens {
		w.Raw(jsonedit.Compact(nil, t))
	}
	w.EndArray()
	w.Name("refusal")
	w.Null()
	w.EndObject()
}

// finishWord is the reason for clients, who know no others than these. calls
// says that the choice calls tools, refused that the model was heard to refuse.
func finishWord(f llm.Finish, calls, old, refused bool) string {
	switch f.Reason {
	case llm.LengthReached, llm.WindowFull:
		return "length"
	case llm.Filtered:
		return "content_filter"
	case llm.Refused:
		if !refused || !f.Detail.Blank() {
			return "content_filter"
		}
	}
	switch {
	case calls && old:
		return "function_call"
	case calls:
		return "tool_calls"
	}
	return "stop"
}

// detail is what entries of reasoning_details say of their item.
type detail struct {
	id        llm.Raw
	index     int
	signature llm.Raw
}

// text writes what the model thought. It is left out where the vendor has no
// form of its own: reasoning_content alone tells it then.
func (d detail) text(w *jsonedit.Writer, t llm.Thought, vendor string) {
	format := formats[vendor]
	if format == "" {
		return
	}
	w.BeginObject()
	if t.Summary && vendor != anthropic && vendor != google { // theirs has one form
		w.SetText("type", "reasoning.summary")
		w.SetRaw("summary", t.Text)
	} else {
		w.SetText("type", "reasoning.text")
		w.SetRaw("text", t.Text)
	}
	w.SetRaw("signature", d.signature)
	d.end(w, format)
}

// write writes opaque state, for which there must be a form: without one it
// could not be told apart when it comes back.
func (d detail) write(w *jsonedit.Writer, o llm.Opaque) {
	format := formats[o.Vendor]
	if format == "" || o.Kind == llm.PlainMark {
		return
	}
	w.BeginObject()
	if o.Kind == llm.Signature {
		w.SetText("type", "reasoning.text")
		w.SetRaw("signature", o.Data)
	} else {
		w.SetText("type", "reasoning.encrypted")
		w.SetRaw("data", o.Data)
	}
	if o.For != nil {
		d.id = o.For
	}
	d.end(w, format)
}

func (d detail) end(w *jsonedit.Writer, format string) {
	if !d.id.Blank() {
		w.SetRaw("id", d.id)
	}
	w.SetText("format", format)
	w.SetInt("index", int64(d.index))
	w.EndObject()
}

// writeTurn writes a whole turn, sealed.
func writeTurn(w *jsonedit.Writer, turn *llm.Opaque, ask *dialect.Ask) {
	fields := []seal.Field{{Name: "b", Value: turn.Data}}
	if ask.Origin != "" {
		fields = append(fields, seal.Field{Name: "o", Value: llm.Quote(ask.Origin)})
	}
	sealed := *turn
	sealed.Data = llm.Quote(ask.Seal.Seal(turn.Vendor+".turn", fields...))
	detail{}.write(w, sealed)
}

// codePoints is the length of a text, as it is written.
func codePoints(text llm.Raw) (n int) {
	s := text.Inner()
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '\\' && i+5 < len(s) && s[i+1] == 'u':
			second := s[i+2]|' ' == 'd' && s[i+3]|' ' >= 'c' // of a surrogate pair
			if !second {
				n++
			}
			i += 5
		case c == '\\':
			n++
			i++
		case c&0xc0 != 0x80: // not within a character
			n++
		}
	}
	return n
}
