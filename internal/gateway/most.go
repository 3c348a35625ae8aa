package gateway

import (
	"bytes"
	"strings"

	"github.com/limen-gateway/limen/internal/dialect"
	"github.com/limen-gateway/limen/internal/llm"
	"github.com/limen-gateway/limen/internal/price"
	"github.com/limen-gateway/limen/internal/route"
)

// most bounds what a request may use, so that a budget can hold its cost before
// it is made. It is rather too much than too little: what is not used comes
// back with the answer.
type most struct {
	price.Most
	limited   bool // the request says how long an answer may be
	unbounded bool // the prompt may be longer than what is sent
}

// Where nothing better is known, in tokens.
const (
	longestAnswer = 32 << 10 // of a model whose limit is not known
	longestPrompt = 1 << 20  // of a model whose window is not known
	tokensOfImage = 8 << 10  // that is shown by its address
	mostSearches  = 10       // that an upstream makes for one request
)

// mostOf is the most that a request for an answer may use.
func mostOf(p *dialect.Prompt, body []byte) most {
	m := most{limited: p.Limit() > 0}
	m.Prompt = int64(len(body)) // no tokenizer makes more of a text than a token of every byte
	m.Completion = p.Limit()
	m.Sound, m.Pictures = p.HasSound(), p.MakesPictures()
	if p.IsPriority() {
		m.Service = llm.Priority
	}
	if bytes.Contains(p.Tools, []byte(`"web_search`)) {
		m.Searches, m.unbounded = mostSearches, true
	}
	if p.HasPictures() {
		for _, kind := range p.Shows {
			n := int64(bytes.Count(p.Items, []byte(kind)))
			m.Prompt += n * tokensOfImage
			m.unbounded = m.unbounded || n > 0 && !strings.Contains(kind, "image")
		}
	}
	return m
}

// at is the most that a target lets a request use, each of its answers as long
// as it may be.
func (m most) at(t *route.Target, answers int64) price.Most {
	window := t.Context
	if window == 0 {
		window = max(m.Prompt, longestPrompt)
	}
	if m.unbounded || m.Prompt > window {
		m.Prompt = window
	}
	if !m.limited {
		m.Completion = longest(t)
	}
	m.Completion = min(m.Completion, maxCompletion) * min(answers, maxAnswers)
	return m.Most
}

// maxCompletion bounds what a client can ask for, so that products stay
// countable.
const maxCompletion = 1 << 32

// longest is the longest answer of a target, in tokens.
func longest(t *route.Target) int64 {
	if t.MaxOutput == 0 {
		return longestAnswer
	}
	return t.MaxOutput
}
