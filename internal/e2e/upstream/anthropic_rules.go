package upstream

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// blockMembers are those that a type of block may have, beside type and cache_control.
var blockMembers = map[string][]string{
	"text":              {"text", "citations"},
	"image":             {"source"},
	"document":          {"source", "title", "context", "citations"},
	"thinking":          {"thinking", "signature"},
	"redacted_thinking": {"data"},
	"tool_use":          {"id", "name", "input", "caller"},
	"tool_result":       {"tool_use_id", "content", "is_error"},
}

var toolName = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,128}$`)

// check says in Anthropic's words what is wrong with the request.
func (r *anthropicRequest) check() error {
	if len(r.Messages) == 0 {
		return refusal("messages: at least one message is required")
	}
	for i := range r.Messages {
		if err := r.Messages[i].read(i, i == len(r.Messages)-1); err != nil {
			return err
		}
	}
	for _, rule := range []func() error{r.checkSystem, r.checkOrder, r.checkCalls, r.checkTools, r.checkThinking, r.checkFormat, r.checkSampling} {
		if err := rule(); err != nil {
			return err
		}
	}
	if n := strings.Count(string(marshal(r.System))+string(marshal(r.Messages))+string(marshal(r.Tools)), `"cache_control":{`); n > 4 {
		return refusedf("A maximum of 4 blocks with cache_control may be provided. Found %d.", n)
	}
	return nil
}

// read takes the content apart into blocks and checks each for itself.
func (m *anthropicMessage) read(i int, last bool) error {
	var s string
	if json.Unmarshal(m.Content, &s) == nil {
		m.blocks = []anthropicBlock{{Type: "text", Text: &s}}
		if len(m.Content) == 0 || string(m.Content) == "null" {
			return refusedf("messages.%d.content: Field required", i)
		}
	} else if err := readBlocks(m.Content, fmt.Sprintf("messages.%d.content", i), &m.blocks); err != nil {
		return err
	}
	if len(m.blocks) == 0 && !(last && m.Role == "assistant") {
		return refusedf("messages.%d: all messages must have non-empty content except for the optional final assistant message", i)
	}
	for _, b := range m.blocks {
		if b.Type == "text" && *b.Text == "" {
			return refusal("messages: text content blocks must be non-empty")
		}
		if b.Type == "text" && strings.TrimSpace(*b.Text) == "" {
			return refusal("messages: text content blocks must contain non-whitespace text")
		}
	}
	return nil
}

func readBlocks(content json.RawMessage, at string, into *[]anthropicBlock) error {
	var raw []json.RawMessage
	if json.Unmarshal(content, &raw) != nil {
		return refusedf("%s: Input should be a valid list", at)
	}
	*into = nil
	for j, part := range raw {
		where := fmt.Sprintf("%s.%d", at, j)
		var b anthropicBlock
		if unknown, err := strictly(part, &b); unknown != "" {
			return refusedf("%s.%s.%s: Extra inputs are not permitted", where, b.Type, unknown)
		} else if err != nil {
			return refusedf("%s: %v", where, err)
		}
		if err := b.check(part, where); err != nil {
			return err
		}
		*into = append(*into, b)
	}
	return nil
}

func (b *anthropicBlock) check(raw json.RawMessage, at string) error {
	known, ok := blockMembers[b.Type]
	if !ok {
		return refusedf("%s: Input tag '%s' found using 'type' does not match any of the expected tags", at, b.Type)
	}
	for _, name := range members(raw) {
		switch {
		case name == "type", slices.Contains(known, name):
		case name == "cache_control" && !strings.HasSuffix(b.Type, "thinking"):
		default:
			return refusedf("%s.%s.%s: Extra inputs are not permitted", at, b.Type, name)
		}
	}
	missing := func(name string) error { return refusedf("%s.%s.%s: Field required", at, b.Type, name) }
	switch b.Type {
	case "text":
		if b.Text == nil {
			return missing("text")
		}
	case "image", "document":
		return b.checkSource(at)
	case "thinking":
		if b.Thinking == nil {
			return missing("thinking")
		}
		if b.Signature == nil {
			return missing("signature")
		}
		if *b.Signature != signature("thinking", *b.Thinking) {
			return refusedf("%s: Invalid `signature` in `thinking` block", at)
		}
	case "redacted_thinking":
		return refusedf("%s: Invalid `data` in `redacted_thinking` block", at) // this server makes none
	case "tool_use":
		switch {
		case !idPattern.MatchString(b.ID):
			return refusedf("%s.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'", at)
		case !toolName.MatchString(b.Name):
			return refusedf("%s.tool_use.name: String should match pattern '^[a-zA-Z0-9_-]{1,200}$'", at)
		case !isObject(b.Input):
			return refusedf("%s.tool_use.input: Input should be a valid dictionary", at)
		}
	case "tool_result":
		var inner []anthropicBlock
		if len(b.Content) > 0 && b.Content[0] == '[' {
			return readBlocks(b.Content, at+".tool_result.content", &inner)
		}
	}
	return nil
}

func (b *anthropicBlock) checkSource(at string) error {
	s := b.Source
	switch {
	case s == nil:
		return refusedf("%s.%s.source: Field required", at, b.Type)
	case s.Type == "base64" && s.Data == "":
		return refusedf("%s.%s.source.base64: %s cannot be empty", at, b.Type, b.Type)
	case b.Type == "image" && s.Type == "base64" && !slices.Contains([]string{"image/jpeg", "image/png", "image/gif", "image/webp"}, s.MediaType):
		return refusedf("%s.image.source.base64.media_type: Input should be 'image/jpeg', 'image/png', 'image/gif' or 'image/webp'", at)
	case !slices.Contains([]string{"base64", "url", "file", "text", "content"}, s.Type):
		return refusedf("%s.%s.source: Input tag '%s' found using 'type' does not match any of the expected tags", at, b.Type, s.Type)
	}
	return nil
}

func (r *anthropicRequest) checkSystem() error {
	if len(r.System) == 0 || r.System[0] == '"' {
		return nil
	}
	var blocks []anthropicBlock
	if err := readBlocks(r.System, "system", &blocks); err != nil {
		return err
	}
	for i, b := range blocks {
		if b.Type != "text" {
			return refusedf("system.%d.type: Input should be 'text'", i)
		}
		if *b.Text == "" {
			return refusal("system: text content blocks must be non-empty")
		}
	}
	return nil
}

func (r *anthropicRequest) checkOrder() error {
	last := len(r.Messages) - 1
	for i, m := range r.Messages {
		switch {
		case !slices.Contains([]string{"user", "assistant", "system"}, m.Role):
			return refusedf("messages.%d.role: Input should be 'user', 'assistant' or 'system'", i)
		case i == 0 && m.Role != "user":
			return refusal(`messages: first message must use the "user" role`)
		case m.Role == "system" && (r.Messages[i-1].Role != "user" || i < last && r.Messages[i+1].Role != "assistant"):
			return refusedf("messages.%d: a system message must follow a user message and be last or followed by an assistant message", i)
		}
	}
	m := r.Messages[last]
	if m.Role != "assistant" || len(m.blocks) == 0 {
		return nil
	}
	if b := m.blocks[len(m.blocks)-1]; b.Type == "text" && strings.TrimRight(*b.Text, " \t\n") != *b.Text {
		return refusal("messages: final assistant content cannot end with trailing whitespace")
	}
	return nil
}

// checkCalls wants the results of an assistant's calls, all of them and no others,
// at the start of the next user message.
func (r *anthropicRequest) checkCalls() error {
	seen := map[string]bool{}
	var open []string // calls of the message before
	for i, m := range r.Messages {
		if m.Role == "system" {
			continue
		}
		var calls, answered []string
		text := false
		for j, b := range m.blocks {
			switch b.Type {
			case "tool_use":
				if seen[b.ID] {
					return refusedf("messages.%d.content.%d: `tool_use` ids must be unique", i, j)
				}
				seen[b.ID] = true
				calls = append(calls, b.ID)
			case "tool_result":
				if !slices.Contains(open, b.ToolUseID) || m.Role != "user" {
					return refusedf("messages.%d.content.%d: unexpected `tool_use_id` found in `tool_result` blocks: %s. Each `tool_result` block must have a corresponding `tool_use` block in the previous message.", i, j, b.ToolUseID)
				}
				if slices.Contains(answered, b.ToolUseID) {
					return refusedf("messages.%d.content.%d: each tool_use must have a single result. Found multiple `tool_result` blocks with id: %s", i, j, b.ToolUseID)
				}
				if !text {
					answered = append(answered, b.ToolUseID)
				}
			default:
				text = true
			}
		}
		if left := slices.DeleteFunc(open, func(id string) bool { return slices.Contains(answered, id) }); len(left) > 0 {
			return withoutResult(i-1, left)
		}
		open = calls
		if len(calls) > 0 && m.Role != "assistant" {
			return refusedf("messages.%d: `tool_use` blocks can only be in `assistant` messages", i)
		}
	}
	if len(open) > 0 {
		return withoutResult(len(r.Messages)-1, open)
	}
	return nil
}

func withoutResult(i int, ids []string) error {
	return refusedf("messages.%d: `tool_use` ids were found without `tool_result` blocks immediately after: %s. Each `tool_use` block must have a corresponding `tool_result` block in the next message.", i, strings.Join(ids, ", "))
}

func (r *anthropicRequest) checkTools() error {
	names := map[string]bool{}
	for i, t := range r.Tools {
		custom := t.Type == "" || t.Type == "custom"
		switch {
		case !toolName.MatchString(t.Name):
			return refusedf("tools.%d.custom.name: String should match pattern '^[a-zA-Z0-9_-]{1,128}$'", i)
		case names[t.Name]:
			return refusal("tools: Tool names must be unique.")
		case custom && !isObject(t.InputSchema):
			return refusedf("tools.%d.custom.input_schema: Field required", i)
		}
		names[t.Name] = true
		var schema struct{ Type string }
		if json.Unmarshal(t.InputSchema, &schema); custom && schema.Type != "object" {
			return refusedf("tools.%d.custom.input_schema.type: Input should be 'object'", i)
		}
	}
	c := r.ToolChoice
	switch {
	case c == nil:
		return nil
	case len(r.Tools) == 0:
		return refusal("tool_choice: may only be specified while providing tools.")
	case !slices.Contains([]string{"auto", "any", "tool", "none"}, c.Type):
		return refusedf("tool_choice: Input tag '%s' found using 'type' does not match any of the expected tags: 'auto', 'any', 'tool', 'none'", c.Type)
	case c.Type == "tool" && !names[c.Name]:
		return refusedf("Tool '%s' not found in provided tools", c.Name)
	case c.Type == "none" && c.DisableParallelToolUse != nil:
		return refusal("tool_choice.none.disable_parallel_tool_use: Extra inputs are not permitted")
	}
	return nil
}

func (r *anthropicRequest) checkThinking() error {
	t := r.Thinking
	switch {
	case !slices.Contains([]string{"", "adaptive", "disabled", "enabled", "between_tools"}, t.Type):
		return refusedf("thinking: Input tag '%s' found using 'type' does not match any of the expected tags", t.Type)
	case t.Type != "enabled" && t.BudgetTokens != nil:
		return refusedf("thinking.%s.budget_tokens: Extra inputs are not permitted", t.Type)
	case t.Type != "enabled":
		return nil
	case t.BudgetTokens == nil:
		return refusal("thinking.enabled.budget_tokens: Field required")
	case *t.BudgetTokens < 1024:
		return refusal("thinking.enabled.budget_tokens: Input should be greater than or equal to 1024")
	case r.MaxTokens != nil && *r.MaxTokens <= *t.BudgetTokens:
		return refusal("`max_tokens` must be greater than `thinking.budget_tokens`.")
	case r.ToolChoice != nil && (r.ToolChoice.Type == "any" || r.ToolChoice.Type == "tool"):
		return refusal("Thinking may not be enabled when tool_choice forces tool use.")
	case r.Temperature != nil && *r.Temperature != 1:
		return refusal("`temperature` may only be set to 1 when thinking is enabled.")
	case r.TopK != nil:
		return refusal("`top_k` must be unset when thinking is enabled.")
	}
	return r.checkOpenTurn()
}

// checkOpenTurn wants the thinking that led to calls whose results are being sent.
func (r *anthropicRequest) checkOpenTurn() error {
	last := len(r.Messages) - 1
	if last < 1 || !slices.ContainsFunc(r.Messages[last].blocks, func(b anthropicBlock) bool { return b.Type == "tool_result" }) {
		return nil
	}
	first := r.Messages[last-1].blocks[0]
	if strings.HasSuffix(first.Type, "thinking") {
		return nil
	}
	return refusedf("messages.%d.content.0.type: Expected `thinking` or `redacted_thinking`, but found `%s`. When `thinking` is enabled, a final `assistant` message must start with a thinking block (preceeding the lastmost set of `tool_use` and `tool_result` blocks).", last-1, first.Type)
}

// checkFormat knows what the constrained decoder cannot do.
func (r *anthropicRequest) checkFormat() error {
	f := r.OutputConfig.Format
	switch {
	case !slices.Contains([]string{"", "low", "medium", "high", "xhigh", "max"}, r.OutputConfig.Effort):
		return refusal("output_config.effort: Input should be 'low', 'medium', 'high', 'xhigh' or 'max'")
	case f == nil:
		return nil
	case f.Type != "json_schema":
		return refusal("output_config.format.type: Input should be 'json_schema'")
	case !isObject(f.Schema):
		return refusal("output_config.format.schema: Field required")
	}
	bounds := []string{"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "minLength", "maxLength", "maxItems", "oneOf"}
	if at, word := forbidden(f.Schema, "output_config.format.schema", func(word string, _ map[string]json.RawMessage) bool {
		return slices.Contains(bounds, word)
	}); word != "" {
		return refusedf("%s: property '%s' is not supported", at, word)
	}
	if at, _ := forbidden(f.Schema, "output_config.format.schema", func(word string, in map[string]json.RawMessage) bool {
		return word == "properties" && string(in["additionalProperties"]) != "false"
	}); at != "" {
		return refusedf("%s: For 'object' type, 'additionalProperties' must be explicitly set to false", at)
	}
	return nil
}

func (r *anthropicRequest) checkSampling() error {
	if t := r.Temperature; t != nil && (*t < 0 || *t > 1) {
		return refusal("temperature: range: 0..1")
	}
	if p := r.TopP; p != nil && (*p < 0 || *p > 1) {
		return refusal("top_p: range: 0..1")
	}
	for _, s := range r.StopSequences {
		if strings.TrimSpace(s) == "" {
			return refusal("stop_sequences: each stop sequence must contain non-whitespace")
		}
	}
	return nil
}
