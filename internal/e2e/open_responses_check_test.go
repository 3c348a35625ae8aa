package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// What follows checks responses and events as the schema of Open Responses and
// the strictest clients do. It is written from their words, not from what this
// gateway sends.

// object is a JSON object, taken apart.
type object map[string]json.RawMessage

// kind is what a JSON value is; "int" is a number without a fraction, "" is
// nothing at all.
func kind(v json.RawMessage) string {
	switch {
	case len(v) == 0:
		return ""
	case v[0] == '{':
		return "object"
	case v[0] == '[':
		return "array"
	case v[0] == '"':
		return "string"
	case v[0] == 'n':
		return "null"
	case v[0] == 't', v[0] == 'f':
		return "bool"
	case bytes.ContainsAny(v, ".eE"):
		return "number"
	}
	return "int"
}

func text(v json.RawMessage) (s string) {
	json.Unmarshal(v, &s)
	return s
}

// strict gathers what is wrong.
type strict struct{ faults []string }

func (s *strict) failf(format string, args ...any) {
	s.faults = append(s.faults, fmt.Sprintf(format, args...))
}

// object takes an object apart and checks the kinds of its members. kinds are
// separated by |; "" among them says that the member may be missing, and a kind
// with = is a string of that value.
func (s *strict) object(where string, v json.RawMessage, kinds map[string]string) object {
	var o object
	if err := json.Unmarshal(v, &o); err != nil || o == nil {
		s.failf("%s is no object: %s", where, v)
		return object{}
	}
	for name, want := range kinds {
		got := kind(o[name])
		ok := slices.ContainsFunc(strings.Split(want, "|"), func(k string) bool {
			value, exact := strings.CutPrefix(k, "=")
			return k == got || k == "number" && got == "int" || exact && got == "string" && text(o[name]) == value
		})
		if !ok {
			s.failf("%s.%s is %q, want %s", where, name, o[name], want)
		}
	}
	return o
}

func (s *strict) list(where string, v json.RawMessage, each func(where string, v json.RawMessage)) {
	var list []json.RawMessage
	if err := json.Unmarshal(v, &list); err != nil || list == nil {
		s.failf("%s is no list: %s", where, v)
	}
	for i, v := range list {
		each(fmt.Sprintf("%s[%d]", where, i), v)
	}
}

var responseKinds = map[string]string{
	"id": "string", "object": "=response", "created_at": "int", "completed_at": "int|null",
	"status": "=completed|=incomplete|=failed|=in_progress|=queued|=cancelled", "model": "string",
	"error": "object|null", "incomplete_details": "object|null", "instructions": "string|null", "previous_response_id": "string|null",
	"output": "array", "tools": "array", "tool_choice": "string|object", "parallel_tool_calls": "bool",
	"temperature": "number", "top_p": "number", "presence_penalty": "number", "frequency_penalty": "number", "top_logprobs": "int",
	"max_output_tokens": "int|null", "max_tool_calls": "int|null", "text": "object", "reasoning": "object|null",
	"truncation": "=auto|=disabled", "store": "bool", "background": "bool", "service_tier": "string", "metadata": "object",
	"usage": "object|null", "safety_identifier": "string|null", "prompt_cache_key": "string|null",
	"conversation": "object|null|", "user": "string|null|",
}

// response checks a snapshot of a response.
func (s *strict) response(where string, v json.RawMessage) object {
	r := s.object(where, v, responseKinds)
	status := text(r["status"])
	if !strings.HasPrefix(text(r["id"]), "resp_") || text(r["model"]) == "" {
		s.failf("%s: its ID is %s, its model %s", where, r["id"], r["model"])
	}
	s.list(where+".output", r["output"], func(where string, v json.RawMessage) { s.item(where, v) })
	s.list(where+".tools", r["tools"], func(where string, v json.RawMessage) {
		tool := s.object(where, v, map[string]string{"type": "=function", "name": "string", "description": "string|null", "parameters": "object|null", "strict": "bool|null"})
		if len(tool) != 5 {
			s.failf("%s has other members: %s", where, v)
		}
	})
	format := s.object(where+".text", r["text"], map[string]string{"format": "object"})["format"]
	s.object(where+".text.format", format, map[string]string{"type": "=text|=json_object|=json_schema"})
	if kind(r["reasoning"]) == "object" {
		s.object(where+".reasoning", r["reasoning"], map[string]string{
			"effort": "null|=none|=low|=medium|=high|=xhigh", "summary": "null|=auto|=concise|=detailed",
		})
	}
	if kind(r["conversation"]) == "object" {
		s.object(where+".conversation", r["conversation"], map[string]string{"id": "string"})
	}
	for _, c := range []struct {
		member string
		status []string
		kinds  map[string]string
	}{
		{"error", []string{"failed"}, map[string]string{"code": "string", "message": "string"}},
		{"incomplete_details", []string{"incomplete"}, map[string]string{"reason": "string"}},
	} {
		if is := kind(r[c.member]) == "object"; is != slices.Contains(c.status, status) {
			s.failf("%s is %s, and its %s is %s", where, status, c.member, r[c.member])
		} else if is {
			s.object(where+"."+c.member, r[c.member], c.kinds)
		}
	}
	if is := kind(r["completed_at"]) == "int"; is != (status == "completed") {
		s.failf("%s is %s, and was completed at %s", where, status, r["completed_at"])
	}
	s.usage(where, status, r["usage"])
	return r
}

