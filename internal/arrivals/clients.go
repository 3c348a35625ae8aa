package arrivals

import (
	"net/http"
	"slices"
	"strings"
)

// mark is how requests of clients are told. Many are made through a library
// that others use, too: then all are named that it may be.
type mark struct {
	header  string // canonical
	begins  string // what its value begins with, in lower case; empty where any place will do
	has     string // what is in it, in lower case
	clients []string
}

// marks are those that are known; the first that fits counts. The names are
// those of the table of clients that 'limen connect' knows, and of the console's.
var marks = []mark{
	{"Originator", "codex", "", []string{"codex"}},
	{"User-Agent", "codex", "", []string{"codex"}},
	{"User-Agent", "claude-cli/", "", []string{"claude"}},
	{"User-Agent", "opencode/", "", []string{"opencode"}},
	{"User-Agent", "qwencode/", "", []string{"qwen-code"}},
	{"User-Agent", "zed/", "", []string{"zed"}},
	{"User-Agent", "cline/", "", []string{"cline"}},
	{"X-Title", "cline", "", []string{"cline"}},
	{"X-Title", "open webui", "", []string{"open-webui"}},
	{"X-Title", "librechat", "", []string{"librechat"}},
	{"X-Title", "aider", "", []string{"aider"}},
	{"User-Agent", "curl/", "", []string{"curl"}},
	{"User-Agent", "ai-sdk/openai-compatible/", "", []string{"cline", "ai-sdk"}},
	{"User-Agent", "ai/", "", []string{"ai-sdk"}},
	{"User-Agent", "", "ai-sdk", []string{"ai-sdk"}},
	{"User-Agent", "langchainjs-openai", "", []string{"langchain-js", "librechat"}},
	{"User-Agent", "langchain", "", []string{"langchain"}},
	{"User-Agent", "ls/js", "", []string{"continue"}},
	{"User-Agent", "openai/js", "", []string{"openai-js", "cline", "continue", "librechat"}},
	{"User-Agent", "", "openai/python", []string{"openai-python", "langchain", "aider"}},
	{"User-Agent", "openai/go", "", []string{"openai-go"}},
	{"User-Agent", "", "anthropic/python", []string{"anthropic-python"}},
	{"User-Agent", "", "aiohttp/", []string{"open-webui"}},
	{"User-Agent", "axios/", "", []string{"librechat"}},
	{"User-Agent", "mozilla/", "", []string{"browser"}},
}

// Clients are the names of the clients that a request may be from, the
// likeliest first.
func Clients(h http.Header) []string {
	for i := range marks {
		m := &marks[i]
		if slices.ContainsFunc(h[m.header], m.fits) {
			return m.clients
		}
	}
	return []string{}
}

func (m *mark) fits(value string) bool {
	value = strings.ToLower(cut(value, maxText))
	return strings.HasPrefix(value, m.begins) && strings.Contains(value, m.has)
}
