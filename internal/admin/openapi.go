package admin

import (
	"strings"

	"github.com/limen-gateway/limen/internal/keys"
)

// OpenAPI describes the API, as OpenAPI 3.1 does.
type OpenAPI struct {
	Version    string                             `json:"openapi"`
	Info       apiInfo                            `json:"info"`
	Servers    []apiServer                        `json:"servers"`
	Paths      map[string]map[string]apiOperation `json:"paths"` // by path and method
	Components apiComponents                      `json:"components"`
}

type apiInfo struct {
	Title   string `json:"title"`
	Version string `json:"version"`
}

type apiServer struct {
	URL string `json:"url"`
}

type apiOperation struct {
	Summary    string                 `json:"summary"`
	Parameters []apiParameter         `json:"parameters,omitempty"`
	Body       *apiBody               `json:"requestBody,omitempty"`
	Responses  map[string]apiResponse `json:"responses"`
	Security   []map[string][]string  `json:"security"`
	Roles      []keys.Role            `json:"x-limen-roles,omitempty"`
	Scopes     []string               `json:"x-limen-scopes,omitempty"`
	Audited    bool                   `json:"x-limen-audited"`
}

type apiParameter struct {
	Name     string    `json:"name"`
	In       string    `json:"in"`
	Required bool      `json:"required"`
	Schema   apiSchema `json:"schema"`
}

type apiSchema struct {
	Type string `json:"type"`
}

type apiBody struct {
	Content map[string]apiContent `json:"content"`
}

type apiContent struct {
	Schema apiSchema `json:"schema"`
}

type apiResponse struct {
	Description string                `json:"description"`
	Content     map[string]apiContent `json:"content"`
}

type apiComponents struct {
	Security map[string]apiSecurity `json:"securitySchemes"`
}

type apiSecurity struct {
	Type        string `json:"type"`
	Scheme      string `json:"scheme,omitempty"`
	In          string `json:"in,omitempty"`
	Name        string `json:"name,omitempty"`
	Description string `json:"description"`
}

// Names of the ways to say who one is.
const (
	byBearer = "bearer"
	byCookie = "session"
)

var jsonObject = map[string]apiContent{"application/json": {apiSchema{"object"}}}

func (a *API) openAPI(*request) (*OpenAPI, error) {
	doc := &OpenAPI{
		Version: "3.1.0", Info: apiInfo{"Limen admin API", a.Version}, Servers: []apiServer{{root}}, Paths: map[string]map[string]apiOperation{},
		Components: apiComponents{map[string]apiSecurity{
			byBearer: {Type: "http", Scheme: "bearer", Description: "The admin password, or an admin token."},
			byCookie: {Type: "apiKey", In: "cookie", Name: sessionCookie, Description: "A session; what is no GET comes from a page of the same origin, as JSON."},
		}},
	}
	for _, op := range a.table() {
		if doc.Paths[op.path] == nil {
			doc.Paths[op.path] = map[string]apiOperation{}
		}
		doc.Paths[op.path][strings.ToLower(op.method)] = op.describe()
	}
	return doc, nil
}

// describe is what OpenAPI says of an operation.
func (op *operation) describe() apiOperation {
	out := apiOperation{
		Summary: op.summary, Roles: op.access.roles, Scopes: op.access.scopes.Names(), Audited: op.change,
		Responses: map[string]apiResponse{"200": {"It was done.", jsonObject}, "default": {"It was not: error has a message and a code.", jsonObject}},
		Security:  []map[string][]string{{byBearer: {}}, {byCookie: {}}},
	}
	if op.access.unknown {
		out.Security = []map[string][]string{}
	}
	for segment := range strings.SplitSeq(op.path, "/") {
		if name, ok := strings.CutPrefix(segment, "{"); ok {
			out.Parameters = append(out.Parameters, apiParameter{strings.TrimSuffix(name, "}"), "path", true, apiSchema{"string"}})
		}
	}
	for name := range strings.FieldsSeq(op.query) {
		out.Parameters = append(out.Parameters, apiParameter{name, "query", false, apiSchema{"string"}})
	}
	if op.method == "POST" || op.method == "PATCH" {
		out.Body = &apiBody{jsonObject}
	}
	return out
}
