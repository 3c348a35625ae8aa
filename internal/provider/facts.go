package provider

import (
	"cmp"
	_ "embed"
	"path"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/limen-gateway/limen/internal/price"
)

// embedded are the facts of this release, packed. MODELS_DEV is the file that
// genfacts describes.
//
//go:generate go run ./genfacts $MODELS_DEV facts.tsv.gz
//go:embed facts.tsv.gz
var embedded string

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

// Facts are what is publicly known of models, as of a date. They never change.
type Facts struct {
	origin  Origin
	models  map[factKey]Model
	vendors []string
	makers  []string // those of vendors that are homes
}

type factKey struct{ vendor, id string } // id in lower case

// Origin says where facts are from.
type Origin struct {
	Source string `json:"source"`
	Date   string `json:"date"` // 2006-01-02
}

// Embedded returns the facts of this release. They are read on the first call;
// a file that cannot be read is a fault of the build.
var Embedded = sync.OnceValue(func() *Facts {
	facts, err := readFacts(strings.NewReader(embedded))
	if err != nil {
		panic("provider: embedded facts: " + err.Error())
	}
	return facts
})

// EmbeddedOrigin is the origin of the facts of this release. It does not read
// them whole.
func EmbeddedOrigin() Origin {
	origin, err := readOrigin(strings.NewReader(embedded))
	if err != nil {
		panic("provider: embedded facts: " + err.Error())
	}
	return origin
}

// Origin says where the facts are from.
func (f *Facts) Origin() Origin { return f.origin }

// Len is how many models there are.
func (f *Facts) Len() int { return len(f.models) }

// Vendors are those that models are known of, in order.
func (f *Facts) Vendors() []string { return slices.Clone(f.vendors) }

// Has reports whether there are models of a vendor.
func (f *Facts) Has(vendor string) bool { return slices.Contains(f.vendors, vendor) }

// Model returns what is publicly known of a model at a vendor. Where the vendor
// is not known to have it, the model's maker is asked, and at last every vendor:
// one that alone has that ID is believed, but for its prices, which are its own.
// A date at the end of an ID may be missing there, as may what a cloud puts
// around its maker's ID, and letter case does not matter.
//
// Lists in the result are shared: do not change them.
func (f *Facts) Model(vendor, id string) (Model, bool) {
	id, vendor = strings.ToLower(id), ListedAs(vendor)
	for _, id := range []string{id, withoutDate(id)} {
		if m, ok := f.find(vendor, id); ok {
			return m, true
		}
	}
	if own := withoutCloud(id); own != id {
		for _, id := range []string{own, withoutDate(own)} {
			if m, n := f.anywhere(f.makers, id); n == 1 {
				return m, true
			}
		}
	}
	return Model{}, false
}

// ListedAs is the name under which facts have a vendor's models.
func ListedAs(vendor string) string {
	v, _ := Lookup(vendor)
	return cmp.Or(v.Listed.Vendor, v.Same, vendor)
}

// Known are the models that stand in for the list of a vendor that gives none,
// by ID.
func (f *Facts) Known(v Vendor) []Model {
	var models []Model
	for key, m := range f.models {
		if fits, err := path.Match(v.Listed.Models, key.id); err == nil && fits && key.vendor == v.Listed.Vendor {
			models = append(models, m)
		}
	}
	return sorted(models)
}

// Priced are the models of a vendor whose prices are known, in order, with what
// it takes beside them.
func (f *Facts) Priced(vendor string) []Model {
	var models []Model
	for key, m := range f.models {
		if key.vendor == vendor && m.Prices.Stated() {
			m.Prices = WithExtras(vendor, m.ID, m.Prices)
			models = append(models, m)
		}
	}
	return sorted(models)
}

// Changes count the models in which facts differ from earlier ones.
type Changes struct {
	New     int `json:"new"`
	Gone    int `json:"gone"`
	Changed int `json:"changed"`        // in anything but prices
	Prices  int `json:"prices_changed"` // of models that both have
}

// Since counts what changed since earlier facts.
func (f *Facts) Since(old *Facts) Changes {
	var c Changes
	for key, m := range f.models {
		was, ok := old.models[key]
		if !ok {
			c.New++
			continue
		}
		if !reflect.DeepEqual(m.Prices, was.Prices) {
			c.Prices++
		}
		m.Prices, was.Prices = price.List{}, price.List{}
		if !reflect.DeepEqual(m, was) {
			c.Changed++
		}
	}
	c.Gone = len(old.models) - (len(f.models) - c.New)
	return c
}

// Merge returns what is known of a model from the vendor's own list and from
// public facts. What the vendor says wins, price by price too, but for Created, where the
// earlier time does: some servers put the time of the call there.
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
	m.Prices = m.Prices.Merged(facts.Prices)
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

func (f *Facts) find(vendor, id string) (Model, bool) {
	if m, ok := f.models[factKey{vendor, id}]; ok {
		return m, true
	}
	if maker, name, ok := strings.Cut(id, "/"); ok {
		if m, ok := f.models[factKey{homes[maker], name}]; ok {
			if homes[maker] != vendor {
				m.Prices = price.List{}
			}
			return m, true
		}
	}
	if m, n := f.anywhere(f.makers, id); n > 0 {
		return m, n == 1
	}
	m, n := f.anywhere(f.vendors, id)
	return m, n == 1
}

// anywhere returns the model of that ID, without prices, and how many of the
// vendors have one. Of several it returns none.
func (f *Facts) anywhere(vendors []string, id string) (found Model, n int) {
	for _, v := range vendors {
		if m, ok := f.models[factKey{v, id}]; ok {
			found = m
			n++
		}
	}
	if n != 1 {
		found = Model{}
	}
	found.Prices = price.List{}
	return found, n
}
