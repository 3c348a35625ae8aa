package gemini

import (
	"slices"
	"strings"

	"github.com/limen-gateway/limen/internal/dialect"
	"github.com/limen-gateway/limen/internal/jsonedit"
	"github.com/limen-gateway/limen/internal/llm"
)

// What the API takes at most.
const (
	maxStops   = 5
	maxChoices = 8
)

// config is generationConfig.
func (e *encoder) config() (llm.Raw, error) {
	var w jsonedit.Writer
	w.BeginObject()
	if err := e.limits(&w); err != nil {
		return nil, err
	}
	if err := e.sampling(&w); err != nil {
		return nil, err
	}
	if err := e.format(&w); err != nil {
		return nil, err
	}
	if err := e.modalities(&w); err != nil {
		return nil, err
	}
	e.thinking(&w)
	for _, m := range e.extra.config {
		if _, said := jsonedit.Get(append(slices.Clone(w.Bytes()), '}'), m.Name); said {
			e.notes.Drop(m.Name)
			continue
		}
		w.SetRaw(m.Name, m.Value)
	}
	w.EndObject()
	return w.Bytes(), nil
}

func (e *encoder) limits(w *jsonedit.Writer) error {
	l := &e.req.Limits
	if l.MaxTokens != nil {
		n := *l.MaxTokens
		name := l.MaxTokensRaw
		if name == "" {
			name = e.param("max_completion_tokens")
		}
		if n < 1 {
			return dialect.NotPossible(name, "'%s' must be at least 1 for this model. Raise it, or leave it out.", name)
		}
		if e.caps.MaxOutput > 0 && n > e.caps.MaxOutput {
			n = e.caps.MaxOutput
			e.notes.Clamp("maxOutputTokens")
		}
		w.SetInt("maxOutputTokens", n)
	}
	if len(l.Stop) > maxStops {
		p := e.param("stop")
		return dialect.NotPossible(p, "'%s' has more than %d sequences, which this model does not take. Send fewer.", p, maxStops)
	}
	if len(l.Stop) > 0 {
		w.Array("stopSequences")
		for _, s := range l.Stop {
			w.Raw(s)
		}
		w.EndArray()
	}
	if n := e.req.Choices; n > maxChoices {
		p := e.param("n")
		return dialect.NotPossible(p, "'%s' is more than the %d answers that this model gives at once. Ask for fewer.", p, maxChoices)
	} else if n > 1 {
		w.SetInt("candidateCount", int64(n))
	}
	return nil
}

func (e *encoder) sampling(w *jsonedit.Writer) error {
	s := &e.req.Sampling
	for _, m := range []struct {
		name, chat string
		value      llm.Raw
		unknown    bool
	}{
		{"temperature", "temperature", s.Temperature, e.caps.NoSampling},
		{"topP", "top_p", s.TopP, e.caps.NoSampling},
		{"topK", "top_k", s.TopK, e.caps.NoSampling},
		{"seed", "seed", s.Seed, false},
		{"presencePenalty", "presence_penalty", s.Presence, e.caps.Gemini.NoPenalties},
		{"frequencyPenalty", "frequency_penalty", s.Frequency, e.caps.Gemini.NoPenalties},
		{"", "min_p", s.MinP, true},
		{"", "repetition_penalty", s.Repetition, true},
	} {
		switch {
		case !m.value.Given():
		case m.unknown:
			e.notes.Drop(e.param(m.chat))
		default:
			w.SetRaw(m.name, m.value)
		}
	}
	if !e.req.Logprobs {
		return nil
	}
	if !e.caps.Logprobs {
		p := e.param("logprobs")
		return dialect.NotPossible(p, "'%s' cannot be had from this model: it tells no probabilities. Leave it out, or choose another model.", p)
	}
	w.SetBool("responseLogprobs", true)
	if e.req.TopLogprob.Given() {
		w.SetRaw("logprobs", e.req.TopLogprob)
	}
	return nil
}

func (e *encoder) format(w *jsonedit.Writer) error {
	f := &e.req.Format
	if f.Kind == llm.FreeText {
		return nil
	}
	p := e.param("response_format")
	switch {
	case e.caps.SchemaAlone && len(e.req.Tools) > 0:
		return dialect.NotPossible(p, "'%s' cannot stand beside tools with this model. Leave out one of them, or choose another model.", p)
	case e.caps.NoStructured && f.Kind == llm.JSONSchema:
		return dialect.NotPossible(p, "'%s' with a schema is more than this model can do. Ask for JSON in the prompt, or choose another model.", p)
	}
	w.SetText("responseMimeType", "application/json")
	if f.Kind == llm.JSONSchema && f.Schema.Given() {
		w.SetRaw("responseJsonSchema", f.Schema)
	}
	return nil
}

// voices are those of another vendor, which this one does not have.
var voices = []string{"alloy", "ash", "ballad", "cedar", "coral", "echo", "fable", "marin", "nova", "onyx", "sage", "shimmer", "verse"}

