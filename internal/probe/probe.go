// Package probe checks an OpenAI-compatible API from the outside, the way a
// client meets it. It knows nothing of Limen's inside and works on any server.
package probe

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/limen-gateway/limen/internal/sse"
)

// The outcomes of a check.
const (
	Pass = "pass"
	Fail = "fail"
	Skip = "skip"
)

// Result is the outcome of one check.
type Result struct {
	Check  string `json:"check"`
	Status string `json:"status"`
	Detail string `json:"detail"` // what was seen; on failure, what to change
}

// Target is what is checked.
type Target struct {
	Base   string // base URL, ending in /v1
	Key    string
	Model  string // the first of the list when empty
	Client *http.Client
}

// errSkip ends a check that does not apply.
type errSkip struct{ why string }

func (e errSkip) Error() string { return e.why }

// Run makes all checks in order and reports each as it is done. Without a list
// of models there is nothing to go on with.
func (t *Target) Run(ctx context.Context, report func(Result)) {
	checks := []struct {
		name  string
		check func(context.Context) (string, error)
		vital bool
	}{
		{"list models", t.listModels, true},
		{"retrieve a model", t.retrieveModel, false},
		{"chat", t.chat, false},
		{"chat, streamed", t.chatStream, false},
		{"responses", t.responses, false},
		{"responses, streamed", t.responsesStream, false},
		{"wrong key is refused", t.wrongKey, false},
		{"unknown model is refused", t.unknownModel, false},
		{"broken JSON is refused", t.brokenJSON, false},
	}
	for _, c := range checks {
		detail, err := c.check(ctx)
		result := Result{Check: c.name, Status: Pass, Detail: detail}
		var skip errSkip
		switch {
		case errors.As(err, &skip):
			result.Status, result.Detail = Skip, skip.why
		case err != nil:
			result.Status, result.Detail = Fail, err.Error()
		}
		report(result)
		if err != nil && c.vital {
			return
		}
	}
}

// maxBody bounds what is read of an answer.
const maxBody = 16 << 20

// answer is what a call brought.
type answer struct {
	status int
	media  string
	body   []byte
	took   time.Duration
}

func (t *Target) call(ctx context.Context, method, path, key string, body any) (*answer, error) {
	var reader io.Reader
	switch b := body.(type) {
	case nil:
	case string:
		reader = strings.NewReader(b)
	default:
		text, err := json.Marshal(b)
		if err != nil {
			return nil, err
		}
		reader = bytes.NewReader(text)
	}
	req, err := http.NewRequestWithContext(ctx, method, t.Base+path, reader)
	if err != nil {
		return nil, fmt.Errorf("the base URL %q cannot be used: %w", t.Base, err)
	}
	req.Header.Set("Authorization", "Bearer "+key)
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	begun := time.Now()
	resp, err := t.Client.Do(req)
	if err != nil {
		return nil, fmt.Errorf("no answer: %w; is the address right, and does the gateway run?", err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxBody))
	if err != nil {
		return nil, fmt.Errorf("the answer broke off: %w", err)
	}
	media, _, _ := strings.Cut(resp.Header.Get("Content-Type"), ";")
	return &answer{status: resp.StatusCode, media: media, body: text, took: time.Since(begun)}, nil
}

// failure is an error in the shape that SDKs read.
type failure struct {
	Error *struct {
		Message string  `json:"message"`
		Code    *string `json:"code"`
	} `json:"error"`
}

// want checks status and type of an answer, and decodes it.
func (a *answer) want(status int, into any) error {
	if a.status != status {
		var f failure
		if json.Unmarshal(a.body, &f) == nil && f.Error != nil {
			return fmt.Errorf("HTTP %d: %s", a.status, f.Error.Message)
		}
		return fmt.Errorf("HTTP %d instead of %d, and no error in OpenAI's shape; does the base URL end in /v1?", a.status, status)
	}
	if a.media != "application/json" {
		return fmt.Errorf("content type %q instead of application/json", a.media)
	}
	if err := json.Unmarshal(a.body, into); err != nil {
		return fmt.Errorf("the answer is no JSON: %w", err)
	}
	return nil
}

