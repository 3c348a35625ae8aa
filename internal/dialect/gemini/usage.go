package gemini

import (
	"cmp"
	"strings"

	"github.com/limen-gateway/limen/internal/dialect"
	"github.com/limen-gateway/limen/internal/jsonedit"
	"github.com/limen-gateway/limen/internal/llm"
)

// metadata is what usageMetadata says.
type metadata struct {
	prompt, tools, cached, out, thoughts int64
	audioIn, audioCached                 int64
	audioOut, imageOut                   int64
	tier, traffic                        llm.Service
	billed                               int64 // searches
	known, isBilled                      bool
}

// decodeUsage reads usageMetadata. Thoughts are not counted among the
// candidates' tokens, prompts of the upstream's tools not within the prompt.
// What is not text is counted within both. billed says that the searches which
// take a fee are counted.
func decodeUsage(raw llm.Raw) (u llm.Usage, known, billed bool) {
	var m metadata
	for name, value := range jsonedit.Members(raw) {
		m.take(string(name), value)
	}
	within := func(n int64) int64 { rest, _ := llm.Within(n, 0); return rest }
	in, out := within(m.prompt)+within(m.tools), within(m.out)
	in, u.CacheRead = llm.Within(in, m.cached)
	u.Input, u.AudioIn = llm.Within(in, m.audioIn-m.audioCached)
	out, u.AudioOut = llm.Within(out, m.audioOut)
	u.Output, u.ImageOut = llm.Within(out, m.imageOut)
	u.Reasoning = within(m.thoughts)
	u.Service, u.Searches = cmp.Or(m.tier, m.traffic), within(m.billed)
	return u, m.known, m.isBilled
}

// take reads a member of usageMetadata; name has its quotes.
func (m *metadata) take(name string, value llm.Raw) {
	switch name {
	case `"promptTokenCount"`:
		m.set(&m.prompt, value)
	case `"candidatesTokenCount"`:
		m.set(&m.out, value)
	case `"thoughtsTokenCount"`:
		m.set(&m.thoughts, value)
	case `"toolUsePromptTokenCount"`:
		m.tools, _ = count(value)
	case `"cachedContentTokenCount"`:
		m.cached, _ = count(value)
	case `"promptTokensDetails"`, `"toolUsePromptTokensDetails"`:
		m.audioIn += modality(value, audioModality)
	case `"cacheTokensDetails"`:
		m.audioCached = modality(value, audioModality)
	case `"candidatesTokensDetails"`:
		m.audioOut, m.imageOut = modality(value, audioModality), modality(value, imageModality)
	case `"serviceTier"`:
		m.tier = dialect.ServiceOf(value)
	case `"trafficType"`:
		m.traffic = trafficOf(value)
	case `"billedToolCalls"`:
		m.isBilled = true
		m.billed = billedSearches(value)
	}
}

func (m *metadata) set(n *int64, value []byte) {
	if v, ok := count(value); ok {
		*n, m.known = v, true
	}
}

// Modalities of tokens.
const (
	textModality  = "TEXT"
	audioModality = "AUDIO"
	imageModality = "IMAGE"
)

// modality is how many tokens of a list are of a modality.
func modality(list llm.Raw, name string) (tokens int64) {
	for entry := range jsonedit.Elements(list) {
		if dialect.Text(entry, "modality") != name {
			continue
		}
		n, _ := count(dialect.Member(entry, "tokenCount"))
		tokens, _ = llm.Within(tokens+max(n, 0), 0)
	}
	return tokens
}

// trafficTypes are Vertex' words for the service that it gave.
var trafficTypes = map[string]llm.Service{
	"": llm.Standard, "TRAFFIC_TYPE_UNSPECIFIED": llm.Standard, "ON_DEMAND": llm.Standard,
	"ON_DEMAND_FLEX": llm.Flex, "ON_DEMAND_PRIORITY": llm.Priority,
}

func trafficOf(word llm.Raw) llm.Service {
	s, known := trafficTypes[word.Text()]
	if !known {
		return llm.Other
	}
	return s
}

// billedSearches are the searches among the calls of the upstream's tools that
// take a fee.
func billedSearches(calls llm.Raw) (n int64) {
	for call := range jsonedit.Elements(calls) {
		if tool := strings.ToUpper(dialect.Text(call, "tool")); strings.HasPrefix(tool, "GOOGLE_SEARCH") {
			calls, _ := count(dialect.Member(call, "successfulToolCallCount"))
			n, _ = llm.Within(n+max(calls, 0), 0)
		}
	}
	return n
}

// queries are the searches behind grounding that take a fee: one that is
// repeated, or asks for nothing, takes none.
func queries(grounding llm.Raw) int64 {
	asked := map[string]bool{}
	for q := range jsonedit.Elements(dialect.Member(grounding, "webSearchQueries")) {
		if q := llm.Raw(q); !q.Blank() {
			asked[q.Text()] = true
		}
	}
	return int64(len(asked))
}

// use takes over what usageMetadata says of the present request.
func (d *decoder) use(usage llm.Raw) (known bool) {
	used, known, billed := decodeUsage(usage)
	if !known {
		return false
	}
	d.counted, d.billed = true, billed
	if !billed {
		used.Searches = d.searches()
	}
	d.used = used
	return true
}

// searches are those behind the answers to the present request.
func (d *decoder) searches() (n int64) {
	for _, c := range d.choices {
		n += c.searched
	}
	return n
}

// moreSearches takes over searches that became known after the usage.
func (d *decoder) moreSearches() bool {
	n := d.searches()
	if !d.counted || d.billed || n <= d.used.Searches {
		return false
	}
	d.used.Searches = n
	return true
}

// total is what all requests for the answer used.
func (d *decoder) total() llm.Used { return llm.Used{Usage: d.spent.Plus(d.used), Known: true} }

func writeUsage(w *jsonedit.Writer, u llm.Usage) {
	w.Object("usageMetadata")
	w.SetInt("promptTokenCount", u.Prompt())
	if u.CacheRead > 0 {
		w.SetInt("cachedContentTokenCount", u.CacheRead)
	}
	w.SetInt("candidatesTokenCount", u.Completion()-u.Reasoning)
	if u.Reasoning > 0 {
		w.SetInt("thoughtsTokenCount", u.Reasoning)
	}
	w.SetInt("totalTokenCount", u.Total())
	writeModalities(w, "promptTokensDetails", u.Prompt()-u.AudioIn, u.AudioIn, 0)
	writeModalities(w, "candidatesTokensDetails", u.Output, u.AudioOut, u.ImageOut)
	if u.Service == llm.Flex || u.Service == llm.Priority {
		w.SetText("serviceTier", u.Service.String())
	}
	w.EndObject()
}

// writeModalities writes how many tokens are of which modality, where not all
// are text.
func writeModalities(w *jsonedit.Writer, name string, text, audio, image int64) {
	if audio+image == 0 {
		return
	}
	w.Array(name)
	for _, m := range [...]struct {
		modality string
		tokens   int64
	}{{textModality, text}, {audioModality, audio}, {imageModality, image}} {
		if m.tokens > 0 {
			w.BeginObject()
			w.SetText("modality", m.modality)
			w.SetInt("tokenCount", m.tokens)
			w.EndObject()
		}
	}
	w.EndArray()
}
