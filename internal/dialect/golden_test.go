package dialect_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/limen-gateway/limen/internal/dialect"
	"github.com/limen-gateway/limen/internal/dialect/anthropic"
	"github.com/limen-gateway/limen/internal/dialect/bedrock"
	"github.com/limen-gateway/limen/internal/dialect/gemini"
	"github.com/limen-gateway/limen/internal/dialect/openai"
	"github.com/limen-gateway/limen/internal/dialect/openaichat"
	"github.com/limen-gateway/limen/internal/dialect/openairesponses"
	"github.com/limen-gateway/limen/internal/llm"
	"github.com/limen-gateway/limen/internal/seal"
	"github.com/limen-gateway/limen/internal/sse"
)

// golden is one case of a file of cases: what goes in on one side, and what
// must come out on the other.
type golden struct {
	ID, Kind, Inbound, Upstream string
	Config                      map[string]json.RawMessage
	Request                     json.RawMessage // what the client had asked, for answers
	Input                       json.RawMessage
	InputSSE                    string            `json:"input_sse"`
	InputFrames                 []json.RawMessage `json:"input_frames"`
	Expect                      json.RawMessage
	Mentions                    []string `json:"-"`
	Notes                       []string
	Match                       string
}

// TestGolden runs every case of testdata/golden.jsonl, or of the file that
// LIMEN_GOLDEN names.
func TestGolden(t *testing.T) {
	path := os.Getenv("LIMEN_GOLDEN")
	if path == "" {
		path = "testdata/golden.jsonl"
	}
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var c golden
		if err := json.Unmarshal(lines.Bytes(), &c); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		if !strings.HasPrefix(c.ID, os.Getenv("LIMEN_GOLDEN_ONLY")) {
			continue
		}
		if t.Run(c.ID, c.run) {
			goldenPassed++
		} else {
			goldenFailed++
		}
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
}

var goldenPassed, goldenFailed int

// TestMain tells how many cases passed, after all else (go test shows it with
// -v, or when one failed).
func TestMain(m *testing.M) {
	code := m.Run()
	if goldenPassed+goldenFailed > 0 {
		fmt.Printf("%d passed, %d failed\n", goldenPassed, goldenFailed)
	}
	os.Exit(code)
}

// expectation is what a case wants.
type expectation struct {
	Method, Path string
	Headers      map[string]string
	Status       int
	Body         json.RawMessage
	Chunks       []json.RawMessage
	Events       []struct {
		Event string
		Data  json.RawMessage
	}
	Passthrough bool              `json:"events_passthrough"`
	GeminiOut   []json.RawMessage `json:"gemini_chunks"`
	Metered     json.RawMessage   `json:"metered_usage"`
	Mentions    []string          `json:"message_mentions"`
}

// door is a client dialect, with the way in which it tells of failures.
type door struct {
	name    dialect.Name
	inbound dialect.Inbound
	pass    dialect.Dialect // nil when nothing passes
	status  func(*llm.Error) int
	failure func(*llm.Error) []byte
}

var doors = map[string]door{
	"openai.chat":            {dialect.OpenAIChat, openaichat.Dialect{}, openaichat.Dialect{}, openai.Status, openaiFailure},
	"openai.responses":       {dialect.OpenAIResponses, openairesponses.Dialect{}, openairesponses.Dialect{}, openai.Status, openaiFailure},
	"anthropic.messages":     {dialect.Anthropic, anthropic.Dialect{}, anthropic.Dialect{}, anthropic.Status, anthropicFailure},
	"google.generateContent": {dialect.Gemini, gemini.Dialect{}, nil, openai.Status, openaiFailure},
}

func openaiFailure(e *llm.Error) []byte    { return openai.AppendError(nil, e) }
func anthropicFailure(e *llm.Error) []byte { return anthropic.AppendError(nil, e, "req_1") }

// exit is an upstream dialect, and where its paths and credentials are.
type exit struct {
	name     dialect.Name
	outbound dialect.Outbound
	base     string
	header   [2]string
}

var exits = map[string]exit{
	"openai.chat":            {dialect.OpenAIChat, openaichat.Upstream{}, "/v1", [2]string{"authorization", "Bearer KEY"}},
	"openai.responses":       {dialect.OpenAIResponses, openairesponses.Upstream{}, "/v1", [2]string{"authorization", "Bearer KEY"}},
	"anthropic.messages":     {dialect.Anthropic, anthropic.Upstream{}, "/v1", [2]string{"x-api-key", "KEY"}},
	"google.generateContent": {dialect.Gemini, gemini.Upstream{}, "/v1beta", [2]string{"x-goog-api-key", "KEY"}},
	"bedrock.converse":       {dialect.Bedrock, bedrock.Upstream{}, "", [2]string{"authorization", "Bearer KEY"}},
}

