package sdk

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"strings"
	"testing"

	"github.com/anthropics/anthropic-sdk-go"
	anthropicoption "github.com/anthropics/anthropic-sdk-go/option"
	anthropicparam "github.com/anthropics/anthropic-sdk-go/packages/param"
	"github.com/aws/aws-sdk-go-v2/service/bedrockruntime/schemas"
	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/packages/param"
	"github.com/openai/openai-go/v3/responses"
	"google.golang.org/genai"

	"github.com/limen-gateway/limen/internal/e2e/upstream"
)

// The models of the upstream, by the dialect in which the gateway calls them.
var targets = []struct {
	provider, speaks, base, vendor string
	models                         []string
}{
	{"chat", "openai-chat", "/v1", "openai", []string{"gpt-4.1", "gpt-5.2"}},
	{"responses", "openai-responses", "/v1", "openai", []string{"gpt-4.1", "gpt-5.2"}},
	{"claude", "anthropic", "/v1", "anthropic", []string{"claude-3-5-haiku", "claude-sonnet-4-5", "claude-opus-4-8"}},
	{"google", "gemini", "/v1beta", "gemini", []string{"gemini-2.5-flash", "gemini-3.5-flash"}},
	{"aws", "bedrock", "", "bedrock", []string{"amazon.nova-pro-v1:0", "anthropic.claude-sonnet-4-5", "anthropic.claude-opus-4-8"}},
}

// A tongue is one of the dialects of clients, as its SDK speaks it.
type tongue struct {
	name, speaks string
	params       reflect.Type
	requests     map[string]string // without the model
	// ask sends a request, follow reads a stream to its end. They give the answer or
	// the events as they came.
	ask    func(t *testing.T, g running, body []byte) (answer string, err error)
	follow func(t *testing.T, g running, body []byte) (events []string, err error)
	// answer and event are their types; nil where clients read more than these have.
	answer, event reflect.Type
	// items are what the client appends to the member history: the answer, and the
	// results of its calls or one more question.
	items   func(answer string) []string
	history string
}

// refused are requests that the gateway does not translate for some upstreams.
var refused = map[string]bool{
	"stop openai-responses":   true, // it has no stop sequences
	"format claude-3-5-haiku": true, // it has no structured output
}

const (
	image    = `iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==`
	schema   = `{"type":"object","properties":{"city":{"type":"string","description":"Where."},"days":{"type":"array","items":{"type":"integer"}}},"required":["city","days"],"additionalProperties":false}`
	question = `call2 weather {\"city\":\"Rome\",\"days\":[1]}`
)

