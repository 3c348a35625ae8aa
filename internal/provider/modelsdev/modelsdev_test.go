package modelsdev

import (
	"strings"
	"testing"

	"github.com/limen-gateway/limen/internal/provider"
)

// text is what the facts say of rows, a line each.
func text(rows []provider.Row) string {
	var b strings.Builder
	for _, r := range rows {
		m := r.Model
		b.WriteString(strings.Join([]string{r.Vendor, m.ID, m.Name, m.Prices.String()}, " ") + "\n")
	}
	return b.String()
}

// Both forms of the list say the same.
func TestRead(t *testing.T) {
	const (
		gpt = `"id":"gpt","name":"GPT","release_date":"2025-08","knowledge":"2024-09",
			"tool_call":true,"reasoning":false,"attachment":true,"limit":{"context":400,"output":100,"input":300},
			"modalities":{"input":["text","image"],"output":["text"]},
			"reasoning_options":[{"type":"toggle"},{"type":"effort","values":["low","high"]}],"cost":{"input":1.25}`
		glm  = `"id":"glm","name":"First","release_date":"2026-01-02"`
		more = `"id":"glm","name":"Second","release_date":"2026-01-02"`
	)
	for name, list := range map[string]string{
		"lines": `{"provider":"openai",` + gpt + "}\n" + `{"provider":"zai",` + glm + "}\n" + `{"provider":"zhipuai",` + more + "}",
		"api.json": `{"zhipuai":{"id":"zhipuai","models":{"glm":{` + more + `}}},"openai":{"name":"OpenAI","models":{"gpt":{` + gpt + `}}},
			"zai":{"models":{"glm":{` + glm + `}}},"empty":{"models":{}}}`,
	} {
		rows, skipped, err := Read(strings.NewReader(list))
		if err != nil || skipped != 0 {
			t.Fatalf("%s: %d skipped, %v", name, skipped, err)
		}
		if got, want := text(rows), "openai gpt GPT 1.25\nzhipu glm First \nzhipu glm Second \n"; got != want {
			t.Errorf("%s: got\n%s\nwant\n%s", name, got, want)
			continue
		}
		m := rows[0].Model
		if m.Created != 1754006400 || m.Knowledge != "2024-09" || m.Context != 400 || m.MaxOutput != 100 || strings.Join(m.Input, ",") != "text,image" ||
			strings.Join(m.Output, ",") != "text" || strings.Join(m.Efforts, ",") != "low,high" || m.Tools != provider.Yes ||
			m.Reasoning != provider.No || m.Attachments != provider.Yes || m.Structured != provider.Unknown || m.Temperature != provider.Unknown {
			t.Errorf("%s: got %+v", name, m)
		}
	}
}

func TestReadPrices(t *testing.T) {
	for cost, want := range map[string]string{
		`{"input":3,"output":15.0,"cache_read":0.3,"cache_write":3.75,"reasoning":20,"input_audio":4.44,"output_audio":8.89}`: "3,15,0.3,3.75,20,4.44,8.89",
		`{"input":0,"output":0}`: "0,0",
		`{"output":1}`:           ",1",
		`{"input":null,"output":"2","cache_read":-1,"cache_write":1e99,"reasoning":[]}`:                               "",
		`{"input":0.3,"output":1.2,"cached_input":0.03,"cached_write":0.375}`:                                         "0.3,1.2,0.03,0.375",
		`{"input":2,"request":5,"citation":2}`:                                                                        "2",
		`{"input":2,"context_over_200k":{"input":4,"output":5}}`:                                                      "2;200000:4,5",
		`{"input":2,"tiers":[{"tier":{"type":"context","size":256000},"input":4},{"input":3,"tier":{"size":32000}}]}`: "2;32000:3;256000:4",
		`{"input":2,"tiers":[{"tier":{"size":272000},"input":4}],"context_over_200k":{"input":4}}`:                    "2;272000:4",
		`{"input":2,"tiers":[{"tier":{"type":"hour","size":3},"input":4},{"tier":{"size":0},"input":4}]}`:             "2",
		`{"input":2,"tiers":{}}`: "",
		`"free"`:                 "",
		`{}`:                     "",
		`null`:                   "",
	} {
		rows, _, err := Read(strings.NewReader(`{"provider":"p","id":"m","release_date":"2026-01-02","cost":` + cost + `}`))
		if err != nil || len(rows) != 1 || rows[0].Model.Prices.String() != want {
			t.Errorf("%s: got %q, %v, want %q", cost, text(rows), err, want)
		}
	}
}

// What is no model is skipped, and the rest is read.
func TestReadSkips(t *testing.T) {
	const good = `"good":{"release_date":"2026-01-02"}`
	for _, bad := range []string{`1`, `{}`, `{"release_date":"soon"}`, `{"release_date":"2026-01-02","limit":{"context":"much"}}`, `{"release_date":"2026-01-02","limit":{"output":-1}}`} {
		rows, skipped, err := Read(strings.NewReader(`{"p":{"models":{` + good + `,"bad":` + bad + `}}}`))
		if err != nil || skipped != 1 || text(rows) != "p good good \n" {
			t.Errorf("%s: %d skipped, %v, %v", bad, skipped, rows, err)
		}
	}
	rows, skipped, err := Read(strings.NewReader(`{"p":{"models":{` + good + `}},"q":7}`))
	if err != nil || skipped != 1 || len(rows) != 1 {
		t.Errorf("a provider that is none: %d skipped, %v, %v", skipped, rows, err)
	}
}

func TestReadRefuses(t *testing.T) {
	const line = `{"provider":"p","id":"m","release_date":"2026-01-02"}`
	for list, want := range map[string]string{
		"":                                  "empty",
		" \n":                               "empty",
		"<!DOCTYPE html><html>":             "web page",
		"\n<html>":                          "web page",
		line + "\n" + line[:30]:             "ends in the middle",
		`{"p":{"models":{"m":{`:             "ends in the middle",
		line + " nonsense":                  "not JSON",
		"models: many":                      "not JSON",
		"[]":                                "no list of models.dev",
		"{}":                                "no model",
		`{"data":[{"id":"gpt"}]}`:           "no model",
		`{"provider":"p"}`:                  "no model",
		line + strings.Repeat(" ", MaxSize): "more than",
	} {
		rows, _, err := Read(strings.NewReader(list))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.60q: %d models, %v, want %q", list, len(rows), err, want)
		}
	}
}
