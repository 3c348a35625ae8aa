package tools

import (
	"bytes"
	"context"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/limen-gateway/limen/internal/dialect"
	"github.com/limen-gateway/limen/internal/jsonedit"
	"github.com/limen-gateway/limen/internal/llm"
)

// found is one result of a search.
type found struct{ url, title, text string }

// searcher searches within one call of the gateway.
type searcher struct {
	tools  *Tools
	tool   *llm.ServerTool
	client *client
}

var searchFunction = llm.Tool{
	Name:   "web_search",
	Desc:   llm.Quote("Searches the web and returns titles, addresses and extracts of pages."),
	Schema: queryArgument,
}

func (s *searcher) function(notes *llm.Notes) llm.Tool {
	if s.tool.Location.Given() {
		notes.Drop("user_location")
	}
	return searchFunction
}

func (s *searcher) run(ctx context.Context, call *dialect.HostedCall) *dialect.HostedResult {
	told := asked(call)
	if len(told.Queries) == 0 {
		return failed(told, noQuery)
	}
	all, err := s.search(ctx, told.Queries[0].Text())
	if err != nil {
		return failed(told, s.fault(ctx, err))
	}
	for _, f := range all {
		told.Sources = append(told.Sources, llm.Source{URL: llm.Quote(f.url), Title: llm.Quote(f.title)})
	}
	return &dialect.HostedResult{Call: told, Text: llm.Quote(resultText(all))}
}

// past is a search of an earlier turn. What the pages said is not kept.
func (s *searcher) past(item *llm.ServerCall) (args, text llm.Raw) {
	found := []llm.Raw{llm.Quote("Found:")}
	for _, s := range item.Sources {
		found = append(found, s.URL)
	}
	return argument("query", first(item.Queries)), llm.Concat("\n", found...)
}

func (s *searcher) close() { s.client.close() }

// How many results a model is told, by the size that the client asked for.
var resultCounts = map[string]int{"low": 3, "medium": 6, "high": 10}

// maxSnippet bounds the text of one result, in bytes.
const maxSnippet = 4 << 10

// search asks the search engine.
func (s *searcher) search(ctx context.Context, query string) ([]found, error) {
	ctx, cancel := context.WithTimeout(ctx, s.tools.config.Timeout)
	defer cancel()
	r, err := s.request(ctx, query)
	if err != nil {
		return nil, err
	}
	if s.client == nil {
		s.client = s.tools.client(headers(s.tools.config.Search.Headers), false)
	}
	body, err := s.client.read(r)
	if err != nil {
		return nil, err
	}
	return s.chosen(readResults(body)), nil
}

func (s *searcher) request(ctx context.Context, query string) (*http.Request, error) {
	c := s.tools.config.Search
	if c.Post {
		w := jsonedit.NewWriter(nil)
		w.BeginObject()
		w.SetText("query", query)
		w.EndObject()
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, c.URL, bytes.NewReader(w.Bytes()))
		if err == nil {
			r.Header.Set("Content-Type", "application/json")
			r.Header.Set("Accept", "application/json")
		}
		return r, err
	}
	at, err := url.Parse(c.URL)
	if err != nil {
		return nil, err
	}
	if at.RawQuery != "" {
		at.RawQuery += "&"
	}
	at.RawQuery += "q=" + url.QueryEscape(query)
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, at.String(), nil)
	if err == nil {
		r.Header.Set("Accept", "application/json")
	}
	return r, err
}

// readResults reads `results`, as SearXNG and Tavily write it, or
// `web.results` of Brave. Their texts are called content, snippet or
// description.
func readResults(body []byte) (all []found) {
	var whole jsonedit.Object
	if jsonedit.Scan(body, jsonedit.NewFields(), &whole) != nil {
		return nil
	}
	list, ok := jsonedit.Get(body, "results")
	if !ok {
		list, _ = jsonedit.Get(body, "web", "results")
	}
	for v := range jsonedit.Elements(list) {
		text := func(names ...string) string {
			for _, name := range names {
				if value, ok := jsonedit.Get(v, name); ok {
					if text := llm.Raw(value).Text(); text != "" {
						return text
					}
				}
			}
			return ""
		}
		f := found{url: text("url", "link"), title: text("title"), text: text("content", "snippet", "description")}
		if f.url != "" {
			all = append(all, f)
		}
	}
	return all
}

// chosen are the results that the client wants to have.
func (s *searcher) chosen(all []found) []found {
	limit, ok := resultCounts[s.tool.Size]
	if !ok {
		limit = resultCounts["medium"]
	}
	var out []found
	for _, f := range all {
		if len(out) == limit {
			break
		}
		u, err := url.Parse(f.url)
		if err != nil || u.Scheme != "http" && u.Scheme != "https" {
			continue
		}
		if len(s.tool.Domains) > 0 && !within(u.Hostname(), s.tool.Domains) || within(u.Hostname(), s.tool.Blocked) {
			continue
		}
		if len(f.text) > maxSnippet {
			f.text = strings.ToValidUTF8(f.text[:maxSnippet], "")
		}
		out = append(out, f)
	}
	return out
}

// within reports whether a host is one of the domains, or below one.
func within(host string, domains []llm.Raw) bool {
	for _, d := range domains {
		if domain := strings.ToLower(d.Text()); domain != "" && (strings.EqualFold(host, domain) || strings.HasSuffix(strings.ToLower(host), "."+domain)) {
			return true
		}
	}
	return false
}

// resultText is what the model is told of results.
func resultText(all []found) string {
	if len(all) == 0 {
		return "Nothing was found."
	}
	var b strings.Builder
	for i, f := range all {
		b.WriteString("[" + strconv.Itoa(i+1) + "] " + f.title + "\n" + f.url + "\n" + f.text + "\n\n")
	}
	b.WriteString("Cite what you use as a link: [title](url).")
	return b.String()
}

func (s *searcher) fault(ctx context.Context, err error) string {
	return s.client.fault(ctx, err, "The search engine")
}
