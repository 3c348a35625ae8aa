package e2e

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"
)

// zipped is a text in gzip.
func zipped(text string) string {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	z.Write([]byte(text))
	z.Close()
	return b.String()
}

// nested is a good body with arrays within arrays, n levels deep in all.
func nested(n int) string {
	return `{"model":"up/small","messages":[{"role":"user","content":"hi"}],"x":` + strings.Repeat("[", n-1) + strings.Repeat("]", n-1) + "}"
}

// TestBadBodies sends bodies that no client should. Not one of them reaches
// the upstream, and each answer says what is wrong.
func TestBadBodies(t *testing.T) {
	t.Parallel()
	up := newUpstream(t)
	g := start(t, "limits: {body: 4MiB}\n"+provider(up))
	good := chatBody(false, "hello")
	type header map[string]string
	refused := []struct {
		name, body string
		header     header
		want       string
		param      string // as JSON; "" is not looked at
	}{
		{"empty", "", nil, "400", "null"},
		{"no JSON", "hello", nil, "400", "null"},
		{"half", good[:len(good)-1], nil, "400", "null"},
		{"two documents", good + good, nil, "400", "null"},
		{"an array", "[" + good + "]", nil, "400", "null"},
		{"null", "null", nil, "400", "null"},
		{"NaN", `{"model":"up/small","messages":[{}],"temperature":NaN}`, nil, "400", "null"},
		{"infinity", `{"model":"up/small","messages":[{}],"temperature":Infinity}`, nil, "400", "null"},
		{"leading zero", `{"model":"up/small","messages":[{}],"n":01}`, nil, "400", "null"},
		{"trailing comma", `{"model":"up/small","messages":[{}],}`, nil, "400", "null"},
		{"comment", `{"model":"up/small",/*x*/"messages":[{}]}`, nil, "400", "null"},
		{"byte order mark", "\ufeff" + good, nil, "400", "null"},
		{"NUL", strings.Replace(good, "hello", "hel\x00lo", 1), nil, "400", "null"},
		{"invalid UTF-8", strings.Replace(good, "hello", "\xff", 1), nil, "400", "null"},
		{"overlong UTF-8", strings.Replace(good, "hello", "\xc0\xaf", 1), nil, "400", "null"},
		{"surrogate in UTF-8", strings.Replace(good, "hello", "\xed\xa0\x80", 1), nil, "400", "null"},
		{"65 deep", nested(65), nil, "400", "null"},
		{"a million deep", nested(1000000), nil, "400", "null"},
		{"model twice", `{"model":"up/small","model":"up/big","messages":[{}]}`, nil, "400 invalid_value", `"model"`},
		{"model, escaped, twice", `{"model":"up/small","mod\u0065l":"up/big","messages":[{}]}`, nil, "400 invalid_value", `"model"`},
		{"Model", `{"Model":"up/big","model":"up/small","messages":[{}]}`, nil, "400 invalid_value", ""},
		{"folded model", `{"ſtream":true,"model":"up/small","messages":[{}]}`, nil, "400 invalid_value", ""},
		{"no model", `{"messages":[{}]}`, nil, "400 missing_required_parameter", `"model"`},
		{"null model", `{"model":null,"messages":[{}]}`, nil, "400 missing_required_parameter", `"model"`},
		{"model a number", `{"model":5,"messages":[{}]}`, nil, "400 invalid_type", `"model"`},
		{"empty model", `{"model":"","messages":[{}]}`, nil, "400 invalid_value", `"model"`},
		{"no messages", `{"model":"up/small"}`, nil, "400 missing_required_parameter", `"messages"`},
		{"no message", `{"model":"up/small","messages":[]}`, nil, "400 invalid_value", `"messages"`},
		{"messages a string", `{"model":"up/small","messages":"hi"}`, nil, "400 invalid_type", `"messages"`},
		{"stream a string", `{"model":"up/small","messages":[{}],"stream":"yes"}`, nil, "400 invalid_type", `"stream"`},
		{"options a string", `{"model":"up/small","messages":[{}],"stream_options":"x"}`, nil, "400 invalid_type", `"stream_options"`},
		{"include_usage a number", `{"model":"up/small","messages":[{}],"stream":true,"stream_options":{"include_usage":1}}`, nil, "400 invalid_type", `"stream_options.include_usage"`},
		{"unknown model", strings.Replace(good, "up/small", "up/smal", 1), nil, "404 model_not_found", `"model"`},
		{"a form", "model=up%2Fsmall", header{"Content-Type": "application/x-www-form-urlencoded"}, "415 unsupported_media_type", "null"},
		{"multipart", "--x\r\n\r\nhello\r\n--x--", header{"Content-Type": "multipart/form-data; boundary=x"}, "415 unsupported_media_type", "null"},
		{"encoding unknown", good, header{"Content-Encoding": "br"}, "415 unsupported_media_type", "null"},
		{"encoding of two", zipped(zipped(good)), header{"Content-Encoding": "gzip, gzip"}, "415 unsupported_media_type", "null"},
		{"no gzip", good, header{"Content-Encoding": "gzip"}, "400", "null"},
		{"broken gzip", strings.Replace(zipped(good), zipped(good)[12:20], "\xff\xff\xff\xff\xff\xff\xff\xff", 1), header{"Content-Encoding": "gzip"}, "400", "null"},
		{"half a gzip", zipped(good)[:30], header{"Content-Encoding": "gzip"}, "400", "null"},
		{"gzip of no JSON", zipped("hello"), header{"Content-Encoding": "gzip"}, "400", "null"},
		{"gzip bomb", zipped(strings.Repeat(" ", 16<<20)), header{"Content-Encoding": "gzip"}, "413 request_too_large", "null"},
		{"8 MiB of objects", "[" + strings.Repeat("{},", 1<<20) + "{}]", nil, "400", "null"},
		{"over the limit", strings.Repeat(" ", 4<<20+1), nil, "413 request_too_large", "null"},
	}
	for _, c := range refused {
		t.Run(c.name, func(t *testing.T) {
			r := g.request(t, t.Context(), http.MethodPost, "/chat/completions", strings.NewReader(c.body))
			for name, value := range c.header {
				r.Header.Set(name, value)
			}
			began := time.Now()
			got := g.do(t, r)
			if took := time.Since(began); took > patience/2 {
				t.Errorf("refused after %v", took)
			}
			check(t, got, c.want)
			if c.param != "" && !strings.Contains(got.body, `"param":`+c.param) {
				t.Errorf("param: got %s, want %s", got.body, c.param)
			}
			if got.id() == "" {
				t.Error("the answer has no x-request-id")
			}
		})
	}
	if n := attempts(up, ""); n != 1 { // the list of models
		t.Errorf("requests upstream: got %d, want none but the list of models", n)
	}

	taken := []struct {
		name, body string
		header     header
	}{
		{"64 deep", nested(64), nil},
		{"spaces around", " \r\n\t" + good + "\n ", nil},
		{"gzip", zipped(good), header{"Content-Encoding": "gzip"}},
		{"identity", good, header{"Content-Encoding": "identity"}},
		{"no content type", good, header{"Content-Type": ""}},
		{"charset", good, header{"Content-Type": "application/json; charset=utf-8"}},
		{"text/plain", good, header{"Content-Type": "text/plain"}},
		{"as curl -d sends it", good, header{"Content-Type": "application/x-www-form-urlencoded"}},
		{"unknown members", strings.Replace(good, "{", `{"client_metadata":{"a":1},"Temperature":1,"tools":[],"stop":null,`, 1), nil},
		{"huge numbers", strings.Replace(good, "{", `{"seed":9223372036854775808,"x":1e400,`, 1), nil},
		{"a pair of surrogates", strings.Replace(good, "hello", `\ud83d\ude00`, 1), nil},
		{"half a pair", strings.Replace(good, "hello", `\ud83d`, 1), nil},
	}
	for _, c := range taken {
		t.Run("good: "+c.name, func(t *testing.T) {
			r := g.request(t, t.Context(), http.MethodPost, "/chat/completions", strings.NewReader(c.body))
			for name, value := range c.header {
				r.Header.Set(name, value)
			}
			check(t, g.do(t, r), "answer")
		})
	}
	if refusedCalls := len(g.records(t)) - len(taken); refusedCalls != len(refused) {
		t.Errorf("usage: got %d refused calls, want %d", refusedCalls, len(refused))
	}
}

