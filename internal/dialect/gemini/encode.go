package gemini

import (
	"slices"
	"strings"

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
	extra extras
}

// Encode implements dialect.Outbound. The members that stay the same for a
// whole conversation come first, the conversation last.
func (Upstream) Encode(req *llm.Request, caps *llm.Caps) (*dialect.Call, error) {
	e := &encoder{req: req, caps: caps}
	e.call = &dialect.Call{Path: path(caps, req.Stream), Stream: req.Stream, Notes: slices.Clone(req.Notes), Words: req.Words}
	e.notes = &e.call.Notes
	if err := e.refuseState(); err != nil {
		return nil, err
	}
	if err := e.readExtras(); err != nil {
		return nil, err
	}
	w := jsonedit.NewWriter(req.Room())
	w.BeginObject()
	config, err := e.config()
	if err != nil {
		return nil, err
	}
	if len(config) > len("{}") {
		w.SetRaw("generationConfig", config)
	}
	tools, err := e.tools(w)
	if err != nil {
		return nil, err
	}
	if err := e.conversation(w, tools); err != nil {
		return nil, err
	}
	e.meta(w)
	for _, m := range e.extra.members {
		w.SetRaw(m.Name, m.Value)
	}
	w.EndObject()
	e.call.Body = w.Bytes()
	return e.call, nil
}

// param is the client's name of a member.
func (e *encoder) param(chat string) string { return e.req.Words.Param(chat) }

// place is where an item or a part stood in the client's request.
func (e *encoder) place(p llm.Pos) string { return e.req.Words.Place(p, "") }

// refuseState refuses what needs a store, and what changes the question.
func (e *encoder) refuseState() error {
	s := &e.req.State
	for _, m := range []struct {
		name  string
		given bool
	}{
		{"previous_response_id", s.PreviousID.Given()},
		{"conversation", s.Conversation.Given()},
		{"prompt", s.Prompt.Given()},
		{"background", s.Background},
		{"context_management", s.Context.Given()},
	} {
		if m.given {
			p := e.param(m.name)
			return dialect.NotServed(p, "'%s' needs state that this gateway does not keep for this model. Leave it out and send the whole conversation.", p)
		}
	}
	if bias := e.req.Sampling.LogitBias; bias.Given() {
		for range jsonedit.Members(bias) {
			p := e.param("logit_bias")
			return dialect.NotPossible(p, "'%s' cannot be said to this model. Leave it out, or choose another model.", p)
		}
		e.notes.Drop(e.param("logit_bias"))
	}
	return nil
}

// extras are what a client of another dialect says in Google's own words.
type extras struct {
	cached   llm.Raw
	cachedAt string
	thinking llm.Raw
	config   []llm.Member
	members  []llm.Member
}

// owned are the members of a request that the encoder itself may write.
var owned = []string{"contents", "systemInstruction", "tools", "toolConfig", "labels", "serviceTier", "model"}

func (e *encoder) readExtras() error {
	if safety := e.req.Meta.Safety; safety.Given() {
		e.extra.members = append(e.extra.members, llm.Member{Name: "safetySettings", Value: safety})
	}
	for _, m := range e.req.Other {
		switch camel(m.Name) {
		case "extraBody":
			e.readExtraBody(m)
		case "safetySettings", "cachedContent":
			e.google(m.Name, m)
		default:
			e.notes.Drop(m.Name)
		}
	}
	if !e.extra.cached.Given() {
		return nil
	}
	e.extra.members = append(e.extra.members, llm.Member{Name: "cachedContent", Value: e.extra.cached})
	instructed := slices.ContainsFunc(e.req.Items, func(i llm.Item) bool {
		m, ok := i.(*llm.Message)
		return ok && m.Role.Instructs()
	})
	if instructed || len(e.req.Tools) > 0 {
		return dialect.NotPossible(e.extra.cachedAt, "'%s' cannot stand beside instructions or tools: they belong into the cached content. Leave them out, or leave out the cache.", e.extra.cachedAt)
	}
	return nil
}

func (e *encoder) readExtraBody(body llm.Member) {
	for name, value := range jsonedit.Members(body.Value) {
		member := llm.Raw(name).Text()
		if member != "google" {
			e.notes.Drop(body.Name + "." + member)
			continue
		}
		for name, value := range jsonedit.Members(value) {
			m := llm.Member{Name: llm.Raw(name).Text(), Value: value}
			e.google(body.Name+".google."+m.Name, m)
		}
	}
}

