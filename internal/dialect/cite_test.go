package dialect

import (
	"fmt"
	"strings"
	"testing"

	"github.com/limen-gateway/limen/internal/llm"
)

func TestCitations(t *testing.T) {
	sources := []llm.Source{
		{URL: llm.Raw(`"https://a.example/"`)}, {URL: llm.Raw(`"https://a.example/page"`)},
		{URL: llm.Raw(`"https://w.example/Go_(game)"`)}, {URL: llm.Raw(`""`)}, {},
	}
	for text, want := range map[string]string{
		"":                                                   "",
		"nothing of http or https://":                        "",
		"https://a.example/":                                 "https://a.example/ 0-18",
		"(https://a.example/page).":                          "https://a.example/page 1-23",
		"https://a.example/pages":                            "",
		"https://a.example/page?x=1":                         "",
		"https://a.example/page.html":                        "",
		"at https://a.example/page, and":                     "https://a.example/page 3-25",
		"**https://a.example/page**":                         "https://a.example/page 2-24",
		"[t](https://a.example/page)":                        "https://a.example/page 0-27",
		"ä [t [x]](https://a.example/page)":                  "https://a.example/page 2-33",
		"[t](https://a.example/page \"x\")":                  "https://a.example/page 4-26",
		"](https://a.example/)":                              "https://a.example/ 2-20",
		"[a\nb](https://a.example/)":                         "https://a.example/ 6-24",
		"[g](https://w.example/Go_(game))":                   "https://w.example/Go_(game) 0-32",
		"https://a.example/日本 https://a.example/。":           "https://a.example/ 0-18,https://a.example/ 21-39",
		"[1](https://a.example/)[2](https://a.example/page)": "https://a.example/ 0-23,https://a.example/page 23-50",
		"httphttps://a.example/":                             "https://a.example/ 4-22",
	} {
		var got []string
		for _, n := range citations(text, sources) {
			got = append(got, fmt.Sprintf("%s %d-%d", n.URL.Text(), n.Start, n.End))
		}
		if strings.Join(got, ",") != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}