var tongues = []tongue{
	{
		name:    "chat",
		speaks:  "openai-chat",
		params:  reflect.TypeFor[openai.ChatCompletionNewParams](),
		history: "messages",
		requests: map[string]string{
			"text":                   `{"messages":[{"role":"user","content":"Hi"}]}`,
			"settings":               `{"messages":[{"role":"system","content":"Be brief."},{"role":"user","content":"Hi"},{"role":"assistant","content":"Hello."},{"role":"user","content":[{"type":"text","text":"How"},{"type":"text","text":"are you?"}]}],"max_completion_tokens":4000,"temperature":0.5,"seed":7,"user":"u1","metadata":{"a":"b"}}`,
			"top_p":                  `{"messages":[{"role":"developer","content":[{"type":"text","text":"Be brief."}]},{"role":"user","content":"Hi"}],"top_p":0.5,"service_tier":"default"}`,
			"image":                  `{"messages":[{"role":"user","content":[{"type":"text","text":"What is it?"},{"type":"image_url","image_url":{"url":"data:image/png;base64,` + image + `","detail":"low"}}]}]}`,
			"tools":                  `{"messages":[{"role":"user","content":"` + question + `"}],"tool_choice":"auto","parallel_tool_calls":true,` + chatTools,
			"required":               `{"messages":[{"role":"user","content":"` + question + `"}],"tool_choice":"required","parallel_tool_calls":false,` + chatTools,
			"named":                  `{"messages":[{"role":"user","content":"` + question + `"}],"tool_choice":{"type":"function","function":{"name":"weather"}},` + chatTools,
			"none":                   `{"messages":[{"role":"user","content":"` + question + `"}],"tool_choice":"none",` + chatTools,
			"format":                 `{"messages":[{"role":"user","content":"Hi"}],"response_format":{"type":"json_schema","json_schema":{"name":"answer","description":"An answer.","strict":true,"schema":` + schema + `}}}`,
			"thinking":               `{"messages":[{"role":"system","content":"Be brief."},{"role":"user","content":"` + question + `"}],"reasoning_effort":"high",` + chatTools,
			"thinking without tools": `{"messages":[{"role":"user","content":"Hi"}],"reasoning_effort":"low"}`,
			"no thinking":            `{"messages":[{"role":"user","content":"Hi"}],"reasoning_effort":"none"}`,
		},
		ask: func(t *testing.T, g running, body []byte) (string, error) {
			a, err := g.openai().Chat.Completions.New(t.Context(), param.Override[openai.ChatCompletionNewParams](json.RawMessage(body)))
			if err != nil {
				return "", err
			}
			return a.Choices[0].Message.RawJSON(), nil
		},
		follow: func(t *testing.T, g running, body []byte) (events []string, err error) {
			stream := g.openai().Chat.Completions.NewStreaming(t.Context(), param.Override[openai.ChatCompletionNewParams](json.RawMessage(body)))
			for stream.Next() {
				events = append(events, stream.Current().RawJSON())
			}
			return events, stream.Err()
		},
		items: func(answer string) []string {
			var message openai.ChatCompletionMessage
			json.Unmarshal([]byte(answer), &message)
			given := message.ToParam()
			// What the SDK does not know of it, agents give back all the same.
			if details := message.JSON.ExtraFields["reasoning_details"]; details.Raw() != "" {
				given.OfAssistant.SetExtraFields(map[string]any{"reasoning_details": json.RawMessage(details.Raw())})
			}
			said, _ := json.Marshal(given)
			items := []string{string(said)}
			for _, call := range message.ToolCalls {
				items = append(items, fmt.Sprintf(`{"role":"tool","tool_call_id":%q,"content":"sunny"}`, call.ID))
			}
			if len(items) == 1 {
				items = append(items, `{"role":"user","content":"And then?"}`)
			}
			return items
		},
	},
	{
		name:    "responses",
		speaks:  "openai-responses",
		params:  reflect.TypeFor[responses.ResponseNewParams](),
		history: "input",
		requests: map[string]string{
			"text":        `{"input":[{"role":"user","content":"Hi"}]}`,
			"plain":       `{"input":"Hi","store":false}`,
			"settings":    `{"instructions":"Be brief.","input":[{"role":"user","content":"Hi"},{"role":"assistant","content":"Hello."},{"type":"message","role":"user","content":[{"type":"input_text","text":"How"},{"type":"input_text","text":"are you?"}]}],"max_output_tokens":4000,"temperature":0.5,"user":"u1","metadata":{"a":"b"},"store":false}`,
			"top_p":       `{"input":[{"role":"developer","content":"Be brief."},{"role":"user","content":"Hi"}],"top_p":0.5,"service_tier":"default","text":{"verbosity":"low"}}`,
			"image":       `{"input":[{"role":"user","content":[{"type":"input_text","text":"What is it?"},{"type":"input_image","image_url":"data:image/png;base64,` + image + `","detail":"low"}]}]}`,
			"tools":       `{"input":[{"role":"user","content":"` + question + `"}],"tool_choice":"auto","parallel_tool_calls":true,` + responsesTools,
			"required":    `{"input":[{"role":"user","content":"` + question + `"}],"tool_choice":"required","parallel_tool_calls":false,` + responsesTools,
			"named":       `{"input":[{"role":"user","content":"` + question + `"}],"tool_choice":{"type":"function","name":"weather"},` + responsesTools,
			"none":        `{"input":[{"role":"user","content":"` + question + `"}],"tool_choice":"none",` + responsesTools,
			"format":      `{"input":[{"role":"user","content":"Hi"}],"text":{"format":{"type":"json_schema","name":"answer","description":"An answer.","strict":true,"schema":` + schema + `}}}`,
			"thinking":    `{"instructions":"Be brief.","input":[{"role":"user","content":"` + question + `"}],"store":false,"include":["reasoning.encrypted_content"],"reasoning":{"effort":"high","summary":"auto"},` + responsesTools,
			"no thinking": `{"input":"Hi","reasoning":{"effort":"none"}}`,
		},
		ask: func(t *testing.T, g running, body []byte) (string, error) {
			a, err := g.openai().Responses.New(t.Context(), param.Override[responses.ResponseNewParams](json.RawMessage(body)))
			if err != nil {
				return "", err
			}
			return a.RawJSON(), nil
		},
		follow: func(t *testing.T, g running, body []byte) (events []string, err error) {
			stream := g.openai().Responses.NewStreaming(t.Context(), param.Override[responses.ResponseNewParams](json.RawMessage(body)))
			for stream.Next() {
				events = append(events, stream.Current().RawJSON())
			}
			return events, stream.Err()
		},
		items: func(answer string) (items []string) {
			var response responses.Response
			json.Unmarshal([]byte(answer), &response)
			calls := false
			for _, item := range response.Output {
				items = append(items, item.RawJSON())
			}
			for _, item := range response.Output {
				if item.Type == "function_call" {
					items = append(items, fmt.Sprintf(`{"type":"function_call_output","call_id":%q,"output":"sunny"}`, item.CallID))
					calls = true
				}
			}
			if !calls {
				items = append(items, `{"role":"user","content":"And then?"}`)
			}
			return items
		},
	},
	{
		name:    "messages",
		speaks:  "anthropic",
		answer:  reflect.TypeFor[anthropic.Message](),
		event:   reflect.TypeFor[anthropic.MessageStreamEventUnion](),
		params:  reflect.TypeFor[anthropic.MessageNewParams](),
		history: "messages",
		requests: map[string]string{
			"text":        `{"max_tokens":4000,"messages":[{"role":"user","content":"Hi"}]}`,
			"settings":    `{"max_tokens":4000,"system":[{"type":"text","text":"Be brief.","cache_control":{"type":"ephemeral"}}],"messages":[{"role":"user","content":[{"type":"text","text":"Hi"}]},{"role":"assistant","content":"Hello."},{"role":"user","content":[{"type":"text","text":"How"},{"type":"text","text":"are you?"}]}],"temperature":0.5,"top_k":5,"metadata":{"user_id":"u1"}}`,
			"top_p":       `{"max_tokens":4000,"system":"Be brief.","messages":[{"role":"user","content":"Hi"}],"top_p":0.99,"service_tier":"auto"}`,
			"image":       `{"max_tokens":4000,"messages":[{"role":"user","content":[{"type":"text","text":"What is it?"},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"` + image + `"}}]}]}`,
			"tools":       `{"max_tokens":4000,"messages":[{"role":"user","content":"` + question + `"}],"tool_choice":{"type":"auto","disable_parallel_tool_use":false},` + messagesTools,
			"required":    `{"max_tokens":4000,"messages":[{"role":"user","content":"` + question + `"}],"tool_choice":{"type":"any","disable_parallel_tool_use":true},` + messagesTools,
			"named":       `{"max_tokens":4000,"messages":[{"role":"user","content":"` + question + `"}],"tool_choice":{"type":"tool","name":"weather"},` + messagesTools,
			"none":        `{"max_tokens":4000,"messages":[{"role":"user","content":"` + question + `"}],"tool_choice":{"type":"none"},` + messagesTools,
			"format":      `{"max_tokens":4000,"messages":[{"role":"user","content":"Hi"}],"output_config":{"format":{"type":"json_schema","schema":` + schema + `}}}`,
			"thinking":    `{"max_tokens":4000,"system":"Be brief.","messages":[{"role":"user","content":"` + question + `"}],"thinking":{"type":"adaptive"},"output_config":{"effort":"high"},` + messagesTools,
			"budget":      `{"max_tokens":4000,"messages":[{"role":"user","content":"` + question + `"}],"thinking":{"type":"enabled","budget_tokens":2000},` + messagesTools,
			"no thinking": `{"max_tokens":4000,"messages":[{"role":"user","content":"Hi"}],"thinking":{"type":"disabled"}}`,
		},
		ask: func(t *testing.T, g running, body []byte) (string, error) {
			a, err := g.anthropic().Messages.New(t.Context(), anthropicparam.Override[anthropic.MessageNewParams](json.RawMessage(body)))
			if err != nil {
				return "", err
			}
			return a.RawJSON(), nil
		},
		follow: func(t *testing.T, g running, body []byte) (events []string, err error) {
			stream := g.anthropic().Messages.NewStreaming(t.Context(), anthropicparam.Override[anthropic.MessageNewParams](json.RawMessage(body)))
			var message anthropic.Message
			for stream.Next() {
				events = append(events, stream.Current().RawJSON())
				if err := message.Accumulate(stream.Current()); err != nil {
					return events, err
				}
			}
			if stream.Err() == nil && (message.StopReason == "" || len(message.Content) == 0 || message.Usage.OutputTokens == 0) {
				t.Errorf("the stream: got %s", message.RawJSON())
			}
			return events, stream.Err()
		},
		items: func(answer string) []string {
			var message anthropic.Message
			json.Unmarshal([]byte(answer), &message)
			given, _ := json.Marshal(message.ToParam())
			var results []string
			for _, block := range message.Content {
				if block.Type == "tool_use" {
					results = append(results, fmt.Sprintf(`{"type":"tool_result","tool_use_id":%q,"content":"sunny"}`, block.ID))
				}
			}
			if results == nil {
				results = []string{`{"type":"text","text":"And then?"}`}
			}
			return []string{string(given), `{"role":"user","content":[` + strings.Join(results, ",") + `]}`}
		},
	},
}

