package provider

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/limen-gateway/limen/internal/dialect"
	"github.com/limen-gateway/limen/internal/price"
)

// A Model is what is known of one model at one vendor. Zero values mean that
// it is not known.
type Model struct {
	ID          string
	Created     int64 // release, in seconds since 1970
	OwnedBy     string
	Name        string // for people
	Description string

	Context   int      // tokens, question and answer together
	MaxOutput int      // tokens
	Input     []string // modalities: text, image, audio, video, pdf or file
	Output    []string

	Tools       Ability
	Reasoning   Ability
	Structured  Ability // answers to a JSON schema
	Vision      Ability
	Attachments Ability // files
	Temperature Ability // takes temperature and its like

	Efforts   []string // values of reasoning_effort, as listed
	Thinking  []string // of Anthropic's types "adaptive" and "enabled", those listed
	Knowledge string   // date of the last training data: YYYY, YYYY-MM or YYYY-MM-DD

	Prices price.List `json:",omitzero"` // at the vendor
}

// An Ability says whether a model can do something. That nobody said so is not
// the same as no.
type Ability uint8

const (
	Unknown Ability = iota
	No
	Yes
)

func (a Ability) String() string { return [...]string{"unknown", "no", "yes"}[a] }

func ability(yes bool) Ability {
	if yes {
		return Yes
	}
	return No
}

// Bounds of a model list. OpenRouter's, the longest, is about a tenth of each.
const (
	MaxListSize = 8 << 20 // bytes
	maxModels   = 20_000
)

var errNoList = errors.New("not a model list")

// A Listing is how servers of a dialect are asked for their model list.
type Listing struct {
	Path   string // below the base URL, with the query; empty: they have none
	Header [2]string
	Next   string // parameter that asks for the page after the one NextPage tells of; empty: one page is all
}

// listings by dialect. Those that are not here list as OpenAI does.
var listings = map[dialect.Name]Listing{
	dialect.Anthropic: {Path: "/models?limit=1000", Header: [2]string{"Anthropic-Version", "2023-06-01"}, Next: "after_id"},
	dialect.Gemini:    {Path: "/models?pageSize=1000", Next: "pageToken"},
	dialect.Bedrock:   {},
}

// Listing is how the vendor is asked for its model list when it is spoken to
// in these dialects, best first.
func (v Vendor) Listing(speaks []dialect.Name) Listing {
	if v.Listed != (Listed{}) {
		return Listing{}
	}
	if len(speaks) > 0 {
		if l, ok := listings[speaks[0]]; ok {
			return l
		}
	}
	return Listing{Path: "/models"}
}

// NextPage is what a page of a list says that the next one is asked for with;
// empty on the last.
func NextPage(body []byte) string {
	var page struct {
		More  bool   `json:"has_more"`
		Last  string `json:"last_id"`
		Token string `json:"nextPageToken"`
	}
	if !tolerate(json.Unmarshal(body, &page)) {
		return ""
	}
	if page.More {
		return page.Last
	}
	return page.Token
}

// Join makes one list of several pages.
func Join(pages ...[]Model) []Model { return sorted(slices.Concat(pages...)) }

// sorted puts models in the order of their IDs; the first of several with one
// ID stays.
func sorted(models []Model) []Model {
	byID := func(a, b Model) int { return strings.Compare(a.ID, b.ID) }
	slices.SortStableFunc(models, byID)
	return slices.CompactFunc(models, func(a, b Model) bool { return a.ID == b.ID })
}

// DecodeModels reads the model list of any vendor. It takes OpenAI's form, a
// bare array (Together), and the "models" of Gemini and of Ollama's /api/tags.
// Models come sorted by ID; the first of several with one ID counts, and one
// without is left out, as is one of Gemini's that generates no content. IDs are as the vendor writes them, but without the
// "models/" of Gemini's. A member of an unexpected type counts as absent.
//
// A body that is no list, or is longer than MaxListSize, is an error.
func DecodeModels(body []byte) ([]Model, error) {
	if len(body) > MaxListSize {
		return nil, fmt.Errorf("model list of %d bytes: at most %d are read", len(body), MaxListSize)
	}
	entries, err := listEntries(body)
	if err != nil {
		return nil, err
	}
	if len(entries) > maxModels {
		return nil, fmt.Errorf("list of %d models: at most %d are read", len(entries), maxModels)
	}
	models := make([]Model, 0, len(entries))
	for _, raw := range entries {
		var e entry
		if !tolerate(json.Unmarshal(raw, &e)) {
			continue
		}
		if m := e.model(); m.ID != "" && e.generates() {
			models = append(models, m)
		}
	}
	return sorted(models), nil
}

