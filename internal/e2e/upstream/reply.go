package upstream

import (
	"bytes"
	"encoding/json"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// prompt is what a reply depends on, the same from either operation.
type prompt struct {
	model   string
	stream  bool
	user    string   // text of the last user message
	result  string   // the last one of a tool after that message
	results int      // how many there are
	tools   []string // names of the function tools that may be called
	choices int      // how many answers, at least 1

	image  string          // media type of an image in the last user message
	schema json.RawMessage // of the answer
	think  bool            // thinking was asked for
}

// reply is what the model says: text, or calls.
type reply struct {
	thought string
	text    string
	calls   []toolCall
}

type toolCall struct {
	name      string
	arguments string // JSON
}

// told takes the results in one message. Later messages come first.
func (p *prompt) told(results ...string) {
	if p.results == 0 && len(results) > 0 {
		p.result = results[len(results)-1]
	}
	p.results += len(results)
}

// command is the order in a prompt to call a tool, another one the order that
// follows it.
var (
	command = regexp.MustCompile(`\bcall(2?)\s+([A-Za-z0-9_-]+)\s*`)
	another = regexp.MustCompile(`^\s*then\s+call(2?)\s+([A-Za-z0-9_-]+)\s*`)
)

func say(p prompt) reply {
	r := sayAloud(p)
	if p.think {
		r.thought = "Let me think."
	}
	if len(p.schema) > 0 && len(r.calls) == 0 {
		r.text = string(least(p.schema))
	}
	return r
}

func sayAloud(p prompt) reply {
	calls := ordered(p)
	if len(p.tools) > 0 && len(calls) > 0 {
		return reply{calls: calls}
	}
	if p.results > 0 {
		return reply{text: "The tool said: " + firstRunes(p.result, 80)}
	}
	if len(p.tools) == 0 && p.image != "" {
		return reply{text: "Hello from " + p.model + ". I see an image of " + p.image + "."}
	}
	if len(p.tools) == 0 {
		return reply{text: "Hello from " + p.model + "."}
	}
	return reply{calls: []toolCall{{name: p.tools[0], arguments: "{}"}}}
}

// ordered are the calls that the prompt asks for next: those of the first order
// whose results are not there yet. The word "call" alone is no order: a tool's name
// or its arguments must follow.
func ordered(p prompt) []toolCall {
	for _, at := range command.FindAllStringSubmatchIndex(p.user, -1) {
		name, rest := p.user[at[4]:at[5]], p.user[at[1]:]
		if _, given := leadingObject(rest); given || slices.Contains(p.tools, name) {
			return unanswered(p.user[at[0]:], command, p.results)
		}
	}
	return nil
}

// unanswered are the calls of the orders at the start of s, without those that have
// their results.
func unanswered(s string, order *regexp.Regexp, results int) []toolCall {
	at := order.FindStringSubmatchIndex(s)
	if at == nil {
		return nil
	}
	n := 1
	if at[2] < at[3] {
		n = 2
	}
	name, rest := s[at[4]:at[5]], s[at[1]:]
	arguments, given := leadingObject(rest)
	if results < n {
		return slices.Repeat([]toolCall{{name: name, arguments: arguments}}, n)
	}
	if given {
		rest = rest[len(arguments):]
	}
	return unanswered(rest, another, results-n)
}

// leadingObject is the JSON object at the start of s, byte for byte, or {}.
func leadingObject(s string) (object string, found bool) {
	var raw json.RawMessage
	if !strings.HasPrefix(s, "{") || json.NewDecoder(strings.NewReader(s)).Decode(&raw) != nil {
		return "{}", false
	}
	return string(raw), true
}

func firstRunes(s string, n int) string {
	for i := range s {
		if n == 0 {
			return s[:i]
		}
		n--
	}
	return s
}

// pieces cuts text for deltas: after each space.
func pieces(text string) []string { return strings.SplitAfter(text, " ") }

// usage holds JSON literals, so that a fault can lie as no Go integer could. Input is
// made of fresh, read and written; output is made of spoken and thought.
type usage struct {
	input, output, total string
	fresh, read, written string // from and into the cache
	spoken, thought      string
}

// count is a vendor's tokeniser, near enough: four bytes of the request are a token,
// and so is each piece of the answer.
func count(body []byte, p prompt, r reply) usage {
	in, spoken, thought := len(body)/4+1, len(r.calls)*8, 0
	if r.text != "" {
		spoken += len(pieces(r.text))
	}
	if r.thought != "" {
		thought = len(pieces(r.thought))
	}
	read, written := 0, 0
	if strings.Contains(p.user, "cached") {
		read, written = in/4, in/8
	}
	return usage{
		input: strconv.Itoa(in), output: strconv.Itoa(spoken + thought), total: strconv.Itoa(in + spoken + thought),
		fresh: strconv.Itoa(in - read - written), read: strconv.Itoa(read), written: strconv.Itoa(written),
		spoken: strconv.Itoa(spoken), thought: strconv.Itoa(thought),
	}
}

func lyingUsage(lie string) usage {
	return usage{lie, lie, lie, lie, lie, lie, lie, lie}
}

// text is the text of a message's content: a string, or parts that have a text.
func text(content json.RawMessage) string {
	var s string
	if json.Unmarshal(content, &s) == nil {
		return s
	}
	var parts []struct{ Text string }
	if json.Unmarshal(content, &parts) != nil {
		return ""
	}
	var b strings.Builder
	for _, p := range parts {
		b.WriteString(p.Text)
	}
	return b.String()
}

// dataImage is the media type of an image among the parts of OpenAI's two dialects.
func dataImage(content json.RawMessage) string {
	var parts []struct {
		Type     string
		ImageURL json.RawMessage `json:"image_url"`
	}
	if json.Unmarshal(content, &parts) != nil {
		return ""
	}
	for _, p := range parts {
		var address string
		var object struct{ URL string }
		if json.Unmarshal(p.ImageURL, &address) != nil && json.Unmarshal(p.ImageURL, &object) == nil {
			address = object.URL
		}
		if rest, ok := strings.CutPrefix(address, "data:"); ok {
			kind, _, _ := strings.Cut(rest, ";")
			return kind
		}
	}
	return ""
}

// is says whether a raw JSON value is the string s.
func is(raw json.RawMessage, s string) bool { return bytes.Equal(raw, []byte(strconv.Quote(s))) }

// apiError is the error object of both operations.
type apiError struct {
	Message string  `json:"message"`
	Type    string  `json:"type"`
	Param   *string `json:"param"`
	Code    *string `json:"code"`
}

type errorBody struct {
	Error apiError `json:"error"`
}