const (
	chatTools      = `"tools":[{"type":"function","function":{"name":"weather","description":"Tells the weather.","parameters":` + schema + `,"strict":true}},{"type":"function","function":{"name":"time"}}]}`
	responsesTools = `"tools":[{"type":"function","name":"weather","description":"Tells the weather.","parameters":` + schema + `,"strict":true},{"type":"function","name":"time","parameters":{"type":"object","properties":{}},"strict":false}]}`
	messagesTools  = `"tools":[{"name":"weather","description":"Tells the weather.","input_schema":` + schema + `,"strict":true},{"name":"time","input_schema":{"type":"object","properties":{}}}]}`
)

func (g running) openai() *openai.Client {
	c := openai.NewClient(option.WithBaseURL(g.url), option.WithAPIKey(g.key), option.WithMaxRetries(0))
	return &c
}

// anthropic is the SDK as its users set it up: their base URL has no /v1.
func (g running) anthropic() *anthropic.Client {
	c := anthropic.NewClient(anthropicoption.WithBaseURL(strings.TrimSuffix(g.url, "/v1")), anthropicoption.WithAPIKey(g.key), anthropicoption.WithMaxRetries(0))
	return &c
}

// TestWire: whatever dialect a client speaks and the upstream understands, the body
// that reaches the upstream fits the type of the vendor's own SDK.
func TestWire(t *testing.T) {
	var models []string
	for _, target := range targets {
		models = append(models, target.models...)
	}
	up := upstream.New(upstream.WithKey(upstreamKey), upstream.WithModels(models...))
	t.Cleanup(up.Close)
	config := "providers:\n"
	for _, p := range targets {
		config += fmt.Sprintf("  %s: {vendor: %s, base_url: %q, api_key: %s, speaks: [%s], models: [%q]}\n",
			p.provider, p.vendor, strings.TrimSuffix(up.URL(), "/v1")+p.base, upstreamKey, p.speaks, strings.Join(p.models, `","`))
	}
	g, stop := start(t.TempDir(), strings.ReplaceAll(config, `\"`, `"`))
	t.Cleanup(stop)

	for _, client := range tongues {
		for name, request := range client.requests {
			if err := (checker{}).check(withModel(request, "m"), client.params); err != nil {
				t.Fatalf("the request %s of a %s client is wrong itself: %v", name, client.name, err)
			}
			for _, target := range targets {
				for _, model := range target.models {
					t.Run(client.name+" "+name+" to "+target.provider+" "+model, func(t *testing.T) {
						up.Reset()
						same := client.speaks == target.speaks
						body := withModel(request, target.provider+"/"+model)
						if !same && (refused[name+" "+target.speaks] || refused[name+" "+model]) {
							client.isRefused(t, g, body)
						} else {
							client.converse(t, g, body, same)
						}
						for _, r := range up.Requests() {
							if err := fits(t.Context(), r); err != nil || r.Refused != "" {
								t.Errorf("%s: %v %s\n%s", r.Path, err, r.Refused, r.Body)
							}
						}
					})
				}
			}
		}
	}
}

