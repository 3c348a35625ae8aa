package openaichat

import (
	"strings"

	"github.com/limen-gateway/limen/internal/dialect"
	"github.com/limen-gateway/limen/internal/jsonedit"
	"github.com/limen-gateway/limen/internal/llm"
)

var _ dialect.Measurer = Upstream{}

// measure counts the tokens of one request, by what OpenAI's cookbook says of
// messages and functions ("How to count tokens with tiktoken").
type measure struct {
	by     *llm.Tokenizer
	of     func(text string) int64
	tokens int64
	guess  bool // there is something that it says nothing of
}

// Measure implements dialect.Measurer.
func (Upstream) Measure(body []byte, by *llm.Tokenizer, of func(text string) int64) (tokens int64, exact bool) {
	m := &measure{by: by, of: of, tokens: by.Reply, guess: by.Guess}
	for name, value := range jsonedit.Members(body) {
		switch string(name) {
		case `"messages"`:
			for message := range jsonedit.Elements(value) {
				m.message(message)
			}
		case `"tools"`:
			m.tools(value)
		case `"response_format"`:
			if schema := dialect.Member(value, "json_schema"); schema != nil {
				m.json(schema)
			}
		}
	}
	return m.tokens, !m.guess
}

func (m *measure) text(value llm.Raw) { m.tokens += m.of(value.Text()) }

// json is for what the model is told in a form that nobody knows: that of JSON
// comes near.
func (m *measure) json(value []byte) {
	m.guess = true
	m.tokens += m.of(string(value))
}

func (m *measure) message(message []byte) {
	m.tokens += m.by.Message
	for name, value := range jsonedit.Members(message) {
		switch value := llm.Raw(value); string(name) {
		case `"role"`, `"refusal"`:
			m.text(value)
		case `"content"`:
			m.content(value)
		case `"name"`:
			m.text(value)
			m.tokens += m.by.Name
		case `"tool_calls"`:
			for call := range jsonedit.Elements(value) {
				m.call(call)
			}
		case `"tool_call_id"`: // which the model does not see
			m.guess = true
		default:
			m.other(value)
		}
	}
}

// content is a text or a list of parts.
func (m *measure) content(value llm.Raw) {
	if value.IsText() {
		m.text(value)
		return
	}
	for part := range jsonedit.Elements(value) {
		switch dialect.Text(part, "type") {
		case "text":
			m.text(dialect.Member(part, "text"))
		case "refusal":
			m.text(dialect.Member(part, "refusal"))
		case "image_url":
			m.image(dialect.Text(part, "image_url", "detail"))
		case "thinking":
			m.guess = true
			m.content(dialect.Member(part, "thinking"))
		default:
			m.media(part)
		}
	}
}

// Tokens of images, which models count in ways of their own: what most of them
// make of one of few details, and of one of 1024 by 1024.
const (
	smallImage = 85
	image      = 765
)

func (m *measure) image(detail string) {
	m.guess = true
	if detail == "low" {
		m.tokens += smallImage
		return
	}
	m.tokens += image
}

// bytesPerToken is a rule of thumb for what cannot be looked into.
const bytesPerToken = 4

func (m *measure) media(part []byte) {
	m.guess = true
	m.tokens += int64(len(part)+bytesPerToken-1) / bytesPerToken
}

// call is one of a function, or of a custom tool.
func (m *measure) call(call []byte) {
	m.guess = true
	m.tokens += m.by.Message
	for _, kind := range []string{"function", "custom"} {
		if said := dialect.Member(call, kind); said != nil {
			m.text(dialect.Member(said, "name"))
			m.text(dialect.Member(said, "arguments"))
			m.text(dialect.Member(said, "input"))
		}
	}
}

// other is a member that some servers have, as for reasoning.
func (m *measure) other(value llm.Raw) {
	if !value.Given() {
		return
	}
	m.guess = true
	if value.IsText() {
		m.text(value)
		return
	}
	m.media(value)
}

// What stands around functions, whatever the model is.
const (
	properties     = 3
	property       = 3
	enumeration    = -3
	enumerated     = 3
	functionsAfter = 12
)

func (m *measure) tools(tools []byte) {
	some := false
	for tool := range jsonedit.Elements(tools) {
		some = true
		function := dialect.Member(tool, "function")
		if function == nil {
			m.json(tool)
			continue
		}
		m.tokens += m.by.Function
		m.line(dialect.Text(function, "name"), dialect.Text(function, "description"))
		m.schema(dialect.Member(function, "parameters"))
	}
	if some {
		m.tokens += functionsAfter
	}
}

// line is how functions and properties are told.
func (m *measure) line(words ...string) {
	m.tokens += m.of(strings.TrimSuffix(strings.Join(words, ":"), "."))
}

func (m *measure) schema(schema []byte) {
	list := dialect.Member(schema, "properties")
	if !plain(list) {
		m.json(schema)
		return
	}
	some := false
	for name, value := range jsonedit.Members(list) {
		if !some {
			some = true
			m.tokens += properties
		}
		m.tokens += property
		if choices := dialect.Member(value, "enum"); choices != nil {
			m.tokens += enumeration
			for choice := range jsonedit.Elements(choices) {
				m.tokens += enumerated
				m.text(choice)
			}
		}
		m.line(llm.Raw(name).Text(), dialect.Text(value, "type"), dialect.Text(value, "description"))
	}
}

// plain reports whether all properties of an object are of those that the rule
// is for: values of a type, of texts to choose from at most.
func plain(list []byte) bool {
	for _, value := range jsonedit.Members(list) {
		for name, value := range jsonedit.Members(value) {
			switch string(name) {
			case `"type"`, `"description"`:
				if jsonedit.KindOf(value) != jsonedit.KindString {
					return false
				}
			case `"enum"`:
				for choice := range jsonedit.Elements(value) {
					if jsonedit.KindOf(choice) != jsonedit.KindString {
						return false
					}
				}
			case `"title"`:
			default:
				return false
			}
		}
	}
	return true
}
