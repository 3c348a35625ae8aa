package admin

import (
	"fmt"
	"reflect"
	"strings"

	"github.com/limen-gateway/limen/internal/config"
	"github.com/limen-gateway/limen/internal/keys"
	"github.com/limen-gateway/limen/internal/store"
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
	ID         string                `json:"operationId"`
	Tags       []string              `json:"tags"`
	Summary    string                `json:"summary"`
	Parameters []apiParameter        `json:"parameters,omitempty"`
	Body       *apiBody              `json:"requestBody,omitempty"`
	Responses  map[string]any        `json:"responses"` // *apiResponse or a reference to one
	Security   []map[string][]string `json:"security"`
	Roles      []keys.Role           `json:"x-limen-roles,omitempty"`
	Scopes     []string              `json:"x-limen-scopes,omitempty"`
	Audited    bool                  `json:"x-limen-audited"`
}

type apiParameter struct {
	Name     string  `json:"name"`
	In       string  `json:"in"`
	Required bool    `json:"required"`
	Explode  *bool   `json:"explode,omitempty"`
	Schema   *schema `json:"schema"`
}

type apiBody struct {
	Required bool                  `json:"required"`
	Content  map[string]apiContent `json:"content"`
}

type apiContent struct {
	Schema *schema `json:"schema"`
}

type apiResponse struct {
	Description string                `json:"description"`
	Content     map[string]apiContent `json:"content,omitempty"`
}