func (s *strict) usage(where, status string, v json.RawMessage) {
	if kind(v) != "object" {
		if status == "completed" || status == "incomplete" {
			s.failf("%s is %s without usage", where, status)
		}
		return
	}
	u := s.object(where+".usage", v, map[string]string{"input_tokens": "int", "output_tokens": "int", "total_tokens": "int", "input_tokens_details": "object", "output_tokens_details": "object"})
	s.object(where+".usage.input_tokens_details", u["input_tokens_details"], map[string]string{"cached_tokens": "int"})
	s.object(where+".usage.output_tokens_details", u["output_tokens_details"], map[string]string{"reasoning_tokens": "int"})
	var in, out, total int
	json.Unmarshal(u["input_tokens"], &in)
	json.Unmarshal(u["output_tokens"], &out)
	json.Unmarshal(u["total_tokens"], &total)
	if in <= 0 || in+out != total {
		s.failf("%s.usage: %s", where, v)
	}
}

const itemStates = "=in_progress|=completed|=incomplete"

// itemKinds are the members of output items, by their type.
var itemKinds = map[string]map[string]string{
	"message":       {"id": "string", "status": itemStates, "role": "=assistant", "content": "array", "phase": "=commentary|=final_answer|"},
	"function_call": {"id": "string", "status": itemStates, "call_id": "string", "name": "string", "arguments": "string"},
	"reasoning":     {"id": "string", "summary": "array", "content": "array|", "encrypted_content": "string|", "status": itemStates + "|"},
	"compaction":    {"id": "string", "encrypted_content": "string"},
}

// item checks an item of an answer.
func (s *strict) item(where string, v json.RawMessage) object {
	it := s.object(where, v, map[string]string{"type": "string"})
	kinds, ok := itemKinds[text(it["type"])]
	if !ok {
		s.failf("%s has the type %s", where, it["type"])
		return it
	}
	s.object(where, v, kinds)
	if text(it["id"]) == "" {
		s.failf("%s has no ID: %s", where, v)
	}
	switch text(it["type"]) {
	case "message":
		s.list(where+".content", it["content"], s.part)
	case "function_call":
		if text(it["call_id"]) == "" || text(it["name"]) == "" || text(it["status"]) == "completed" && !json.Valid([]byte(text(it["arguments"]))) {
			s.failf("%s: %s", where, v)
		}
	case "reasoning":
		s.list(where+".summary", it["summary"], s.part)
	}
	return it
}

// part checks a part of a message or of reasoning.
func (s *strict) part(where string, v json.RawMessage) {
	switch p := s.object(where, v, map[string]string{"type": "string"}); text(p["type"]) {
	case "output_text":
		s.object(where, v, map[string]string{"text": "string", "annotations": "array", "logprobs": "array"})
	case "refusal":
		s.object(where, v, map[string]string{"refusal": "string"})
	case "summary_text":
		s.object(where, v, map[string]string{"text": "string"})
	default:
		s.failf("%s has the type %s", where, p["type"])
	}
}

// inItem are the members of an event about an item that is open.
func inItem(more ...string) map[string]string {
	kinds := map[string]string{"item_id": "string", "output_index": "int"}
	for i := 0; i < len(more); i += 2 {
		kinds[more[i]] = more[i+1]
	}
	return kinds
}

