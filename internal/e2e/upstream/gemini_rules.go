package upstream

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
)

var functionName = regexp.MustCompile(`^[a-zA-Z_][a-zA-Z0-9_.:-]{0,127}$`)

// check says in Gemini's words what is wrong with the request.
func (r *geminiRequest) check() error {
	if len(r.Contents) == 0 {
		return refusal("* GenerateContentRequest.contents: contents is not specified\n")
	}
	for _, rule := range []func() error{r.checkParts, r.checkTurns, r.checkSignatures, r.checkTools, r.checkConfig} {
		if err := rule(); err != nil {
			return err
		}
	}
	return nil
}

func (r *geminiRequest) checkParts() error {
	if s := r.SystemInstruction; s != nil {
		for _, p := range s.Parts {
			if p.Text == nil || *p.Text == "" {
				return refusal("* GenerateContentRequest.system_instruction.parts[0].data: required oneof field 'data' must have one initialized field\n")
			}
		}
	}
	for i, c := range r.Contents {
		if c.Role != "user" && c.Role != "model" {
			return refusal("Please use a valid role: user, model.")
		}
		if len(c.Parts) == 0 {
			return refusedf("* GenerateContentRequest.contents[%d].parts: contents.parts must not be empty.\n", i)
		}
		for j, p := range c.Parts {
			if err := p.check(i, j, c.Role); err != nil {
				return err
			}
		}
	}
	return nil
}

func (p *geminiPart) check(i, j int, role string) error {
	kinds := 0
	for _, has := range []bool{p.Text != nil, p.InlineData != nil, len(p.FileData) > 0, p.FunctionCall != nil, p.FunctionResponse != nil} {
		if has {
			kinds++
		}
	}
	empty := p.Text != nil && *p.Text == "" && p.ThoughtSignature == ""
	switch {
	case kinds == 0, empty:
		return refusedf("* GenerateContentRequest.contents[%d].parts[%d].data: required oneof field 'data' must have one initialized field\n", i, j)
	case kinds > 1:
		return refusedf("Invalid value at 'contents[%d].parts[%d]' (oneof), oneof field 'data' is already set.", i, j)
	case p.InlineData != nil && (p.InlineData.MIMEType == "" || p.InlineData.Data == ""):
		return refusal("Unable to process input image. Please retry or report in https://developers.generativeai.google/guide/troubleshooting")
	case p.FunctionCall != nil && role != "model":
		return refusal("Please ensure that function call turn comes immediately after a user turn or after a function response turn.")
	case p.FunctionCall != nil && len(p.FunctionCall.Args) > 0 && !isObject(p.FunctionCall.Args):
		return refusedf("Invalid value at 'contents[%d].parts[%d].function_call.args' (type.googleapis.com/google.protobuf.Struct)", i, j)
	case p.FunctionResponse != nil && role != "user":
		return refusal("Please ensure that function response turn comes immediately after a function call turn.")
	case p.FunctionResponse != nil && p.FunctionResponse.Name == "":
		return refusedf("* GenerateContentRequest.contents[%d].parts[%d].function_response.name: Name cannot be empty.\n", i, j)
	case p.FunctionResponse != nil && !isObject(p.FunctionResponse.Response):
		return refusedf("Invalid value at 'contents[%d].parts[%d].function_response.response' (type.googleapis.com/google.protobuf.Struct)", i, j)
	}
	return nil
}

// checkTurns wants user and model by turns. The responses of functions are a turn of
// their own: as many as there were calls, in their order.
func (r *geminiRequest) checkTurns() error {
	var open []*geminiCall
	before := ""
	for _, c := range r.Contents {
		var calls []*geminiCall
		var responses []*geminiResponse
		for _, p := range c.Parts {
			switch {
			case p.FunctionCall != nil:
				calls = append(calls, p.FunctionCall)
			case p.FunctionResponse != nil:
				responses = append(responses, p.FunctionResponse)
			}
		}
		kind := c.Role
		if len(responses) > 0 {
			kind = "function"
		}
		switch {
		case kind == before:
			return refusal("Please ensure that multiturn requests alternate between user and model.")
		case len(responses) != len(open) && len(responses) > 0 && len(open) == 0:
			return refusal("Please ensure that function response turn comes immediately after a function call turn.")
		case len(responses) != len(open):
			return refusal("Please ensure that the number of function response parts is equal to the number of function call parts of the function call turn.")
		case len(calls) > 0 && before == "":
			return refusal("Please ensure that function call turn comes immediately after a user turn or after a function response turn.")
		}
		for i, f := range responses {
			if f.Name != open[i].Name || f.ID != open[i].ID {
				return refusedf("Function response %s (%s) does not match function call %s (%s).", f.Name, f.ID, open[i].Name, open[i].ID)
			}
		}
		open, before = calls, kind
	}
	if before == "model" && len(open) > 0 {
		return refusal("Please ensure that the number of function response parts is equal to the number of function call parts of the function call turn.")
	}
	return nil
}

// skipSignature stands for a signature that a client has lost.
const skipSignature = "skip_thought_signature_validator"

