package upstream

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
)

type geminiRequest struct {
	Contents          []geminiContent `json:"contents"`
	SystemInstruction *geminiContent  `json:"systemInstruction"`
	Tools             []geminiTool    `json:"tools"`
	ToolConfig        struct {
		FunctionCallingConfig struct {
			Mode                        string   `json:"mode"`
			AllowedFunctionNames        []string `json:"allowedFunctionNames"`
			StreamFunctionCallArguments *bool    `json:"streamFunctionCallArguments"`
		} `json:"functionCallingConfig"`
		RetrievalConfig                  json.RawMessage `json:"retrievalConfig"`
		IncludeServerSideToolInvocations *bool           `json:"includeServerSideToolInvocations"`
	} `json:"toolConfig"`
	GenerationConfig  geminiConfig    `json:"generationConfig"`
	SafetySettings    json.RawMessage `json:"safetySettings"`
	CachedContent     string          `json:"cachedContent"`
	ServiceTier       string          `json:"serviceTier"`
	ContinuationToken string          `json:"continuationToken"`

	model string // both of these are in the path
	sse   bool
}

type geminiConfig struct {
	MaxOutputTokens    *int            `json:"maxOutputTokens"`
	Temperature        *float64        `json:"temperature"`
	TopP               *float64        `json:"topP"`
	TopK               *float64        `json:"topK"`
	CandidateCount     int             `json:"candidateCount"`
	StopSequences      []string        `json:"stopSequences"`
	Seed               *int32          `json:"seed"`
	PresencePenalty    *float64        `json:"presencePenalty"`
	FrequencyPenalty   *float64        `json:"frequencyPenalty"`
	ResponseLogprobs   *bool           `json:"responseLogprobs"`
	Logprobs           *int            `json:"logprobs"`
	ResponseMIMEType   string          `json:"responseMimeType"`
	ResponseSchema     json.RawMessage `json:"responseSchema"`
	ResponseJSONSchema json.RawMessage `json:"responseJsonSchema"`
	ResponseModalities []string        `json:"responseModalities"`
	SpeechConfig       json.RawMessage `json:"speechConfig"`
	ImageConfig        json.RawMessage `json:"imageConfig"`
	MediaResolution    string          `json:"mediaResolution"`
	ThinkingConfig     struct {
		IncludeThoughts bool   `json:"includeThoughts"`
		ThinkingLevel   string `json:"thinkingLevel"`
		ThinkingBudget  *int   `json:"thinkingBudget"`
	} `json:"thinkingConfig"`
}

type geminiTool struct {
	FunctionDeclarations []struct {
		Name                 string          `json:"name"`
		Description          string          `json:"description"`
		Parameters           json.RawMessage `json:"parameters"`
		ParametersJSONSchema json.RawMessage `json:"parametersJsonSchema"`
		Response             json.RawMessage `json:"response"`
		ResponseJSONSchema   json.RawMessage `json:"responseJsonSchema"`
		Behavior             string          `json:"behavior"`
	} `json:"functionDeclarations"`
	GoogleSearch  json.RawMessage `json:"googleSearch"`
	URLContext    json.RawMessage `json:"urlContext"`
	CodeExecution json.RawMessage `json:"codeExecution"`
	GoogleMaps    json.RawMessage `json:"googleMaps"`
	FileSearch    json.RawMessage `json:"fileSearch"`
	ComputerUse   json.RawMessage `json:"computerUse"`
}

type geminiContent struct {
	Role  string       `json:"role,omitempty"`
	Parts []geminiPart `json:"parts"`
}

// geminiPart is one of what its members name. It comes and goes in the same shape.
type geminiPart struct {
	Text             *string         `json:"text,omitempty"`
	Thought          bool            `json:"thought,omitempty"`
	ThoughtSignature string          `json:"thoughtSignature,omitempty"`
	InlineData       *geminiBlob     `json:"inlineData,omitempty"`
	FileData         json.RawMessage `json:"fileData,omitempty"`
	FunctionCall     *geminiCall     `json:"functionCall,omitempty"`
	FunctionResponse *geminiResponse `json:"functionResponse,omitempty"`
	VideoMetadata    json.RawMessage `json:"videoMetadata,omitempty"`
	MediaResolution  json.RawMessage `json:"mediaResolution,omitempty"`
}

