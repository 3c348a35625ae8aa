package dialect

import (
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/limen-gateway/limen/internal/llm"
)

// cite tells which sources of the gateway's own searches a message names. It
// does so at the message's end: a URL may come in pieces.
func (l *loop) cite(out []llm.Event, item llm.Item, to int) []llm.Event {
	m, ok := item.(*llm.Message)
	if !ok || len(l.sources) == 0 {
		return out
	}
	var text strings.Builder
	for _, p := range m.Parts {
		switch p := p.(type) {
		case *llm.Text:
			text.WriteString(p.Text.Text())
		case *llm.Refusal:
			return out
		}
	}
	for _, note := range citations(text.String(), l.sources) {
		out = append(out, llm.Annotate{Item: to, Annotation: note})
	}
	return out
}

// citations are the places of a text that name a source by its URL: a link as
// a whole, or the URL alone.
func citations(text string, sources []llm.Source) (notes []llm.Annotation) {
	urls := make([]string, len(sources))
	for i, s := range sources {
		urls[i] = s.URL.Text()
	}
	from, points := 0, 0 // points are the characters before from
	at := func(place int) int {
		points += utf8.RuneCountInString(text[from:place])
		from = place
		return points
	}
	for next := 0; ; {
		i := strings.Index(text[next:], "http")
		if i < 0 {
			return notes
		}
		begin := next + i
		found := named(text[begin:], urls)
		if found < 0 {
			next = begin + len("http")
			continue
		}
		end := begin + len(urls[found])
		next = end
		if open := linkBefore(text[from:begin]); open >= 0 && strings.HasPrefix(text[end:], ")") {
			begin, end = from+open, end+1
		}
		note := llm.Annotation{URL: sources[found].URL, Title: sources[found].Title}
		note.Start, note.End = at(begin), at(end)
		notes = append(notes, note)
		next = max(next, end)
	}
}

// named is the URL that a text begins with, the longest of them; -1 is none.
func named(text string, urls []string) int {
	best := -1
	for i, url := range urls {
		if url != "" && strings.HasPrefix(text, url) && endsURL(text[len(url):]) && (best < 0 || len(url) > len(urls[best])) {
			best = i
		}
	}
	return best
}

// endsURL reports whether what follows a URL is no part of it. A mark at the
// end of a sentence is none.
func endsURL(rest string) bool {
	rest = strings.TrimLeft(rest, ".,;:!?'*_")
	r, _ := utf8.DecodeRuneInString(rest)
	return rest == "" || slices.Contains([]rune(" \t\r\n)]}>\"`|<(["), r) || r >= utf8.RuneSelf
}

// linkBefore is where a link begins whose URL comes next: "[title](". It is -1
// where there is none.
func linkBefore(text string) int {
	head, ok := strings.CutSuffix(text, "](")
	if !ok {
		return -1
	}
	depth := 1
	for i := len(head) - 1; i >= 0; i-- {
		switch head[i] {
		case ']':
			depth++
		case '[':
			if depth--; depth == 0 {
				return i
			}
		case '\n':
			return -1
		}
	}
	return -1
}