// checkSignatures wants those that came with this server's answers back as they were,
// and on the first call of each step of the open turn it wants one.
func (r *geminiRequest) checkSignatures() error {
	turn := 0 // where the open turn begins
	for i, c := range r.Contents {
		if c.Role == "user" && c.Parts[0].FunctionResponse == nil {
			turn = i
		}
	}
	for i, c := range r.Contents {
		first := true
		for j, p := range c.Parts {
			want := signature("text")
			if p.FunctionCall != nil {
				want = callSignature(p.FunctionCall)
			}
			if p.ThoughtSignature != "" && p.ThoughtSignature != want && p.ThoughtSignature != skipSignature {
				return refusal("Corrupted thought signature.")
			}
			if p.FunctionCall == nil {
				continue
			}
			if first && i > turn && r.signed() && p.ThoughtSignature == "" {
				return refusedf("Function call is missing a thought_signature in functionCall parts. This is required for tools to work correctly, and missing thought_signature may lead to degraded model performance. Additional data, function call `default_api:%s` , position %d.%d.", p.FunctionCall.Name, i+1, j+1)
			}
			first = false
		}
	}
	return nil
}

// openAPI are the keywords of the schemas that Gemini calls its own.
var openAPI = []string{
	"type", "format", "title", "description", "nullable", "enum", "maxItems", "minItems", "properties", "required",
	"minProperties", "maxProperties", "minLength", "maxLength", "pattern", "example", "anyOf", "propertyOrdering",
	"default", "items", "minimum", "maximum",
}

func (r *geminiRequest) checkTools() error {
	declared := []string{}
	for i, t := range r.Tools {
		for j, f := range t.FunctionDeclarations {
			switch {
			case !functionName.MatchString(f.Name):
				return refusedf("* GenerateContentRequest.tools[%d].function_declarations[%d].name: [FIELD_INVALID] Invalid function name. Must start with a letter or an underscore. Must be alphameric (a-z, A-Z, 0-9), underscores (_), dots (.), colons (:), or dashes (-), with a maximum length of 128.\n", i, j)
			case slices.Contains(declared, f.Name):
				return refusedf("Duplicate function declaration found: %s", f.Name)
			case len(f.Parameters) > 0 && len(f.ParametersJSONSchema) > 0:
				return refusal("Only one of parameters and parameters_json_schema may be set.")
			}
			declared = append(declared, f.Name)
			if at, word := forbidden(f.Parameters, "parameters", notOpenAPI); word != "" {
				return refusedf("Invalid JSON payload received. Unknown name \"%s\" at 'tools[%d].function_declarations[%d].%s': Cannot find field.", word, i, j, at)
			}
		}
	}
	c := r.ToolConfig.FunctionCallingConfig
	switch {
	case !slices.Contains([]string{"", "AUTO", "ANY", "NONE", "VALIDATED"}, c.Mode):
		return refusedf("Invalid value at 'tool_config.function_calling_config.mode' (type.googleapis.com/google.ai.generativelanguage.v1beta.FunctionCallingConfig.Mode), \"%s\"", c.Mode)
	case c.Mode == "ANY" && len(declared) == 0:
		return refusal("Function calling config is set without function_declarations.")
	case len(c.AllowedFunctionNames) > 0 && c.Mode != "ANY" && c.Mode != "VALIDATED":
		return refusal("allowed_function_names should only be set when the function calling mode is ANY or VALIDATED.")
	case c.StreamFunctionCallArguments != nil:
		return refusal("stream_function_call_arguments is not supported in Gemini API.")
	}
	for _, name := range c.AllowedFunctionNames {
		if !slices.Contains(declared, name) {
			return refusedf("allowed_function_names contains '%s', which is not declared.", name)
		}
	}
	return nil
}

func notOpenAPI(word string, _ map[string]json.RawMessage) bool {
	return !slices.Contains(openAPI, word)
}

func (r *geminiRequest) checkConfig() error {
	c := r.GenerationConfig
	think := c.ThinkingConfig
	schema := r.schema()
	switch {
	case think.ThinkingLevel != "" && think.ThinkingBudget != nil:
		return refusal("You can only set only one of thinking budget and thinking level.")
	case !slices.Contains([]string{"", "MINIMAL", "LOW", "MEDIUM", "HIGH", "XHIGH"}, strings.ToUpper(think.ThinkingLevel)):
		return refusedf("Invalid value at 'generation_config.thinking_config.thinking_level', \"%s\"", think.ThinkingLevel)
	case len(schema) > 0 && c.ResponseMIMEType != "application/json":
		return refusal("Function calling with a response mime type: 'text/plain' is unsupported with response_schema.")
	case len(c.ResponseSchema) > 0 && len(c.ResponseJSONSchema) > 0:
		return refusal("Only one of response_schema and response_json_schema may be set.")
	case len(c.StopSequences) > 5:
		return refusal("* GenerateContentRequest.generation_config.stop_sequences: stop_sequences must have at most 5 elements\n")
	case c.Temperature != nil && (*c.Temperature < 0 || *c.Temperature > 2):
		return refusal("* GenerateContentRequest.generation_config.temperature: temperature must be in the range [0.0, 2.0].\n")
	case c.CandidateCount < 0 || c.CandidateCount > 8:
		return refusal("* GenerateContentRequest.generation_config.candidate_count: candidate_count must be in the range [1, 8].\n")
	case c.MaxOutputTokens != nil && *c.MaxOutputTokens < 1:
		return refusal("max_output_tokens must be positive.")
	}
	if at, word := forbidden(c.ResponseSchema, "response_schema", notOpenAPI); word != "" {
		return refusedf("Invalid JSON payload received. Unknown name \"%s\" at 'generation_config.%s': Cannot find field.", word, at)
	}
	return nil
}
