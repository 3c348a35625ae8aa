package gateway

import (
	"time"

	"github.com/limen-gateway/limen/internal/route"
)

// anthropicModel is a model as clients of Anthropic's API list it.
type anthropicModel struct {
	Type           string `json:"type"`
	ID             string `json:"id"`
	DisplayName    string `json:"display_name"`
	CreatedAt      string `json:"created_at"`
	MaxInputTokens int    `json:"max_input_tokens,omitempty"`
	MaxTokens      int    `json:"max_tokens,omitempty"`
}

var anthropicForm = modelsForm{"anthropic", listAnthropic, func(m *route.Model) []byte { return document(newAnthropicModel(m)) }}

func newAnthropicModel(m *route.Model) anthropicModel {
	o := newModelObject(m)
	name := o.Name
	if name == "" {
		name = o.ID
	}
	return anthropicModel{
		Type: "model", ID: o.ID, DisplayName: name, CreatedAt: time.Unix(o.Created, 0).UTC().Format(time.RFC3339),
		MaxInputTokens: o.ContextLength, MaxTokens: o.MaxOutputTokens,
	}
}

func listAnthropic(models []*route.Model) []byte {
	page := struct {
		Data    []anthropicModel `json:"data"`
		HasMore bool             `json:"has_more"`
		FirstID *string          `json:"first_id"`
		LastID  *string          `json:"last_id"`
	}{Data: []anthropicModel{}}
	for _, m := range models {
		page.Data = append(page.Data, newAnthropicModel(m))
	}
	if n := len(page.Data); n > 0 {
		page.FirstID, page.LastID = &page.Data[0].ID, &page.Data[n-1].ID
	}
	return document(page)
}