func (e *encoder) modalities(w *jsonedit.Writer) error {
	p := e.param("modalities")
	sound, pictures := slices.Contains(e.req.Modalities, "audio"), slices.Contains(e.req.Modalities, "image") || e.drawsPictures()
	for _, m := range e.req.Modalities {
		if m != "text" && m != "audio" && m != "image" {
			return dialect.NotPossible(p, "'%s' asks for %s, which this model does not give. Ask for text.", p, m)
		}
	}
	switch {
	case sound && !e.caps.Gemini.Speech:
		return dialect.NotPossible(p, "'%s' asks for audio, and this model gives no audio. Ask for text, or choose a model that speaks.", p)
	case pictures && !e.caps.Gemini.Images:
		return dialect.NotPossible(p, "'%s' asks for an image, and this model gives no images. Ask for text, or choose a model that draws.", p)
	case sound:
		w.Array("responseModalities")
		w.Text("AUDIO")
		w.EndArray()
		return e.speech(w)
	case pictures:
		w.Array("responseModalities")
		w.Text("TEXT")
		w.Text("IMAGE")
		w.EndArray()
	}
	return nil
}

// drawsPictures reports whether the client has a tool for pictures, which is
// an ability of the model here.
func (e *encoder) drawsPictures() bool {
	return e.caps.Gemini.Images && e.req.ToolChoice.Mode != llm.ChoiceNone && slices.ContainsFunc(e.req.Tools, func(t llm.Tool) bool {
		return t.Server != nil && t.Server.Kind == llm.ImageGeneration
	})
}

// speech names the voice. The sound itself always comes as 16-bit PCM.
func (e *encoder) speech(w *jsonedit.Writer) error {
	p := e.param("audio") + ".format"
	if format := dialect.Text(e.req.Audio, "format"); format != "" && format != "pcm16" {
		return dialect.NotPossible(p, "'%s' is %s, and this model speaks in pcm16 only. Ask for pcm16.", p, format)
	}
	voice := dialect.Text(e.req.Audio, "voice")
	if voice == "" {
		return nil
	}
	if slices.Contains(voices, voice) {
		e.notes.Drop(e.param("audio") + ".voice")
		return nil
	}
	w.Object("speechConfig")
	w.Object("voiceConfig")
	w.Object("prebuiltVoiceConfig")
	w.SetText("voiceName", voice)
	w.EndObject()
	w.EndObject()
	w.EndObject()
	return nil
}

// budgets are the tokens of thinking that an effort stands for.
var budgets = map[string]int64{"minimal": 512, "low": 1024, "medium": 8192, "high": 24576, "xhigh": 24576, "max": 24576}

// levels from least to most.
var levels = []string{"minimal", "low", "medium", "high", "xhigh", "max"}

// thinking writes thinkingConfig. Thoughts are shown unless the client said
// that it wants no thinking, or none to be seen.
func (e *encoder) thinking(w *jsonedit.Writer) {
	if e.extra.thinking.Given() {
		w.SetRaw("thinkingConfig", e.extra.thinking)
		return
	}
	r := &e.req.Reasoning
	effort := r.Effort
	if r.Mode == llm.ThinkingOff {
		effort = "none"
	}
	if e.caps.ReasonsKnown && !e.caps.Reasons {
		if effort != "" && effort != "none" {
			e.notes.Drop(e.param("reasoning_effort"))
		} else if r.Mode == llm.ThinkingOn || r.Mode == llm.ThinkingAdaptive {
			e.notes.Drop("thinking")
		}
		return
	}
	var inner jsonedit.Writer
	inner.BeginObject()
	switch {
	case len(e.caps.Gemini.Levels) > 0:
		if level := e.level(effort); level != "" {
			inner.SetText("thinkingLevel", strings.ToUpper(level))
		}
	default:
		if budget, said := e.budget(effort); said {
			inner.SetInt("thinkingBudget", budget)
		}
	}
	hidden := r.Display == "omitted" || r.Summary != nil && !r.Summary.Given()
	if effort != "none" && !hidden {
		inner.SetBool("includeThoughts", true)
	}
	inner.EndObject()
	if inner.Len() > len("{}") {
		w.SetRaw("thinkingConfig", inner.Bytes())
	}
}

// level is the thinkingLevel for an effort; "" says none.
func (e *encoder) level(effort string) string {
	known := e.caps.Gemini.Levels
	if effort == "" && e.req.Reasoning.Mode == llm.ThinkingOn {
		switch b := e.req.Reasoning.Budget; {
		case b == 0:
		case b < 4<<10:
			effort = "low"
		case b < 16<<10:
			effort = "medium"
		default:
			effort = "high"
		}
	}
	switch {
	case effort == "":
		return ""
	case effort == "none":
		e.notes.Degrade("effort_none")
		return known[0]
	case slices.Contains(known, effort):
		return effort
	}
	e.notes.Clamp(e.param("reasoning_effort"))
	for at := slices.Index(levels, effort); at >= 0; at-- {
		if slices.Contains(known, levels[at]) {
			return levels[at]
		}
	}
	return known[0]
}

// budget is the thinkingBudget for an effort or a budget of the client's.
func (e *encoder) budget(effort string) (int64, bool) {
	low, high := e.caps.Gemini.Budget[0], e.caps.Gemini.Budget[1]
	if low == 0 && high == 0 {
		high = 24576
	}
	r := &e.req.Reasoning
	switch {
	case effort == "none":
		if low > 0 {
			e.notes.Degrade("effort_none")
		}
		return low, true
	case r.Mode == llm.ThinkingOn && r.Budget > 0:
		within := min(max(r.Budget, low), high)
		if within != r.Budget {
			e.notes.Clamp("thinkingBudget")
		}
		return within, true
	case effort == "":
		return 0, false
	}
	tokens, ok := budgets[effort]
	if !ok || effort == "xhigh" || effort == "max" {
		e.notes.Clamp(e.param("reasoning_effort"))
	}
	if !ok {
		tokens = budgets["high"]
	}
	return min(max(tokens, low), high), true
}
