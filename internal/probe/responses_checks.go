package probe

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"time"
)

const (
	responsesPath = "/responses"

	respBody       = `{"model":"{{model}}","input":"` + question + `","store":false}`
	respStreamBody = `{"model":"{{model}}","input":"` + question + `","store":false,"stream":true}`
	respTool       = `"tools":[{"type":"function","name":"weather","description":"The weather in a city","strict":false,"parameters":{"type":"object","properties":{"city":{"type":"string"}},"required":["city"],"additionalProperties":false}}]`
	respToolBody   = `{"model":"{{model}}","input":[{"role":"user","content":"` + order + `"}],` + respTool + `,"store":false,"stream":true}`
	respResultBody = `{"model":"{{model}}","input":[{"role":"user","content":"` + order + `"},"{{items}}",{"type":"function_call_output","call_id":"{{call_id}}","output":"sunny"}],` + respTool + `,"store":false,"stream":true}`
	respFirstBody  = `{"model":"{{model}}","input":"` + question + `","store":true}`
	respNextBody   = `{"model":"{{model}}","input":"Once more.","previous_response_id":"{{id}}","store":true}`
	respLostBody   = `{"model":"{{model}}","input":"Once more.","previous_response_id":"resp_doctor_{{run}}","store":false}`
)

var (
	responsesUsers = []string{"codex", "opencode (@ai-sdk/openai)", "vercel-ai (its default)"}
	stateUsers     = []string{"clients that send previous_response_id", "openai-agents", "vercel-ai (item_reference)"}
)

// stateIgnored is the worst way not to have state: the model loses what was
// said, and nobody is told.
var stateIgnored = &fault{"an unknown previous_response_id is ignored: the model would go on without what was said", "keep responses, or refuse previous_response_id with HTTP 400", stateUsers}

func (v *visit) responses(ctx context.Context) (verdict, error) {
	_, r, found, err := v.wholeResponse(ctx, respBody)
	if err == nil && len(found.faults) == 0 {
		found.detail = r.say() + " " + found.detail
	}
	return found, err
}

// wholeResponse asks for a response that is no stream.
func (v *visit) wholeResponse(ctx context.Context, body string) (said, response, verdict, error) {
	a, err := v.post(ctx, responsesPath, body)
	if err != nil {
		return said{}, response{}, verdict{}, err
	}
	if err := a.served("POST "+responsesPath, responsesUsers); err != nil {
		return said{}, response{}, verdict{}, err
	}
	s, r, faults := readResponse(a)
	return s, r, verdict{"in " + a.millis(), faults}, nil
}

func (v *visit) responsesStream(ctx context.Context) (verdict, error) {
	_, found, err := v.streamResponse(ctx, respStreamBody)
	return found, err
}

func (v *visit) streamResponse(ctx context.Context, body string) (said, verdict, error) {
	a, err := v.post(ctx, responsesPath, body)
	if err != nil {
		return said{}, verdict{}, err
	}
	if err := a.served("streams of responses", responsesUsers); err != nil {
		return said{}, verdict{}, err
	}
	st, err := a.events()
	if err != nil {
		return said{}, verdict{}, err
	}
	s, _, faults := readEvents(st.events, st.cut != nil)
	return s, verdict{fmt.Sprintf("%s in %s", plural(len(st.events), "event"), a.millis()), faults}, nil
}

func (v *visit) responsesTool(ctx context.Context) (verdict, error) {
	v.said = said{}
	s, found, err := v.streamResponse(ctx, respToolBody)
	if err != nil || len(found.faults) > 0 {
		return found, withoutTools(err)
	}
	v.said = s
	return called(s, found)
}

func (v *visit) responsesToolResult(ctx context.Context) (verdict, error) {
	s, found, err := v.streamResponse(ctx, respResultBody)
	if err == nil && len(found.faults) == 0 {
		found.detail = fmt.Sprintf("%q", shorten(s.text))
	}
	return found, err
}

// responsesContinued checks the state that the server keeps: a response goes on
// from another, and none from one that is not there.
func (v *visit) responsesContinued(ctx context.Context) (verdict, error) {
	first, _, found, err := v.wholeResponse(ctx, respFirstBody)
	if err != nil || len(found.faults) > 0 {
		return found, err
	}
	defer v.forget(ctx, first.id)
	lost, err := v.post(ctx, responsesPath, respLostBody)
	if err != nil {
		return verdict{}, err
	}
	if lost.status == http.StatusOK {
		return verdict{}, stateIgnored
	}
	_, code, shaped := lost.failure()
	if !shaped || !lost.refuses() && !lost.missing() {
		return verdict{}, &fault{fmt.Sprintf("an unknown previous_response_id is answered with HTTP %d", lost.status), "refuse it with HTTP 400, code previous_response_not_found, in OpenAI's shape", stateUsers}
	}
	v.said = first
	a, err := v.post(ctx, responsesPath, respNextBody)
	if err != nil {
		return verdict{}, err
	}
	if message, _, _ := a.failure(); a.refuses() || a.missing() {
		return verdict{}, &errAbsent{"the server keeps no responses: " + orNothing(message), "", stateUsers}
	}
	if err := a.served("state", stateUsers); err != nil {
		return verdict{}, err
	}
	next, r, faults := readResponse(a)
	defer v.forget(ctx, next.id)
	found = verdict{"previous_response_id goes on; an unknown one is refused with " + orNothing(code), faults}
	if r.Previous != first.id {
		found.faults = append(found.faults, &fault{"the response does not name the one it goes on from", "send previous_response_id back in the response", nil})
	}
	return found, nil
}

// forget deletes what a check left with the server.
func (v *visit) forget(ctx context.Context, id string) {
	if id == "" {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	v.doURL(ctx, v.Base+responsesPath+"/"+url.PathEscape(id), call{method: http.MethodDelete}) // it expires anyway
}
