package openaichat

import (
	"slices"
	"strconv"

	"github.com/limen-gateway/limen/internal/dialect"
	"github.com/limen-gateway/limen/internal/jsonedit"
	"github.com/limen-gateway/limen/internal/llm"
)

// reasoning says how much the model shall think.
func (e *requestEncoder) reasoning() error {
	wish := &e.req.Reasoning
	if wish.Display == "omitted" {
		e.spread(e.chat.Hide)
	}
	if e.caps.ThinkingTools(e.req) {
		e.untool()
		return nil
	}
	if e.own && wish.Router != nil && e.chat.Reasoning == reasoningDetails {
		e.set("reasoning", wish.Router)
		return nil
	}
	if e.own && wish.Native != nil {
		// A member of the server that the client means, in its own words.
		if e.switches("thinking") {
			e.set("thinking", wish.Native)
		} else {
			e.put("thinking", wish.Native)
		}
		if wish.Effort != "" {
			e.effort(wish.Effort)
		}
		return nil
	}
	effort := wanted(wish)
	if effort == "" {
		return nil
	}
	if e.foreignThinking() {
		e.notes.Drop(e.wishName())
		return nil
	}
	if e.chat.Reasoning == reasoningDetails && e.detailedWish() {
		return nil
	}
	if effort == "none" {
		return e.unthinking()
	}
	if e.caps.ReasonsKnown && !e.caps.Reasons {
		e.notes.Drop(e.wishName())
		return nil
	}
	e.spread(e.chat.On)
	if wish.Budget > 0 && e.chat.Budget != "" {
		e.set(e.chat.Budget, llm.Raw(strconv.FormatInt(wish.Budget, 10)))
		if wish.Effort == "" {
			return nil
		}
	}
	e.effort(effort)
	return nil
}

// untool has the model not think, so that it can call tools.
func (e *requestEncoder) untool() {
	if wanted(&e.req.Reasoning) != "" {
		e.notes.Drop(e.wishName())
	} else {
		e.notes.Default(e.param("reasoning_effort"))
	}
	e.put("reasoning_effort", llm.Raw(`"none"`))
}

// thinks reports whether the model will think; unasked says whether it does
// where the client says nothing of it.
func (e *requestEncoder) thinks(unasked bool) bool {
	switch {
	case e.caps.ReasonsKnown && !e.caps.Reasons, e.caps.ThinkingTools(e.req):
		return false
	case e.req.Reasoning.Wants(unasked):
		return true
	case e.req.Reasoning.Wants(true): // nothing was said
		return false
	}
	return e.chat.Off == "" && !e.caps.TakesEffort("none") // it cannot but think
}

// wishName is the client's name of what it wished with.
func (e *requestEncoder) wishName() string {
	if e.req.Reasoning.Effort == "" {
		return "thinking"
	}
	return e.param("reasoning_effort")
}

// foreignThinking reports whether thinking is switched by another dialect's
// member for a server of which it is not known whether it has any such thing.
func (e *requestEncoder) foreignThinking() bool {
	known := e.caps.ReasonsKnown || e.chat.Reasoning != "" || e.chat.On != "" || e.caps.Efforts != nil
	return !e.own && e.req.Reasoning.Effort == "" && !known
}

// switches reports whether the server's own switch is a member of that name.
func (e *requestEncoder) switches(name string) bool {
	_, on := jsonedit.Get([]byte(e.chat.On), name)
	return on
}

// unthinking switches thinking off.
func (e *requestEncoder) unthinking() error {
	switch {
	case e.chat.Off != "":
		e.spread(e.chat.Off)
	case e.caps.ReasonsKnown && !e.caps.Reasons:
		// It does not think anyway.
	case e.caps.TakesEffort("none"):
		e.put("reasoning_effort", llm.Raw(`"none"`))
	default:
		e.notes.Degrade("effort_none")
		if least := e.caps.NearestEffort("none"); least != "" {
			e.put("reasoning_effort", llm.Quote(least))
		}
	}
	return nil
}

// effort says the effort that is nearest to the wish among those that the
// server takes.
func (e *requestEncoder) effort(wish string) {
	said := wish
	for _, pair := range e.chat.EffortAs {
		if pair[0] == wish {
			said = pair[1]
		}
	}
	said = e.caps.NearestEffort(said)
	if said == "" {
		if e.chat.On == "" {
			e.notes.Drop(e.wishName())
		}
		return
	}
	if said != wish {
		e.notes.Clamp(e.wishName())
	}
	e.put("reasoning_effort", llm.Quote(said))
}

// spread writes the members of a switch. What the client said itself stands.
func (e *requestEncoder) spread(object string) {
	for quoted, value := range jsonedit.Members([]byte(object)) {
		if name := memberName(quoted); !e.written[name] {
			e.set(name, value)
		}
	}
}

// detailedWish writes OpenRouter's member where the wish is more than an
// effort.
func (e *requestEncoder) detailedWish() bool {
	wish := &e.req.Reasoning
	if wish.Budget == 0 && wish.Display != "omitted" || e.written["reasoning"] {
		return false
	}
	var w jsonedit.Writer
	w.BeginObject()
	switch {
	case wish.Budget > 0:
		w.SetInt("max_tokens", wish.Budget)
	case wish.Effort != "":
		w.SetText("effort", wish.Effort)
	}
	if wish.Display == "omitted" {
		w.SetBool("exclude", true)
	}
	w.EndObject()
	e.set("reasoning", w.Bytes())
	return true
}

