package anthropic

import (
	"testing"

	"github.com/limen-gateway/limen/internal/dialect"
	"github.com/limen-gateway/limen/internal/llm"
)

// What of an answer has no block here is noted, once, in both forms.
func TestSkips(t *testing.T) {
	picture := &llm.Media{Kind: llm.Image, Data: llm.Raw(`"AA"`), MIME: "image/png"}
	events := []llm.Event{
		llm.Start{}, llm.Open{Kind: llm.MessageItem},
		llm.Delta{Channel: llm.TextChannel, Data: llm.Raw(`"a"`)},
		llm.Delta{Channel: llm.AudioChannel, Data: llm.Raw(`"AA"`)}, llm.Delta{Channel: llm.AudioChannel, Data: llm.Raw(`"BB"`)},
		llm.Annotate{Annotation: llm.Annotation{URL: llm.Raw(`"u"`)}},
		llm.Picture{Media: picture}, llm.Close{},
		llm.Open{Item: 1, Kind: llm.ServerItem, Server: llm.ImageGeneration},
		llm.Close{Item: 1, Server: &llm.ServerCall{Kind: llm.ImageGeneration, Image: picture}},
		llm.Finish{},
	}
	for name, tell := range map[string]func(*dialect.Ask){
		"stream": func(ask *dialect.Ask) {
			e := Dialect{}.Encode(ask)
			for _, event := range events {
				e.Event(nil, event)
			}
			e.End(nil)
		},
		"whole": func(ask *dialect.Ask) { Dialect{}.AppendAnswer(nil, fold(events), ask) },
	} {
		var noted []string
		ask := &dialect.Ask{Request: &llm.Request{}, ID: "1", Noted: func(n llm.Notes) { noted = append(noted, n...) }}
		tell(ask)
		sameNotes(t, name, noted, "skip:audio,skip:citation,skip:image")
	}
}
