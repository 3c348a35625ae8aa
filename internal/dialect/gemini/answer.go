package gemini

import (
	"cmp"

	"github.com/limen-gateway/limen/internal/dialect"
	"github.com/limen-gateway/limen/internal/jsonedit"
	"github.com/limen-gateway/limen/internal/llm"
	"github.com/limen-gateway/limen/internal/seal"
)

// partWriter writes parts of an answer.
type partWriter struct {
	w   *jsonedit.Writer
	ask *dialect.Ask
}

// text writes a text or a thought.
func (p partWriter) text(words llm.Raw, thought bool, signature llm.Raw) {
	p.w.BeginObject()
	p.w.SetRaw("text", words)
	if thought {
		p.w.SetBool("thought", true)
	}
	p.w.SetRaw("thoughtSignature", signature)
	p.w.EndObject()
}

func (p partWriter) call(c *llm.ToolCall) {
	p.w.BeginObject()
	p.w.Object("functionCall")
	p.w.SetRaw("id", c.ID)
	p.w.SetText("name", c.Name)
	args, ok := c.Args.Object()
	if !ok { // cut by the limit of tokens: what there is must not be lost
		args = append(append(llm.Raw(`{"_raw":`), c.Args...), '}')
	}
	p.w.SetRaw("args", jsonedit.Compact(nil, args))
	p.w.EndObject()
	p.w.SetRaw("thoughtSignature", ownSignature(c.Opaque))
	p.w.EndObject()
}

// ownSignature is the signature that this dialect has a member for.
func ownSignature(list []llm.Opaque) llm.Raw {
	for _, o := range list {
		if o.Kind == llm.ThoughtSignature && o.Vendor == vendor {
			return o.Data
		}
	}
	return nil
}

// reasoning writes what closes a piece of reasoning: its opaque state, sealed
// into the signature of a thought where it is another vendor's.
func (p partWriter) reasoning(r *llm.Reasoning) {
	for _, o := range r.Opaque {
		if o.Kind == llm.ThoughtSignature && o.Vendor == vendor {
			p.text(llm.Raw(`""`), true, o.Data)
			continue
		}
		if kind, fields := sealing(r, o); kind != "" {
			if p.ask.Origin != "" {
				fields = append(fields, seal.Field{Name: "o", Value: llm.Quote(p.ask.Origin)})
			}
			p.text(llm.Raw(`""`), true, llm.Quote(p.ask.Seal.Seal(kind, fields...)))
		}
	}
}

// sealing is what becomes of another vendor's opaque state.
func sealing(r *llm.Reasoning, o llm.Opaque) (kind string, fields []seal.Field) {
	switch {
	case o.Kind == llm.Signature:
		texts := make([]llm.Raw, len(r.Texts))
		for i, t := range r.Texts {
			texts[i] = t.Text
		}
		return "anthropic.thinking", []seal.Field{{Name: "t", Value: llm.Concat("", texts...)}, {Name: "s", Value: o.Data}}
	case o.Kind == llm.Redacted:
		return "anthropic.redacted", []seal.Field{{Name: "d", Value: o.Data}}
	case o.Kind == llm.Encrypted:
		return "openai.item", []seal.Field{{Name: "id", Value: r.ID}, {Name: "e", Value: o.Data}}
	}
	return "", nil
}

func (p partWriter) media(m *llm.Media) {
	mime := m.MIME
	if mime == "" {
		mime = map[llm.MediaKind]string{llm.Image: "image/png", llm.Audio: "audio/wav"}[m.Kind]
	}
	switch {
	case m.Data != nil:
		p.w.BeginObject()
		p.w.Object("inlineData")
		p.w.SetText("mimeType", cmp.Or(mime, "application/octet-stream"))
		p.w.SetRaw("data", m.Data)
		p.w.EndObject()
		p.w.EndObject()
	case m.URL != nil:
		p.w.BeginObject()
		p.w.Object("fileData")
		if mime != "" {
			p.w.SetText("mimeType", mime)
		}
		p.w.SetRaw("fileUri", m.URL)
		p.w.EndObject()
		p.w.EndObject()
	}
	if m.Transcript.Given() {
		p.text(m.Transcript, false, nil)
	}
}

// served writes code that the upstream ran, and pictures that it made. Other
// calls of its own have no part here.
func (p partWriter) served(s *llm.ServerCall) {
	if s == nil {
		return
	}
	if s.Image != nil {
		p.media(s.Image)
	}
	if s.Kind != llm.CodeExecution {
		return
	}
	if s.Code != nil {
		p.w.BeginObject()
		p.w.Object("executableCode")
		p.w.SetText("language", "PYTHON")
		p.w.SetRaw("code", s.Code)
		p.w.EndObject()
		p.w.EndObject()
	}
	if len(s.Outputs) == 0 && !s.Failed {
		return
	}
	outcome := "OUTCOME_OK"
	if s.Failed {
		outcome = "OUTCOME_FAILED"
	}
	p.w.BeginObject()
	p.w.Object("codeExecutionResult")
	p.w.SetText("outcome", outcome)
	p.w.SetRaw("output", llm.Concat("\n", s.Outputs...))
	p.w.EndObject()
	p.w.EndObject()
}

// finishes are this dialect's words for the end of an answer.
var finishes = [...]string{
	llm.Stopped: "STOP", llm.LengthReached: "MAX_TOKENS", llm.ToolsCalled: "STOP", llm.Filtered: "SAFETY", llm.Refused: "SAFETY",
	llm.Paused: "STOP", llm.WindowFull: "MAX_TOKENS", llm.Compacted: "STOP",
}

