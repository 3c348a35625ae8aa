package bedrock

import (
	"testing"

	"github.com/limen-gateway/limen/internal/dialect"
)

func TestCount(t *testing.T) {
	const body = `{"inferenceConfig":{"maxTokens":9},"toolConfig":{"tools":[]},"system":[{"text":"s"}],"outputConfig":{},"additionalModelRequestFields":{"a":1},"messages":[{"role":"user","content":[{"text":"Hi"}]}]}`
	const want = `{"input":{"converse":{"toolConfig":{"tools":[]},"system":[{"text":"s"}],"additionalModelRequestFields":{"a":1},"messages":[{"role":"user","content":[{"text":"Hi"}]}]}}}`
	for path, wantPath := range map[string]string{
		"/model/anthropic.claude-haiku-4-5-20251001-v1%3A0/converse":           "/model/anthropic.claude-haiku-4-5-20251001-v1%3A0/count-tokens",
		"/model/us.anthropic.claude-haiku-4-5-20251001-v1%3A0/converse-stream": "/model/anthropic.claude-haiku-4-5-20251001-v1%3A0/count-tokens",
		"/model/global.anthropic.claude-opus-4-8/converse":                     "/model/anthropic.claude-opus-4-8/count-tokens",
		"/model/small/converse": "/model/small/count-tokens",
	} {
		got := Upstream{}.Count(&dialect.Call{Path: path, Body: []byte(body)})
		if got.Path != wantPath || string(got.Body) != want {
			t.Errorf("%s: got %s %s, want %s %s", path, got.Path, got.Body, wantPath, want)
		}
	}
	if n, err := (Upstream{}).Counted([]byte(`{"inputTokens":17}`)); n != 17 || err != nil {
		t.Errorf("got %d, %v", n, err)
	}
	if _, err := (Upstream{}).Counted([]byte(`{"message":"no"}`)); err == nil {
		t.Error("an answer without a count was taken")
	}
}
