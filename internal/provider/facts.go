package provider

import (
	"compress/gzip"
	_ "embed"
	"fmt"
	"io"
	"path"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"
)

// factsFile holds what is publicly known of models: lines of tab-separated
// columns after a header that names its source, date and columns.
// MODELS_DEV is the JSON Lines file that genfacts describes.
//
//go:generate go run ./genfacts $MODELS_DEV facts.tsv.gz
//go:embed facts.tsv.gz
var factsFile string

const (
	factsSchema  = "# limen model facts, schema 1"
	factsColumns = 11
	factsSize    = 4 << 20 // uncompressed, at most
)

// homes maps the maker's part of an ID such as "x-ai/grok-4" to the vendor that
// is the maker's own service.
var homes = map[string]string{
	"alibaba":     "qwen",
	"anthropic":   "anthropic",
	"cohere":      "cohere",
	"deepseek":    "deepseek",
	"deepseek-ai": "deepseek",
	"google":      "gemini",
	"minimax":     "minimax",
	"minimaxai":   "minimax",
	"mistral":     "mistral",
	"mistral-ai":  "mistral",
	"mistralai":   "mistral",
	"moonshotai":  "moonshot",
	"openai":      "openai",
	"perplexity":  "perplexity",
	"qwen":        "qwen",
	"x-ai":        "xai",
	"xai":         "xai",
	"z-ai":        "zhipu",
	"zai":         "zhipu",
	"zai-org":     "zhipu",
}

// Facts returns what is publicly known of a model at a vendor. Where the vendor
// is not known to have it, the model's maker is asked, and at last every vendor:
// one that alone has that ID is believed. A date at the end of an ID may be
// missing there, as may what a cloud puts around its maker's ID, and letter case
// does not matter.
//
// The facts are as old as their file. Lists in them are shared: do not change them.
func Facts(vendor, id string) (Model, bool) {
	facts := loadFacts()
	id = strings.ToLower(id)
	if v, ok := Lookup(vendor); ok && v.Listed.Vendor != "" {
		vendor = v.Listed.Vendor
	}
	for _, id := range []string{id, withoutDate(id)} {
		if m, ok := facts.find(vendor, id); ok {
			return m, true
		}
	}
	if own := withoutCloud(id); own != id {
		for _, id := range []string{own, withoutDate(own)} {
			if m, n := facts.anywhere(facts.makers, id); n == 1 {
				return m, true
			}
		}
	}
	return Model{}, false
}

// Known are the models that stand in for the list of a vendor that gives none,
// by ID.
func (v Vendor) Known() []Model {
	var models []Model
	for key, m := range loadFacts().models {
		if fits, err := path.Match(v.Listed.Models, key.id); err == nil && fits && key.vendor == v.Listed.Vendor {
			models = append(models, m)
		}
	}
	return sorted(models)
}

// Merge returns what is known of a model from the vendor's own list and from
// public facts. What the vendor says wins, but for Created, where the earlier
// time does: some servers put the time of the call there.
func Merge(listed, facts Model) Model {
	m := listed
	if m.Created == 0 || facts.Created != 0 && facts.Created < m.Created {
		m.Created = facts.Created
	}
	m.ID = first(m.ID, facts.ID)
	m.OwnedBy = first(m.OwnedBy, facts.OwnedBy)
	m.Name = first(m.Name, facts.Name)
	m.Description = first(m.Description, facts.Description)
	m.Context = first(m.Context, facts.Context)
	m.MaxOutput = first(m.MaxOutput, facts.MaxOutput)
	m.Input = words(m.Input, facts.Input)
	m.Output = words(m.Output, facts.Output)
	m.Tools = first(m.Tools, facts.Tools)
	m.Reasoning = first(m.Reasoning, facts.Reasoning)
	m.Structured = first(m.Structured, facts.Structured)
	m.Vision = first(m.Vision, facts.Vision)
	m.Attachments = first(m.Attachments, facts.Attachments)
	m.Temperature = first(m.Temperature, facts.Temperature)
	m.Efforts = words(m.Efforts, facts.Efforts)
	m.Thinking = words(m.Thinking, facts.Thinking)
	m.Knowledge = first(m.Knowledge, facts.Knowledge)
	return m
}

// withoutDate cuts the date off an ID such as "gpt-5-2025-08-07".
func withoutDate(id string) string {
	for _, layout := range []string{"-2006-01-02", "-20060102"} {
		cut := len(id) - len(layout)
		if cut <= 0 {
			continue
		}
		if _, err := time.Parse(layout, id[cut:]); err == nil {
			return id[:cut]
		}
	}
	return id
}

// What Bedrock puts around an ID: region and maker before it, a version after it.
var (
	cloudMaker   = regexp.MustCompile(`^(?:[a-z-]+\.)?[a-z]+\.`)
	cloudVersion = regexp.MustCompile(`-v\d+(?::\d+)?$|-\d+:\d+$`)
)

