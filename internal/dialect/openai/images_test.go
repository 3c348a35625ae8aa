package openai

import (
	"testing"

	"github.com/limen-gateway/limen/internal/llm"
)

func TestImageRequest(t *testing.T) {
	wish := []llm.Member{{Name: "size", Value: llm.Raw(`"auto"`)}}
	if got := string(ImageRequest("m", llm.Raw(`"a \"cat\""`), wish, true)); got != `{"model":"m","prompt":"a \"cat\"","n":1,"size":"auto","response_format":"b64_json"}` {
		t.Errorf("got %s", got)
	}
	if got := string(ImageRequest("m", llm.Raw(`"x"`), nil, false)); got != `{"model":"m","prompt":"x","n":1}` {
		t.Errorf("got %s", got)
	}
}

func TestImageAnswer(t *testing.T) {
	for body, want := range map[string]struct {
		data, mime string
		used       llm.Usage
		known      bool
	}{
		`{"data":[{"b64_json":"AA=="}]}`: {`"AA=="`, "image/png", llm.Usage{}, false},
		`{"data":[{"b64_json":"AA=="}],"output_format":"jpeg","usage":{"input_tokens":3,"output_tokens":4}}`: {`"AA=="`, "image/jpeg", llm.Usage{Input: 3, Output: 4}, true},
		`{"data":[{"url":"data:image/webp;base64,AA=="}]}`:                                                   {`"AA=="`, "image/webp", llm.Usage{}, false},
		`{"data":[{"url":"https://x.example/a.png"}]}`:                                                       {},
		`{"data":[{"b64_json":"A A"}]}`:                                                                      {},
		`{"data":[{"b64_json":7}]}`:                                                                          {},
		`{"data":[]}`:                                                                                        {},
		`{"data":`:                                                                                           {},
		`[]`:                                                                                                 {},
	} {
		image, used, known, err := ImageAnswer([]byte(body))
		if (err != nil) != (want.data == "") || err == nil && (string(image.Data) != want.data || image.MIME != want.mime || used != want.used || known != want.known) {
			t.Errorf("%s: got %+v %+v %t %v", body, image, used, known, err)
		}
	}
}

func TestRefusesInline(t *testing.T) {
	for body, want := range map[string]bool{
		`{"error":{"message":"Unknown parameter: 'response_format'.","param":"response_format"}}`: true,
		`{"error":{"message":"Unknown parameter: 'response_format'."}}`:                           true,
		`{"error":{"message":"Your prompt was blocked."}}`:                                        false,
	} {
		if got := RefusesInline(UpstreamError(400, []byte(body), 0)); got != want {
			t.Errorf("%s: got %t", body, got)
		}
	}
}