func (t *Target) listModels(ctx context.Context) (string, error) {
	a, err := t.call(ctx, http.MethodGet, "/models", t.Key, nil)
	if err != nil {
		return "", err
	}
	var list struct {
		Data []struct {
			ID string `json:"id"`
		} `json:"data"`
	}
	if err := a.want(http.StatusOK, &list); err != nil {
		return "", err
	}
	if len(list.Data) == 0 {
		return "", errors.New("no model is visible to this key")
	}
	if t.Model == "" {
		t.Model = list.Data[0].ID
	}
	return fmt.Sprintf("%d models; the checks use %s", len(list.Data), t.Model), nil
}

func (t *Target) retrieveModel(ctx context.Context) (string, error) {
	a, err := t.call(ctx, http.MethodGet, "/models/"+t.Model, t.Key, nil)
	if err != nil {
		return "", err
	}
	var model struct {
		ID string `json:"id"`
	}
	if err := a.want(http.StatusOK, &model); err != nil {
		return "", err
	}
	if model.ID != t.Model {
		return "", fmt.Errorf("asked for %s, got %s", t.Model, model.ID)
	}
	return "", nil
}

const question = "Reply with the one word: pong"

func (t *Target) chatBody(stream bool) map[string]any {
	body := map[string]any{"model": t.Model, "messages": []map[string]string{{"role": "user", "content": question}}}
	if stream {
		body["stream"] = true
		body["stream_options"] = map[string]bool{"include_usage": true}
	}
	return body
}

// supported turns the refusal of a dialect into a skipped check.
func (a *answer) supported() error {
	var f failure
	if a.status == http.StatusBadRequest && json.Unmarshal(a.body, &f) == nil && f.Error != nil && f.Error.Code != nil && *f.Error.Code == "unsupported_by_upstream" {
		return errSkip{f.Error.Message}
	}
	return nil
}

func (t *Target) chat(ctx context.Context) (string, error) {
	a, err := t.call(ctx, http.MethodPost, "/chat/completions", t.Key, t.chatBody(false))
	if err == nil {
		err = a.supported()
	}
	if err != nil {
		return "", err
	}
	var completion struct {
		Choices []struct {
			Message struct {
				Content string `json:"content"`
			} `json:"message"`
			FinishReason string `json:"finish_reason"`
		} `json:"choices"`
		Usage *struct {
			Total int `json:"total_tokens"`
		} `json:"usage"`
	}
	if err := a.want(http.StatusOK, &completion); err != nil {
		return "", err
	}
	if len(completion.Choices) == 0 || completion.Choices[0].FinishReason == "" {
		return "", errors.New("the answer has no choice with a finish_reason")
	}
	detail := fmt.Sprintf("%q in %d ms", shorten(completion.Choices[0].Message.Content), a.took.Milliseconds())
	if completion.Usage == nil {
		return detail + "; the provider sent no usage, so it is estimated", nil
	}
	return detail, nil
}

func (t *Target) chatStream(ctx context.Context) (string, error) {
	a, err := t.call(ctx, http.MethodPost, "/chat/completions", t.Key, t.chatBody(true))
	if err == nil {
		err = a.supported()
	}
	if err != nil {
		return "", err
	}
	frames, err := a.frames()
	if err != nil {
		return "", err
	}
	finished := false
	for _, f := range frames {
		if strings.Contains(string(f), `"finish_reason":"`) || strings.Contains(string(f), `"finish_reason": "`) {
			finished = true
		}
	}
	switch {
	case !finished:
		return "", errors.New("the stream has no finish_reason; clients take it for broken")
	case string(frames[len(frames)-1]) != "[DONE]":
		return "", errors.New("the stream does not end with [DONE]")
	}
	return fmt.Sprintf("%d events in %d ms", len(frames), a.took.Milliseconds()), nil
}

