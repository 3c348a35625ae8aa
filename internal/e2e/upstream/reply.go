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
	result  *string  // the tool's result, if one came after that message
	tools   []string // names of the function tools that may be called
	choices int      // how many answers, at least 1
}

// reply is what the model says: text, or calls.
type reply struct {
	text  string
	calls []toolCall
}

type toolCall struct {
	name      string
	arguments string // JSON
}

// command is the order in a prompt to call a tool.
var command = regexp.MustCompile(`\bcall(2?)\s+([A-Za-z0-9_-]+)\s*`)

func say(p prompt) reply {
	if p.result != nil {
		return reply{text: "The tool said: " + firstRunes(*p.result, 80)}
	}
	if len(p.tools) == 0 {
		return reply{text: "Hello from " + p.model + "."}
	}
	if c, n, ok := ordered(p); ok {
		return reply{calls: slices.Repeat([]toolCall{c}, n)}
	}
	return reply{calls: []toolCall{{name: p.tools[0], arguments: "{}"}}}
}

// ordered is the call that the prompt asks for, and how often. The word "call" alone
// is no order: a tool's name or its arguments must follow.
func ordered(p prompt) (c toolCall, n int, ok bool) {
	for _, at := range command.FindAllStringSubmatchIndex(p.user, -1) {
		name, rest := p.user[at[4]:at[5]], p.user[at[1]:]
		arguments, given := leadingObject(rest)
		if !given && !slices.Contains(p.tools, name) {
			continue
		}
		n = 1
		if at[2] < at[3] {
			n = 2
		}
		return toolCall{name: name, arguments: arguments}, n, true
	}
	return toolCall{}, 0, false
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

// usage holds JSON literals, so that a fault can lie as no Go integer could.
type usage struct{ input, output, total string }

// count is a vendor's tokeniser, near enough: four bytes of the request are a token,
// and so is each piece of the answer.
func count(body []byte, r reply) usage {
	in, out := len(body)/4+1, len(r.calls)*8
	if r.text != "" {
		out += len(pieces(r.text))
	}
	return usage{strconv.Itoa(in), strconv.Itoa(out), strconv.Itoa(in + out)}
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
