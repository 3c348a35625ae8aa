package provider

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
)

func TestDecodeModels(t *testing.T) {
	tests := []struct {
		name string
		body string
		want []Model
	}{
		{"OpenAI, sorted",
			`{"object":"list","data":[
				{"id":"gpt-x","object":"model","created":1700000000,"owned_by":"openai"},
				{"id":"ft:gpt-4o:acme::b1","object":"model","created":1600000000,"owned_by":"acme"}]}`,
			[]Model{
				{ID: "ft:gpt-4o:acme::b1", Created: 1600000000, OwnedBy: "acme"},
				{ID: "gpt-x", Created: 1700000000, OwnedBy: "openai"},
			}},
		{"Together, bare array",
			` [{"id":"meta/llama","object":"model","created":0,"display_name":"Llama","context_length":131072}]`,
			[]Model{{ID: "meta/llama", Name: "Llama", Context: 131072}}},
		{"Gemini",
			`{"models":[{"name":"models/gemini-x","displayName":"Gemini X","description":"Fast.",
				"inputTokenLimit":1048576,"outputTokenLimit":65536,"thinking":true,
				"supportedGenerationMethods":["generateContent"]}],"nextPageToken":"p"}`,
			[]Model{{ID: "gemini-x", Name: "Gemini X", Description: "Fast.", Context: 1048576, MaxOutput: 65536, Reasoning: Yes}}},
		{"Gemini, what generates no content",
			`{"models":[{"name":"models/embedding-x","supportedGenerationMethods":["embedContent"]},
				{"name":"models/gemini-x","supportedGenerationMethods":["countTokens","generateContent"]}]}`,
			[]Model{{ID: "gemini-x"}}},
		{"Anthropic",
			`{"data":[{"type":"model","id":"claude-x","display_name":"Claude X","created_at":"2026-05-28T00:00:00Z",
				"max_input_tokens":1000000,"max_tokens":128000,"capabilities":{
				"batch":{"supported":true},"structured_outputs":{"supported":true},
				"image_input":{"supported":true},"pdf_input":{"supported":false},
				"thinking":{"supported":true,"types":{"adaptive":{"supported":true},"enabled":{"supported":false}}},
				"effort":{"supported":true,"low":{"supported":true},"medium":{"supported":true},"high":{"supported":true},
				"max":{"supported":false},"xhigh":null}}},
				{"type":"model","id":"claude-old","capabilities":null,"max_input_tokens":null,"max_tokens":null}],
				"has_more":false,"first_id":"claude-x","last_id":"claude-old"}`,
			[]Model{{ID: "claude-old"}, {
				ID: "claude-x", Name: "Claude X", Created: 1779926400, Context: 1000000, MaxOutput: 128000,
				Reasoning: Yes, Structured: Yes, Vision: Yes, Attachments: No,
				Thinking: []string{"adaptive"}, Efforts: []string{"low", "medium", "high"},
			}}},
		{"Gemini in the OpenAI dialect",
			`{"object":"list","data":[{"id":"models/gemini-x","object":"model","owned_by":"google"}]}`,
			[]Model{{ID: "gemini-x", OwnedBy: "google"}}},
		{"Ollama tags",
			`{"models":[{"name":"llama3:latest","model":"llama3:latest","modified_at":"2026-01-01T00:00:00Z","size":4}]}`,
			[]Model{{ID: "llama3:latest", Name: "llama3:latest"}}},
		{"Ollama without models", `{"object":"list","data":null}`, []Model{}},
		{"OpenRouter",
			`{"data":[{"id":"lab/m","name":"Lab: M","created":1700000000,"description":"d","context_length":200000,
				"architecture":{"modality":"text+image->text","input_modalities":["text","image"],"output_modalities":["text"]},
				"top_provider":{"context_length":100000,"max_completion_tokens":32000,"is_moderated":false},
				"supported_parameters":["tools","reasoning","temperature"]}]}`,
			[]Model{{ID: "lab/m", Name: "Lab: M", Created: 1700000000, Description: "d", Context: 200000, MaxOutput: 32000,
				Input: []string{"text", "image"}, Output: []string{"text"},
				Tools: Yes, Reasoning: Yes, Structured: No, Vision: Yes, Temperature: Yes}}},
		{"vLLM",
			`{"object":"list","data":[{"id":"Qwen/Qwen3-8B","object":"model","created":1700000000,"owned_by":"vllm",
				"root":"Qwen/Qwen3-8B","parent":null,"max_model_len":40960,"permission":[{"id":"p"}]}]}`,
			[]Model{{ID: "Qwen/Qwen3-8B", Created: 1700000000, OwnedBy: "vllm", Context: 40960}}},
		{"llama.cpp, a path that looks like Gemini's",
			`{"models":[{"name":"models/m.gguf","model":"models/m.gguf","capabilities":["completion"]}],
				"object":"list","data":[{"id":"models/m.gguf","owned_by":"llamacpp","meta":{"n_ctx_train":4096}}]}`,
			[]Model{{ID: "models/m.gguf", OwnedBy: "llamacpp"}}},
		{"Groq", `{"data":[{"id":"m","context_window":131072,"max_completion_tokens":8192}]}`,
			[]Model{{ID: "m", Context: 131072, MaxOutput: 8192}}},
		{"Mistral",
			`{"data":[{"id":"m","name":"M","max_context_length":32768,
				"capabilities":{"completion_chat":true,"function_calling":true,"vision":false}}]}`,
			[]Model{{ID: "m", Name: "M", Context: 32768, Tools: Yes, Vision: No}}},
		{"Moonshot", `{"data":[{"id":"kimi","context_length":262144,"supports_reasoning":true,"supports_image_in":true}]}`,
			[]Model{{ID: "kimi", Context: 262144, Reasoning: Yes, Vision: Yes}}},
		{"Anthropic", `{"data":[{"type":"model","id":"claude-x","display_name":"Claude X","created_at":"2025-02-19T00:00:00Z"}],"has_more":false}`,
			[]Model{{ID: "claude-x", Name: "Claude X", Created: 1739923200}}},
		{"numbers of all kinds",
			`[{"id":"a","context_length":"8192","created":1700000000.7},{"id":"b","context_length":-1,"max_model_len":4096},
				{"id":"c","context_length":1e300,"created":null},{"id":"d","context_length":true}]`,
			[]Model{{ID: "a", Context: 8192, Created: 1700000000}, {ID: "b", Context: 4096}, {ID: "c"}, {ID: "d"}}},
		{"members of a wrong type",
			`{"data":[{"id":"a","owned_by":7,"architecture":"moe","capabilities":["x"],"supported_parameters":"tools",
				"description":{},"name":"A","context_window":1024}]}`,
			[]Model{{ID: "a", Name: "A", Context: 1024}}},
		{"entries that are none", `{"data":[null,"a",7,[],{},{"name":"no ID"},{"id":""},{"id":5},{"id":"ok"}]}`,
			[]Model{{ID: "ok"}}},
		{"the first of two counts", `[{"id":"a","name":"one"},{"id":"b"},{"id":"a","name":"two"}]`,
			[]Model{{ID: "a", Name: "one"}, {ID: "b"}}},
		{"empty array", `[]`, []Model{}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got, err := DecodeModels([]byte(test.body))
			if err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(got, test.want) {
				t.Errorf("got  %+v\nwant %+v", got, test.want)
			}
		})
	}
}