func (c *golden) run(t *testing.T) {
	in, ok := doors[c.Inbound]
	if !ok {
		t.Fatalf("unknown inbound %s", c.Inbound)
	}
	out, ok := exits[c.Upstream]
	if profile, compatible := strings.CutPrefix(c.Upstream, "compat."); compatible {
		out, ok = exits["openai.chat"], true
		_ = profile
	}
	if !ok {
		t.Fatalf("unknown upstream %s", c.Upstream)
	}
	var want expectation
	if err := json.Unmarshal(c.Expect, &want); err != nil {
		t.Fatal(err)
	}
	g := &goldenRun{T: t, c: c, in: in, out: out, want: want, caps: c.caps(t), key: seal.Key{}}
	if g.caps.Gemini.Vertex {
		g.out.base, g.out.header = "/v1", [2]string{"authorization", "Bearer KEY"}
	}
	g.passes = in.pass != nil && in.name == out.name && !strings.HasPrefix(c.Upstream, "compat.")
	switch c.Kind {
	case "request", "refuse":
		g.request()
	case "response":
		g.response()
	case "stream":
		g.stream()
	case "error":
		g.failure()
	default:
		t.Fatalf("unknown kind %s", c.Kind)
	}
}

type goldenRun struct {
	*testing.T
	c      *golden
	in     door
	out    exit
	want   expectation
	caps   *llm.Caps
	key    seal.Key
	passes bool
	notes  llm.Notes
}

// translate is the way of a request that does not pass as it is.
func (g *goldenRun) translate(body []byte) (*llm.Request, *dialect.Call, error) {
	if g.in.pass != nil {
		var look dialect.Request
		if err := g.in.pass.Inspect(body, &look); err != nil {
			return nil, nil, err
		}
	}
	req, err := g.in.inbound.Decode(body, g.key)
	if err != nil {
		return nil, nil, err
	}
	call, err := g.out.outbound.Encode(req, g.caps)
	return req, call, err
}

func (g *goldenRun) request() {
	if g.passes {
		g.passRequest()
		return
	}
	_, call, err := g.translate(g.c.Input)
	if err != nil {
		g.refused(err)
		return
	}
	if g.c.Kind == "refuse" {
		g.Fatalf("was not refused: %s", call.Body)
	}
	g.notes.Add(call.Notes)
	header := map[string]string{g.out.header[0]: g.out.header[1]}
	for _, h := range call.Header {
		header[strings.ToLower(h.Name)] = h.Value
	}
	g.sent(g.out.base+call.Path, header, call.Body)
}

func (g *goldenRun) passRequest() {
	var look dialect.Request
	if err := g.in.pass.Inspect(g.c.Input, &look); err != nil {
		g.refused(err)
		return
	}
	if g.caps.Model == "" {
		g.caps.Model = look.Model
	}
	segments, _ := g.in.pass.Forward(nil, g.c.Input, &look, dialect.Upstream{Model: g.caps.Model, AskUsage: g.caps.Chat.AskUsage})
	if look.Model != g.caps.Model {
		g.notes.Rename("model")
	}
	header := map[string]string{g.out.header[0]: g.out.header[1]}
	var asked struct{ Headers map[string]string }
	if g.c.Request != nil {
		if err := json.Unmarshal(g.c.Request, &asked); err != nil {
			g.Fatal(err)
		}
	}
	maps.Copy(header, asked.Headers)
	g.sent(g.out.base+g.in.pass.Path(), header, bytes.Join(segments, nil))
}

// sent compares a call with the one that is wanted.
func (g *goldenRun) sent(path string, header map[string]string, body []byte) {
	m := g.matcher(true)
	m.compare("path", quoted(g.want.Path), quoted(path))
	for name, want := range g.want.Headers {
		m.compare("header "+name, quoted(want), quoted(header[name]))
	}
	m.compare("body", g.want.Body, body)
	g.checkNotes()
}

func (g *goldenRun) checkNotes() {
	slices.Sort(g.c.Notes)
	got := slices.Sorted(slices.Values(g.notes))
	if !slices.Equal(got, g.c.Notes) && len(got)+len(g.c.Notes) > 0 {
		g.Errorf("notes: got %q, want %q", got, g.c.Notes)
	}
}

// refused compares a failure before the answer with the one that is wanted.
func (g *goldenRun) refused(err error) {
	e := llm.AsError(err)
	status, body := g.in.status(e), g.in.failure(e)
	if status != g.want.Status {
		g.Fatalf("got status %d and %s, want %d", status, body, g.want.Status)
	}
	g.matcher(false).compare("body", g.want.Body, body)
	for _, word := range g.want.Mentions {
		if !strings.Contains(e.Message, word) {
			g.Errorf("%q does not mention %q", e.Message, word)
		}
	}
}

