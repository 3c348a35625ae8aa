package budget

import (
	"encoding/json"
	"testing"
)

// A budget in a request is one that can be, and says nothing else.
func TestUnmarshalRefuses(t *testing.T) {
	for _, text := range []string{
		`{"amount":5,"period":"month","spent":1}`, `{"amount":5,"period":"month","id":"x"}`, `{"amount":-1,"period":"month"}`, `{"amount":5}`,
		`{"amount":0.0000000001,"period":"day"}`, `{"amount":9223372037,"period":"day"}`, `"5"`, `"5/year"`, `"5/day@Mars"`, `null`, `5`, `[]`,
	} {
		var b Budget
		if err := json.Unmarshal([]byte(text), &b); err == nil {
			t.Errorf("%s is read as %s", text, b)
		}
	}
	for _, text := range []string{`{"amount":5,"period":"week","zone":"Europe/Berlin","soft":true}`, `"5/week@Europe/Berlin soft"`} {
		var b Budget
		if err := json.Unmarshal([]byte(text), &b); err != nil || b.String() != "5/week@Europe/Berlin soft" {
			t.Errorf("%s is read as %s, %v", text, b, err)
		}
	}
}
