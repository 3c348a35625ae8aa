package openai

import (
	"strings"

	"github.com/limen-gateway/limen/internal/dialect"
	"github.com/limen-gateway/limen/internal/jsonedit"
	"github.com/limen-gateway/limen/internal/llm"
)

// ImagesPath is the operation that makes images, below the base URL.
const ImagesPath = "/images/generations"

// inlineMember asks for the image itself in place of its address. Servers of
// one kind give an address without it, those of the other refuse it.
const inlineMember = "response_format"

// ImageRequest is the body of a request for one image.
func ImageRequest(model string, prompt llm.Raw, wish []llm.Member, inline bool) []byte {
	w := jsonedit.NewWriter(nil)
	w.BeginObject()
	w.SetText("model", model)
	w.SetRaw("prompt", prompt)
	w.SetInt("n", 1)
	for _, m := range wish {
		w.SetRaw(m.Name, m.Value)
	}
	if inline {
		w.SetText(inlineMember, "b64_json")
	}
	w.EndObject()
	return w.Bytes()
}

// RefusesInline reports whether an upstream refused to be asked for the image
// itself.
func RefusesInline(e *llm.Error) bool {
	return e.Status >= 400 && e.Status < 500 && (e.Param == inlineMember || strings.Contains(e.Message, inlineMember))
}

// ImageAnswer reads the one image of an answer, and what it used. known is
// false when nothing is said of that. The image has memory of its own.
func ImageAnswer(body []byte) (image *llm.Media, used llm.Usage, known bool, err error) {
	var whole jsonedit.Object
	if err := jsonedit.Scan(body, jsonedit.NewFields(), &whole); err != nil {
		return nil, used, false, dialect.NotAnAnswer(err)
	}
	used, known = DecodeUsage(dialect.Member(body, "usage"))
	format := dialect.Text(body, "output_format")
	for v := range jsonedit.Elements(dialect.Member(body, "data")) {
		data := dialect.Member(v, "b64_json")
		if head, inline, ok := strings.Cut(dialect.Text(v, "url"), ";base64,"); data == nil && ok && strings.HasPrefix(head, "data:image/") {
			data, format = llm.Quote(inline), strings.TrimPrefix(head, "data:image/")
		}
		switch {
		case isBase64(data):
			return &llm.Media{Kind: llm.Image, Data: data.Clone(), MIME: imageType(format)}, used, known, nil
		case dialect.Member(v, "url") != nil:
			return nil, used, known, llm.Errorf(llm.UpstreamInvalid, "The upstream gave the address of an image in place of the image.")
		}
	}
	return nil, used, known, llm.Errorf(llm.UpstreamInvalid, "The upstream gave no image.")
}

func imageType(format string) string {
	switch format {
	case "jpeg", "webp":
		return "image/" + format
	}
	return "image/png"
}

// isBase64 reports whether a text can be base64.
func isBase64(text llm.Raw) bool {
	if !text.IsText() || text.Blank() {
		return false
	}
	for _, c := range text.Inner() {
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '+', c == '/', c == '=':
		default:
			return false
		}
	}
	return true
}