// listEntries finds the array in the forms that vendors wrap it in. llama.cpp
// sends "models" and "data": the latter has more.
func listEntries(body []byte) ([]json.RawMessage, error) {
	array := json.RawMessage(bytes.TrimSpace(body))
	if !bytes.HasPrefix(array, []byte("[")) {
		var list struct{ Data, Models json.RawMessage }
		if json.Unmarshal(body, &list) != nil {
			return nil, errNoList
		}
		array = list.Data
		if array == nil {
			array = list.Models
		}
	}
	var entries []json.RawMessage
	if array == nil || json.Unmarshal(array, &entries) != nil {
		return nil, errNoList
	}
	return entries, nil
}

// tolerate reports whether decoding went well, but for members of a wrong type,
// which encoding/json skips.
func tolerate(err error) bool {
	var mistyped *json.UnmarshalTypeError
	return err == nil || errors.As(err, &mistyped)
}

// entry is one model in the words of all vendors.
type entry struct {
	ID          string `json:"id"`
	Model       string `json:"model"` // Ollama's /api/tags, in place of "id"
	Name        string `json:"name"`
	DisplayName string `json:"display_name"`
	Description string `json:"description"`
	OwnedBy     string `json:"owned_by"`

	Created   number `json:"created"`
	CreatedAt string `json:"created_at"` // RFC 3339

	ContextLength       number `json:"context_length"`
	MaxModelLen         number `json:"max_model_len"`
	ContextWindow       number `json:"context_window"`
	MaxContextLength    number `json:"max_context_length"`
	MaxInputTokens      number `json:"max_input_tokens"`
	MaxOutputTokens     number `json:"max_output_tokens"`
	MaxCompletionTokens number `json:"max_completion_tokens"`
	TopProvider         struct {
		ContextLength       number `json:"context_length"`
		MaxCompletionTokens number `json:"max_completion_tokens"`
	} `json:"top_provider"`

	InputModalities  []string `json:"input_modalities"`
	OutputModalities []string `json:"output_modalities"`
	Architecture     struct {
		InputModalities  []string `json:"input_modalities"`
		OutputModalities []string `json:"output_modalities"`
	} `json:"architecture"`

	SupportedParameters []string `json:"supported_parameters"`
	KnowledgeCutoff     string   `json:"knowledge_cutoff"`
	Pricing             perToken `json:"pricing"`

	Capabilities struct {
		// Mistral
		FunctionCalling *bool `json:"function_calling"`
		Vision          *bool `json:"vision"`
		Reasoning       *bool `json:"reasoning"`
		// Anthropic
		Structured support `json:"structured_outputs"`
		Image      support `json:"image_input"`
		PDF        support `json:"pdf_input"`
		Thinking   struct {
			Supported *bool              `json:"supported"`
			Types     map[string]support `json:"types"`
		} `json:"thinking"`
		Effort map[string]json.RawMessage `json:"effort"`
	} `json:"capabilities"`
	MaxTokens number `json:"max_tokens"` // Anthropic: of an answer

	SupportsReasoning *bool `json:"supports_reasoning"` // Moonshot
	SupportsImageIn   *bool `json:"supports_image_in"`

	// Gemini, outside its OpenAI dialect. There "name" is the ID.
	GeminiName       string   `json:"displayName"`
	InputTokenLimit  number   `json:"inputTokenLimit"`
	OutputTokenLimit number   `json:"outputTokenLimit"`
	Methods          []string `json:"supportedGenerationMethods"`
	Thinking         *bool    `json:"thinking"`
}

// support is how Anthropic says whether a model can do something.
type support struct {
	Supported *bool `json:"supported"`
}

// generates reports whether the model answers with content at all.
func (e *entry) generates() bool {
	return e.Methods == nil || slices.Contains(e.Methods, "generateContent")
}