// writeEnd writes what a candidate says at its end.
func writeEnd(w *jsonedit.Writer, f llm.Finish, text []byte, annotations []llm.Annotation, tokens []llm.Raw) {
	w.SetText("finishReason", finishes[f.Reason])
	if f.Detail.Given() {
		w.SetRaw("finishMessage", f.Detail)
	}
	w.SetInt("index", int64(f.Choice))
	writeGrounding(w, text, annotations)
	writeLogprobs(w, tokens)
}

// writeGrounding writes annotations as grounding, whose offsets are bytes of
// the text. text is as it is written between its quotes.
func writeGrounding(w *jsonedit.Writer, text []byte, annotations []llm.Annotation) {
	if len(annotations) == 0 {
		return
	}
	whole, _ := jsonedit.Unquote(append(append([]byte{'"'}, text...), '"'))
	w.Object("groundingMetadata")
	w.Array("groundingChunks")
	for _, a := range annotations {
		w.BeginObject()
		w.Object("web")
		w.SetRaw("uri", a.URL)
		w.SetRaw("title", a.Title)
		w.EndObject()
		w.EndObject()
	}
	w.EndArray()
	w.Array("groundingSupports")
	for i, a := range annotations {
		w.BeginObject()
		w.Object("segment")
		w.SetInt("startIndex", int64(byteOffset(whole, a.Start)))
		w.SetInt("endIndex", int64(byteOffset(whole, a.End)))
		w.EndObject()
		w.Array("groundingChunkIndices")
		w.Int(int64(i))
		w.EndArray()
		w.EndObject()
	}
	w.EndArray()
	w.EndObject()
}

// byteOffset is the offset in bytes for one in code points.
func byteOffset(s string, points int) int {
	for at := range s {
		if points <= 0 {
			return at
		}
		points--
	}
	return len(s)
}

// writeLogprobs writes the elements of Chat Completions as logprobsResult.
func writeLogprobs(w *jsonedit.Writer, tokens []llm.Raw) {
	if len(tokens) == 0 {
		return
	}
	token := func(t llm.Raw) {
		w.BeginObject()
		w.SetRaw("token", dialect.Member(t, "token"))
		w.SetRaw("logProbability", dialect.Member(t, "logprob"))
		w.EndObject()
	}
	w.Object("logprobsResult")
	w.Array("chosenCandidates")
	for _, t := range tokens {
		token(t)
	}
	w.EndArray()
	w.Array("topCandidates")
	for _, t := range tokens {
		w.BeginObject()
		w.Array("candidates")
		for top := range jsonedit.Elements(dialect.Member(t, "top_logprobs")) {
			token(top)
		}
		w.EndArray()
		w.EndObject()
	}
	w.EndArray()
	w.EndObject()
}

// model is the model that an answer names: the one that gave it, where that is
// known.
func model(answered llm.Raw, ask *dialect.Ask) llm.Raw {
	if answered.Blank() {
		return llm.Quote(ask.Model)
	}
	return answered
}

// AppendAnswer implements dialect.Inbound.
func (Dialect) AppendAnswer(dst []byte, a *llm.Answer, ask *dialect.Ask) []byte {
	w := jsonedit.NewWriter(dst)
	p := partWriter{w, ask}
	w.BeginObject()
	w.Array("candidates")
	for i := range a.Choices {
		p.candidate(i, &a.Choices[i])
	}
	w.EndArray()
	if a.Known {
		writeUsage(w, a.Usage)
	}
	w.SetRaw("modelVersion", model(a.Model, ask))
	w.SetText("responseId", ask.ID)
	w.EndObject()
	return w.Bytes()
}

func (p partWriter) candidate(index int, c *llm.Choice) {
	var said []byte
	var annotations []llm.Annotation
	var tokens []llm.Raw
	p.w.BeginObject()
	p.w.Object("content")
	p.w.SetText("role", "model")
	p.w.Array("parts")
	for _, item := range c.Items {
		switch item := item.(type) {
		case *llm.Message:
			for _, part := range item.Parts {
				if t, ok := part.(*llm.Text); ok {
					shift(t.Annotations, said, &annotations)
					said = append(said, t.Text.Inner()...)
					tokens = append(tokens, t.Logprobs...)
				}
				p.part(part)
			}
		case *llm.Reasoning:
			for _, t := range item.Texts {
				if !t.Text.Blank() {
					p.text(t.Text, true, nil)
				}
			}
			p.reasoning(item)
		case *llm.ToolCall:
			p.call(item)
		case *llm.ServerCall:
			p.served(item)
		}
	}
	p.w.EndArray()
	p.w.EndObject()
	c.Finish.Choice = index
	writeEnd(p.w, c.Finish, said, annotations, tokens)
	p.w.EndObject()
}

// shift moves annotations behind the text that came before their own.
func shift(list []llm.Annotation, before []byte, into *[]llm.Annotation) {
	if len(list) == 0 {
		return
	}
	text, _ := jsonedit.Unquote(append(append([]byte{'"'}, before...), '"'))
	points := codePoints(text, len(text))
	for _, a := range list {
		a.Start += points
		a.End += points
		*into = append(*into, a)
	}
}

func (p partWriter) part(part llm.Part) {
	switch part := part.(type) {
	case *llm.Text:
		signature := ownSignature(part.Opaque)
		if !part.Text.Blank() || signature != nil {
			p.text(part.Text, false, signature)
		}
	case *llm.Refusal:
		p.text(part.Text, false, nil)
	case *llm.Media:
		p.media(part)
	}
}
