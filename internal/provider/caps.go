package provider

import (
	"path"
	"slices"
	"strings"

	"github.com/limen-gateway/limen/internal/dialect"
	"github.com/limen-gateway/limen/internal/llm"
)

// unsaidMax bounds the answers of a server that must be told a limit when the
// client tells none: thinking counts, and still leaves room for an agent's
// longest file.
const unsaidMax = 64_000

// Caps says what a model of a vendor can do when it is spoken to in a dialect:
// the vendor's row, what is known of the model, and its family's line. What the
// vendor itself lists goes before the line, the line before facts. The zero
// Vendor is a server of which nothing is known.
//
// Lists in the result are shared: do not change them.
func Caps(v Vendor, model string, m Model, d dialect.Name) *llm.Caps {
	family, line := familyOf(model, d)
	var caps llm.Caps
	if line != nil {
		caps = line.caps
		caps.ReasonsKnown = true
	} else {
		caps.NoSampling = m.Temperature == No
	}
	caps.Model, caps.Vendor = model, v.reader(family, d)
	caps.Bound = caps.Vendor != "" && !unbound[caps.Vendor]
	if m.Reasoning != Unknown {
		caps.Reasons, caps.ReasonsKnown = m.Reasoning == Yes, true
	}
	caps.MaxOutput = int64(m.MaxOutput)
	caps.Tokenizer = tokenizerOf(model)
	if caps.Efforts == nil {
		caps.Efforts = m.Efforts
	}
	caps.PlaceCache = caps.Bedrock.Family == "anthropic" || caps.Bedrock.Family == "nova" // which cache only what is marked
	switch d {
	case dialect.OpenAIChat, dialect.OpenAIResponses:
		v.Quirks = v.Quirks.of(model)
		v.chatCaps(&caps, line)
		c := &caps.Chat
		c.NoThinkingTools = c.NoThinkingTools && d == dialect.OpenAIChat
		caps.Retold = d == dialect.OpenAIChat && (c.Tags || c.Snapshots || c.Reasoning == "content" && mayReason(&caps))
	case dialect.Anthropic:
		v.anthropicCaps(&caps, m)
	case dialect.Gemini:
		v.geminiCaps(&caps, m)
	case dialect.Bedrock:
		caps.NoStructured = caps.NoStructured || m.Structured == No
	}
	return &caps
}

// readers of opaque state that a dialect's servers have where neither the
// model's name nor the vendor tells.
var readers = map[dialect.Name]string{
	dialect.OpenAIResponses: "openai",
	dialect.Anthropic:       "anthropic",
	dialect.Gemini:          "google",
}

// unbound are the readers that open, in any account, what was made in another.
var unbound = map[string]bool{"anthropic": true, "google": true}

// mayReason reports whether a model is known to think, or not known at all.
func mayReason(caps *llm.Caps) bool { return caps.Reasons || !caps.ReasonsKnown }

// reader is who reads opaque state of a family's models.
func (v Vendor) reader(f *family, d dialect.Name) string {
	openai := d == dialect.OpenAIChat || d == dialect.OpenAIResponses
	switch {
	case openai && v.Opaque != "":
		return v.Opaque
	case f != nil && f.maker != "":
		return f.maker
	case !openai && readers[d] != "":
		return readers[d]
	case v.Name != "":
		return v.Name
	}
	return readers[d]
}

// familyOf finds the family of a model and the line that holds for it in a
// dialect; each is nil when there is none.
func familyOf(model string, d dialect.Name) (*family, *line) {
	name := ownName(model)
	for i := range families {
		f := &families[i]
		if !matches(f.names, name) {
			continue
		}
		if f.in != nil && !slices.Contains(f.in, d) {
			return f, nil
		}
		for j := range f.lines {
			if l := &f.lines[j]; (l.in == "" || l.in == d) && matches(l.names, name) {
				return f, l
			}
		}
		return f, nil
	}
	return nil, nil
}

// ownName is the maker's name of a model, without the parts that hosts put
// around it: "claude-opus-4-8" of "us.anthropic.claude-opus-4-8-v1:0",
// "kimi-k2.6" of "moonshotai/Kimi-K2.6:free".
func ownName(model string) string {
	name := withoutCloud(strings.ToLower(model))
	name = name[strings.LastIndexByte(name, '/')+1:]
	name, _, _ = strings.Cut(name, ":")
	return withoutDate(name)
}

func matches(patterns []string, name string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool {
		ok, err := path.Match(p, name)
		return ok && err == nil
	})
}