type geminiBlob struct {
	MIMEType    string `json:"mimeType"`
	Data        string `json:"data"`
	DisplayName string `json:"displayName"`
}

type geminiCall struct {
	ID   string          `json:"id,omitempty"`
	Name string          `json:"name"`
	Args json.RawMessage `json:"args,omitempty"`
}

type geminiResponse struct {
	ID         string          `json:"id"`
	Name       string          `json:"name"`
	Response   json.RawMessage `json:"response"`
	Parts      []geminiPart    `json:"parts"`
	Scheduling string          `json:"scheduling"`
}

// callGemini serves the operations that the path names after a colon.
func (s *Server) callGemini(x *exchange) {
	switch _, operation, _ := strings.Cut(x.r.PathValue("call"), ":"); operation {
	case "generateContent", "streamGenerateContent":
		s.call(parseGemini)(x)
	case "countTokens":
		s.countTokens(parseGeminiCount, "totalTokens")(x)
	default:
		x.fail(http.StatusNotFound, apiError{Message: "Requested entity was not found."})
	}
}

// parseGeminiCount is for counting, where the request stands within another.
func parseGeminiCount(r *http.Request, body []byte) (door, error) {
	var whole struct {
		Request map[string]json.RawMessage `json:"generateContentRequest"`
	}
	if err := json.Unmarshal(body, &whole); err != nil || whole.Request == nil {
		return nil, refusal("* CountTokensRequest.generate_content_request: is required\n")
	}
	delete(whole.Request, "model")
	inner, err := json.Marshal(whole.Request)
	if err != nil {
		return nil, err
	}
	return parseGemini(r, inner)
}

func parseGemini(r *http.Request, body []byte) (door, error) {
	req := &geminiRequest{}
	model, operation, _ := strings.Cut(r.PathValue("call"), ":")
	req.model, req.sse = model, operation == "streamGenerateContent"
	if req.sse && r.URL.Query().Get("alt") != "sse" {
		return nil, refusal("this server streams with alt=sse alone") // Gemini would send one JSON array
	}
	switch unknown, err := strictly(body, req); {
	case unknown != "":
		return nil, refusedf("Invalid JSON payload received. Unknown name \"%s\": Cannot find field.", unknown)
	case err != nil:
		return nil, refusedf("Invalid JSON payload received. %v", err)
	}
	return req, req.check()
}

// signed says whether the model is one that signs its calls, with IDs, and wants the
// signatures back.
func (r *geminiRequest) signed() bool { return strings.HasPrefix(r.model, "gemini-3") }

func (r *geminiRequest) schema() json.RawMessage {
	if len(r.GenerationConfig.ResponseJSONSchema) > 0 {
		return r.GenerationConfig.ResponseJSONSchema
	}
	return r.GenerationConfig.ResponseSchema
}

func (r *geminiRequest) prompt() prompt {
	p := prompt{
		model: r.model, stream: r.sse, choices: max(r.GenerationConfig.CandidateCount, 1),
		schema: r.schema(), think: r.GenerationConfig.ThinkingConfig.IncludeThoughts,
	}
	for _, c := range slices.Backward(r.Contents) {
		if c.Role == "model" {
			continue
		}
		var b strings.Builder
		var results []string
		for _, part := range c.Parts {
			switch {
			case part.FunctionResponse != nil:
				results = append(results, resultText(part.FunctionResponse.Response))
			case part.InlineData != nil:
				p.image = part.InlineData.MIMEType
			case part.Text != nil:
				b.WriteString(*part.Text)
			}
		}
		if len(results) == 0 {
			p.user = b.String()
			break
		}
		p.told(results...)
	}
	for _, t := range r.Tools {
		for _, f := range t.FunctionDeclarations {
			if r.ToolConfig.FunctionCallingConfig.Mode != "NONE" {
				p.tools = append(p.tools, f.Name)
			}
		}
	}
	return p
}

