package arrivals

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

var start = time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)

func at(second int) time.Time { return start.Add(time.Duration(second) * time.Second) }

func TestRefuse(t *testing.T) {
	var l Log
	for i := range 400 {
		l.Refuse(&Arrival{Time: at(i), Path: fmt.Sprint("/v1/", i), Error: "not_found"})
	}
	got := l.Since(time.Time{})
	if len(got) != maxRefused || got[0].Path != "/v1/144" || got[maxRefused-1].Path != "/v1/399" {
		t.Fatalf("%d are remembered, from %s to %s", len(got), got[0].Path, got[len(got)-1].Path)
	}
	if got := l.Since(at(397)); len(got) != 2 || got[0].Path != "/v1/398" {
		t.Errorf("since 397 there are %d", len(got))
	}
}

// A client that tries again and again is one arrival, until another comes.
func TestRefuseAgain(t *testing.T) {
	var l Log
	for i := range 3 {
		l.Refuse(&Arrival{Time: at(i), Path: "/a", Error: "unauthenticated"})
		l.Refuse(&Arrival{Time: at(i), Path: "/b", Error: "unauthenticated"})
	}
	got := l.Since(time.Time{})
	if len(got) != 2 || got[0].Path != "/a" || got[0].Times != 3 || !got[0].Time.Equal(at(2)) || got[1].Times != 3 {
		t.Errorf("got %d, first %+v", len(got), got[0])
	}
}

func TestBounds(t *testing.T) {
	var l Log
	long := strings.Repeat("ä", 5000)
	l.Refuse(&Arrival{Time: start, Method: long, Path: long, Agent: long, Model: long, Message: long})
	a := l.Since(time.Time{})[0]
	if len(a.Method) != maxText || len(a.Path) != maxText || len(a.Agent) != maxText || len(a.Model) != maxText || len(a.Message) != maxMessage {
		t.Errorf("%d, %d, %d, %d, %d bytes are remembered", len(a.Method), len(a.Path), len(a.Agent), len(a.Model), len(a.Message))
	}
}

// Of what is served, the newest of each key and client is remembered.
func TestServe(t *testing.T) {
	var l Log
	for i := range 5 {
		l.Serve(&Arrival{RequestID: fmt.Sprint("a", i), Time: at(i), Key: "k", Clients: []string{"codex"}, UnderWay: true})
		l.Serve(&Arrival{RequestID: fmt.Sprint("a", i), Time: at(i), Key: "k", Clients: []string{"codex"}, Status: 200})
	}
	l.Serve(&Arrival{RequestID: "b", Time: at(9), Key: "k", Clients: []string{"claude"}, UnderWay: true})
	got := l.Since(time.Time{})
	if len(got) != 2 || got[0].RequestID != "a4" || got[0].UnderWay || got[1].RequestID != "b" || !got[1].UnderWay {
		t.Fatalf("got %d, first %+v", len(got), got[0])
	}
	l.Refuse(&Arrival{RequestID: "b", Time: at(10), Key: "k", Clients: []string{"claude"}, Error: "no_model"})
	if got := l.Since(at(9)); len(got) != 1 || got[0].Error != "no_model" {
		t.Errorf("what was refused is still under way: %d", len(got))
	}
	for i := range 2 * maxServed {
		l.Serve(&Arrival{Time: at(20 + i), Key: fmt.Sprint(i)})
	}
	if len(l.served) != maxServed {
		t.Errorf("%d are remembered", len(l.served))
	}
}

func TestWatch(t *testing.T) {
	var l Log
	if l.Watched(start) {
		t.Error("a new log is watched")
	}
	l.Watch(start)
	if !l.Watched(at(89)) || l.Watched(at(90)) {
		t.Errorf("watched after 89 s: %v, after 90 s: %v", l.Watched(at(89)), l.Watched(at(90)))
	}
}

// Clients are told by requests that were recorded of them, or that their
// source makes.
func TestClients(t *testing.T) {
	names := map[string]string{"openwebui": "", "cursor": "", "zed": "", "vercel-ai": "ai-sdk", "langchain": "langchain-js"} // those without a mark send none
	files, err := filepath.Glob("../probe/clients/*.json")
	if err != nil || len(files) < 10 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var of struct {
			Name   string
			Header map[string]string
			Steps  []struct{ Header map[string]string }
		}
		if err := json.Unmarshal(text, &of); err != nil {
			t.Fatal(err)
		}
		want, ok := names[of.Name]
		if !ok {
			want = of.Name
		}
		for _, step := range of.Steps {
			h := http.Header{}
			for _, fields := range []map[string]string{of.Header, step.Header} {
				for name, value := range fields {
					h.Set(name, value)
				}
			}
			if got := Clients(h); want == "" && len(got) > 0 || want != "" && !slices.Contains(got, want) {
				t.Errorf("%s is taken for %q", of.Name, got)
			}
		}
	}
	for agent, want := range map[string]string{
		"curl/8.5.0": "curl", "OpenAI/Go 3.95.0": "openai-go", "AsyncOpenAI/Python 2.45.0": "openai-python", "Anthropic/Python 0.90.0": "anthropic-python",
		"codex_cli_rs/0.169.0 (Linux)": "codex", "Zed/1.0.0 (linux; x86_64)": "zed", "Python/3.12 aiohttp/3.13.0": "open-webui",
		"axios/1.12.0": "librechat", "Mozilla/5.0": "browser", "node": "", "": "",
		"ai/7.0.173 ai-sdk/provider-utils/5.0.81 runtime/node.js/v20": "ai-sdk",
	} {
		if got := Clients(http.Header{"User-Agent": {agent}}); want == "" && len(got) > 0 || want != "" && (len(got) == 0 || got[0] != want) {
			t.Errorf("%q is taken for %q, want %q", agent, got, want)
		}
	}
}
