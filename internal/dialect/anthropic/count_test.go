package anthropic

import (
	"testing"

	"github.com/limen-gateway/limen/internal/dialect"
)

func TestCount(t *testing.T) {
	const rest = `"system":"s","messages":[{"role":"user","content":"Hi"}]`
	for _, tt := range []struct{ path, body, wantPath, want string }{
		{"/messages", `{"model":"claude-x","max_tokens":9,"stream":true,` + rest + `}`, "/messages/count_tokens", `{"model":"claude-x",` + rest + `}`},
		{
			"/claude-x@20250929:streamRawPredict", `{"anthropic_version":"vertex-2023-10-16","anthropic_beta":["b"],"max_tokens":9,` + rest + `}`,
			"/count-tokens:rawPredict", `{"model":"claude-x@20250929","anthropic_version":"vertex-2023-10-16","anthropic_beta":["b"],` + rest + `}`,
		},
	} {
		got := Upstream{}.Count(&dialect.Call{Path: tt.path, Body: []byte(tt.body)})
		if got.Path != tt.wantPath || string(got.Body) != tt.want {
			t.Errorf("%s: got %s %s, want %s %s", tt.path, got.Path, got.Body, tt.wantPath, tt.want)
		}
	}
	if n, err := (Upstream{}).Counted([]byte(`{"input_tokens":17}`)); n != 17 || err != nil {
		t.Errorf("got %d, %v", n, err)
	}
}