func withModel(request, model string) []byte {
	return fmt.Appendf(nil, `{"model":%q,%s`, model, request[1:])
}

func (c *tongue) isRefused(t *testing.T, g running, body []byte) {
	if _, err := c.ask(t, g, body); err == nil || !strings.Contains(err.Error(), "400 Bad Request") {
		t.Errorf("got %v, want a refusal", err)
	}
}

// converse has three turns: what was asked, the results of calls, one more question.
// Each is a stream too. What an upstream of the client's own dialect answers is the
// upstream's: it is neither looked at nor given back.
func (c *tongue) converse(t *testing.T, g running, body []byte, same bool) {
	for range 3 {
		events, err := c.follow(t, g, body)
		if err != nil {
			t.Fatalf("stream: %v\n%s", err, body)
		}
		answer, err := c.ask(t, g, body)
		if err != nil {
			t.Fatalf("%v\n%s", err, body)
		}
		var members map[string]json.RawMessage
		json.Unmarshal(body, &members)
		var history []json.RawMessage
		if same {
			return
		}
		c.check(t, []string{answer}, c.answer)
		c.check(t, events, c.event)
		if json.Unmarshal(members[c.history], &history) != nil {
			return // the question was but a text
		}
		for _, item := range c.items(answer) {
			history = append(history, json.RawMessage(item))
		}
		members[c.history], _ = json.Marshal(history)
		body, _ = json.Marshal(members)
	}
}

