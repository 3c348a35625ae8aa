package gemini

import (
	"strings"
	"unicode/utf8"

	"github.com/limen-gateway/limen/internal/dialect"
	"github.com/limen-gateway/limen/internal/jsonedit"
	"github.com/limen-gateway/limen/internal/llm"
)

// sources cites what the answer rests on. It is known at the end of an answer
// only, and counts in bytes of the text.
func (c *choice) sources(dst []llm.Event) []llm.Event {
	found := groundingSources(c.grounding)
	var list []llm.Annotation
	for support := range jsonedit.Elements(dialect.Member(c.grounding, "groundingSupports")) {
		segment := dialect.Member(support, "segment")
		for index := range jsonedit.Elements(dialect.Member(support, "groundingChunkIndices")) {
			n, ok := count(index)
			if !ok || n < 0 || n >= int64(len(found)) || found[n].URL == nil {
				continue
			}
			list = append(list, cite(found[n], segment))
		}
	}
	for cited := range jsonedit.Elements(citationList(c.citations)) {
		if uri := text(dialect.Member(cited, "uri")); !uri.Blank() {
			list = append(list, cite(llm.Source{URL: uri, Title: text(dialect.Member(cited, "title"))}, cited))
		}
	}
	if len(list) == 0 {
		return dst
	}
	if c.open < 0 || c.kind != llm.MessageItem {
		return append(dst, llm.Note{Notes: llm.Notes{"skip:annotations"}})
	}
	said := c.answered()
	for _, a := range list {
		a.Start, a.End = c.points+codePoints(said, a.Start), c.points+codePoints(said, a.End)
		dst = append(dst, llm.Annotate{Item: c.open, Annotation: a})
	}
	return dst
}

// answered is the text that the present request brought.
func (c *choice) answered() string {
	text, _ := jsonedit.Unquote(append(append([]byte{'"'}, c.text[c.from:]...), '"'))
	return text
}

// citationList is the list of citationMetadata, under either of its names.
func citationList(metadata llm.Raw) llm.Raw {
	if list := dialect.Member(metadata, "citationSources"); list != nil {
		return list
	}
	return dialect.Member(metadata, "citations")
}

// cite makes an annotation whose offsets still are bytes.
func cite(s llm.Source, segment llm.Raw) llm.Annotation {
	start, _ := count(dialect.Member(segment, "startIndex"))
	end, _ := count(dialect.Member(segment, "endIndex"))
	return llm.Annotation{URL: s.URL, Title: s.Title, Start: int(start), End: int(end)}
}

// codePoints is the offset in code points for one in bytes.
func codePoints(s string, bytes int) int {
	return utf8.RuneCountInString(s[:min(max(bytes, 0), len(s))])
}

// groundingSources are the chunks of grounding; what is no source of a known
// form keeps its place.
func groundingSources(grounding llm.Raw) (list []llm.Source) {
	for chunk := range jsonedit.Elements(dialect.Member(grounding, "groundingChunks")) {
		var s llm.Source
		for name, value := range jsonedit.Members(chunk) {
			switch string(name) {
			case `"web"`, `"retrievedContext"`, `"maps"`, `"image"`:
				s = llm.Source{URL: text(dialect.Member(value, "uri")), Title: text(dialect.Member(value, "title"))}
				if s.URL == nil {
					s.URL = text(dialect.Member(value, "sourceUri"))
				}
			}
		}
		list = append(list, s)
	}
	return list
}

// search tells of the search behind grounding, as a call of its own.
func (c *choice) search(dst []llm.Event) []llm.Event {
	var queries []llm.Raw
	for q := range jsonedit.Elements(dialect.Member(c.grounding, "webSearchQueries")) {
		if q := llm.Raw(q); q.IsText() {
			queries = append(queries, q)
		}
	}
	if len(queries) == 0 {
		return dst
	}
	call := &llm.ServerCall{Kind: llm.WebSearch, Queries: queries}
	for _, s := range groundingSources(c.grounding) {
		if s.URL != nil {
			call.Sources = append(call.Sources, s)
		}
	}
	o := c.next(llm.ServerItem)
	o.Server = llm.WebSearch
	c.open = -1
	return append(dst, o, llm.Close{Item: o.Item, Server: call})
}

// appendLogprobs appends the elements of logprobsResult as Chat Completions
// writes them. Which bytes a token stands for is not known: it may be half a
// character.
func appendLogprobs(list []llm.Raw, result llm.Raw) []llm.Raw {
	if !result.Given() {
		return list
	}
	var tops [][]byte
	for top := range jsonedit.Elements(dialect.Member(result, "topCandidates")) {
		tops = append(tops, dialect.Member(top, "candidates"))
	}
	i := 0
	for chosen := range jsonedit.Elements(dialect.Member(result, "chosenCandidates")) {
		var w jsonedit.Writer
		w.BeginObject()
		writeToken(&w, chosen)
		w.Array("top_logprobs")
		if i < len(tops) {
			for top := range jsonedit.Elements(tops[i]) {
				w.BeginObject()
				writeToken(&w, top)
				w.EndObject()
			}
		}
		w.EndArray()
		w.EndObject()
		list = append(list, w.Bytes())
		i++
	}
	return list
}

func writeToken(w *jsonedit.Writer, candidate []byte) {
	token, logprob := text(dialect.Member(candidate, "token")), dialect.Member(candidate, "logProbability")
	if token == nil {
		token = llm.Raw(`""`)
	}
	if logprob.Kind() != jsonedit.KindNumber {
		logprob = llm.Raw("0") // the API leaves out what is zero
	}
	w.SetRaw("token", token)
	w.SetRaw("logprob", logprob)
	w.Name("bytes")
	w.Null()
}

// kindOf is the kind of a medium by its type.
func kindOf(mime string) llm.MediaKind {
	switch kind, _, _ := strings.Cut(mime, "/"); kind {
	case "image":
		return llm.Image
	case "audio":
		return llm.Audio
	case "video":
		return llm.Video
	}
	return llm.File
}
