package gateway

import (
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/limen-gateway/limen/internal/dialect/anthropic"
	"github.com/limen-gateway/limen/internal/dialect/openaichat"
	"github.com/limen-gateway/limen/internal/dialect/openairesponses"
)

// TestServed holds the list that is shown against the routes.
func TestServed(t *testing.T) {
	g := new(Gateway)
	objects := map[string][]object{
		responsesPath:     g.responseObjects(),
		conversationsPath: g.conversationObjects(),
		strings.TrimSuffix(conversationsPath, "/"): nil, // is among them
	}
	want := map[string]bool{}
	for path, r := range g.routeTable([]Door{openaichat.Dialect{}, openairesponses.Dialect{}, anthropic.Dialect{}}) {
		if r.access != byKey {
			continue
		}
		if list, ok := objects[path]; ok {
			for _, o := range list {
				want[o.method+" "+strings.TrimSuffix(path+o.path, "/")] = true
			}
			continue
		}
		if strings.HasSuffix(path, "/") {
			path += "*"
		}
		for _, method := range r.methods {
			want[method+" "+path] = true
		}
	}
	maps.DeleteFunc(want, func(operation string, _ bool) bool { return strings.HasPrefix(operation, http.MethodHead) }) // goes with GET
	named := regexp.MustCompile(`\{\w+\}| \(WebSocket\)$`)
	got := map[string]bool{}
	for _, operation := range served {
		got[named.ReplaceAllStringFunc(operation, func(part string) string {
			if part[0] == '{' {
				return "*"
			}
			return ""
		})] = true
	}
	if !maps.Equal(got, want) || len(got) != len(served) {
		t.Errorf("got  %q\nwant %q", slices.Sorted(maps.Keys(got)), slices.Sorted(maps.Keys(want)))
	}
}