// eventKinds are the 24 events that there are, with their members.
var eventKinds = map[string]map[string]string{
	"response.created": {"response": "object"}, "response.queued": {"response": "object"}, "response.in_progress": {"response": "object"},
	"response.completed": {"response": "object"}, "response.failed": {"response": "object"}, "response.incomplete": {"response": "object"},
	"response.output_item.added":             {"output_index": "int", "item": "object"},
	"response.output_item.done":              {"output_index": "int", "item": "object"},
	"response.content_part.added":            inItem("content_index", "int", "part", "object"),
	"response.content_part.done":             inItem("content_index", "int", "part", "object"),
	"response.output_text.delta":             inItem("content_index", "int", "delta", "string", "logprobs", "array"),
	"response.output_text.done":              inItem("content_index", "int", "text", "string", "logprobs", "array"),
	"response.output_text.annotation.added":  inItem("content_index", "int", "annotation_index", "int", "annotation", "object"),
	"response.refusal.delta":                 inItem("content_index", "int", "delta", "string"),
	"response.refusal.done":                  inItem("content_index", "int", "refusal", "string"),
	"response.function_call_arguments.delta": inItem("delta", "string"),
	"response.function_call_arguments.done":  inItem("arguments", "string"),
	"response.reasoning_summary_part.added":  inItem("summary_index", "int", "part", "object"),
	"response.reasoning_summary_part.done":   inItem("summary_index", "int", "part", "object"),
	"response.reasoning_summary_text.delta":  inItem("summary_index", "int", "delta", "string"),
	"response.reasoning_summary_text.done":   inItem("summary_index", "int", "text", "string"),
	"response.reasoning.delta":               inItem("content_index", "int", "delta", "string"),
	"response.reasoning.done":                inItem("content_index", "int", "text", "string"),
	"error":                                  {"code": "string|null", "message": "string", "param": "string|null", "error": "object"},
}

// told is an item as events tell of it.
type told struct {
	id, kind string
	done     json.RawMessage // whole, once it is
	parts    []*toldPart
	call     toldPart // its arguments
}

// toldPart is a text that comes in pieces.
type toldPart struct {
	text          strings.Builder
	deltas        int
	said, partial bool // the whole was told, and the end of the part
}

// sequence checks the events of one answer, in their order.
type sequence struct {
	strict
	n       int
	created bool
	failing bool // an error was told
	id      string
	items   []*told
	end     object // the last response
	ended   string // its event
}

func (q *sequence) event(data []byte) {
	var head struct {
		Type     string
		Sequence *int `json:"sequence_number"`
	}
	json.Unmarshal(data, &head)
	where := fmt.Sprintf("event %d, %s", q.n, head.Type)
	kinds, ok := eventKinds[head.Type]
	switch {
	case !ok:
		q.failf("%s is not known: %s", where, data)
	case head.Sequence == nil || *head.Sequence != q.n:
		q.failf("%s has another number: %s", where, data)
	case q.ended != "":
		q.failf("%s comes after the end", where)
	case !q.created && head.Type != "response.created" && head.Type != "error":
		q.failf("%s comes first", where)
	case q.failing && head.Type != "response.failed":
		q.failf("%s comes after an error", where)
	}
	q.n++
	e := q.object(where, data, kinds)
	switch {
	case head.Type == "error":
		q.failing = true
		q.object(where+".error", e["error"], map[string]string{"type": "string", "code": "string|null", "message": "string", "param": "string|null"})
	case kinds["response"] != "":
		q.snapshot(where, head.Type, e)
	case kinds["item"] != "":
		q.item(where, head.Type, e)
	case ok:
		q.inside(where, strings.TrimPrefix(head.Type, "response."), e)
	}
}

func (q *sequence) snapshot(where, name string, e object) {
	r := q.response(where+": response", e["response"])
	status := strings.TrimPrefix(name, "response.")
	if status == "created" {
		q.created, q.id, status = true, text(r["id"]), "in_progress|queued"
	}
	if !slices.Contains(strings.Split(status, "|"), text(r["status"])) {
		q.failf("%s: its status is %s", where, r["status"])
	}
	if text(r["id"]) != q.id && q.created {
		q.failf("%s: its ID is %s, and was %s", where, r["id"], q.id)
	}
	var output []json.RawMessage
	json.Unmarshal(r["output"], &output)
	switch name {
	case "response.completed", "response.incomplete":
		if len(output) != len(q.items) {
			q.failf("%s: %d items, and %d were told of", where, len(output), len(q.items))
			break
		}
		for i, it := range q.items {
			if !sameValue(it.done, output[i]) {
				q.failf("%s: item %d is %s, and was told to be %s", where, i, output[i], it.done)
			}
		}
	case "response.failed":
		if !q.failing {
			q.failf("%s without an error before", where)
		}
	default:
		if len(output) != 0 {
			q.failf("%s: there is output already", where)
		}
		return
	}
	q.ended, q.end = name, r
}

