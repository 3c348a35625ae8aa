package echo

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/limen-gateway/limen/internal/dialect"
	"github.com/limen-gateway/limen/internal/dialect/openaichat"
	"github.com/limen-gateway/limen/internal/dialect/openairesponses"
	"github.com/limen-gateway/limen/internal/sse"
)

func ask(t *testing.T, path, body string) (*http.Response, []byte) {
	t.Helper()
	r, err := http.NewRequest("POST", BaseURL+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := Transport{}.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := io.ReadAll(resp.Body)
	if err != nil || resp.ContentLength != int64(len(answer)) {
		t.Errorf("answer has %d bytes, says %d: %v", len(answer), resp.ContentLength, err)
	}
	return resp, answer
}

func TestWords(t *testing.T) {
	for body, want := range map[string]string{
		`{"messages":[{"role":"user","content":"hi"}]}`:                                                                                                              "hi",
		`{"messages":[{"role":"system","content":"s"},{"role":"user","content":"a"},{"role":"assistant","content":"b"}]}`:                                            "a",
		`{"messages":[{"role":"user","content":"a"},{"role":"user","content":[{"type":"text","text":"b"},{"type":"image_url"},{"type":"text","text":"c é\n\"<"}]}]}`: "b\nc é\n\"<",
		`{"messages":[{"role":"user","content":"a"},{"role":"user","content":[{"type":"image_url"}]}]}`:                                                              "a",
		`{"messages":[{"role":"tool","content":"x"}]}`:                                                                                                               "",
		`{"messages":[{"role":"user","content":null}]}`:                                                                                                              "",
		`{"input":"hi"}`: "hi",
		`{"input":[{"role":"user","content":"a"},{"type":"function_call"},{"type":"message","role":"user","content":[{"type":"input_text","text":"b"}]}]}`: "b",
		`{"input":[]}`:   "",
		`{"input":null}`: "",
		`{"input":5}`:    "",
		`{}`:             "",
	} {
		path := "/chat/completions"
		if strings.Contains(body, `"input"`) {
			path = "/responses"
		}
		quoted, _ := json.Marshal("echo: " + want)
		if _, answer := ask(t, path, body); !bytes.Contains(answer, quoted) {
			t.Errorf("%s: no %s in %s", body, quoted, answer)
		}
	}
}

// What the echo says keeps the contract: an answer passes, and a stream
// passes byte for byte.
func TestAnswersKeepTheContract(t *testing.T) {
	for _, d := range []dialect.Dialect{openaichat.Dialect{}, openairesponses.Dialect{}} {
		t.Run(string(d.Name()), func(t *testing.T) {
			for _, words := range []string{"", "one", "many words é \\\" <>& \\n in %s lines "} {
				question := `"model":"e%d\"","messages":[{"role":"user","content":"` + words + `"}]`
				if d.Name() == dialect.OpenAIResponses {
					question = `"model":"e%d\"","input":"` + words + `"`
				}
				resp, answer := ask(t, d.Path(), `{`+question+`}`)
				usage, known, err := d.Answer(answer)
				if err != nil || !known || usage.Input == 0 || usage.Output == 0 || !json.Valid(answer) || resp.Header.Get("Content-Type") != "application/json" {
					t.Errorf("answer %s: usage %+v, %v, %v", answer, usage, known, err)
				}
				if model, _ := json.Marshal(`e%d"`); !bytes.Contains(answer, model) {
					t.Errorf("model is not %s in %s", model, answer)
				}
				resp, stream := ask(t, d.Path(), `{`+question+`,"stream":true,"stream_options":{"include_usage":true}}`)
				if got := resp.Header.Get("Content-Type"); got != "text/event-stream" {
					t.Errorf("stream has content type %s", got)
				}
				follower := d.Follow(&dialect.Request{Stream: true, WantsUsage: true})
				for f, err := range sse.All(bytes.NewReader(stream), 1<<20) {
					if err != nil {
						t.Fatal(err)
					}
					out, pass, err := follower.Frame(nil, f)
					if err != nil || !pass && !follower.Done() || follower.Done() && !bytes.HasPrefix(out, f.Raw) {
						t.Errorf("frame %s became %s, %v", f.Raw, out, err)
					}
				}
				if streamed := follower.Usage(0); !follower.Done() || streamed.Estimated || streamed.Output != usage.Output {
					t.Errorf("streamed: done %v, usage %+v, want output as of %+v", follower.Done(), streamed, usage)
				}
			}
		})
	}
}

func TestStreamWithoutUsage(t *testing.T) {
	if _, stream := ask(t, "/chat/completions", `{"stream":true,"messages":[]}`); bytes.Contains(stream, []byte("usage")) {
		t.Errorf("usage comes unasked: %s", stream)
	}
}

func TestRefusal(t *testing.T) {
	for _, body := range []string{``, `{`, `[]`, `{"messages":"x"}`, `{"stream":"yes"}`} {
		resp, answer := ask(t, "/chat/completions", body)
		var e struct {
			Error struct{ Message, Type string }
		}
		if err := json.Unmarshal(answer, &e); err != nil || resp.StatusCode != 400 || e.Error.Message == "" || e.Error.Type != "invalid_request_error" {
			t.Errorf("%s: got %d %s", body, resp.StatusCode, answer)
		}
	}
}

func TestModelsAndBrokenBodies(t *testing.T) {
	r, _ := http.NewRequest("GET", BaseURL+"/models", nil)
	resp, err := Transport{}.RoundTrip(r)
	if err != nil || resp.StatusCode != 200 {
		t.Fatalf("got %v, %v", resp, err)
	}
	if list, _ := io.ReadAll(resp.Body); !json.Valid(list) {
		t.Errorf("list is %s", list)
	}
	broken := errors.New("broken")
	r, _ = http.NewRequest("POST", BaseURL+"/responses", io.NopCloser(iotest.ErrReader(broken)))
	if _, err := (Transport{}).RoundTrip(r); !errors.Is(err, broken) {
		t.Errorf("got %v, want that the body broke", err)
	}
}
