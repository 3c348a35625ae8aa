package openairesponses

import (
	"strings"

	"github.com/limen-gateway/limen/internal/dialect"
	"github.com/limen-gateway/limen/internal/dialect/openai"
	"github.com/limen-gateway/limen/internal/jsonedit"
	"github.com/limen-gateway/limen/internal/llm"
)

// writeResponse writes the response as far as it has come, with all the
// members that the schema of Open Responses wants.
func (a *answer) writeResponse(w *jsonedit.Writer, status string, fault *llm.Error) {
	begun := a.ask.Begun.Unix()
	w.BeginObject()
	w.SetText("id", "resp_"+a.ask.ID)
	w.SetText("object", "response")
	w.SetInt("created_at", begun)
	w.Name("completed_at")
	if status == "completed" {
		w.Int(begun) // an encoder has no clock; clients only look whether it is there
	} else {
		w.Null()
	}
	w.SetText("status", status)
	w.SetRaw("model", a.model)
	w.Name("error")
	if fault != nil {
		w.BeginObject()
		w.SetText("code", failedCode(fault))
		w.SetText("message", fault.Message)
		w.EndObject()
	} else {
		w.Null()
	}
	w.Name("incomplete_details")
	if status == "incomplete" {
		w.BeginObject()
		w.SetText("reason", a.incomplete())
		w.EndObject()
	} else {
		w.Null()
	}
	w.Array("output")
	for _, item := range a.output {
		w.Raw(item)
	}
	w.EndArray()
	w.Name("usage")
	a.writeUsage(w, status)
	tier := openai.ServiceTier(a.usage.Service)
	for name, v := range jsonedit.Members(a.tail) {
		if tier != "" && string(name) == `"service_tier"` {
			v = llm.Quote(tier)
		}
		w.RawName(name)
		w.Raw(v)
	}
	w.EndObject()
}

// writeUsage writes the usage of a response that is over: some clients ask again
// without end when there is none.
func (a *answer) writeUsage(w *jsonedit.Writer, status string) {
	switch {
	case a.known:
		writeUsage(w, a.usage, true, a.ask.Cost)
	case status != "completed" && status != "incomplete":
		w.Null()
	case a.usage.Total() > 0:
		writeUsage(w, a.usage, false, a.ask.Cost)
	default:
		writeUsage(w, llm.Estimate(0, a.seen), false, a.ask.Cost)
	}
}

// appendEcho appends an object of the members that a response repeats from
// its request, as the client wrote them, or as they are when nothing is said.
// What was not served is not repeated.
// What the gateway answers for goes before both.
func appendEcho(dst []byte, req *llm.Request, told []llm.Member) []byte {
	echo := func(name string) llm.Raw { return member(told, name) }
	if req != nil {
		echo = func(name string) llm.Raw {
			if value := member(told, name); value != nil {
				return value
			}
			return member(req.Echo, name)
		}
	}
	w := jsonedit.NewWriter(dst)
	set := func(name, otherwise string) {
		value := echo(name)
		if value == nil {
			value = llm.Raw(otherwise)
		}
		w.SetRaw(name, value)
	}
	w.BeginObject()
	set("instructions", "null")
	set("previous_response_id", "null")
	w.Name("tools")
	echoTools(w, echo("tools"))
	set("tool_choice", `"auto"`)
	set("parallel_tool_calls", "true")
	set("temperature", "1")
	set("top_p", "1")
	set("presence_penalty", "0")
	set("frequency_penalty", "0")
	set("top_logprobs", "0")
	set("max_output_tokens", "null")
	set("max_tool_calls", "null")
	w.Name("text")
	echoText(w, echo("text"))
	w.Name("reasoning")
	echoReasoning(w, echo("reasoning"))
	w.SetText("truncation", "disabled")
	set("store", "false")
	set("background", "false")
	w.SetText("service_tier", "default")
	set("metadata", "{}")
	set("safety_identifier", "null")
	set("prompt_cache_key", "null")
	set("user", "null")
	set("conversation", "null")
	w.EndObject()
	return w.Bytes()
}

