package gateway

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/limen-gateway/limen/internal/keys"
	"github.com/limen-gateway/limen/internal/provider"
	"github.com/limen-gateway/limen/internal/route"
)

// modelObject is a model as GET /v1/models shows it: OpenAI's members first,
// then those that pickers, cost meters and capability switches of clients read
// where the model's facts are known.
type modelObject struct {
	ID              string        `json:"id"`
	Object          string        `json:"object"`
	Created         int64         `json:"created"`
	OwnedBy         string        `json:"owned_by"`
	Name            string        `json:"name,omitempty"`
	Description     string        `json:"description,omitempty"`
	ContextLength   int           `json:"context_length,omitempty"`
	ContextWindow   int           `json:"context_window,omitempty"`
	MaxOutputTokens int           `json:"max_output_tokens,omitempty"`
	Architecture    *architecture `json:"architecture,omitempty"`
	TopProvider     *topProvider  `json:"top_provider,omitempty"`
	Parameters      []string      `json:"supported_parameters,omitempty"`
	KnowledgeCutoff string        `json:"knowledge_cutoff,omitempty"`
}

type architecture struct {
	Modality string   `json:"modality"` // "text+image->text"
	Input    []string `json:"input_modalities"`
	Output   []string `json:"output_modalities"`
}

type topProvider struct {
	ContextLength       int  `json:"context_length"`
	MaxCompletionTokens *int `json:"max_completion_tokens"`
	IsModerated         bool `json:"is_moderated"`
}

// unknownRelease stands where a model's release is not known: clients sort
// by it and keep it, so it must be a time and must not change. 2025-01-01.
const unknownRelease = 1735689600

func newModelObject(m *route.Model) modelObject {
	f := &m.Facts
	o := modelObject{
		ID: m.ID, Object: "model", Created: f.Created, OwnedBy: f.OwnedBy, Name: f.Name, Description: f.Description,
		ContextLength: f.Context, ContextWindow: f.Context, MaxOutputTokens: f.MaxOutput, KnowledgeCutoff: f.Knowledge,
		Parameters: parameters(f),
	}
	if o.Created <= 0 {
		o.Created = unknownRelease
	}
	if o.OwnedBy == "" {
		o.OwnedBy = m.Targets[0].Upstream.Name
	}
	if len(f.Input) > 0 && len(f.Output) > 0 {
		o.Architecture = &architecture{strings.Join(f.Input, "+") + "->" + strings.Join(f.Output, "+"), f.Input, f.Output}
	}
	if f.Context > 0 {
		o.TopProvider = &topProvider{ContextLength: f.Context}
		if f.MaxOutput > 0 {
			o.TopProvider.MaxCompletionTokens = &f.MaxOutput
		}
	}
	return o
}

// parameters lists what is known to be supported; nothing is said of the rest.
func parameters(f *provider.Model) []string {
	var list []string
	add := func(a provider.Ability, names ...string) {
		if a == provider.Yes {
			list = append(list, names...)
		}
	}
	add(f.Tools, "tools", "tool_choice")
	add(f.Structured, "response_format", "structured_outputs")
	add(f.Reasoning, "reasoning", "include_reasoning")
	add(f.Temperature, "temperature", "top_p")
	return list
}

// codexModel is a model as Codex's catalogue has it.
type codexModel struct {
	Slug                  string           `json:"slug"`
	DisplayName           string           `json:"display_name"`
	Description           string           `json:"description"`
	DefaultReasoning      *string          `json:"default_reasoning_level"`
	ReasoningLevels       []reasoningLevel `json:"supported_reasoning_levels"`
	ShellType             string           `json:"shell_type"`
	Visibility            string           `json:"visibility"`
	SupportedInAPI        bool             `json:"supported_in_api"`
	Priority              int              `json:"priority"`
	Upgrade               *string          `json:"upgrade"`
	BaseInstructions      string           `json:"base_instructions"`
	ReasoningSummaries    bool             `json:"supports_reasoning_summaries"`
	SupportVerbosity      bool             `json:"support_verbosity"`
	DefaultVerbosity      *string          `json:"default_verbosity"`
	ApplyPatchToolType    *string          `json:"apply_patch_tool_type"`
	TruncationPolicy      truncationPolicy `json:"truncation_policy"`
	ParallelToolCalls     bool             `json:"supports_parallel_tool_calls"`
	ContextWindow         int              `json:"context_window,omitempty"`
	ExperimentalTools     []string         `json:"experimental_supported_tools"`
	InputModalities       []string         `json:"input_modalities,omitempty"`
	SupportsSearchTool    bool             `json:"supports_search_tool"`
	ReasoningSummaryLevel string           `json:"default_reasoning_summary,omitempty"`
}

type reasoningLevel struct {
	Effort      string `json:"effort"`
	Description string `json:"description"`
}

type truncationPolicy struct {
	Mode  string `json:"mode"`
	Limit int    `json:"limit"`
}