// resultText is what a function's response says.
func resultText(response json.RawMessage) string {
	var object struct{ Output, Error *string }
	if json.Unmarshal(response, &object) == nil {
		for _, s := range []*string{object.Output, object.Error} {
			if s != nil {
				return *s
			}
		}
	}
	return string(response)
}

type geminiAnswer struct {
	Candidates    []geminiCandidate `json:"candidates"`
	UsageMetadata json.RawMessage   `json:"usageMetadata,omitempty"`
	ModelVersion  string            `json:"modelVersion"`
	ResponseID    string            `json:"responseId"`
}

type geminiCandidate struct {
	Content      geminiContent `json:"content"`
	FinishReason string        `json:"finishReason,omitempty"`
	Index        int           `json:"index"`
}

// parts are the content of a candidate. The first of parallel calls is signed for all
// of them; where there is none, the text is, if there was thinking.
func (r *geminiRequest) parts(id int, said reply) (list []geminiPart) {
	if said.thought != "" {
		list = append(list, geminiPart{Text: &said.thought, Thought: true})
	}
	if said.text != "" {
		part := geminiPart{Text: &said.text}
		if said.thought != "" {
			part.ThoughtSignature = signature("text")
		}
		list = append(list, part)
	}
	for i, c := range said.calls {
		call := &geminiCall{Name: c.name, Args: json.RawMessage(c.arguments)}
		part := geminiPart{FunctionCall: call}
		if r.signed() {
			call.ID = fmt.Sprintf("fc_%d_%d", id, i)
		}
		if i == 0 && (r.signed() || said.thought != "") {
			part.ThoughtSignature = callSignature(call)
		}
		list = append(list, part)
	}
	return list
}

func callSignature(c *geminiCall) string { return signature("call", c.Name, canonical(c.Args)) }

func geminiUsage(u usage) json.RawMessage {
	return fmt.Appendf(nil, `{"promptTokenCount":%s,"cachedContentTokenCount":%s,"candidatesTokenCount":%s,"thoughtsTokenCount":%s,"totalTokenCount":%s,`+
		`"promptTokensDetails":[{"modality":"TEXT","tokenCount":%[1]s}]}`,
		u.input, u.read, u.spoken, u.thought, u.total)
}

func (r *geminiRequest) answer(id int, u usage, candidates ...geminiCandidate) *geminiAnswer {
	return &geminiAnswer{Candidates: candidates, UsageMetadata: geminiUsage(u), ModelVersion: r.model, ResponseID: fmt.Sprintf("resp_%d", id)}
}

func (r *geminiRequest) whole(id int, said reply, u usage) any {
	a := r.answer(id, u)
	for n := range r.prompt().choices {
		a.Candidates = append(a.Candidates, geminiCandidate{geminiContent{"model", r.parts(id, said)}, "STOP", n})
	}
	return a
}

// stream has a chunk for each piece of text, and calls whole. A signature of text comes
// in a part of its own at the end.
func (r *geminiRequest) stream(id int, said reply, u usage) []frame {
	var frames []frame
	for n := range r.prompt().choices {
		emit := func(finish string, parts ...geminiPart) {
			frames = append(frames, frame{finish: finish != "", data: r.answer(id, u, geminiCandidate{geminiContent{"model", append([]geminiPart{}, parts...)}, finish, n})})
		}
		for _, part := range r.parts(id, said) {
			if part.Text == nil {
				emit("", part)
				continue
			}
			for _, piece := range pieces(*part.Text) {
				emit("", geminiPart{Text: &piece, Thought: part.Thought})
			}
			if part.ThoughtSignature != "" {
				emit("", geminiPart{Text: new(""), ThoughtSignature: part.ThoughtSignature})
			}
		}
		emit("STOP", geminiPart{Text: new("")})
	}
	frames[len(frames)-1].terminal = true
	return frames
}

func (r *geminiRequest) failure(_ int, e apiError, _ errorShape) []frame {
	return []frame{{data: geminiFailure(http.StatusInternalServerError, e), terminal: true}}
}