// withoutCloud is the maker's own ID of a model that a cloud calls otherwise,
// as "claude-opus-4-8" of "eu.anthropic.claude-opus-4-8-v1:0", of its ARN, or of
// "claude-opus-4-8@default".
func withoutCloud(id string) string {
	if strings.HasPrefix(id, "arn:") {
		id = id[strings.LastIndexByte(id, '/')+1:]
	}
	if own := cloudMaker.ReplaceAllString(id, ""); own != id {
		id = cloudVersion.ReplaceAllString(own, "")
	}
	id, _, _ = strings.Cut(id, "@")
	return id
}

type factKey struct{ vendor, id string } // id in lower case

type factTable struct {
	models  map[factKey]Model
	vendors []string
	makers  []string // those of vendors that are homes
}

func (t *factTable) find(vendor, id string) (Model, bool) {
	if m, ok := t.models[factKey{vendor, id}]; ok {
		return m, true
	}
	if maker, name, ok := strings.Cut(id, "/"); ok {
		if m, ok := t.models[factKey{homes[maker], name}]; ok {
			return m, true
		}
	}
	if m, n := t.anywhere(t.makers, id); n > 0 {
		return m, n == 1
	}
	m, n := t.anywhere(t.vendors, id)
	return m, n == 1
}

// anywhere returns the model of that ID and how many of the vendors have one.
// Of several it returns none.
func (t *factTable) anywhere(vendors []string, id string) (found Model, n int) {
	for _, v := range vendors {
		if m, ok := t.models[factKey{v, id}]; ok {
			found = m
			n++
		}
	}
	if n != 1 {
		found = Model{}
	}
	return found, n
}

// loadFacts reads the embedded file on its first call. A file that cannot be
// read is a fault of the build.
var loadFacts = sync.OnceValue(func() *factTable {
	table, err := readFacts(factsFile)
	if err != nil {
		panic("provider: embedded facts: " + err.Error())
	}
	return table
})

func readFacts(file string) (*factTable, error) {
	z, err := gzip.NewReader(strings.NewReader(file))
	if err != nil {
		return nil, err
	}
	var text strings.Builder
	if _, err := io.Copy(&text, io.LimitReader(z, factsSize)); err != nil {
		return nil, err
	}
	return parseFacts(text.String())
}

func parseFacts(text string) (*factTable, error) {
	if !strings.HasPrefix(text, factsSchema+"\n") {
		return nil, fmt.Errorf("header is not %q", factsSchema)
	}
	t := &factTable{models: make(map[factKey]Model, strings.Count(text, "\n"))}
	makers := map[string]bool{}
	for _, home := range homes {
		makers[home] = true
	}
	lists := listSet{}
	last := ""
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		vendor, m, err := parseFact(strings.TrimSuffix(line, "\n"), lists)
		if err != nil {
			return nil, err
		}
		if vendor != last {
			t.vendors = append(t.vendors, vendor)
			if makers[vendor] {
				t.makers = append(t.makers, vendor)
			}
			last = vendor
		}
		t.models[factKey{vendor, strings.ToLower(m.ID)}] = m
	}
	return t, nil
}

// parseFact reads one line: vendor, ID, name, release date, context, greatest
// answer, modalities in and out, abilities, efforts, knowledge.
func parseFact(line string, lists listSet) (vendor string, m Model, err error) {
	c := strings.Split(line, "\t")
	if len(c) != factsColumns || len(c[8]) != 5 {
		return "", Model{}, fmt.Errorf("bad line %q", line)
	}
	// "n" is No, "y" is Yes, anything else is Unknown.
	can := func(i int) Ability { return Ability(1 + strings.IndexByte("ny", c[8][i])) }
	m = Model{
		ID:          c[1],
		Name:        c[2],
		Input:       lists.of(c[6]),
		Output:      lists.of(c[7]),
		Tools:       can(0),
		Reasoning:   can(1),
		Structured:  can(2),
		Attachments: can(3),
		Temperature: can(4),
		Efforts:     lists.of(c[9]),
		Knowledge:   c[10],
	}
	m.Vision = sees(m.Input)
	released, err := time.Parse(time.DateOnly, c[3])
	if err != nil {
		return "", Model{}, err
	}
	m.Created = released.Unix()
	if m.Context, err = strconv.Atoi(c[4]); err != nil {
		return "", Model{}, err
	}
	if m.MaxOutput, err = strconv.Atoi(c[5]); err != nil {
		return "", Model{}, err
	}
	return c[0], m, nil
}

// A listSet keeps one copy of each list, keyed by its words with commas.
type listSet map[string][]string

func (s listSet) of(words string) []string {
	if words == "" {
		return nil
	}
	l, ok := s[words]
	if !ok {
		l = strings.Split(words, ",")
		s[words] = l
	}
	return l
}
