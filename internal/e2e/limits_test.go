package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/limen-gateway/limen/internal/e2e/upstream"
)

// limited has a model "m" with limits, written as in the configuration.
func limited(up *upstream.Server, limits string) string {
	return provider(up) + "models:\n  m: {targets: [up/small], limits: {" + limits + "}}\n"
}

// askM is a chat with the limited model.
func (g *gateway) askM(t *testing.T, stream bool, prompt, more string) reply {
	t.Helper()
	return g.post(t, "/chat/completions", askBody(stream, prompt, more))
}

func askBody(stream bool, prompt, more string) string {
	return fmt.Sprintf(`{"model":"m","stream":%t,"messages":[{"role":"user","content":%q}]%s}`, stream, prompt, more)
}

const limitReached = "429 rate_limit_exceeded"

// fieldsOf are the fields of a header that begin so, in lower case and sorted.
func fieldsOf(h http.Header, prefixes ...string) (lines []string) {
	for name, values := range h {
		name = strings.ToLower(name)
		if slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(name, p) }) {
			lines = append(lines, name+": "+strings.Join(values, ", "))
		}
	}
	slices.Sort(lines)
	return lines
}

// checkFields wants the fields that tell of limits to be these, as expressions.
func checkFields(t *testing.T, h http.Header, want ...string) {
	t.Helper()
	got := fieldsOf(h, "x-ratelimit-", "anthropic-ratelimit-", "retry-after", "x-should-retry")
	if len(got) != len(want) {
		t.Errorf("the header tells\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		return
	}
	for i := range want {
		if !regexp.MustCompile("^" + want[i] + "$").MatchString(got[i]) {
			t.Errorf("the header tells %q, want %q", got[i], want[i])
		}
	}
}

// TestLimitOfRequests has more calls in a minute than a model takes, and reads
// the bytes that clients get.
func TestLimitOfRequests(t *testing.T) {
	t.Parallel()
	up := newUpstream(t)
	g := start(t, limited(up, "rpm: 3"))
	got := g.askM(t, false, "hello", "")
	check(t, got, "answer")
	checkFields(t, got.header, `x-ratelimit-limit-requests: 3`, `x-ratelimit-remaining-requests: 2`, `x-ratelimit-reset-requests: (20s|19\.\d+s)`)
	got = g.askM(t, true, "hello", "")
	check(t, got, "stream")
	checkFields(t, got.header, `x-ratelimit-limit-requests: 3`, `x-ratelimit-remaining-requests: 1`, `x-ratelimit-reset-requests: (40s|39\.\d+s)`)
	got = g.askM(t, false, "[[fault:status-400]]", "")
	check(t, got, "400 invalid_value")
	checkFields(t, got.header, `x-ratelimit-limit-requests: 3`, `x-ratelimit-remaining-requests: 0`, `x-ratelimit-reset-requests: (1m0s|5\d(\.\d+)?s)`)

	before := len(up.Requests())
	conn, body := g.dial(t), askBody(true, "hello", "")
	conn.send(fmt.Sprintf("%sContent-Length: %d\r\n\r\n%s", g.head(g.key), len(body), body))
	head, err := conn.head()
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{
		"HTTP/1\\.1 429 Too Many Requests", "Content-Type: application/json", `X-Request-Id: req_[0-9a-f]{32}`,
		`Retry-After: (1\d|20)`, `Retry-After-Ms: (1\d|20)\d{3}`,
		"X-Ratelimit-Limit-Requests: 3", "X-Ratelimit-Remaining-Requests: 0", `X-Ratelimit-Reset-Requests: (1m0s|5\d(\.\d+)?s)`,
	} {
		if !regexp.MustCompile(`(?m)^` + line + `\r$`).MatchString(head) {
			t.Errorf("no line %q in\n%s", line, head)
		}
	}
	text := make([]byte, 512)
	n, _ := conn.in.Read(text)
	want := regexp.MustCompile(`^\{"error":\{"message":"Rate limit reached for this model on requests per min \(RPM\): Limit 3, Used 3, Requested 1\. Please try again in (1\d\.\d+|20)s\.",` +
		`"type":"rate_limit_error","param":null,"code":"rate_limit_exceeded"\}\}$`)
	if !want.Match(text[:n]) {
		t.Errorf("the body is %s", text[:n])
	}
	if n := len(up.Requests()) - before; n != 0 {
		t.Errorf("%d refused calls reached the upstream", n)
	}
	id := regexp.MustCompile(`req_[0-9a-f]{32}`).FindString(head)
	if r := g.record(t, id); r.Status != 429 || r.Error != "rate_limited" || r.Model != "m" || r.Total != 0 {
		t.Errorf("recorded as %+v", r)
	}

	// A new configuration takes nothing back, and lifts what it lifts.
	g.reload(t, limited(up, "rpm: 3, concurrency: 9"))
	check(t, g.askM(t, false, "hello", ""), limitReached)
	g.reload(t, limited(up, "rpm: 5"))
	check(t, g.askM(t, false, "hello", ""), "answer")
	g.reload(t, provider(up)+"models:\n  m: {targets: [up/small]}\n")
	got = g.askM(t, true, "hello", "")
	check(t, got, "stream")
	checkFields(t, got.header)
}

// head reads the head of an answer as it is on the wire.
func (c *raw) head() (string, error) {
	var head strings.Builder
	for {
		line, err := c.in.ReadString('\n')
		if err != nil || line == "\r\n" {
			return head.String(), err
		}
		head.WriteString(line)
	}
}

func TestLimitOfADay(t *testing.T) {
	t.Parallel()
	g := start(t, limited(newUpstream(t), "rpd: 1, rpm: 100"))
	got := g.askM(t, false, "hello", "")
	check(t, got, "answer")
	checkFields(t, got.header, `x-ratelimit-limit-requests: 1`, `x-ratelimit-remaining-requests: 0`, `x-ratelimit-reset-requests: (24h0m0s|23h59m5\d(\.\d+)?s)`)
	got = g.askM(t, false, "hello", "")
	check(t, got, limitReached)
	if !strings.Contains(got.body, "on requests per day (RPD): Limit 1, Used 1, Requested 1. Please try again in ") {
		t.Errorf("the body is %s", got.body)
	}
}

// TestLimitOfTokens has calls hold what they may use, and give back what they
// did not.
func TestLimitOfTokens(t *testing.T) {
	t.Parallel()
	up := newUpstream(t)
	g := start(t, limited(up, "tpm: 1000"))
	const some = `,"max_tokens":700`
	for range 3 { // each holds 700 and uses some 30
		got := g.askM(t, false, "hello", some)
		check(t, got, "answer")
		checkFields(t, got.header, `x-ratelimit-limit-tokens: 1000`, `x-ratelimit-remaining-tokens: (1\d\d|2\d\d)`, `x-ratelimit-reset-tokens: 4\d(\.\d+)?s`)
	}
	for _, c := range []struct {
		name, more string
		held       string
	}{
		{"nothing is said", "", `3\d\d`},
		{"more than there is", `,"max_tokens":5000`, ""}, // all, which is not there after the calls before
		{"two answers", `,"max_tokens":100,"n":2`, `6\d\d`},
	} {
		got := g.askM(t, true, "hello", c.more)
		if c.held == "" {
			check(t, got, limitReached)
			continue
		}
		check(t, got, "stream")
		checkFields(t, got.header, `x-ratelimit-limit-tokens: 1000`, `x-ratelimit-remaining-tokens: `+c.held, `x-ratelimit-reset-tokens: .*`)
	}

	got := g.askM(t, false, strings.Repeat("a long text ", 400), "")
	check(t, got, limitReached)
	if !strings.Contains(got.body, `"Request too large for this model on tokens per min (TPM): Limit 1000, Requested 12`) {
		t.Errorf("the body is %s", got.body)
	}
	checkFields(t, got.header, `x-ratelimit-limit-tokens: 1000`, `x-ratelimit-remaining-tokens: \d+`, `x-ratelimit-reset-tokens: .*`, `x-should-retry: false`)

	// A picture counts little beside its bytes. But this upstream counts them: a
	// call that used more than it held makes the next one wait.
	picture := `{"model":"m","messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,` + strings.Repeat("iVBORw0KGgo", 4000) + `"}}]}]}`
	g.reload(t, limited(up, "tpm: 4000"))
	got = g.post(t, "/chat/completions", picture)
	check(t, got, "answer")
	checkFields(t, got.header, `x-ratelimit-limit-tokens: 4000`, `x-ratelimit-remaining-tokens: 2[34]\d\d`, `x-ratelimit-reset-tokens: .*`)
	got = g.askM(t, false, "hello", "")
	check(t, got, limitReached)
	if !strings.Contains(got.body, "Limit 4000, Used 11") {
		t.Errorf("the body is %s", got.body)
	}
	checkFields(t, got.header, `retry-after-ms: 1[12]\d{4}`, `retry-after: 1[12]\d`, `x-ratelimit-limit-tokens: 4000`, `x-ratelimit-remaining-tokens: 0`, `x-ratelimit-reset-tokens: 2m\d.*s`)
}

// TestCachedTokensAreWeighted has a prompt whose quarter comes from a cache.
func TestCachedTokensAreWeighted(t *testing.T) {
	t.Parallel()
	up := newUpstream(t)
	remains := func(weight string) int {
		g := start(t, "limits: {cache_read_weight: "+weight+"}\n"+limited(up, "tpm: 20000"))
		check(t, g.askM(t, false, "cached "+strings.Repeat("hello ", 10_000), `,"max_tokens":9`), "answer")
		got := g.askM(t, false, "hello", `,"max_tokens":9`)
		remaining, err := strconv.Atoi(got.header.Get("X-Ratelimit-Remaining-Tokens"))
		if err != nil {
			t.Fatal(err)
		}
		return remaining
	}
	// 15,000 tokens, of which a quarter comes from the cache. 333 leak in a second.
	if n := remains("100%"); n < 4900 || n > 7500 {
		t.Errorf("%d tokens remain with the whole weight", n)
	}
	if n := remains("0%"); n < 8600 || n > 11_200 {
		t.Errorf("%d tokens remain without", n)
	}
}

// TestLimitAtOnce has calls end in every way there is. Each lets the next one in.
func TestLimitAtOnce(t *testing.T) {
	t.Parallel()
	up := newUpstream(t)
	g := start(t, "timeouts: {first_byte: 300ms, idle: 300ms}\nretries: {attempts: 1}\n"+limited(up, "concurrency: 1, tpm: 1000000"))
	for _, c := range []struct {
		prompt string
		stream bool
		want   string
	}{
		{"hello", false, "answer"},
		{"hello", true, "stream"},
		{"[[fault:status-500]]", false, "502 upstream_error"},
		{"[[fault:status-502]]", true, "502 upstream_error"},
		{"[[fault:reset]]", false, "502 upstream_error"},
		{"[[fault:hang]]", false, "504 upstream_timeout"},
		{"[[fault:html]]", true, "502 upstream_invalid_response"},
		{"[[fault:stall]]", false, "504 upstream_timeout"},
		{"[[fault:context]]", true, "400 context_length_exceeded"},
	} {
		for range 10 {
			check(t, g.askM(t, c.stream, c.prompt, ""), c.want)
			if strings.Contains(c.prompt, "hang") || strings.Contains(c.prompt, "stall") {
				break
			}
		}
	}
	for _, fault := range []string{"cut", "reset-mid", "error-mid", "error-late", "bad-json", "stall"} { // some before there is anything to tell
		if got := g.askM(t, true, "[[fault:"+fault+"]]", ""); got.status == 429 || !strings.Contains(got.body, `"error":`) {
			t.Errorf("%s: got %d %s", fault, got.status, got.body)
		}
	}
	for range 5 { // the client is told of the end before the upstream hangs up
		resp, err := g.client.Do(g.request(t, t.Context(), http.MethodPost, "/chat/completions", strings.NewReader(askBody(true, "[[fault:linger]]", ""))))
		if err != nil {
			t.Fatal(err)
		}
		if err := readTo(resp.Body, "data: [DONE]\n\n"); err != nil {
			t.Error(err)
		}
		check(t, g.askM(t, false, "hello", ""), "answer")
		resp.Body.Close()
	}
	check(t, g.post(t, "/chat/completions", `{"model":"m"`), "400")
	got := g.post(t, "/responses", `{"model":"m","input":"hi","previous_response_id":"resp_unknown"}`)
	if got.status != 400 {
		t.Errorf("got %d %s", got.status, got.body)
	}
	check(t, g.askM(t, false, "hello", ""), "answer")
	checkFields(t, g.askM(t, true, "hello", "").header, `x-ratelimit-limit-tokens: 1000000`, `x-ratelimit-remaining-tokens: 99\d{4}`, `x-ratelimit-reset-tokens: .*`)
}

// readTo reads up to the end that is wanted, which need not be that of the body.
func readTo(r io.Reader, end string) error {
	var text []byte
	for piece := make([]byte, 512); !strings.HasSuffix(string(text), end); {
		n, err := r.Read(piece)
		text = append(text, piece[:n]...)
		if err != nil {
			return err
		}
	}
	return nil
}

// TestLimitAtOnceWhileUnderWay has calls that go on while others come.
func TestLimitAtOnceWhileUnderWay(t *testing.T) {
	t.Parallel()
	up := newUpstream(t)
	g := start(t, limited(up, "concurrency: 2, tpm: 10000"))
	leave := g.hang(t, up, "m", 1)
	stream := g.begin(t, askBody(true, "[[fault:stall]]", `,"max_tokens":3000`))
	got := g.askM(t, false, "hello", "")
	check(t, got, limitReached)
	checkFields(t, got.header, `retry-after-ms: 1000`, `retry-after: 1`, `x-ratelimit-limit-tokens: 10000`, `x-ratelimit-remaining-tokens: [67]\d\d\d`, `x-ratelimit-reset-tokens: .*`)
	if !strings.Contains(got.body, "on concurrent requests: Limit 2, Used 2, Requested 1. Please try again in 1s.") {
		t.Errorf("the body is %s", got.body)
	}
	check(t, g.post(t, "/chat/completions", chatBody(false, "hello")), "answer") // under another name it has no limit
	stream()
	g.await(t, "m")
	leave()
	var clients sync.WaitGroup
	var mu sync.Mutex
	statuses := map[int]int{}
	for range 64 { // each client may find the other two in
		clients.Go(func() {
			status := g.askM(t, false, "[[fault:pause 100]]", "").status
			mu.Lock()
			defer mu.Unlock()
			statuses[status]++
		})
	}
	clients.Wait()
	if statuses[200] < 2 || statuses[200]+statuses[429] != 64 {
		t.Errorf("of 64 at once: %v", statuses)
	}
	g.await(t, "m")
}

// begin begins a stream; the returned function has its client leave.
func (g *gateway) begin(t *testing.T, body string) (leave func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	resp, err := g.client.Do(g.request(t, ctx, http.MethodPost, "/chat/completions", strings.NewReader(body)))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(resp.Body, make([]byte, 6)); err != nil || resp.StatusCode != 200 {
		t.Fatalf("got %d, %v", resp.StatusCode, err)
	}
	leave = sync.OnceFunc(func() {
		cancel()
		resp.Body.Close()
	})
	t.Cleanup(leave)
	return leave
}

// TestLimitInTheBackground has a response that is made in the background keep
// its place until it is over, and not the call that began it.
func TestLimitInTheBackground(t *testing.T) {
	t.Parallel()
	up := newUpstream(t)
	g := start(t, limited(up, "concurrency: 1, rpm: 1000"))
	for _, end := range []string{"/cancel", ""} {
		prompt := "[[fault:hang]]"
		if end == "" {
			prompt = "[[fault:pause 300]]"
		}
		before := attempts(up, prompt)
		got := g.post(t, "/responses", fmt.Sprintf(`{"model":"m","background":true,"input":%q}`, prompt))
		if got.status != 200 {
			t.Fatalf("got %d %s", got.status, got.body)
		}
		checkFields(t, got.header, `x-ratelimit-limit-requests: 1000`, `x-ratelimit-remaining-requests: 99\d`, `x-ratelimit-reset-requests: .*`)
		var r storedResponse
		if err := json.Unmarshal([]byte(got.body), &r); err != nil {
			t.Fatal(err)
		}
		eventually(t, "it is being made", func() bool { return attempts(up, prompt) == before+1 })
		check(t, g.askM(t, false, "hello", ""), limitReached)
		if end != "" {
			g.do(t, g.request(t, t.Context(), http.MethodPost, "/responses/"+r.ID+end, nil))
		}
		g.over(t, r.ID)
		g.await(t, "m")
	}
}

func TestLimitOverASocket(t *testing.T) {
	t.Parallel()
	g := start(t, limited(newUpstream(t), "rpm: 1"))
	s := g.socket(t, g.withKey())
	const message = `{"type":"response.create","model":"m","input":"hello"}`
	if e := s.turn(message); e.Type != "response.completed" {
		t.Errorf("got %+v", e)
	}
	s.send(message)
	_, data, err := s.conn.Read(s.ctx)
	if err != nil {
		t.Fatal(err)
	}
	want := regexp.MustCompile(`^\{"type":"error","status":429,"error":\{"message":"Rate limit reached for this model on requests per min \(RPM\): Limit 1, Used 1, Requested 1\. Please try again in (1m0|5\d\.\d+)s\.",` +
		`"type":"rate_limit_error","param":null,"code":"rate_limit_exceeded"\},"headers":\{"retry-after":"\d\d","retry-after-ms":"\d{5}",` +
		`"x-ratelimit-limit-requests":"1","x-ratelimit-remaining-requests":"0","x-ratelimit-reset-requests":"(1m0|5\d\.\d+)s"\}\}$`)
	if !want.Match(data) {
		t.Errorf("got %s", data)
	}
}

// TestLimitsOfMessages has a client of Messages read its limits by Anthropic's
// names.
func TestLimitsOfMessages(t *testing.T) {
	t.Parallel()
	g := start(t, limited(newUpstream(t), "rpm: 1, tpm: 10000"))
	const body = `{"model":"m","max_tokens":50,"messages":[{"role":"user","content":"hello"}]}`
	begun := time.Now().Truncate(time.Second)
	got := g.post(t, "/messages", body)
	if got.status != 200 {
		t.Fatalf("got %d %s", got.status, got.body)
	}
	const moment = `\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ`
	checkFields(t, got.header,
		`anthropic-ratelimit-requests-limit: 1`, `anthropic-ratelimit-requests-remaining: 0`, `anthropic-ratelimit-requests-reset: `+moment,
		`anthropic-ratelimit-tokens-limit: 10000`, `anthropic-ratelimit-tokens-remaining: 99\d\d`, `anthropic-ratelimit-tokens-reset: `+moment)
	reset, err := time.Parse(time.RFC3339, got.header.Get("Anthropic-Ratelimit-Requests-Reset"))
	if wait := reset.Sub(begun); err != nil || wait < time.Minute || wait > time.Minute+patience {
		t.Errorf("the reset is %v after the request (%v)", wait, err)
	}
	got = g.post(t, "/messages", body)
	want := regexp.MustCompile(`^\{"type":"error","error":\{"type":"rate_limit_error","message":"Rate limit reached for this model on requests per min \(RPM\): Limit 1, Used 1, Requested 1\. Please try again in [0-9.m]+s\."\},"request_id":"req_[0-9a-f]{32}"\}$`)
	if got.status != 429 || !want.MatchString(got.body) || got.header.Get("Retry-After") == "" || got.header.Get("X-Ratelimit-Limit-Requests") != "" {
		t.Errorf("got %d %v %s", got.status, got.header, got.body)
	}
}

// TestRefusedCallsUseNothingUp has calls that fail before anything is sent.
func TestRefusedCallsUseNothingUp(t *testing.T) {
	t.Parallel()
	up := newUpstream(t)
	g := start(t, fmt.Sprintf("limits: {queue: 0s}\nretries: {attempts: 1}\nproviders:\n  up: {base_url: %q, api_key: %s, concurrency: 1, speaks: [openai-chat, openai-responses]}\n"+
		"  gone: {base_url: 'http://127.0.0.1:1/v1', speaks: [openai-chat], models: [small]}\n"+
		"models:\n  m: {targets: [up/small], limits: {rpm: 1, rpd: 1, tpm: 1000}}\n  n: {targets: [gone/small], limits: {rpm: 1}}\n", up.URL(), canary))
	leave := g.hang(t, up, "up/small", 1)
	for range 3 {
		check(t, g.askM(t, false, "hello", ""), overloaded) // the provider has no room
		check(t, g.askM(t, false, strings.Repeat("hello ", 2000), ""), limitReached)
		if got := g.post(t, "/responses", `{"model":"m","input":"hi","previous_response_id":"resp_unknown"}`); got.status != 400 {
			t.Errorf("got %d %s", got.status, got.body)
		}
		body := bytes.Replace([]byte(askBody(false, "hello", "")), []byte(`"m"`), []byte(`"n"`), 1)
		check(t, g.post(t, "/chat/completions", string(body)), "502 upstream_error")
	}
	leave()
	eventually(t, "the provider has room", func() bool { return g.post(t, "/chat/completions", chatBody(false, "again")).status == 200 })
	check(t, g.askM(t, false, "hello", ""), "answer")
	check(t, g.askM(t, false, "hello", ""), limitReached)
}

// TestLimitsOfKeysAndTeams has calls that fall under three limits.
func TestLimitsOfKeysAndTeams(t *testing.T) {
	t.Parallel()
	g := start(t, limited(newUpstream(t), "rpm: 100"))
	g.admin(t, http.MethodPost, "/teams", `{"name":"all","limits":{"rpm":3}}`, new(any))
	g.admin(t, http.MethodPost, "/teams", `{"name":"web","parent":"all","limits":{"tpm":300}}`, new(any)) // five come back in a second: those of a call are away for longer than the test lasts
	as := func(name, limits string) func() reply {
		var made struct{ Key string }
		g.admin(t, http.MethodPost, "/keys", fmt.Sprintf(`{"name":%q,"team":"web"%s}`, name, limits), &made)
		return func() reply {
			r := g.request(t, t.Context(), http.MethodPost, "/chat/completions", strings.NewReader(askBody(false, "hello", `,"max_tokens":20`)))
			r.Header.Set("Authorization", "Bearer "+made.Key)
			return g.do(t, r)
		}
	}
	alice, bob := as("alice", `,"limits":{"rpm":2}`), as("bob", "")
	got := alice()
	check(t, got, "answer")
	checkFields(t, got.header,
		`x-ratelimit-limit-requests: 2`, `x-ratelimit-limit-tokens: 300`, `x-ratelimit-remaining-requests: 1`, `x-ratelimit-remaining-tokens: 2\d\d`,
		`x-ratelimit-reset-requests: .*`, `x-ratelimit-reset-tokens: .*`)
	check(t, alice(), "answer")
	for range 3 { // what the key's own limit refuses uses nothing of the team's up
		if got := alice(); got.status != 429 || !strings.Contains(got.body, "Rate limit reached for this key on requests per min (RPM): Limit 2, Used 2, Requested 1.") {
			t.Errorf("got %d %s", got.status, got.body)
		}
	}
	got = bob()
	check(t, got, "answer")
	if got.header.Get("X-Ratelimit-Limit-Requests") != "3" || got.header.Get("X-Ratelimit-Remaining-Requests") != "0" {
		t.Errorf("the header is %v", got.header)
	}
	if got := bob(); got.status != 429 || !strings.Contains(got.body, "Rate limit reached for this key's team on requests per min (RPM): Limit 3, Used 3, Requested 1.") {
		t.Errorf("got %d %s", got.status, got.body)
	}
	got = alice() // also where it fails for another reason
	checkFields(t, got.header, `retry-after-ms: .*`, `retry-after: .*`,
		`x-ratelimit-limit-requests: [23]`, `x-ratelimit-limit-tokens: 300`, `x-ratelimit-remaining-requests: 0`, `x-ratelimit-remaining-tokens: 2\d\d`,
		`x-ratelimit-reset-requests: .*`, `x-ratelimit-reset-tokens: .*`)
}
