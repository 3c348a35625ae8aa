package upstream

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
)

type bedrockRequest struct {
	Messages        []bedrockMessage `json:"messages"`
	System          []bedrockBlock   `json:"system"`
	InferenceConfig struct {
		MaxTokens     *int     `json:"maxTokens"`
		Temperature   *float64 `json:"temperature"`
		TopP          *float64 `json:"topP"`
		StopSequences []string `json:"stopSequences"`
	} `json:"inferenceConfig"`
	ToolConfig   *bedrockTools `json:"toolConfig"`
	OutputConfig struct {
		Effort     string `json:"effort"`
		TextFormat struct {
			Type      string `json:"type"`
			Structure struct {
				JSONSchema struct {
					Name        string `json:"name"`
					Description string `json:"description"`
					Schema      string `json:"schema"`
				} `json:"jsonSchema"`
			} `json:"structure"`
		} `json:"textFormat"`
	} `json:"outputConfig"`
	AdditionalModelRequestFields      json.RawMessage   `json:"additionalModelRequestFields"`
	AdditionalModelResponseFieldPaths []string          `json:"additionalModelResponseFieldPaths"`
	GuardrailConfig                   json.RawMessage   `json:"guardrailConfig"`
	PromptVariables                   json.RawMessage   `json:"promptVariables"`
	RequestMetadata                   map[string]string `json:"requestMetadata"`
	PerformanceConfig                 json.RawMessage   `json:"performanceConfig"`
	ServiceTier                       json.RawMessage   `json:"serviceTier"`

	model string // both of these are in the path
	live  bool
}

type bedrockMessage struct {
	Role    string         `json:"role"`
	Content []bedrockBlock `json:"content"`
}

// bedrockBlock is what its one member names. It comes and goes in the same shape.
type bedrockBlock struct {
	Text             *string           `json:"text,omitempty"`
	Image            *bedrockMedia     `json:"image,omitempty"`
	Document         *bedrockMedia     `json:"document,omitempty"`
	ToolUse          *bedrockToolUse   `json:"toolUse,omitempty"`
	ToolResult       *bedrockResult    `json:"toolResult,omitempty"`
	ReasoningContent *bedrockReasoning `json:"reasoningContent,omitempty"`
	CachePoint       json.RawMessage   `json:"cachePoint,omitempty"`
	GuardContent     json.RawMessage   `json:"guardContent,omitempty"`
	JSON             json.RawMessage   `json:"json,omitempty"` // in results alone
}

type bedrockMedia struct {
	Format string `json:"format"`
	Name   string `json:"name"`
	Source struct {
		Bytes      []byte          `json:"bytes"`
		S3Location json.RawMessage `json:"s3Location"`
	} `json:"source"`
	Context   string          `json:"context"`
	Citations json.RawMessage `json:"citations"`
}

type bedrockToolUse struct {
	ToolUseID string          `json:"toolUseId"`
	Name      string          `json:"name"`
	Input     json.RawMessage `json:"input"`
}

type bedrockResult struct {
	ToolUseID string         `json:"toolUseId"`
	Content   []bedrockBlock `json:"content"`
	Status    string         `json:"status"`
}

type bedrockReasoning struct {
	ReasoningText   *bedrockThinking `json:"reasoningText,omitempty"`
	RedactedContent []byte           `json:"redactedContent,omitempty"`
}

type bedrockThinking struct {
	Text      string `json:"text"`
	Signature string `json:"signature,omitempty"`
}

type bedrockTools struct {
	Tools []struct {
		ToolSpec *struct {
			Name        string `json:"name"`
			Description string `json:"description"`
			InputSchema struct {
				JSON json.RawMessage `json:"json"`
			} `json:"inputSchema"`
			Strict *bool `json:"strict"`
		} `json:"toolSpec"`
		CachePoint json.RawMessage `json:"cachePoint"`
		SystemTool json.RawMessage `json:"systemTool"`
	} `json:"tools"`
	ToolChoice *struct {
		Auto *struct{} `json:"auto"`
		Any  *struct{} `json:"any"`
		Tool *struct {
			Name string `json:"name"`
		} `json:"tool"`
	} `json:"toolChoice"`
}