// google takes over one member in Google's words, in either of its spellings.
func (e *encoder) google(at string, m llm.Member) {
	m.Name = camel(m.Name)
	switch {
	case m.Name == "cachedContent":
		e.extra.cached, e.extra.cachedAt = m.Value, at
	case m.Name == "thinkingConfig":
		e.extra.thinking = m.Value
	case m.Name == "generationConfig":
		for name, value := range jsonedit.Members(m.Value) {
			c := llm.Member{Name: camel(llm.Raw(name).Text()), Value: value}
			if c.Name == "thinkingConfig" {
				e.extra.thinking = value
				continue
			}
			if !plainName(c.Name) || has(e.extra.config, c.Name) {
				e.notes.Drop(at + "." + c.Name)
				continue
			}
			e.extra.config = append(e.extra.config, c)
		}
	case slices.Contains(owned, m.Name), !plainName(m.Name), has(e.extra.members, m.Name):
		e.notes.Drop(at)
	default:
		e.extra.members = append(e.extra.members, m)
	}
}

func has(members []llm.Member, name string) bool {
	return slices.ContainsFunc(members, func(m llm.Member) bool { return m.Name == name })
}

// plainName reports whether a name needs no escapes.
func plainName(name string) bool {
	for i := range len(name) {
		if c := name[i]; c <= ' ' || c == '"' || c == '\\' || c > '~' {
			return false
		}
	}
	return name != ""
}

// camel is a member's name as the API writes it: it takes snake_case as well.
func camel(name string) string {
	if strings.IndexByte(name, '_') < 0 {
		return name
	}
	out := make([]byte, 0, len(name))
	for i := 0; i < len(name); i++ {
		c := name[i]
		if c == '_' && i+1 < len(name) && len(out) > 0 {
			i++
			if c = name[i]; 'a' <= c && c <= 'z' {
				c -= 'a' - 'A'
			}
		}
		out = append(out, c)
	}
	return string(out)
}

// meta writes what is said about the call, and notes what cannot be.
func (e *encoder) meta(w *jsonedit.Writer) {
	e.labels(w)
	e.tier(w)
	m, l := &e.req.Meta, &e.req.Limits
	for _, d := range []struct {
		name  string
		given bool
	}{
		{"verbosity", e.req.Verbosity.Given()},
		{"prediction", m.Prediction.Given()},
		{"moderation", m.Moderation.Given()},
		{"store", e.req.State.Store != nil && *e.req.State.Store},
		{"truncation", l.Truncation.Given() && l.Truncation.Text() != "disabled"},
		{"max_tool_calls", l.MaxToolCalls.Given()},
		{"prompt_cache_key", e.req.Cache.Key.Given()},
		{"prompt_cache_options", e.req.Cache.Mode != ""},
		{"prompt_cache_retention", e.req.Cache.TTL != ""},
		{"cache_control", e.req.Cache.Auto != nil},
	} {
		if d.given {
			e.notes.Drop(e.param(d.name))
		}
	}
}

// labels says who asks. The Gemini API has no member for that.
func (e *encoder) labels(w *jsonedit.Writer) {
	m := &e.req.Meta
	who, name := m.User, "user"
	if m.SafetyID.Given() {
		if m.User.Given() {
			e.notes.Drop(e.param("user"))
		}
		who, name = m.SafetyID, "safety_identifier"
	}
	if !e.caps.Gemini.Vertex {
		if who.Given() {
			e.notes.Drop(e.param(name))
		}
		if m.Metadata.Given() {
			e.notes.Drop(e.param("metadata"))
		}
		return
	}
	var labels []llm.Member
	add := func(name, value string) {
		if name = label(name); name != "" && !has(labels, name) {
			labels = append(labels, llm.Member{Name: name, Value: llm.Quote(label(value))})
		}
	}
	for name, value := range jsonedit.Members(m.Metadata) {
		add(llm.Raw(name).Text(), llm.Raw(value).Text())
	}
	if who.Given() {
		add("user", who.Text())
	}
	if len(labels) == 0 {
		return
	}
	w.Object("labels")
	for _, l := range labels {
		w.SetRaw(l.Name, l.Value)
	}
	w.EndObject()
}

// maxLabel is the length of a label's name and value.
const maxLabel = 63

// label is a text in the letters that labels may have.
func label(s string) string {
	out := make([]byte, 0, min(len(s), maxLabel))
	for i := 0; i < len(s) && len(out) < maxLabel; i++ {
		c := s[i]
		switch {
		case 'A' <= c && c <= 'Z':
			c += 'a' - 'A'
		case 'a' <= c && c <= 'z', '0' <= c && c <= '9', c == '-', c == '_':
		default:
			c = '_'
		}
		out = append(out, c)
	}
	return string(out)
}

func (e *encoder) tier(w *jsonedit.Writer) {
	switch tier := e.req.Meta.ServiceTier; tier {
	case "", "auto":
	case "default", "standard", "standard_only":
		w.SetText("serviceTier", "standard")
	case "flex", "priority":
		w.SetText("serviceTier", tier)
	default:
		e.notes.Drop(e.param("service_tier"))
	}
}
