package upstream

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
)

var documentName = regexp.MustCompile(`^[A-Za-z0-9 ()\[\]-]+$`)

// check says in Bedrock's words what is wrong with the request.
func (r *bedrockRequest) check() error {
	for _, rule := range []func() error{r.checkSystem, r.checkRoles, r.checkBlocks, r.checkCalls, r.checkTools, r.checkConfig} {
		if err := rule(); err != nil {
			return err
		}
	}
	return nil
}

func (r *bedrockRequest) checkSystem() error {
	for i, b := range r.System {
		if b.Text == nil && len(b.CachePoint) == 0 && len(b.GuardContent) == 0 {
			return refusedf("The system content block at system.%d is not supported.", i)
		}
		if b.Text != nil && *b.Text == "" {
			return refusedf("The text field in the SystemContentBlock object at system.%d is blank. Add text to the text field, and try again.", i)
		}
	}
	return nil
}

func (r *bedrockRequest) checkRoles() error {
	for i, m := range r.Messages {
		switch {
		case m.Role != "user" && m.Role != "assistant":
			return refusedf("1 validation error detected: Value '%s' at 'messages.%d.member.role' failed to satisfy constraint: Member must satisfy enum value set: [user, assistant]", m.Role, i+1)
		case i == 0 && m.Role != "user":
			return refusal("A conversation must start with a user message. Try again with a conversation that starts with a user message.")
		case i > 0 && m.Role == r.Messages[i-1].Role:
			return refusal("A conversation must alternate between user and assistant roles. Make sure the conversation alternates between user and assistant roles and try again.")
		case len(m.Content) == 0:
			return refusedf("The content field in the Message object at messages.%d is empty. Add a ContentBlock object to the content field and try again.", i)
		}
	}
	if len(r.Messages) == 0 {
		return refusal("A conversation must start with a user message. Try again with a conversation that starts with a user message.")
	}
	return nil
}

func (r *bedrockRequest) checkBlocks() error {
	documents := map[string]bool{}
	for i, m := range r.Messages {
		text, document := false, false
		for j, b := range m.Content {
			text = text || b.Text != nil
			document = document || b.Document != nil
			switch {
			case b.kinds() != 1:
				return refusedf("The ContentBlock object at messages.%d.content.%d must set one of the following keys: text, image, toolUse, toolResult, document, video, cachePoint, reasoningContent, citationsContent, searchResult.", i, j)
			case b.Text != nil && strings.TrimSpace(*b.Text) == "":
				return refusedf("The text field in the ContentBlock object at messages.%d.content.%d is blank. Add text to the text field, and try again.", i, j)
			case b.Image != nil && !slices.Contains([]string{"png", "jpeg", "gif", "webp"}, b.Image.Format):
				return refusedf("Value '%s' at 'messages.%d.member.content.%d.member.image.format' failed to satisfy constraint: Member must satisfy enum value set: [gif, jpeg, png, webp]", b.Image.Format, i+1, j+1)
			case b.Image != nil && len(b.Image.Source.Bytes) == 0 && len(b.Image.Source.S3Location) == 0:
				return refusedf("The image at messages.%d.content.%d has no source.", i, j)
			case b.Document != nil && (!documentName.MatchString(b.Document.Name) || strings.Contains(b.Document.Name, "  ")):
				return refusal("The document file name can only contain alphanumeric characters, whitespace characters, hyphens, parentheses, and square brackets. The name can't contain more than one consecutive whitespace character.")
			case b.Document != nil && documents[b.Document.Name]:
				return refusal("Duplicate document names. Use a unique name for each document and try again.")
			case b.ToolUse != nil && !isObject(b.ToolUse.Input):
				return refusedf("The format of the value at messages.%d.content.%d.toolUse.input is invalid. Provide a json object for the field and try again.", i, j)
			case b.ToolUse != nil && (!idPattern.MatchString(b.ToolUse.ToolUseID) || len(b.ToolUse.ToolUseID) > 64):
				return refusedf("1 validation error detected: Value '%s' at 'messages.%d.member.content.%d.member.toolUse.toolUseId' failed to satisfy constraint: Member must satisfy regular expression pattern: [a-zA-Z0-9_-]+", b.ToolUse.ToolUseID, i+1, j+1)
			case b.ReasoningContent != nil && !b.ReasoningContent.genuine():
				return refusedf("The model returned the following errors: messages.%d.content.%d: Invalid `signature` in `thinking` block", i, j)
			}
			if b.Document != nil {
				documents[b.Document.Name] = true
			}
		}
		if document && !text {
			return refusal("A text block must be included when a document is provided.")
		}
	}
	return nil
}

func (b *bedrockBlock) kinds() (n int) {
	for _, has := range []bool{
		b.Text != nil, b.Image != nil, b.Document != nil, b.ToolUse != nil, b.ToolResult != nil,
		b.ReasoningContent != nil, len(b.CachePoint) > 0, len(b.GuardContent) > 0,
	} {
		if has {
			n++
		}
	}
	return n
}