// codexInstructions are Codex's system prompt for models it does not know.
const codexInstructions = "You are a coding agent in a terminal, working with the user in a shared workspace. " +
	"Read what is there before you change it, use the tools you are given, keep changes small and in the style of the code around them, check that they work, and report in a few plain sentences what you did."

func newCodexModel(m *route.Model, priority int) codexModel {
	f := &m.Facts
	c := codexModel{
		Slug: m.ID, DisplayName: m.ID, Description: f.Description, ReasoningLevels: []reasoningLevel{},
		ShellType: "shell_command", Visibility: "list", SupportedInAPI: true, Priority: priority,
		BaseInstructions: codexInstructions, ReasoningSummaries: f.Reasoning == provider.Yes,
		TruncationPolicy: truncationPolicy{"bytes", 10000}, ParallelToolCalls: true,
		ContextWindow: f.Context, ExperimentalTools: []string{},
	}
	for _, effort := range f.Efforts {
		c.ReasoningLevels = append(c.ReasoningLevels, reasoningLevel{effort, effort})
	}
	if i := slices.Index(f.Efforts, "medium"); i >= 0 {
		c.DefaultReasoning = &f.Efforts[i]
	}
	for _, modality := range f.Input {
		if modality == "text" || modality == "image" {
			c.InputModalities = append(c.InputModalities, modality)
		}
	}
	return c
}

// listing is an answer to GET /v1/models.
type listing struct {
	body []byte
	etag []string
}

// modelsCache keeps the listings of one table, by what a key sees of it.
type modelsCache struct {
	mu    sync.Mutex
	table *route.Table
	views map[string]*listing
}

// maxViews bounds the listings that are kept.
const maxViews = 256

// get returns the listing that a key sees, in the form that a client reads.
func (mc *modelsCache) get(table *route.Table, key *keys.Key, form modelsForm) *listing {
	view := strings.Join(append([]string{form.name, key.Name}, key.Models...), "\x00")
	mc.mu.Lock()
	defer mc.mu.Unlock()
	if mc.table != table || len(mc.views) >= maxViews {
		mc.table, mc.views = table, map[string]*listing{}
	}
	l := mc.views[view]
	if l == nil {
		body := form.list(table.Visible(key))
		l = &listing{body: body, etag: etagOf(body)}
		mc.views[view] = l
	}
	return l
}

// modelsForm is how clients of a dialect read models.
type modelsForm struct {
	name string
	list func([]*route.Model) []byte
	show func(*route.Model) []byte
}

var openaiForm = modelsForm{"openai", listOpenAI, func(m *route.Model) []byte { return document(newModelObject(m)) }}

// modelsFormOf tells by its header what a client reads: only those of
// Anthropic say which version of the API they know.
func modelsFormOf(h http.Header) modelsForm {
	if h.Get("Anthropic-Version") != "" {
		return anthropicForm
	}
	return openaiForm
}

// document is a small JSON document of strings and numbers.
func document(v any) []byte {
	body, err := json.Marshal(v)
	if err != nil {
		return []byte(`{}`) // cannot be
	}
	return body
}

func listOpenAI(models []*route.Model) []byte {
	list := struct {
		Object string        `json:"object"`
		Data   []modelObject `json:"data"`
		Models []codexModel  `json:"models"` // Codex reads these, SDKs data
	}{"list", []modelObject{}, []codexModel{}}
	for i, m := range models {
		list.Data = append(list.Data, newModelObject(m))
		list.Models = append(list.Models, newCodexModel(m, i))
	}
	return document(list)
}

func etagOf(body []byte) []string {
	sum := sha256.Sum256(body)
	return []string{`"` + hex.EncodeToString(sum[:12]) + `"`}
}

// listModels answers with the models that the key may use now.
func (g *Gateway) listModels(x *exchange) {
	g.models.Await()
	l := g.catalog.get(g.models.Table(), x.key, modelsFormOf(x.r.Header))
	x.replyCached(l.body, l.etag)
	g.comes(x, false)
}

// showModel answers with one model.
func (g *Gateway) showModel(x *exchange) {
	g.models.Await()
	id := strings.TrimPrefix(cleanPath(x.r.URL.Path), "/v1/models/")
	m, err := g.models.Table().Resolve(x.key, id)
	if err != nil {
		g.refuse(x, err)
		return
	}
	body := modelsFormOf(x.r.Header).show(m)
	x.replyCached(body, etagOf(body))
}

// replyCached answers with a document that clients may keep and ask for again.
func (x *exchange) replyCached(body []byte, etag []string) {
	h := x.w.Header()
	h["Etag"], h["X-Models-Etag"], h["Content-Type"] = etag, etag, contentJSON
	h["Cache-Control"] = []string{"private, no-cache"}
	h["Vary"] = append(h["Vary"], "Authorization", "Anthropic-Version")
	if slices.Contains(x.r.Header["If-None-Match"], etag[0]) {
		x.w.WriteHeader(http.StatusNotModified)
		return
	}
	h["Content-Length"] = []string{strconv.Itoa(len(body))}
	x.w.WriteHeader(http.StatusOK)
	if x.r.Method != http.MethodHead {
		x.w.Write(body)
	}
}