func (c *tongue) check(t *testing.T, answers []string, as reflect.Type) {
	for _, a := range answers {
		if as == nil {
			return
		}
		if err := (checker{answer: true}).check(json.RawMessage(a), as); err != nil {
			t.Errorf("the answer: %v\n%s", err, a)
		}
	}
}

// fits says what is wrong with a body that reached the upstream.
func fits(ctx context.Context, r upstream.Request) error {
	body := json.RawMessage(r.Body)
	c := checker{stream: true}
	switch {
	case strings.HasSuffix(r.Path, "/chat/completions"):
		return c.check(body, reflect.TypeFor[openai.ChatCompletionNewParams]())
	case strings.HasSuffix(r.Path, "/responses"):
		return c.check(body, reflect.TypeFor[responses.ResponseNewParams]())
	case strings.HasSuffix(r.Path, "/messages"):
		return c.check(body, reflect.TypeFor[anthropic.MessageNewParams]())
	case strings.Contains(r.Path, "enerateContent"):
		return fitsGemini(ctx, body)
	case strings.Contains(r.Path, "/converse"):
		if m := c.shape("", body, schemas.ConverseRequest); m != nil {
			return m
		}
		return nil
	}
	return errors.New("is no call")
}

// generateContent is the body of Gemini's operation. The SDK makes it of its types
// by hand, and has no type for the whole.
type generateContent struct {
	Contents          []*genai.Content       `json:"contents" api:"required"`
	SystemInstruction *genai.Content         `json:"systemInstruction"`
	Tools             []*genai.Tool          `json:"tools"`
	ToolConfig        *genai.ToolConfig      `json:"toolConfig"`
	SafetySettings    []*genai.SafetySetting `json:"safetySettings"`
	CachedContent     string                 `json:"cachedContent"`
	ServiceTier       genai.ServiceTier      `json:"serviceTier"`
	GenerationConfig  genai.GenerationConfig `json:"generationConfig"`
}

func fitsGemini(ctx context.Context, body json.RawMessage) error {
	if err := (checker{}).check(body, reflect.TypeFor[generateContent]()); err != nil {
		return err
	}
	var request generateContent
	var config struct {
		GenerationConfig genai.GenerateContentConfig `json:"generationConfig"`
	}
	if err := errors.Join(json.Unmarshal(body, &request), json.Unmarshal(body, &config)); err != nil {
		return err
	}
	config.GenerationConfig.SystemInstruction = request.SystemInstruction
	config.GenerationConfig.Tools = request.Tools
	config.GenerationConfig.ToolConfig = request.ToolConfig
	return refusedBySDK(ctx, request.Contents, &config.GenerationConfig)
}

var errSent = errors.New("the request was made")

type unsent struct{}

func (unsent) RoundTrip(*http.Request) (*http.Response, error) { return nil, errSent }

// refusedBySDK is what the SDK says to a request that its types can tell and the
// Gemini API does not take: some members are Vertex AI's alone.
func refusedBySDK(ctx context.Context, contents []*genai.Content, config *genai.GenerateContentConfig) error {
	client, err := genai.NewClient(ctx, &genai.ClientConfig{APIKey: "key", Backend: genai.BackendGeminiAPI, HTTPClient: &http.Client{Transport: unsent{}}})
	if err != nil {
		return err
	}
	if _, err = client.Models.GenerateContent(ctx, "gemini", contents, config); errors.Is(err, errSent) {
		return nil
	}
	return err
}
