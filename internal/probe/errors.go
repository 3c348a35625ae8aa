package probe

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
)

// wrongSecret is a key that no server knows.
const wrongSecret = "sk-no-such-key"

// Faults of failures.
var (
	errorText  = &fault{"the error is a text, not an object", shapeAdvice, []string{"openai-go", "vercel-ai"}}
	errorShape = &fault{"the error is not in OpenAI's shape, so clients show no message", shapeAdvice, []string{"openai-go", "langchain", "vercel-ai"}}
	errorMedia = &fault{"the error's content type is not application/json", "send 'Content-Type: application/json' with errors too", nil}
	errorPage  = &fault{"the error is a web page", "answer failures of the API with JSON, those of the router and of proxies too", []string{"openai-go", "openai-js", "langchain", "vercel-ai"}}
)

// refused checks that a mistake is answered in a way that clients understand.
func (a *answer) refused(want int, code string) (verdict, error) {
	var found verdict
	switch {
	case a.status >= http.StatusInternalServerError:
		found.faults = append(found.faults, &fault{fmt.Sprintf("HTTP %d instead of %d", a.status, want), "answer what will fail the same way again with a status below 500: Codex asks 30 times after one above, SDKs three times", []string{"codex", "openai-js", "openai-python", "langchain", "vercel-ai"}})
	case a.status != want:
		found.faults = append(found.faults, &fault{fmt.Sprintf("HTTP %d instead of %d", a.status, want), fmt.Sprintf("answer with HTTP %d: the SDKs take the kind of error from the status", want), []string{"openai-js", "openai-python"}})
	}
	_, got, shaped := a.failure()
	switch {
	case a.page():
		found.faults = append(found.faults, errorPage)
	case shaped && a.media != "application/json":
		found.faults = append(found.faults, errorMedia)
	case shaped:
	case textError(a.body):
		found.faults = append(found.faults, errorText)
	default:
		found.faults = append(found.faults, errorShape)
	}
	found.detail = fmt.Sprintf("HTTP %d", a.status)
	if got != "" && got != "null" {
		found.detail += ", " + got
	}
	if code != "" && got != code && len(found.faults) == 0 {
		found.detail += fmt.Sprintf(" (OpenAI says %s)", code)
	}
	return found, nil
}

func textError(body []byte) bool {
	var e struct {
		Error *string `json:"error"`
	}
	return json.Unmarshal(body, &e) == nil && e.Error != nil
}

func (v *visit) wrongKey(ctx context.Context) (verdict, error) {
	body, err := v.fill(chatBody)
	if err != nil {
		return verdict{}, err
	}
	a, err := v.do(ctx, call{method: http.MethodPost, path: chatPath, header: v.usual(wrongSecret), body: body})
	if err != nil {
		return verdict{}, err
	}
	if a.status == http.StatusOK {
		return verdict{}, &errAbsent{"the server takes any key", "whoever reaches it can use it: put it behind a gateway, or let it ask for a key", []string{"whoever shares the network"}}
	}
	return a.refused(http.StatusUnauthorized, "invalid_api_key")
}

func (v *visit) unknownModel(ctx context.Context) (verdict, error) {
	a, err := v.post(ctx, chatPath, `{"model":"no-such-model-{{model}}","messages":[{"role":"user","content":"`+question+`"}]}`)
	if err != nil {
		return verdict{}, err
	}
	if a.status == http.StatusOK {
		return verdict{}, &errAbsent{"the server answers to any model name", "refuse models that are not there with HTTP 404, code model_not_found: a mistyped name goes unseen", []string{"openai-js", "openai-python"}}
	}
	return a.refused(http.StatusNotFound, "model_not_found")
}

func (v *visit) brokenJSON(ctx context.Context) (verdict, error) {
	a, err := v.do(ctx, call{method: http.MethodPost, path: chatPath, body: `{"model":`})
	if err != nil {
		return verdict{}, err
	}
	if a.status == http.StatusOK {
		return verdict{}, &fault{"broken JSON is answered with HTTP 200", "refuse what is no JSON with HTTP 400", nil}
	}
	return a.refused(http.StatusBadRequest, "")
}
