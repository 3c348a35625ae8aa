package cli

import (
	"bytes"
	"errors"
	"testing"

	"github.com/limen-gateway/limen/internal/probe"
)

var results = []probe.Result{
	{Check: "chat", Status: probe.Pass, Detail: `"pong" in 1 ms`},
	{Check: "chat, streamed", Status: probe.Fail, Detail: "no finish_reason came", Change: "send one", Clients: []string{"cline", "opencode"}},
	{Check: "responses", Status: probe.Absent, Detail: "the server has no POST /responses (HTTP 404)", Clients: []string{"codex"}},
	{Check: "responses, streamed", Status: probe.Skip, Detail: "there is no responses to check it with"},
}

func told(json, live bool) (stdout, stderr string, err error) {
	var out, progress bytes.Buffer
	r := report{stdout: &out, stderr: &progress, json: json, live: live, width: 26, found: probe.Found{Base: "http://h/v1", Model: "m"}}
	for _, result := range results {
		r.begin(result.Check)
		r.done(result)
	}
	err = r.finish()
	return out.String(), progress.String(), err
}

// TestDiagnosisIsStable holds the shape that scripts read.
func TestDiagnosisIsStable(t *testing.T) {
	const want = `{
  "ok": false,
  "url": "http://h/v1",
  "model": "m",
  "passed": 1,
  "failed": 1,
  "absent": 1,
  "skipped": 1,
  "checks": [
    {
      "check": "chat",
      "status": "pass",
      "detail": "\"pong\" in 1 ms"
    },
    {
      "check": "chat, streamed",
      "status": "fail",
      "detail": "no finish_reason came",
      "change": "send one",
      "clients": [
        "cline",
        "opencode"
      ]
    },
    {
      "check": "responses",
      "status": "absent",
      "detail": "the server has no POST /responses (HTTP 404)",
      "clients": [
        "codex"
      ]
    },
    {
      "check": "responses, streamed",
      "status": "skip",
      "detail": "there is no responses to check it with"
    }
  ]
}
`
	got, progress, err := told(true, false)
	if got != want {
		t.Errorf("got %s", got)
	}
	if progress != "" {
		t.Errorf("stderr: got %q, want nothing", progress)
	}
	var exit *exitError
	if !errors.As(err, &exit) || exit.code != exitFailure || !exit.silent {
		t.Errorf("got %#v, want a silent failure", err)
	}
}

func TestReportForPeople(t *testing.T) {
	const want = `ok      chat                       "pong" in 1 ms
FAIL    chat, streamed             no finish_reason came
          to change                send one
          who breaks               cline, opencode
absent  responses                  the server has no POST /responses (HTTP 404)
          who uses it              codex
skip    responses, streamed        there is no responses to check it with
`
	got, progress, err := told(false, false)
	if got != want {
		t.Errorf("got\n%s", got)
	}
	if progress != "" {
		t.Errorf("stderr, which is no terminal: got %q", progress)
	}
	if err == nil || err.Error() != "1 of 4 checks failed" {
		t.Errorf("got %v", err)
	}
	if _, progress, _ = told(false, true); progress == "" || !bytes.HasSuffix([]byte(progress), []byte("responses, streamed\r\x1b[K")) {
		t.Errorf("a terminal: got %q", progress)
	}
}
