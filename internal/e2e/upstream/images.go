package upstream

import (
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"
)

// imageRequest is what makes images.
type imageRequest struct {
	Model             string `json:"model"`
	Prompt            string `json:"prompt"`
	N                 int    `json:"n"`
	Size              string `json:"size"`
	Quality           string `json:"quality"`
	Background        string `json:"background"`
	Moderation        string `json:"moderation"`
	OutputFormat      string `json:"output_format"`
	OutputCompression *int   `json:"output_compression"`
	ResponseFormat    string `json:"response_format"`
}

// Image is the picture that comes of a prompt: no picture, but what is told
// apart from others.
func Image(prompt string) string {
	return base64.StdEncoding.EncodeToString([]byte("image of " + prompt))
}

// makeImage answers as OpenAI's image models do: those of the gpt-image family
// give the image and know no response_format, the older ones give its address
// unless they are asked for the image.
func (s *Server) makeImage(x *exchange) {
	if !x.authorised() {
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(x.w, x.r.Body, maxBody))
	x.note(func(e *Request) { e.Body = string(body) })
	var req imageRequest
	if err == nil {
		var unknown string
		if unknown, err = strictly(body, &req); unknown != "" {
			x.fail(http.StatusBadRequest, apiError{Message: "Unknown parameter: '" + unknown + "'.", Type: "invalid_request_error", Param: &unknown})
			return
		}
	}
	newer := strings.HasPrefix(req.Model, "gpt-image")
	switch {
	case err != nil || req.Prompt == "":
		x.fail(http.StatusBadRequest, apiError{Message: "Missing required parameter: 'prompt'.", Type: "invalid_request_error"})
	case !slices.Contains(s.models, req.Model):
		status, e := x.vendor.noModel(req.Model)
		x.fail(status, e)
	case newer && req.ResponseFormat != "":
		x.fail(http.StatusBadRequest, apiError{Message: "Unknown parameter: 'response_format'.", Type: "invalid_request_error", Param: new("response_format")})
	case newer:
		x.send(&answer{body: json.RawMessage(`{"created":1,"data":[{"b64_json":"` + Image(req.Prompt) + `"}],"output_format":"` + req.OutputFormat + `",` +
			`"usage":{"input_tokens":7,"input_tokens_details":{"image_tokens":0,"text_tokens":7},"output_tokens":100,"total_tokens":107}}`)})
	case req.ResponseFormat == "b64_json":
		x.send(&answer{body: json.RawMessage(`{"created":1,"data":[{"b64_json":"` + Image(req.Prompt) + `","revised_prompt":"x"}]}`)})
	default:
		x.send(&answer{body: json.RawMessage(`{"created":1,"data":[{"url":"` + s.root() + `/image.png"}]}`)})
	}
}