func TestPages(t *testing.T) {
	for body, want := range map[string]string{
		`{"data":[],"has_more":true,"last_id":"b"}`:  "b",
		`{"data":[],"has_more":false,"last_id":"b"}`: "",
		`{"models":[],"nextPageToken":"t"}`:          "t",
		`{"object":"list","data":[]}`:                "",
		`[]`:                                         "",
		`{"nextPageToken":`:                          "",
	} {
		if got := NextPage([]byte(body)); got != want {
			t.Errorf("%s: got %q, want %q", body, got, want)
		}
	}
	got := Join([]Model{{ID: "b", Name: "first"}}, []Model{{ID: "a"}, {ID: "b"}})
	if want := []Model{{ID: "a"}, {ID: "b", Name: "first"}}; !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestDecodeModelsRefuses(t *testing.T) {
	many := `[` + strings.Repeat(`{"id":"a"},`, maxModels) + `{"id":"b"}]`
	bodies := map[string]string{
		"nothing":      ``,
		"HTML":         `<!doctype html><title>Sign in</title>`,
		"text":         `Ollama is running`,
		"a number":     `7`,
		"null":         `null`,
		"an error":     `{"error":{"message":"no","type":"invalid_request_error"}}`,
		"no array":     `{"data":{"models":[]}}`,
		"half a list":  `{"data":[{"id":"a"},{"id":`,
		"two lists":    `[] []`,
		"10 MB":        `[{"id":"a","x":"` + strings.Repeat("x", 10<<20) + `"}]`,
		"many entries": many,
		"depth":        strings.Repeat("[", 100_000),
	}
	for name, body := range bodies {
		if got, err := DecodeModels([]byte(body)); err == nil {
			t.Errorf("%s: got %d models, want an error", name, len(got))
		}
	}
}

// A list may be as long as the bound on models allows.
func TestDecodeModelsLong(t *testing.T) {
	var body bytes.Buffer
	body.WriteByte('[')
	for i := range maxModels {
		fmt.Fprintf(&body, `{"id":"m%05d"},`, maxModels-1-i)
	}
	body.Truncate(body.Len() - 1)
	body.WriteByte(']')
	got, err := DecodeModels(body.Bytes())
	if err != nil || len(got) != maxModels || got[0].ID != "m00000" {
		t.Errorf("got %d models, %v", len(got), err)
	}
}

func FuzzDecodeModels(f *testing.F) {
	for _, seed := range []string{
		`{"object":"list","data":[{"id":"gpt-x","object":"model","created":1700000000,"owned_by":"openai"}]}`,
		`[{"id":"a","context_length":"8192"},{"id":"a"},null,7]`,
		`{"models":[{"name":"models/gemini-x","supportedGenerationMethods":[],"inputTokenLimit":1}]}`,
		`{"models":[{"model":"llama3:latest"}]}`,
		`{"data":[{"id":"m","supported_parameters":["tools"],"architecture":{"input_modalities":["","image"]}}]}`,
		`{"data":null}`, `{"error":"x"}`, `<html>`, ``,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		models, err := DecodeModels(body)
		if err != nil {
			if models != nil {
				t.Errorf("models beside error %v", err)
			}
			return
		}
		if !json.Valid(body) {
			t.Errorf("a list in %q, which is no JSON", body)
		}
		if !slices.IsSortedFunc(models, func(a, b Model) int { return strings.Compare(a.ID, b.ID) }) {
			t.Errorf("not sorted: %v", models)
		}
		for i, m := range models {
			if m.ID == "" || i > 0 && m.ID == models[i-1].ID {
				t.Errorf("model %d has no ID of its own: %+v", i, m)
			}
			if m.Created < 0 || m.Context < 0 || m.MaxOutput < 0 || slices.Contains(m.Input, "") {
				t.Errorf("impossible: %+v", m)
			}
		}
	})
}