func parseBedrock(r *http.Request, body []byte) (door, error) {
	req := &bedrockRequest{model: r.PathValue("model"), live: strings.HasSuffix(r.URL.Path, "/converse-stream")}
	switch unknown, err := strictly(body, req); {
	case unknown != "":
		return nil, refusedf("Malformed input request: extraneous key [%s] is not permitted, please reformat your input and try again.", unknown)
	case err != nil:
		return nil, refusedf("Malformed input request: %v", err)
	}
	return req, req.check()
}

// parseBedrockCount is for counting, where the request stands within another and
// has fewer members. It is for models, not for profiles that choose a region.
func parseBedrockCount(r *http.Request, body []byte) (door, error) {
	var whole struct {
		Input struct {
			Converse *struct {
				Messages                     json.RawMessage `json:"messages"`
				System                       json.RawMessage `json:"system,omitempty"`
				ToolConfig                   json.RawMessage `json:"toolConfig,omitempty"`
				AdditionalModelRequestFields json.RawMessage `json:"additionalModelRequestFields,omitempty"`
			} `json:"converse"`
		} `json:"input"`
	}
	switch unknown, err := strictly(body, &whole); {
	case unknown != "":
		return nil, refusedf("Malformed input request: extraneous key [%s] is not permitted, please reformat your input and try again.", unknown)
	case err != nil || whole.Input.Converse == nil:
		return nil, refusedf("Malformed input request: %v", err)
	case strings.Count(r.PathValue("model"), ".") > 1 || strings.HasPrefix(r.PathValue("model"), "openai."):
		return nil, refusal("The provided model doesn't support counting tokens.")
	}
	inner, err := json.Marshal(whole.Input.Converse)
	if err != nil {
		return nil, err
	}
	return parseBedrock(r, inner)
}

// thinks says whether thinking was asked for, in the way that Claude's models take it.
func (r *bedrockRequest) thinks() bool {
	var fields struct{ Thinking struct{ Type string } }
	json.Unmarshal(r.AdditionalModelRequestFields, &fields)
	return fields.Thinking.Type == "enabled" || fields.Thinking.Type == "adaptive"
}

func (r *bedrockRequest) prompt() prompt {
	p := prompt{
		model: r.model, stream: r.live, choices: 1, think: r.thinks(),
		schema: json.RawMessage(r.OutputConfig.TextFormat.Structure.JSONSchema.Schema),
	}
	for _, m := range slices.Backward(r.Messages) {
		if m.Role != "user" {
			continue
		}
		var results []string
		for _, b := range m.Content {
			switch {
			case b.Image != nil:
				p.image = "image/" + b.Image.Format
			case b.ToolResult != nil:
				results = append(results, saidBy(b.ToolResult.Content))
			}
		}
		if len(results) == 0 {
			p.user = saidBy(m.Content)
			break
		}
		p.told(results...)
	}
	if r.ToolConfig != nil {
		for _, t := range r.ToolConfig.Tools {
			if t.ToolSpec != nil {
				p.tools = append(p.tools, t.ToolSpec.Name)
			}
		}
	}
	return p
}

// saidBy is the text of blocks.
func saidBy(blocks []bedrockBlock) string {
	var b strings.Builder
	for _, block := range blocks {
		if block.Text != nil {
			b.WriteString(*block.Text)
		}
		b.Write(block.JSON)
	}
	return b.String()
}

type bedrockAnswer struct {
	Metrics json.RawMessage `json:"metrics"`
	Output  struct {
		Message bedrockMessage `json:"message"`
	} `json:"output"`
	StopReason string          `json:"stopReason"`
	Usage      json.RawMessage `json:"usage,omitempty"`
}