// wanted is the effort that a wish comes to; "" is the model's own.
func wanted(wish *llm.ReasoningWish) string {
	switch {
	case wish.Mode == llm.ThinkingOff:
		return "none"
	case wish.Effort != "":
		return wish.Effort
	case wish.Mode == llm.ThinkingAdaptive, wish.Mode == llm.ThinkingOn && wish.Budget == 0:
		return "high"
	case wish.Mode == llm.ThinkingBetweenTools:
		return "low"
	case wish.Mode != llm.ThinkingOn:
		return ""
	case wish.Budget < 4096:
		return "low"
	case wish.Budget < 16384:
		return "medium"
	}
	return "high"
}

// reasoningDetails is the member in which servers for models of many vendors
// take state of all of them.
const reasoningDetails = "reasoning_details"

// echoes reports whether the server wants the reasoning of a turn back; open
// says that the turn belongs to a tool loop that goes on.
func (e *requestEncoder) echoes(open bool) bool {
	if e.chat.Reasoning == "" {
		return false
	}
	return e.chat.Echo == llm.EchoAlways || e.chat.Echo == llm.EchoTools && open
}

// reads reports whether the server reads opaque state.
func (e *requestEncoder) reads(o llm.Opaque) bool {
	if e.caps.Reads(o) {
		return true
	}
	return e.chat.Reasoning == reasoningDetails && formats[o.Vendor] != "" && (o.Origin == "" || o.Origin == e.caps.Origin)
}

// plain reports whether reasoning is text alone: what another model has signed
// is not this one's to be reminded of.
func (e *requestEncoder) plain(r *llm.Reasoning) bool {
	for _, o := range r.Opaque {
		if o.Kind != llm.PlainMark && !e.reads(o) {
			return false
		}
	}
	return true
}

// dropReasoning notes reasoning that stays behind: text, or opaque state.
func (e *requestEncoder) dropReasoning(r *llm.Reasoning) {
	switch {
	case slices.ContainsFunc(r.Opaque, func(o llm.Opaque) bool { return o.Kind != llm.PlainMark }):
		e.drop("reasoning_details")
	case len(r.Texts) > 0:
		e.drop("reasoning_content")
	}
}

// thoughtsOf writes the reasoning of a turn as the server wants it back, but
// for that within the content. It returns the text that belongs there.
func (e *requestEncoder) thoughtsOf(t *turn) (inContent llm.Raw) {
	echo := e.echoes(t.open)
	if e.chat.Reasoning == reasoningDetails && e.own && t.details != nil {
		e.w.SetRaw(reasoningDetails, t.details)
		return nil
	}
	var texts []llm.Raw
	var details jsonedit.Writer
	entries := 0
	for i, r := range t.thoughts {
		if !echo || !e.plain(r) {
			e.dropReasoning(r)
			continue
		}
		for _, th := range r.Texts {
			texts = append(texts, th.Text)
		}
		if e.chat.Reasoning == reasoningDetails {
			before := details.Len()
			if e.details(&details, r, t.places[i]); details.Len() > before {
				entries++
			}
		}
	}
	if echo && e.chat.Reasoning == reasoningDetails {
		e.signatures(&details, t.calls, entries)
	}
	said := llm.Concat("", texts...)
	switch {
	case !echo:
	case e.chat.Reasoning == reasoningDetails:
		if list := details.Bytes(); len(list) > 0 {
			e.w.Array(reasoningDetails)
			e.w.Raw(list)
			e.w.EndArray()
		} else if !said.Blank() {
			e.w.SetRaw("reasoning", said)
		}
	case e.chat.Reasoning == "content", e.chat.EchoTags:
		return said
	case !said.Blank() || e.chat.Echo == llm.EchoAlways && !(e.caps.ReasonsKnown && !e.caps.Reasons):
		e.w.SetRaw(e.chat.Reasoning, said) // "" says that there was none
	}
	return nil
}

// signatures writes the state of calls as entries that name them, after
// others.
func (e *requestEncoder) signatures(w *jsonedit.Writer, calls []*llm.ToolCall, others int) {
	for i, c := range calls {
		for _, o := range c.Opaque {
			if !e.reads(o) {
				continue
			}
			var entry jsonedit.Writer
			o.For = e.id(c.ID)
			detail{index: others + i}.write(&entry, o)
			if entry.Len() > 0 {
				w.Raw(entry.Bytes())
			}
		}
	}
}

// details writes the entries of a piece of reasoning that has opaque state.
func (e *requestEncoder) details(w *jsonedit.Writer, r *llm.Reasoning, place int) {
	vendor := ""
	for _, o := range r.Opaque {
		if formats[o.Vendor] != "" {
			vendor = o.Vendor
		}
	}
	if vendor == "" {
		return
	}
	a := &answerChoice{ask: &dialect.Ask{Vendor: vendor}}
	placed := *r
	placed.Pos.Part = place
	a.reasoning(&placed)
	if list := a.details.Bytes(); len(list) > 0 {
		w.Raw(list)
	}
}
