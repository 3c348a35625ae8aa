package upstream

import (
	"net/http"
	"time"
)

// listModels answers in Anthropic's shape who says which version of its API they
// speak.
func (s *Server) listModels(x *exchange) {
	if x.r.Header.Get("Anthropic-Version") != "" {
		x.vendor = anthropic
	}
	if !x.authorised() {
		return
	}
	if x.vendor == anthropic {
		x.send(&answer{body: s.anthropicModels()})
		return
	}
	type model struct {
		ID      string `json:"id"`
		Object  string `json:"object"`
		Created int64  `json:"created"`
		OwnedBy string `json:"owned_by"`
	}
	list := struct {
		Object string  `json:"object"`
		Data   []model `json:"data"`
	}{Object: "list", Data: []model{}}
	for _, id := range s.models {
		list.Data = append(list.Data, model{ID: id, Object: "model", Created: epoch, OwnedBy: "upstream"})
	}
	x.send(&answer{body: list})
}

func (s *Server) anthropicModels() any {
	type model struct {
		Type        string `json:"type"`
		ID          string `json:"id"`
		DisplayName string `json:"display_name"`
		CreatedAt   string `json:"created_at"`
	}
	list := struct {
		Data    []model `json:"data"`
		HasMore bool    `json:"has_more"`
		FirstID string  `json:"first_id"`
		LastID  string  `json:"last_id"`
	}{FirstID: s.models[0], LastID: s.models[len(s.models)-1]}
	for _, id := range s.models {
		list.Data = append(list.Data, model{"model", id, id, time.Unix(epoch, 0).UTC().Format(time.RFC3339)})
	}
	return list
}

func (s *Server) listGemini(x *exchange) {
	if !x.authorised() {
		return
	}
	type model struct {
		Name                       string   `json:"name"`
		DisplayName                string   `json:"displayName"`
		InputTokenLimit            int      `json:"inputTokenLimit"`
		OutputTokenLimit           int      `json:"outputTokenLimit"`
		SupportedGenerationMethods []string `json:"supportedGenerationMethods"`
	}
	var list struct {
		Models []model `json:"models"`
	}
	for _, id := range s.models {
		list.Models = append(list.Models, model{"models/" + id, id, 1 << 20, 1 << 16, []string{"generateContent", "countTokens"}})
	}
	x.send(&answer{body: list})
}

// countTokens answers how many tokens a request has, by the same tokeniser that
// counts a call's.
func (s *Server) countTokens(parse func(*http.Request, []byte) (door, error), member string) func(*exchange) {
	return func(x *exchange) {
		if !x.authorised() {
			return
		}
		if body, ok := x.read(parse); ok {
			x.send(&answer{body: map[string]int{member: len(body)/4 + 1}})
		}
	}
}