func (e *entry) model() Model {
	id, name := first(e.ID, e.Model), e.Name
	if e.Methods != nil {
		id, name = e.Name, e.GeminiName
	}
	if e.Methods != nil || e.OwnedBy == "google" {
		id = strings.TrimPrefix(id, "models/")
	}
	m := Model{
		ID:          id,
		Created:     e.created(),
		OwnedBy:     e.OwnedBy,
		Name:        first(e.DisplayName, name),
		Description: e.Description,
		Context: tokens(e.ContextLength, e.MaxModelLen, e.ContextWindow, e.MaxContextLength,
			e.TopProvider.ContextLength, e.MaxInputTokens, e.InputTokenLimit),
		MaxOutput: tokens(e.MaxOutputTokens, e.MaxCompletionTokens,
			e.TopProvider.MaxCompletionTokens, e.OutputTokenLimit),
		Input:     words(e.Architecture.InputModalities, e.InputModalities),
		Output:    words(e.Architecture.OutputModalities, e.OutputModalities),
		Knowledge: e.KnowledgeCutoff,
		Prices:    e.Pricing.list(),
	}
	if e.MaxInputTokens > 0 {
		m.MaxOutput = first(m.MaxOutput, tokens(e.MaxTokens))
	}
	can := &e.Capabilities
	m.Tools = first(said(can.FunctionCalling), e.parameter("tools"))
	m.Reasoning = first(said(can.Reasoning), said(can.Thinking.Supported), said(e.SupportsReasoning), said(e.Thinking),
		e.parameter("reasoning", "reasoning_effort", "include_reasoning"))
	m.Structured = first(said(can.Structured.Supported), e.parameter("structured_outputs"))
	m.Temperature = e.parameter("temperature")
	m.Vision = first(said(can.Vision), said(can.Image.Supported), said(e.SupportsImageIn), sees(m.Input))
	m.Attachments = said(can.PDF.Supported)
	m.Thinking, m.Efforts = e.thinking()
	return m
}

// thinking are the ways to think, and the efforts, that Anthropic lists as
// supported. Without any ways nothing is known of either.
func (e *entry) thinking() (ways, efforts []string) {
	for _, name := range []string{"adaptive", "enabled"} {
		if said(e.Capabilities.Thinking.Types[name].Supported) == Yes {
			ways = append(ways, name)
		}
	}
	if ways == nil {
		return nil, nil
	}
	for _, name := range []string{"low", "medium", "high", "xhigh", "max"} {
		var s support
		if json.Unmarshal(e.Capabilities.Effort[name], &s) == nil && said(s.Supported) == Yes {
			efforts = append(efforts, name)
		}
	}
	return ways, efforts
}

func (e *entry) created() int64 {
	if e.Created > 0 {
		return int64(e.Created)
	}
	if t, err := time.Parse(time.RFC3339, e.CreatedAt); err == nil {
		return max(t.Unix(), 0)
	}
	return 0
}

// parameter reports whether one of names is a supported parameter.
func (e *entry) parameter(names ...string) Ability {
	if len(e.SupportedParameters) == 0 {
		return Unknown
	}
	return ability(slices.ContainsFunc(e.SupportedParameters, func(p string) bool {
		return slices.Contains(names, p)
	}))
}

func said(b *bool) Ability {
	if b == nil {
		return Unknown
	}
	return ability(*b)
}

// sees tells from the modalities taken whether images are among them.
func sees(input []string) Ability {
	if len(input) == 0 {
		return Unknown
	}
	return ability(slices.Contains(input, "image"))
}

// first returns the first value that is not zero.
func first[T comparable](values ...T) T {
	var zero T
	for _, v := range values {
		if v != zero {
			return v
		}
	}
	return zero
}

// words returns the first list that has a word in it, without empty ones.
func words(lists ...[]string) []string {
	for _, l := range lists {
		l = slices.DeleteFunc(l, func(w string) bool { return w == "" })
		if len(l) > 0 {
			return l
		}
	}
	return nil
}

// A number is a whole number that may come as a fraction or in quotes. What is
// no such thing, or is too large to be exact, is zero.
type number int64

func (n *number) UnmarshalJSON(b []byte) error {
	f, err := strconv.ParseFloat(strings.Trim(string(b), `"`), 64)
	*n = 0
	if err == nil && f > 0 && f < 1<<53 {
		*n = number(f)
	}
	return nil
}

// tokens returns the first of counts that is known.
func tokens(counts ...number) int {
	return int(min(first(counts...), math.MaxInt32))
}
