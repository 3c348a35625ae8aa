package tools

import (
	"bytes"
	"context"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/limen-gateway/limen/internal/dialect"
	"github.com/limen-gateway/limen/internal/jsonedit"
	"github.com/limen-gateway/limen/internal/llm"
)

// fileSearcher searches stores of files within one call of the gateway.
type fileSearcher struct {
	tools  *Tools
	asked  *llm.FileStores
	limit  int
	shows  bool // the client wants to have the results
	client *client
}

// Bounds of one search: stores that it goes to, results that the model is told
// where the client does not say.
const (
	maxStores    = 16
	defaultFiles = 20
	maxFiles     = 50
)

// includeFiles is the wish for the results of searches.
const includeFiles = "file_search_call.results"

func (r *Run) fileSearcher(req *llm.Request, tool *llm.Tool) (*fileSearcher, error) {
	s := &fileSearcher{tools: r.tools, asked: tool.Server.Files, limit: defaultFiles, shows: slices.Contains(req.State.Include, includeFiles)}
	at := "tools[" + strconv.Itoa(tool.Index) + "]"
	switch n := len(s.asked.IDs); {
	case n == 0:
		return nil, llm.InvalidParam("missing_required_parameter", at+".vector_store_ids", "Missing required parameter: '%s.vector_store_ids'.", at)
	case n > maxStores:
		return nil, llm.InvalidParam("invalid_value", at+".vector_store_ids", "Invalid '%s.vector_store_ids': at most %d stores can be named.", at, maxStores)
	}
	for i, id := range s.asked.IDs {
		if name := id.Text(); strings.Trim(name, ".") == "" || strings.ContainsAny(name, `/\`) {
			at += ".vector_store_ids[" + strconv.Itoa(i) + "]"
			return nil, llm.InvalidParam("invalid_value", at, "Invalid '%s': it is not the ID of a store.", at)
		}
	}
	if limit, err := strconv.Atoi(string(s.asked.Limit)); err == nil {
		s.limit = min(max(limit, 1), maxFiles)
	}
	return s, nil
}

var filesFunction = llm.Tool{
	Name:   "file_search",
	Desc:   llm.Quote("Searches the files that the user has provided, and returns pieces of them with the files' names."),
	Schema: queryArgument,
}

func (s *fileSearcher) function(*llm.Notes) llm.Tool { return filesFunction }

func (s *fileSearcher) run(ctx context.Context, call *dialect.HostedCall) *dialect.HostedResult {
	told := asked(call)
	if len(told.Queries) == 0 {
		return failed(told, noQuery)
	}
	ctx, cancel := context.WithTimeout(ctx, s.tools.config.Timeout)
	defer cancel()
	all := []llm.FoundFile{}
	for _, id := range s.asked.IDs {
		found, err := s.search(ctx, id.Text(), told.Queries[0])
		if err != nil {
			return failed(told, s.client.fault(ctx, err, "The server of the files"))
		}
		all = append(all, found...)
	}
	slices.SortStableFunc(all, func(a, b llm.FoundFile) int { return -compareScores(a.Score, b.Score) })
	all = all[:min(len(all), s.limit)]
	if s.shows {
		told.Files = all
	}
	return &dialect.HostedResult{Call: told, Text: filesText(all)}
}

func compareScores(a, b llm.Raw) int {
	x, _ := strconv.ParseFloat(string(a), 64)
	y, _ := strconv.ParseFloat(string(b), 64)
	switch {
	case x < y:
		return -1
	case x > y:
		return 1
	}
	return 0
}

// search asks for what a store has.
func (s *fileSearcher) search(ctx context.Context, store string, query llm.Raw) ([]llm.FoundFile, error) {
	w := jsonedit.NewWriter(nil)
	w.BeginObject()
	w.SetRaw("query", query)
	w.SetInt("max_num_results", int64(s.limit))
	w.SetRaw("filters", s.asked.Filters)
	w.SetRaw("ranking_options", s.asked.Ranking)
	w.EndObject()
	base, err := url.Parse(s.tools.config.Files.URL)
	if err != nil {
		return nil, err
	}
	at := base.JoinPath("vector_stores", url.PathEscape(store), "search")
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, at.String(), bytes.NewReader(w.Bytes()))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json")
	if s.client == nil {
		s.client = s.tools.client(headers(s.tools.config.Files.Headers), false)
	}
	body, err := s.client.read(r)
	if err != nil {
		return nil, err
	}
	return readFiles(body)
}

// readFiles reads a page of results.
func readFiles(body []byte) (all []llm.FoundFile, err error) {
	var whole jsonedit.Object
	if err := jsonedit.Scan(body, jsonedit.NewFields(), &whole); err != nil {
		return nil, err
	}
	for v := range jsonedit.Elements(dialect.Member(body, "data")) {
		f := llm.FoundFile{
			ID: dialect.Member(v, "file_id"), Name: dialect.Member(v, "filename"),
			Score: dialect.Member(v, "score"), Attributes: dialect.Member(v, "attributes"),
		}
		var texts []llm.Raw
		for part := range jsonedit.Elements(dialect.Member(v, "content")) {
			if text := dialect.Member(part, "text"); text.IsText() {
				texts = append(texts, text)
			}
		}
		if f.Score.Kind() != jsonedit.KindNumber {
			f.Score = nil
		}
		if f.Attributes.Kind() != jsonedit.KindObject {
			f.Attributes = nil
		}
		if f.Text = llm.Concat("\n", texts...); f.ID.IsText() && f.Name.IsText() {
			all = append(all, f)
		}
	}
	return all, nil
}

// filesText is what the model is told of results.
func filesText(all []llm.FoundFile) llm.Raw {
	if len(all) == 0 {
		return llm.Quote("Nothing was found.")
	}
	var pieces []llm.Raw
	for i, f := range all {
		pieces = append(pieces, llm.Concat("", llm.Quote("["+strconv.Itoa(i+1)+"] "), f.Name, llm.Quote("\n"), f.Text))
	}
	return llm.Concat("\n\n", pieces...)
}

// past is a search of an earlier turn, whose results the client may have
// wanted.
func (s *fileSearcher) past(item *llm.ServerCall) (args, text llm.Raw) {
	text = llm.Quote("What was found is not kept. Search again where it is needed.")
	if item.Files != nil {
		text = filesText(item.Files)
	}
	return argument("query", first(item.Queries)), text
}

func (s *fileSearcher) close() { s.client.close() }