func sameValue(a, b json.RawMessage) bool {
	var x, y any
	return json.Unmarshal(a, &x) == nil && json.Unmarshal(b, &y) == nil && fmt.Sprint(x) == fmt.Sprint(y)
}

func (q *sequence) item(where, name string, e object) {
	it := q.strict.item(where+": item", e["item"])
	var index int
	json.Unmarshal(e["output_index"], &index)
	if strings.HasSuffix(name, "added") {
		if index != len(q.items) {
			q.failf("%s: its index is %d, and %d items were before it", where, index, len(q.items))
		}
		for _, other := range q.items {
			if other.id == text(it["id"]) {
				q.failf("%s: its ID was that of another", where)
			}
		}
		if s := text(it["status"]); s != "in_progress" && s != "" {
			q.failf("%s: it begins %s", where, s)
		}
		q.items = append(q.items, &told{id: text(it["id"]), kind: text(it["type"])})
		return
	}
	if index >= len(q.items) || q.items[index].done != nil || q.items[index].id != text(it["id"]) || q.items[index].kind != text(it["type"]) {
		q.failf("%s: no such item is open: %s", where, e["item"])
		return
	}
	open := q.items[index]
	open.done = e["item"]
	if s := text(it["status"]); s == "in_progress" {
		q.failf("%s: it ends %s", where, s)
	}
	var parts []struct{ Text, Refusal string }
	json.Unmarshal(it[map[string]string{"message": "content", "reasoning": "summary"}[open.kind]], &parts)
	if len(parts) != len(open.parts) {
		q.failf("%s: %d parts, and %d were told of", where, len(parts), len(open.parts))
		return
	}
	for i, p := range open.parts {
		if got := parts[i].Text + parts[i].Refusal; got != p.text.String() || !p.said || !p.partial {
			q.failf("%s: part %d is %q, and was told to be %q", where, i, got, p.text.String())
		}
	}
	if open.kind == "function_call" && (open.call.deltas == 0 || !open.call.said || open.call.text.String() != text(it["arguments"])) {
		q.failf("%s: its arguments are %s, and were told in %d pieces to be %q", where, it["arguments"], open.call.deltas, open.call.text.String())
	}
}

// inside is an event about an item that is open.
func (q *sequence) inside(where, name string, e object) {
	var index, at int
	json.Unmarshal(e["output_index"], &index)
	if index >= len(q.items) || q.items[index].done != nil || q.items[index].id != text(e["item_id"]) {
		q.failf("%s: no such item is open: %s, %s", where, e["item_id"], e["output_index"])
		return
	}
	it := q.items[index]
	for _, member := range []string{"content_index", "summary_index"} {
		if v := e[member]; v != nil {
			json.Unmarshal(v, &at)
		}
	}
	p := &it.call
	switch {
	case strings.HasSuffix(name, "part.added"):
		q.part(where+": part", e["part"])
		if at != len(it.parts) {
			q.failf("%s: its index is %d, and %d parts were before it", where, at, len(it.parts))
		}
		it.parts = append(it.parts, &toldPart{})
		return
	case !strings.HasPrefix(name, "function_call") && at >= len(it.parts):
		q.failf("%s: no such part is open: %d", where, at)
		return
	case !strings.HasPrefix(name, "function_call"):
		p = it.parts[at]
	}
	switch {
	case p.partial:
		q.failf("%s: the part is over", where)
	case strings.HasSuffix(name, "delta"):
		p.text.WriteString(text(e["delta"]))
		p.deltas++
	case strings.HasSuffix(name, "part.done"):
		q.part(where+": part", e["part"])
		p.partial = true
	case strings.HasSuffix(name, ".done"):
		whole := text(e["text"]) + text(e["refusal"]) + text(e["arguments"])
		if whole != p.text.String() || p.said {
			q.failf("%s: the whole is %q, and the pieces were %q", where, whole, p.text.String())
		}
		p.said = true
	}
}

// report says what was wrong, and hands out the end.
func (q *sequence) report(t *testing.T) object {
	t.Helper()
	if q.ended == "" {
		q.failf("there is no end after %d events", q.n)
	}
	for _, f := range q.faults {
		t.Error(f)
	}
	return q.end
}