// TestRequestLines sends what is hardly HTTP. Whatever comes back, no request
// is served that was not meant, and the gateway goes on.
func TestRequestLines(t *testing.T) {
	t.Parallel()
	up := newUpstream(t)
	g := start(t, provider(up))
	body := chatBody(false, "smuggled")
	length := fmt.Sprintf("Content-Length: %d\r\n", len(body))
	good := g.head(g.key)
	for _, c := range []struct{ name, text string }{
		{"nothing", "\r\n\r\n\r\n"},
		{"no HTTP", "hello\r\n\r\n"},
		{"TLS", "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"},
		{"HTTP/2 preface", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"},
		{"two lengths", good + length + "Content-Length: 5\r\n\r\n" + body},
		{"length with a sign", good + strings.Replace(length, ": ", ": +", 1) + "\r\n" + body},
		{"space before the colon", good + strings.Replace(length, ":", " :", 1) + "\r\n" + body},
		{"unknown transfer coding", good + "Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n"},
		{"transfer coding twice", good + "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"},
		{"NUL in a header", good + "X-A: a\x00b\r\n" + length + "\r\n" + body},
		{"no host", "POST /v1/chat/completions HTTP/1.1\r\nAuthorization: Bearer " + g.key + "\r\n" + length + "\r\n" + body},
		{"a bad host", strings.Replace(good, "Host: ", "Host: #@", 1) + length + "\r\n" + body},
		{"chunk size overflow", good + "Transfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\n" + body},
		{"length and chunks", good + "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /v1/models HTTP/1.1\r\nHost: x\r\n\r\n"},
		{"a line of 1 MiB", "GET /" + strings.Repeat("a", 1<<20) + " HTTP/1.1\r\nHost: x\r\n\r\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			conn := g.dial(t)
			go func() {
				conn.send(c.text)
				conn.Conn.(interface{ CloseWrite() error }).CloseWrite()
			}()
			resp, err := http.ReadResponse(conn.in, nil)
			if err != nil {
				return // hanging up is an answer too
			}
			defer resp.Body.Close()
			if resp.StatusCode < 400 {
				t.Errorf("got %s, want a refusal", resp.Status)
			}
			if _, err := http.ReadResponse(conn.in, nil); err == nil {
				t.Error("a second request was served")
			}
		})
	}
	if n := attempts(up, "smuggled"); n != 0 {
		t.Errorf("calls upstream: got %d, want 0", n)
	}
	check(t, g.post(t, "/chat/completions", chatBody(false, "hello")), "answer")
}