// chatCaps adds what the vendor's row says of OpenAI's dialects.
func (v Vendor) chatCaps(caps *llm.Caps, l *line) {
	q, c := &v.Quirks, &caps.Chat
	known := v.Name != "" // what nothing is known of is told what the client said
	c.NoDeveloper = known && !q.Developer
	c.OneSystem = q.OneSystem
	c.TokenLimit = first(q.TokenLimit, "max_tokens")
	c.Drop = q.Drop
	if caps.Reasons && q.DropReasoning != nil {
		c.Drop = slices.Concat(q.Drop, q.DropReasoning)
	}
	for _, r := range q.Rename {
		switch r.From {
		case "max_tokens", "max_completion_tokens":
			c.TokenLimit = r.To
		case "seed":
			c.Seed = r.To
		default:
			c.Rename = append(c.Rename, [2]string{r.From, r.To})
		}
	}
	c.Strict, c.NoNames, c.NoFiles, c.OneChoice, c.ManyOnly = q.Strict, q.NoNames, q.NoFiles, q.OneChoice, q.ManyOnly
	c.DocumentURL, c.AudioURL = q.DocumentURL, q.AudioURL
	c.ZeroTemperature, c.Temperature = q.Temperature.Zero, [2]float64{q.Temperature.Low, q.Temperature.High}
	c.NoStreamUsage = slices.Contains(q.Drop, "stream_options")
	c.AskUsage = q.StreamUsage == UsageAsked
	c.Formats = q.Formats
	caps.SchemaAlone = caps.SchemaAlone || q.SchemaAlone
	c.SchemaWhole, c.NoThinkingJSON, c.JSONWord, c.TypedAnyOf = q.SchemaWhole, q.NoThinkJSON, q.JSONWord, q.TypedAnyOf
	c.Native, c.NoCustom, c.NoGrammar = q.Native, known && !q.Native, known && !q.Native
	c.NoThinkingTools = c.NoThinkingTools && q.Native
	c.NoThinkingSampling = c.NoThinkingSampling && q.Native
	c.Breakpoints, c.CacheControl, c.MaxMarks, c.TopK = q.Breakpoints, q.CacheControl, q.MaxMarks, q.TopK
	v.toolCaps(caps)
	v.reasoningCaps(caps, l)
	c.ReasoningApart = q.Answer.ReasoningApart
	c.Finish = pairs(q.Answer.Finish)
}

func (v Vendor) toolCaps(caps *llm.Caps) {
	t, c := &v.Quirks.Tools, &caps.Chat
	c.ToolChoice = t.Choice
	if caps.Reasons {
		c.ThinkingChoice = t.Thinking
	}
	c.ToolWords, c.CallID = pairs(t.Words), t.CallID
	c.AnswerFirst, c.NamedTools = t.AnswerFirst, t.Named
	c.ParallelOff, c.ToolStream, c.StrictAlike = t.ParallelOff, t.Stream, t.StrictAlike
	caps.NoParallel = caps.NoParallel || t.NoParallelFlag
}

func (v Vendor) reasoningCaps(caps *llm.Caps, l *line) {
	r, c := &v.Quirks.Reasoning, &caps.Chat
	if l == nil || !l.noSwitch {
		c.On, c.Off = r.On, r.Off
	}
	c.Hide, c.Budget, c.EffortAs = r.Hide, r.Budget, pairs(r.EffortAs)
	c.Tags = r.Tags && mayReason(caps)
	c.Snapshots, c.EchoTags = r.Snapshots, r.EchoTags
	if r.Efforts != nil {
		caps.Efforts = r.Efforts
	}
	c.Reasoning = r.Out
	if r.Out == "" || l != nil && l.noEcho {
		c.Echo = llm.EchoNever // what never came cannot go back
		return
	}
	c.Echo = max(c.Echo, echoes[r.Echo])
}

var echoes = [...]llm.Echo{EchoNever: llm.EchoNever, EchoTools: llm.EchoTools, EchoAlways: llm.EchoAlways}

func pairs(list []Pair) [][2]string {
	var out [][2]string
	for _, p := range list {
		out = append(out, [2]string{p.From, p.To})
	}
	return out
}

// anthropicCaps adds what is known of a host of Messages, and what its own list
// says of the model.
func (v Vendor) anthropicCaps(caps *llm.Caps, m Model) {
	caps.NoStructured = caps.NoStructured || m.Structured == No
	caps.NoStrictTools = caps.NoStrictTools || m.Structured == No
	if m.Thinking != nil {
		caps.Thinking = listedThinking(m.Thinking, caps.Thinking)
		caps.Efforts = m.Efforts
		if caps.Efforts == nil {
			caps.Efforts = none
		}
	}
	if caps.MaxOutput > 0 {
		caps.DefaultMaxTokens = min(caps.MaxOutput, unsaidMax)
	}
	caps.Anthropic.InPath = v.Quirks.InPath
}

// listedThinking joins the ways to think that a list tells of with those that
// lists say nothing about.
func listedThinking(listed, line []string) []string {
	ways := slices.Clone(listed)
	for _, way := range line {
		if way != "adaptive" && way != "enabled" {
			ways = append(ways, way)
		}
	}
	return ways
}

// geminiCaps adds which of Gemini's two hosts it is.
func (v Vendor) geminiCaps(caps *llm.Caps, m Model) {
	g := &caps.Gemini
	g.Vertex = v.Place != (Place{})
	g.Project, g.Location = v.Place.Project, v.Place.Location
	g.FunctionIDs = !g.Vertex                  // an error there
	g.NoPenalties = g.NoPenalties && !g.Vertex // an error only here
	g.Speech = g.Speech || slices.Contains(m.Output, "audio")
	g.Images = g.Images || slices.Contains(m.Output, "image")
	caps.NoStructured = caps.NoStructured || m.Structured == No
}