// TestStrict shows that the checker finds what is known to break clients.
func TestStrict(t *testing.T) {
	const good = `{"id":"resp_1","object":"response","created_at":1,"completed_at":2,"status":"completed","model":"m","error":null,"incomplete_details":null,"instructions":null,"previous_response_id":null,` +
		`"output":[{"type":"message","id":"msg_1","status":"completed","role":"assistant","phase":"commentary","content":[{"type":"output_text","text":"Hi","annotations":[],"logprobs":[]}]}],` +
		`"tools":[],"tool_choice":"auto","parallel_tool_calls":true,"temperature":1,"top_p":0.5,"presence_penalty":0,"frequency_penalty":0,"top_logprobs":0,"max_output_tokens":null,"max_tool_calls":null,` +
		`"text":{"format":{"type":"text"}},"reasoning":null,"truncation":"disabled","store":true,"background":false,"service_tier":"default","metadata":{},` +
		`"usage":{"input_tokens":1,"input_tokens_details":{"cached_tokens":0},"output_tokens":1,"output_tokens_details":{"reasoning_tokens":0},"total_tokens":2},"safety_identifier":null,"prompt_cache_key":null}`
	check := func(body string) []string {
		var s strict
		s.response("response", json.RawMessage(body))
		return s.faults
	}
	if faults := check(good); len(faults) > 0 {
		t.Errorf("what is good: %q", faults)
	}
	for old, bad := range map[string]string{
		`"temperature":1`:          `"temperature":null`,
		`"presence_penalty":0,`:    ``,
		`"service_tier":"default"`: `"service_tier":null`,
		`"phase":"commentary"`:     `"phase":null`,
		`,"annotations":[]`:        ``,
		`"id":"msg_1",`:            ``,
		`"completed_at":2`:         `"completed_at":null`,
		`"cached_tokens":0`:        ``,
		`"total_tokens":2`:         `"total_tokens":3`,
		`"error":null`:             `"error":{"code":"x","message":"y"}`,
		`"created_at":1`:           `"created_at":1.5`,
		`"reasoning":null`:         `"reasoning":{"effort":"minimal","summary":null}`,
		`"tools":[]`:               `"tools":[{"type":"web_search"}]`,
		`"output":[`:               `"output":[{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":null},`,
	} {
		if faults := check(strings.Replace(good, old, bad, 1)); len(faults) == 0 {
			t.Errorf("%s instead of %s was not found", bad, old)
		}
	}
	created := `{"type":"response.created","sequence_number":0,"response":` + strings.NewReplacer(`"status":"completed","model"`, `"status":"in_progress","model"`, `"completed_at":2`, `"completed_at":null`).Replace(good[:strings.Index(good, `"output"`)]) + `"output":[],` + good[strings.Index(good, `"tools"`):] + `}`
	const added = `{"type":"response.output_item.added","sequence_number":1,"output_index":0,"item":{"type":"message","id":"msg_1","status":"in_progress","role":"assistant","content":[]}}`
	for name, events := range map[string][]string{
		"created twice in a number": {created, created},
		"a gap in the numbers":      {created, strings.Replace(added, `r":1`, `r":2`, 1)},
		"a gap in the indices":      {created, strings.Replace(added, `x":0`, `x":1`, 1)},
		"an item before all":        {strings.Replace(added, `r":1`, `r":0`, 1)},
		"a name that is not known":  {created, `{"type":"response.reasoning_text.delta","sequence_number":1}`},
		"a piece of no part":        {created, added, `{"type":"response.output_text.delta","sequence_number":2,"item_id":"msg_1","output_index":0,"content_index":0,"delta":"x","logprobs":[]}`},
		"an error without a param":  {created, `{"type":"error","sequence_number":1,"code":null,"message":"x","error":{"type":"x","code":null,"message":"x","param":null}}`},
		"an end without its item":   {created, `{"type":"response.completed","sequence_number":1,"response":` + good + `}`},
	} {
		var q sequence
		for _, e := range events {
			q.event([]byte(e))
		}
		if len(q.faults) == 0 {
			t.Errorf("%s was not found", name)
		}
	}
	var q sequence
	for _, e := range []string{created, added} {
		q.event([]byte(e))
	}
	if len(q.faults) > 0 {
		t.Errorf("what is good: %q", q.faults)
	}
}