// member is the value of a member of that name, nil when there is none.
func member(members []llm.Member, name string) llm.Raw {
	for _, m := range members {
		if m.Name == name {
			return m.Value
		}
	}
	return nil
}

// withRequired writes an object with the members that it must have.
func withRequired(w *jsonedit.Writer, object llm.Raw, required ...string) {
	w.BeginObject()
	for name, v := range jsonedit.Members(object) {
		w.RawName(name)
		w.Raw(v)
	}
	for i := 0; i < len(required); i += 2 {
		if _, there := jsonedit.Get(object, required[i]); !there {
			w.SetRaw(required[i], []byte(required[i+1]))
		}
	}
	w.EndObject()
}

func echoTools(w *jsonedit.Writer, list llm.Raw) {
	w.BeginArray()
	for v := range jsonedit.Elements(list) {
		switch dialect.Text(v, "type") {
		case "function":
			withRequired(w, v, "description", "null", "parameters", "null", "strict", "null")
		case "mcp":
			withoutSecrets(w, v)
		default:
			w.Raw(v)
		}
	}
	w.EndArray()
}

// withoutSecrets writes a tool without what opens its server: answers are kept.
func withoutSecrets(w *jsonedit.Writer, tool llm.Raw) {
	w.BeginObject()
	for name, v := range jsonedit.Members(tool) {
		if key := llm.Raw(name).Text(); key != "headers" && key != "authorization" {
			w.RawName(name)
			w.Raw(v)
		}
	}
	w.EndObject()
}

func echoText(w *jsonedit.Writer, text llm.Raw) {
	w.BeginObject()
	w.Name("format")
	switch format := dialect.Member(text, "format"); {
	case format == nil:
		w.Raw([]byte(`{"type":"text"}`))
	case dialect.Text(format, "type") == "json_schema":
		withRequired(w, format, "description", "null", "strict", "false")
	default:
		w.Raw(format)
	}
	for name, v := range jsonedit.Members(text) {
		if string(name) != `"format"` {
			w.RawName(name)
			w.Raw(v)
		}
	}
	w.EndObject()
}

func echoReasoning(w *jsonedit.Writer, wish llm.Raw) {
	withRequired(w, wish, "effort", "null", "summary", "null")
}

// serve tells of a call that the upstream ran, which is known whole.
func (a *answer) serve(c *llm.ServerCall) {
	form, known := servedForms[c.Kind]
	switch {
	case c.Kind == llm.MCP:
		a.tellMCP(c)
		return
	case !known: // clients know no item for it, and some fail on what they do not know
		return
	case c.Kind == llm.ImageGeneration && !c.Failed && (c.Image == nil || c.Image.Data == nil):
		return
	}
	it := &openItem{kind: llm.ServerItem, form: form}
	a.addServed(it)
	a.step(form, it, "in_progress")
	if form == codeForm && c.Code.IsText() {
		a.args(it, c.Code)
		a.argsDone(it, codeEvent+"done", "code")
	}
	a.step(form, it, form.working)
	a.step(form, it, "completed")
	a.served(form, it, c)
}

// servedForm is an item of a call that the upstream ran, and its event while
// it works.
type servedForm struct{ kind, prefix, working string }

var codeForm = servedForm{"code_interpreter_call", "ci_", "interpreting"}

// codeEvent begins the names of the events that tell what code is run.
const codeEvent = "response.code_interpreter_call_code."

// servedForms are the items of calls, by kind, but for those of servers of
// tools.
var servedForms = map[llm.ServerKind]servedForm{
	llm.WebSearch:       {"web_search_call", "ws_", "searching"},
	llm.WebFetch:        {"web_search_call", "ws_", "searching"},
	llm.CodeExecution:   codeForm,
	llm.ImageGeneration: {"image_generation_call", "ig_", "generating"},
	llm.FileSearch:      {"file_search_call", "fs_", "searching"},
}

func (form servedForm) begin(w *jsonedit.Writer, it *openItem, status string) {
	w.BeginObject()
	w.SetText("id", it.id)
	w.SetText("type", form.kind)
	w.SetText("status", status)
}