// asked is the request that an answer belongs to: what the case says of it,
// and what every request has.
func (g *goldenRun) asked() (*dialect.Ask, *dialect.Call) {
	whole := map[string]json.RawMessage{}
	if g.c.Request != nil {
		if err := json.Unmarshal(g.c.Request, &whole); err != nil {
			g.Fatal(err)
		}
	}
	delete(whole, "headers")
	for name, value := range map[string]string{
		"openai.chat":        `{"model":"m","messages":[{"role":"user","content":"x"}]}`,
		"openai.responses":   `{"model":"m","input":"x"}`,
		"anthropic.messages": `{"model":"m","max_tokens":10,"messages":[{"role":"user","content":"x"}]}`,
	} {
		if name != g.c.Inbound {
			continue
		}
		var rest map[string]json.RawMessage
		if err := json.Unmarshal([]byte(value), &rest); err != nil {
			g.Fatal(err)
		}
		for name, value := range rest {
			if whole[name] == nil {
				whole[name] = value
			}
		}
	}
	if g.c.Inbound == "google.generateContent" {
		whole["contents"] = json.RawMessage(`[{"role":"user","parts":[{"text":"x"}]}]`)
	}
	body, err := json.Marshal(whole)
	if err != nil {
		g.Fatal(err)
	}
	g.caps.Logprobs = true // the upstream has answered with them, or there are none
	req, call, err := g.translate(body)
	if err != nil {
		g.Fatalf("the request of the case: %v", err)
	}
	return &dialect.Ask{Request: req, ID: "0123456789abcdef", Model: "m", Begun: time.Unix(1, 0), Vendor: g.caps.Vendor, Seal: g.key}, call
}

func (g *goldenRun) response() {
	ask, call := g.asked()
	events, err := g.out.outbound.Answers(call, g.caps).Whole(nil, g.c.Input)
	if err != nil {
		g.refused(err)
		return
	}
	var fold llm.Folder
	restore := dialect.NewRestore(call.Names)
	for _, e := range events {
		for _, e := range restore.Event(nil, e) {
			fold.Add(e)
		}
	}
	g.notes.Add(fold.Answer.Notes)
	body := g.in.inbound.AppendAnswer(nil, &fold.Answer, ask)
	if g.want.Status != 200 {
		g.Fatalf("got 200 and %s, want %d", body, g.want.Status)
	}
	g.matcher(false).compare("body", g.want.Body, body)
	g.checkNotes()
}

func (g *goldenRun) failure() {
	var in struct {
		Status  int
		Headers map[string]string
		Body    json.RawMessage
	}
	if err := json.Unmarshal(g.c.Input, &in); err != nil {
		g.Fatal(err)
	}
	seconds, _ := strconv.Atoi(in.Headers["retry-after"])
	e := g.out.outbound.Failed(in.Status, in.Body, time.Duration(seconds)*time.Second)
	g.refused(e)
	if want := g.want.Headers["retry-after"]; want != "" && want != strconv.Itoa(int(e.RetryAfter/time.Second)) {
		g.Errorf("retry-after: got %v, want %s s", e.RetryAfter, want)
	}
	g.checkNotes()
}

// frames are the input of a stream. The text is cut at an offset, as a network
// may cut it.
func (g *goldenRun) frames(cut int) dialect.Frames {
	if g.c.InputFrames != nil {
		return &givenFrames{raw: g.c.InputFrames}
	}
	text := g.c.InputSSE
	return g.out.outbound.Frames(io.MultiReader(strings.NewReader(text[:cut]), strings.NewReader(text[cut:])), 1<<20)
}

// givenFrames are Bedrock's frames as a case writes them.
type givenFrames struct {
	raw []json.RawMessage
	at  int
}

func (f *givenFrames) Next() (sse.Frame, bool) {
	if f.at == len(f.raw) {
		return sse.Frame{}, false
	}
	var frame struct {
		Event     string `json:":event-type"`
		Exception string `json:":exception-type"`
		Payload   json.RawMessage
	}
	if err := json.Unmarshal(f.raw[f.at], &frame); err != nil {
		panic(err)
	}
	f.at++
	if frame.Exception != "" {
		frame.Event = "exception:" + frame.Exception
	}
	return sse.Frame{Event: []byte(frame.Event), Data: frame.Payload}, true
}

func (f *givenFrames) Fill() error { return io.EOF }
func (f *givenFrames) Close()      {}

func (g *goldenRun) stream() {
	if g.passes {
		g.passStream()
		return
	}
	first := g.streamOnce(0)
	for cut := 1; cut < len(g.c.InputSSE); cut++ {
		if again := g.streamOnce(cut); !bytes.Equal(first, again) {
			g.Fatalf("cut at %d the stream becomes\n%s\nand not\n%s", cut, again, first)
		}
	}
	g.compareStream(first)
	g.checkNotes()
}