// frames takes a stream apart.
func (a *answer) frames() ([][]byte, error) {
	if a.status != http.StatusOK || a.media != "text/event-stream" {
		var ignored json.RawMessage
		if err := a.want(http.StatusOK, &ignored); err != nil {
			return nil, err
		}
		return nil, errors.New("a streaming request was answered with plain JSON; clients take that for an empty answer")
	}
	var frames [][]byte
	for f, err := range sse.All(bytes.NewReader(a.body), maxBody) {
		if err != nil {
			return nil, err
		}
		if f.Data != nil {
			frames = append(frames, bytes.Clone(f.Data))
		}
	}
	if len(frames) == 0 {
		return nil, errors.New("the stream has no events")
	}
	return frames, nil
}

func (t *Target) responses(ctx context.Context) (string, error) {
	a, err := t.call(ctx, http.MethodPost, "/responses", t.Key, map[string]any{"model": t.Model, "input": question, "store": false})
	if err == nil {
		err = a.supported()
	}
	if err != nil {
		return "", err
	}
	var response struct {
		Status string            `json:"status"`
		Output []json.RawMessage `json:"output"`
	}
	if err := a.want(http.StatusOK, &response); err != nil {
		return "", err
	}
	if response.Status != "completed" || len(response.Output) == 0 {
		return "", fmt.Errorf("status %q with %d items", response.Status, len(response.Output))
	}
	return fmt.Sprintf("%s in %d ms", response.Status, a.took.Milliseconds()), nil
}

func (t *Target) responsesStream(ctx context.Context) (string, error) {
	a, err := t.call(ctx, http.MethodPost, "/responses", t.Key, map[string]any{"model": t.Model, "input": question, "store": false, "stream": true})
	if err == nil {
		err = a.supported()
	}
	if err != nil {
		return "", err
	}
	frames, err := a.frames()
	if err != nil {
		return "", err
	}
	var first, last struct {
		Type string `json:"type"`
	}
	ends := frames
	if string(ends[len(ends)-1]) == "[DONE]" {
		ends = ends[:len(ends)-1]
	}
	if len(ends) == 0 {
		return "", errors.New("the stream has no events")
	}
	if err := errors.Join(json.Unmarshal(ends[0], &first), json.Unmarshal(ends[len(ends)-1], &last)); err != nil {
		return "", fmt.Errorf("an event is no JSON: %w", err)
	}
	if first.Type != "response.created" || last.Type != "response.completed" && last.Type != "response.incomplete" {
		return "", fmt.Errorf("the stream begins with %q and ends with %q", first.Type, last.Type)
	}
	return fmt.Sprintf("%d events in %d ms", len(frames), a.took.Milliseconds()), nil
}

// refused checks that a mistake is answered in a way that SDKs understand.
func (a *answer) refused(status int) (string, error) {
	var f failure
	switch {
	case a.status != status:
		return "", fmt.Errorf("HTTP %d instead of %d", a.status, status)
	case json.Unmarshal(a.body, &f) != nil || f.Error == nil || f.Error.Message == "":
		return "", errors.New("the error is not in OpenAI's shape")
	}
	return fmt.Sprintf("HTTP %d", status), nil
}

func (t *Target) wrongKey(ctx context.Context) (string, error) {
	a, err := t.call(ctx, http.MethodGet, "/models", "sk-no-such-key", nil)
	if err != nil {
		return "", err
	}
	return a.refused(http.StatusUnauthorized)
}

func (t *Target) unknownModel(ctx context.Context) (string, error) {
	body := t.chatBody(false)
	body["model"] = "no-such-model-" + t.Model
	a, err := t.call(ctx, http.MethodPost, "/chat/completions", t.Key, body)
	if err != nil {
		return "", err
	}
	return a.refused(http.StatusNotFound)
}

func (t *Target) brokenJSON(ctx context.Context) (string, error) {
	a, err := t.call(ctx, http.MethodPost, "/chat/completions", t.Key, `{"model":`)
	if err != nil {
		return "", err
	}
	return a.refused(http.StatusBadRequest)
}

// shorten keeps a text on one short line.
func shorten(s string) string {
	s = strings.Join(strings.Fields(s), " ")
	if r := []rune(s); len(r) > 40 {
		return string(r[:40]) + "…"
	}
	return s
}
