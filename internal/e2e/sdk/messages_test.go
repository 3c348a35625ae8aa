package sdk

import (
	"errors"
	"testing"

	"github.com/anthropics/anthropic-sdk-go"
)

func message(prompt string) anthropic.MessageNewParams {
	return anthropic.MessageNewParams{Model: "up/small", MaxTokens: 99, Messages: []anthropic.MessageParam{anthropic.NewUserMessage(anthropic.NewTextBlock(prompt))}}
}

// gather reads a stream to its end, as the SDK's documentation shows.
func gather(t *testing.T, params anthropic.MessageNewParams) (message anthropic.Message) {
	t.Helper()
	stream := gateway.anthropic().Messages.NewStreaming(t.Context(), params)
	for stream.Next() {
		if err := message.Accumulate(stream.Current()); err != nil {
			t.Errorf("%s: %v", stream.Current().RawJSON(), err)
		}
	}
	if err := stream.Err(); err != nil {
		t.Fatal(err)
	}
	return message
}

func TestMessages(t *testing.T) {
	whole, err := gateway.anthropic().Messages.New(t.Context(), message("Hi"))
	if err != nil {
		t.Fatal(err)
	}
	for name, got := range map[string]anthropic.Message{"whole": *whole, "stream": gather(t, message("Hi"))} {
		if len(got.Content) != 1 || got.Content[0].AsText().Text != "Hello from small." || got.StopReason != "end_turn" || got.Usage.InputTokens == 0 || got.Usage.OutputTokens != whole.Usage.OutputTokens {
			t.Errorf("%s: got %+v", name, got)
		}
	}
}

func TestMessagesTools(t *testing.T) {
	params := message(`call2 weather {"city":"Rome"}`)
	params.Model = "up/tools"
	params.Tools = []anthropic.ToolUnionParam{anthropic.ToolUnionParamOfTool(anthropic.ToolInputSchemaParam{Properties: weather.Parameters["properties"]}, weather.Name)}
	answer := gather(t, params)
	var results []anthropic.ContentBlockParamUnion
	for _, block := range answer.Content {
		call := block.AsToolUse()
		if call.Name != "weather" || string(call.Input) != `{"city":"Rome"}` {
			t.Errorf("got %s", block.RawJSON())
		}
		results = append(results, anthropic.NewToolResultBlock(call.ID, "sunny", false))
	}
	if len(results) != 2 || answer.StopReason != "tool_use" {
		t.Fatalf("got %d calls, %q, want 2, tool_use", len(results), answer.StopReason)
	}
	params.Messages = append(params.Messages, answer.ToParam(), anthropic.NewUserMessage(results...))
	if got := gather(t, params); len(got.Content) != 1 || got.Content[0].AsText().Text != "The tool said: sunny" {
		t.Errorf("after the tools: got %+v", got.Content)
	}
}

// TestMessagesErrors: errors come in Anthropic's shape, before an answer and within.
func TestMessagesErrors(t *testing.T) {
	unknown := message("Hi")
	unknown.Model = "up/none"
	for _, c := range []struct {
		params anthropic.MessageNewParams
		status int
		kind   anthropic.ErrorType
	}{
		{unknown, 404, anthropic.ErrorTypeNotFoundError},
		{message("[[fault:status-429]]"), 429, anthropic.ErrorTypeRateLimitError},
		{message("[[fault:status-503]]"), 529, anthropic.ErrorTypeOverloadedError},
	} {
		_, err := gateway.anthropic().Messages.New(t.Context(), c.params)
		if e, ok := errors.AsType[*anthropic.Error](err); !ok || e.StatusCode != c.status || e.Type() != c.kind || e.RequestID == "" {
			t.Errorf("got %v, want %d %s", err, c.status, c.kind)
		}
	}
	for _, fault := range []string{"reset-mid", "cut", "error-mid"} {
		stream := gateway.anthropic().Messages.NewStreaming(t.Context(), message("[[fault:"+fault+"]]"))
		for stream.Next() {
		}
		if stream.Err() == nil {
			t.Errorf("%s: got no error", fault)
		}
	}
}