func (c *bedrockReasoning) genuine() bool {
	t := c.ReasoningText
	return t != nil && t.Signature == signature("thinking", t.Text)
}

// checkCalls wants the results of an assistant's calls, all of them and no others, in
// the next message.
func (r *bedrockRequest) checkCalls() error {
	var open []string
	for i, m := range r.Messages {
		var calls, answered []string
		for _, b := range m.Content {
			switch {
			case b.ToolUse != nil && m.Role == "assistant":
				calls = append(calls, b.ToolUse.ToolUseID)
			case b.ToolUse != nil:
				return refusedf("User messages cannot contain tool uses: messages.%d", i)
			case b.ToolResult != nil && slices.Contains(open, b.ToolResult.ToolUseID):
				answered = append(answered, b.ToolResult.ToolUseID)
			case b.ToolResult != nil:
				return refusedf("The number of toolResult blocks at messages.%d.content exceeds the number of toolUse blocks of previous turn.", i)
			}
			if (b.ToolUse != nil || b.ToolResult != nil) && r.ToolConfig == nil {
				return refusal("The toolConfig field must be defined when using toolUse and toolResult content blocks.")
			}
		}
		if err := expected(i, open, answered); err != nil {
			return err
		}
		open = calls
	}
	return expected(len(r.Messages), open, nil)
}

func expected(i int, calls, answered []string) error {
	if slices.Equal(calls, answered) {
		return nil
	}
	left := slices.DeleteFunc(slices.Clone(calls), func(id string) bool { return slices.Contains(answered, id) })
	if len(left) == 0 && len(calls) == len(answered) {
		return nil // in another order
	}
	if len(left) == 0 {
		return refusedf("The toolResult blocks at messages.%d.content contain duplicate Ids.", i)
	}
	return refusedf("Expected toolResult blocks at messages.%d.content for the following Ids: %s", i, strings.Join(left, ", "))
}

func (r *bedrockRequest) checkTools() error {
	if r.ToolConfig == nil {
		return nil
	}
	var names []string
	for i, t := range r.ToolConfig.Tools {
		if t.ToolSpec == nil {
			continue
		}
		name := t.ToolSpec.Name
		switch {
		case !idPattern.MatchString(name) || len(name) > 64:
			return refusedf("1 validation error detected: Value '%s' at 'toolConfig.tools.%d.member.toolSpec.name' failed to satisfy constraint: Member must satisfy regular expression pattern: [a-zA-Z0-9_-]+", name, i+1)
		case slices.Contains(names, name):
			return refusedf("The tool %s is already defined at toolConfig.tools.%d.toolSpec.name.", name, slices.Index(names, name))
		case !isObject(t.ToolSpec.InputSchema.JSON):
			return refusedf("The value at toolConfig.tools.%d.toolSpec.inputSchema.json must be an object.", i)
		}
		var schema struct{ Type string }
		if json.Unmarshal(t.ToolSpec.InputSchema.JSON, &schema); schema.Type != "object" {
			return refusedf("The value at toolConfig.tools.%d.toolSpec.inputSchema.json.type must be one of the following: object.", i)
		}
		names = append(names, name)
	}
	c := r.ToolConfig.ToolChoice
	switch {
	case len(names) == 0:
		return refusal("1 validation error detected: Value at 'toolConfig.tools' failed to satisfy constraint: Member must have length greater than or equal to 1")
	case c == nil:
		return nil
	case c.Auto == nil && c.Any == nil && c.Tool == nil:
		return refusal("The toolConfig.toolChoice field must set one of the following keys: auto, any, tool.")
	case c.Tool != nil && !slices.Contains(names, c.Tool.Name):
		return refusedf("The tool %s at toolConfig.toolChoice is not defined in toolConfig.tools.", c.Tool.Name)
	}
	return nil
}

func (r *bedrockRequest) checkConfig() error {
	c := r.InferenceConfig
	format := r.OutputConfig.TextFormat
	switch {
	case c.Temperature != nil && (*c.Temperature < 0 || *c.Temperature > 1):
		return refusal("1 validation error detected: Value at 'inferenceConfig.temperature' failed to satisfy constraint: Member must have value less than or equal to 1")
	case c.MaxTokens != nil && *c.MaxTokens < 1:
		return refusal("1 validation error detected: Value at 'inferenceConfig.maxTokens' failed to satisfy constraint: Member must have value greater than or equal to 1")
	case format.Type != "" && (format.Type != "json_schema" || !isObject(json.RawMessage(format.Structure.JSONSchema.Schema))):
		return refusal("The value at outputConfig.textFormat.structure.jsonSchema.schema is not a valid JSON schema.")
	case len(r.AdditionalModelRequestFields) > 0 && !isObject(r.AdditionalModelRequestFields):
		return refusal("The value at additionalModelRequestFields must be an object.")
	}
	return nil
}