func (r *bedrockRequest) blocks(id int, said reply) (list []bedrockBlock) {
	if said.thought != "" {
		list = append(list, bedrockBlock{ReasoningContent: &bedrockReasoning{
			ReasoningText: &bedrockThinking{said.thought, signature("thinking", said.thought)},
		}})
	}
	if said.text != "" {
		list = append(list, bedrockBlock{Text: &said.text})
	}
	for i, c := range said.calls {
		list = append(list, bedrockBlock{ToolUse: &bedrockToolUse{fmt.Sprintf("tooluse_%d_%d", id, i), c.name, json.RawMessage(c.arguments)}})
	}
	return list
}

func bedrockUsage(u usage) json.RawMessage {
	return fmt.Appendf(nil, `{"inputTokens":%s,"outputTokens":%s,"totalTokens":%s,"cacheReadInputTokens":%s,"cacheWriteInputTokens":%s}`,
		u.fresh, u.output, u.total, u.read, u.written)
}

var bedrockMetrics = json.RawMessage(`{"latencyMs":1}`)

func (r *bedrockRequest) whole(id int, said reply, u usage) any {
	a := &bedrockAnswer{Metrics: bedrockMetrics, StopReason: stopReason(said), Usage: bedrockUsage(u)}
	a.Output.Message = bedrockMessage{"assistant", r.blocks(id, said)}
	return a
}

// bedrockEvent is the payload of one event of the stream.
type bedrockEvent struct {
	Role              string          `json:"role,omitempty"`
	ContentBlockIndex *int            `json:"contentBlockIndex,omitempty"`
	Start             any             `json:"start,omitempty"`
	Delta             any             `json:"delta,omitempty"`
	StopReason        string          `json:"stopReason,omitempty"`
	Usage             json.RawMessage `json:"usage,omitempty"`
	Metrics           json.RawMessage `json:"metrics,omitempty"`
}

func (r *bedrockRequest) stream(id int, said reply, u usage) []frame {
	var frames []frame
	emit := func(kind string, e bedrockEvent) { frames = append(frames, frame{event: kind, data: &e}) }
	emit("messageStart", bedrockEvent{Role: "assistant"})
	for i, block := range r.blocks(id, said) {
		delta := func(d any) { emit("contentBlockDelta", bedrockEvent{ContentBlockIndex: &i, Delta: d}) }
		switch { // text and thinking have no start
		case block.Text != nil:
			for _, piece := range pieces(*block.Text) {
				delta(map[string]string{"text": piece})
			}
		case block.ReasoningContent != nil:
			thinking := block.ReasoningContent.ReasoningText
			for _, piece := range pieces(thinking.Text) {
				delta(map[string]any{"reasoningContent": map[string]string{"text": piece}})
			}
			delta(map[string]any{"reasoningContent": map[string]string{"signature": thinking.Signature}})
		default:
			call := block.ToolUse
			emit("contentBlockStart", bedrockEvent{ContentBlockIndex: &i, Start: map[string]any{
				"toolUse": map[string]string{"toolUseId": call.ToolUseID, "name": call.Name},
			}})
			for _, half := range halves(string(call.Input)) {
				delta(map[string]any{"toolUse": map[string]string{"input": half}})
			}
		}
		emit("contentBlockStop", bedrockEvent{ContentBlockIndex: &i})
	}
	emit("messageStop", bedrockEvent{StopReason: stopReason(said)})
	frames[len(frames)-1].finish = true
	emit("metadata", bedrockEvent{Usage: bedrockUsage(u), Metrics: bedrockMetrics})
	frames[len(frames)-1].terminal = true
	return frames
}

func (r *bedrockRequest) failure(_ int, e apiError, _ errorShape) []frame {
	return []frame{{event: "internalServerException", data: bedrockError{e.Message}, failed: true, terminal: true}}
}