// streamOnce is the stream that the client gets.
func (g *goldenRun) streamOnce(cut int) []byte {
	ask, call := g.asked()
	decoder := g.out.outbound.Answers(call, g.caps)
	encoder := g.in.inbound.Encode(ask)
	restore := dialect.NewRestore(call.Names)
	frames := g.frames(cut)
	defer frames.Close()
	var out []byte
	g.notes = nil
	tell := func(events []llm.Event) {
		for _, e := range events {
			if n, ok := e.(llm.Note); ok {
				g.notes.Add(n.Notes)
			}
			for _, e := range restore.Event(nil, e) {
				out = encoder.Event(out, e)
			}
		}
	}
	for !decoder.Done() {
		frame, ok := frames.Next()
		var events []llm.Event
		var err error
		switch {
		case ok && len(frame.Data) == 0:
			continue
		case ok:
			events, err = decoder.Frame(nil, frame)
		default:
			if err = frames.Fill(); err == nil {
				continue
			}
			if err == io.EOF {
				events, err = decoder.End(nil)
				tell(events)
				if err == nil {
					return encoder.End(out)
				}
				events = nil
			}
		}
		tell(events)
		if err != nil {
			return encoder.Fail(out, llm.AsError(err))
		}
	}
	return encoder.End(out)
}

// passStream follows a stream whose frames pass as they are.
func (g *goldenRun) passStream() {
	body := []byte(`{"model":"m","messages":[{"role":"user","content":"x"}],"input":"x","max_tokens":1,"stream":true}`)
	var look dialect.Request
	if err := g.in.pass.Inspect(body, &look); err != nil {
		g.Fatal(err)
	}
	var asked struct {
		Options struct {
			Usage bool `json:"include_usage"`
		} `json:"stream_options"`
	}
	if err := json.Unmarshal(g.c.Request, &asked); err != nil {
		g.Fatal(err)
	}
	look.WantsUsage = asked.Options.Usage
	follower := g.in.pass.Follow(&look)
	var out []byte
	for frame, err := range sse.All(iotest.OneByteReader(strings.NewReader(g.c.InputSSE)), 1<<20) {
		if err != nil {
			g.Fatal(err)
		}
		pass := false
		if out, pass, err = follower.Frame(out, frame); err != nil {
			out = follower.Fail(out, llm.AsError(err))
			break
		}
		if pass {
			out = append(out, frame.Raw...)
		}
	}
	passed := strings.TrimSuffix(strings.TrimSpace(string(out)), "data: [DONE]") // of no meaning to Responses clients
	if g.want.Passthrough && strings.TrimSpace(passed) != strings.TrimSpace(g.c.InputSSE) {
		g.Errorf("got\n%s\nwant\n%s", out, g.c.InputSSE)
	}
	if g.want.Chunks != nil || g.want.Events != nil {
		g.compareStream(out)
	}
	want, _ := openai.DecodeUsage(g.want.Metered)
	if got := follower.Usage(0); g.want.Metered != nil && got != want {
		g.Errorf("metered %+v, want %+v", got, want)
	}
	g.checkNotes()
}

// compareStream compares frames with the ones that are wanted.
func (g *goldenRun) compareStream(stream []byte) {
	var got, want []told
	for frame, err := range sse.All(bytes.NewReader(stream), 1<<20) {
		if err != nil {
			g.Fatal(err)
		}
		if len(frame.Data) == 0 {
			continue
		}
		data := json.RawMessage(bytes.Clone(frame.Data))
		if string(data) == "[DONE]" {
			if g.want.Chunks == nil { // of no meaning to Responses clients, and harmless
				continue
			}
			data = json.RawMessage(`"[DONE]"`)
		}
		got = append(got, told{string(frame.Event), data})
	}
	for _, e := range g.want.Events {
		want = append(want, told{e.Event, e.Data})
	}
	for _, chunk := range slices.Concat(g.want.Chunks, g.want.GeminiOut) {
		want = append(want, told{"", chunk})
	}
	checkNumbers(g.T, got)
	got, want = folded(g.T, got), folded(g.T, want)
	m := g.matcher(false)
	for i := range max(len(got), len(want)) {
		switch {
		case i >= len(got):
			g.Errorf("frame %d is missing: %s %s", i, want[i].event, want[i].data)
		case i >= len(want):
			g.Errorf("frame %d is too much: %s %s", i, got[i].event, got[i].data)
		default:
			if got[i].event != want[i].event {
				g.Errorf("frame %d: got event %q, want %q", i, got[i].event, want[i].event)
			}
			m.compare(fmt.Sprintf("frame %d", i), want[i].data, got[i].data)
		}
	}
	if g.Failed() {
		g.Logf("the stream:\n%s", stream)
	}
}

func quoted(s string) json.RawMessage {
	b, err := json.Marshal(s)
	if err != nil {
		panic(err)
	}
	return b
}