func (a *answer) step(form servedForm, it *openItem, what string) {
	kind := "response." + form.kind + "." + what
	a.itemEvent(kind, it)
	a.send(kind)
}

// served tells that the call is over, and what came of it.
func (a *answer) served(form servedForm, it *openItem, c *llm.ServerCall) {
	var item jsonedit.Writer
	if c.Kind == llm.MCP {
		writeMCP(&item, it, ending(c), c.MCP)
		a.over(it, item.Bytes())
		a.sealed(it, c)
		return
	}
	form.begin(&item, it, ending(c))
	switch c.Kind {
	case llm.WebSearch:
		writeSearch(&item, c)
	case llm.WebFetch:
		item.Object("action")
		item.SetText("type", "open_page")
		item.SetRaw("url", dialect.Member(c.Input, "url"))
		item.EndObject()
	case llm.CodeExecution:
		writeCode(&item, c)
	case llm.ImageGeneration:
		writeImage(&item, c)
	case llm.FileSearch:
		writeFileSearch(&item, c)
	}
	item.EndObject()
	a.over(it, item.Bytes())
	a.sealed(it, c)
}

// sealed tells, behind an item, the state of the call that it stands for:
// there is no place for it within.
func (a *answer) sealed(it *openItem, c *llm.ServerCall) {
	own := make([]llm.Opaque, len(c.Opaque))
	for i, o := range c.Opaque {
		o.For = llm.Quote(it.id)
		own[i] = o
	}
	a.settle("completed", a.seals(it, own))
}

// defaultImage is the format of an image where nothing is said of it.
const defaultImage = "image/png"

func writeImage(w *jsonedit.Writer, c *llm.ServerCall) {
	if c.Image == nil {
		w.SetRaw("result", []byte("null"))
	} else {
		w.SetRaw("result", c.Image.Data)
		if format, ok := strings.CutPrefix(c.Image.MIME, "image/"); ok && c.Image.MIME != defaultImage {
			w.SetText("output_format", format)
		}
	}
	w.SetRaw("revised_prompt", c.Prompt)
}

func writeFileSearch(w *jsonedit.Writer, c *llm.ServerCall) {
	w.Name("queries")
	writeList(w, c.Queries)
	if c.Files == nil {
		w.SetRaw("results", []byte("null"))
		return
	}
	w.Array("results")
	for _, f := range c.Files {
		w.BeginObject()
		w.SetRaw("file_id", f.ID)
		w.SetRaw("filename", f.Name)
		w.SetRaw("score", f.Score)
		w.SetRaw("attributes", f.Attributes)
		w.SetRaw("text", f.Text)
		w.EndObject()
	}
	w.EndArray()
}

func writeSearch(w *jsonedit.Writer, c *llm.ServerCall) {
	queries := c.Queries
	if query := dialect.Member(c.Input, "query"); len(queries) == 0 && query != nil {
		queries = []llm.Raw{query}
	}
	w.Object("action")
	w.SetText("type", "search")
	if len(queries) > 0 {
		w.SetRaw("query", queries[0]) // the older name, which some SDKs insist on
	}
	w.Name("queries")
	writeList(w, queries)
	w.Array("sources")
	for _, s := range c.Sources {
		w.BeginObject()
		w.SetText("type", "url")
		w.SetRaw("url", s.URL)
		w.EndObject()
	}
	w.EndArray()
	w.EndObject()
}

func writeCode(w *jsonedit.Writer, c *llm.ServerCall) {
	code := c.Code
	if !code.IsText() {
		code = llm.Raw("null")
	}
	w.SetRaw("code", code)
	container := c.Container
	if !container.IsText() {
		container = llm.Raw(`""`)
	}
	w.SetRaw("container_id", container)
	if c.Withheld {
		w.SetRaw("outputs", []byte("null"))
		return
	}
	w.Array("outputs")
	for _, logs := range c.Outputs {
		w.BeginObject()
		w.SetText("type", "logs")
		w.SetRaw("logs", logs)
		w.EndObject()
	}
	for _, image := range c.Images {
		w.BeginObject()
		w.SetText("type", "image")
		w.SetRaw("url", image)
		w.EndObject()
	}
	w.EndArray()
}