type apiComponents struct {
	Schemas   map[string]*schema     `json:"schemas"`
	Responses map[string]apiResponse `json:"responses"`
	Security  map[string]apiSecurity `json:"securitySchemes"`
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

// parameters are what queries may say, by their names.
var parameters = map[string]schema{
	"base":              {Type: "string", Format: "uri"},
	"before":            {Type: "string", Description: "The next of the page before."},
	"by":                {Type: "array", Items: &schema{Type: "string", Enum: texts(store.Dimensions)}},
	"cost_min":          {Type: "number", Description: "Dollars."},
	"failed":            {Type: "boolean"},
	"format":            {Type: "string", Enum: []string{"jsonl", "csv"}},
	"key":               {Type: "string", Description: "ID or name."},
	"limit":             {Type: "integer", Minimum: new(1)},
	"model":             {Type: "string"},
	"object":            {Type: "string", Description: "A part of what was changed: its ID or name."},
	"on":                {Type: "string", Description: "What was changed: the first part of the path, such as keys."},
	"provider":          {Type: "string"},
	"since":             {Type: "string", Description: "A time, or a date such as 2026-01-31."},
	"status":            {Type: "integer", Minimum: new(100), Maximum: new(599)},
	"tag":               {Type: "string", Description: "name=value, or a name."},
	"team":              {Type: "string", Description: "ID or name."},
	"until":             {Type: "string", Description: "A time, or a date such as 2026-01-31."},
	"who":               {Type: "string"},
	"zone":              {Type: "string", Description: "Name of a time zone such as Europe/Berlin."},
	"code":              {Type: "string", Description: "What the provider gave for it."},
	"error":             {Type: "string", Description: "What the provider refused with."},
	"error_description": {Type: "string"},
	"state":             {Type: "string", Description: "Which login it ends."},
}

// Failure is what is answered where an operation was not done.
type Failure struct {
	Error struct {
		Message  string           `json:"message"`
		Type     string           `json:"type"`
		Param    *string          `json:"param"`
		Code     *string          `json:"code"`
		Problems []config.Problem `json:"problems,omitempty"` // of a configuration
	} `json:"error"`
}

// refusals are the answers of what was not done, by their names.
var refusals = map[string]string{
	"Invalid":      "The request is wrong: the error says where.",
	"Unknown":      "Nobody is known by these credentials.",
	"Forbidden":    "Who asks may not do this.",
	"NotFound":     "There is no such thing.",
	"Unsuccessful": "It was not done: the error says why.",
}

func (a *API) openAPI(*request) (*OpenAPI, error) {
	s := newSchemas()
	doc := &OpenAPI{
		Version: "3.1.0", Info: apiInfo{"Limen admin API", a.Version}, Servers: []apiServer{{root}}, Paths: map[string]map[string]apiOperation{},
		Components: apiComponents{s.components, map[string]apiResponse{}, map[string]apiSecurity{
			byBearer: {Type: "http", Scheme: "bearer", Description: "The admin password, or an admin token."},
			byCookie: {Type: "apiKey", In: "cookie", Name: sessionCookie, Description: "A session; what is no GET comes from a page of the same origin, as JSON."},
		}},
	}
	failure := s.of(reflect.TypeFor[Failure](), inAnswer)
	for name, description := range refusals {
		doc.Components.Responses[name] = apiResponse{description, asJSON(failure)}
	}
	table := a.table()
	for i := range table { // first: what both have is as strict as bodies are
		if in := table[i].in; in != nil {
			s.of(in, inBody)
		}
	}
	for _, op := range table {
		if doc.Paths[op.path] == nil {
			doc.Paths[op.path] = map[string]apiOperation{}
		}
		doc.Paths[op.path][strings.ToLower(op.method)] = op.describe(s)
	}
	return doc, s.err()
}

func asJSON(s *schema) map[string]apiContent {
	return map[string]apiContent{"application/json": {s}}
}

// describe is what OpenAPI says of an operation.
func (op *operation) describe(s *schemas) apiOperation {
	out := apiOperation{
		Summary: op.summary, Roles: op.access.roles, Scopes: op.access.scopes.Names(), Audited: op.change,
		Security: []map[string][]string{{byBearer: {}}, {byCookie: {}}},
	}
	if op.access.unknown {
		out.Security = []map[string][]string{}
	}
	out.ID = strings.ToLower(op.method)
	for i, segment := range strings.FieldsFunc(op.path, func(r rune) bool { return strings.ContainsRune("/{}._-", r) }) {
		out.ID += strings.ToUpper(segment[:1]) + segment[1:]
		if i == 0 {
			out.Tags = []string{segment}
		}
	}
	for segment := range strings.SplitSeq(op.path, "/") {
		if name, ok := strings.CutPrefix(segment, "{"); ok {
			out.Parameters = append(out.Parameters, apiParameter{Name: strings.TrimSuffix(name, "}"), In: "path", Required: true, Schema: &schema{Type: "string"}})
		}
	}
	for name := range strings.FieldsSeq(op.query) {
		out.Parameters = append(out.Parameters, s.parameter(name))
	}
	if op.in != nil {
		// An empty body is one without members.
		in := s.of(op.in, inBody)
		out.Body = &apiBody{len(s.resolve(in).Required) > 0, asJSON(in)}
	}
	out.Responses = op.responses(s)
	return out
}

// parameter is one that a query may say.
func (s *schemas) parameter(name string) apiParameter {
	of, ok := parameters[name]
	if !ok {
		s.errs = append(s.errs, fmt.Errorf("the parameter %s is not described", name))
	}
	p := apiParameter{Name: name, In: "query", Schema: &of}
	if of.Type == "array" {
		p.Explode = new(false) // values are parted by commas
	}
	return p
}

// responses are what an operation may answer, by their statuses.
func (op *operation) responses(s *schemas) map[string]any {
	done := &apiResponse{"It was done.", map[string]apiContent{}}
	for _, kind := range op.kinds {
		done.Content[kind] = apiContent{&schema{Type: "string"}}
	}
	if op.out != nil {
		done.Content = asJSON(s.of(op.out, inAnswer))
	}
	status := "200"
	if op.leads {
		status, done = "303", &apiResponse{Description: "A browser is sent on."}
	}
	out := map[string]any{status: done, "default": failed("Unsuccessful"), "401": failed("Unknown"), "403": failed("Forbidden")}
	if op.in != nil || op.query != "" {
		out["400"] = failed("Invalid")
	}
	if strings.Contains(op.path, "{") {
		out["404"] = failed("NotFound")
	}
	return out
}

func failed(name string) map[string]string {
	return map[string]string{"$ref": "#/components/responses/" + name}
}
