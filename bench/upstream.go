package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"strconv"
	"time"
)

// The upstream answers from memory and looks at nothing but a request's length, and
// at its body only to see whether a stream is asked for. What it costs is in no
// figure, but on the same cores as the proxies.

const (
	pieces      = 200                   // content chunks of a stream
	defaultPace = 10 * time.Millisecond // between them
	// smallBody is the size up to which a body may ask for a stream. In a request for
	// a response of any size the wish stands before the input, within as much.
	smallBody = 4 << 10
)

// A prompt with "pace=N;" asks for N ms between pieces, one with "pause=N;" for N ms
// before a whole answer.
var paceMark, pauseMark = []byte("pace="), []byte("pause=")

const models = `{"object":"list","data":[{"id":"small","object":"model","created":1767225600,"owned_by":"lab"}]}`

const completion = `{"id":"chatcmpl-7f3a9c2e41d84b6f","object":"chat.completion","created":1767225600,"model":"small","choices":[{"index":0,"message":{"role":"assistant","content":"A threshold is the strip of stone or wood that one steps over to enter a house. It belongs to neither room, which is why so many customs attend to it.","refusal":null,"annotations":[]},"logprobs":null,"finish_reason":"stop"}],"usage":{"prompt_tokens":211,"completion_tokens":37,"total_tokens":248,"prompt_tokens_details":{"cached_tokens":0,"audio_tokens":0},"completion_tokens_details":{"reasoning_tokens":0,"audio_tokens":0,"accepted_prediction_tokens":0,"rejected_prediction_tokens":0}},"service_tier":"default","system_fingerprint":null}`

const chunkHead = `{"id":"chatcmpl-7f3a9c2e41d84b6f","object":"chat.completion.chunk","created":1767225600,"model":"small","service_tier":"default","system_fingerprint":null,`

// script is all that the upstream ever says, as bytes on the wire.
type script struct {
	models                    []byte
	chat, messages, responses wire
}

// wire is what it says in one dialect.
type wire struct{ answer, head, piece, end []byte }

func newScript() script {
	whole := func(body string) []byte {
		return fmt.Appendf(nil, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
	}
	frame := func(members string) []byte {
		data := "data: " + chunkHead + members + "}\n\n"
		return fmt.Appendf(nil, "%x\r\n%s\r\n", len(data), data)
	}
	const streaming = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nCache-Control: no-cache\r\nTransfer-Encoding: chunked\r\n\r\n"
	chat := wire{answer: whole(completion)}
	chat.head = append([]byte(streaming),
		frame(`"choices":[{"index":0,"delta":{"role":"assistant","content":"","refusal":null},"logprobs":null,"finish_reason":null}],"usage":null`)...)
	chat.piece = frame(`"choices":[{"index":0,"delta":{"content":" threshold"},"logprobs":null,"finish_reason":null}],"usage":null`)
	chat.end = append(frame(`"choices":[{"index":0,"delta":{},"logprobs":null,"finish_reason":"stop"}],"usage":null`),
		frame(`"choices":[],"usage":{"prompt_tokens":211,"completion_tokens":200,"total_tokens":411}`)...)
	chat.end = append(chat.end, "e\r\ndata: [DONE]\n\n\r\n0\r\n\r\n"...)
	event := func(kind, members string) []byte {
		text := fmt.Sprintf("event: %s\ndata: {\"type\":\"%s\"%s}\n\n", kind, kind, members)
		return fmt.Appendf(nil, "%x\r\n%s\r\n", len(text), text)
	}
	messages := wire{answer: whole(message)}
	messages.head = slices.Concat([]byte(streaming),
		event("message_start", `,"message":{"id":"msg_01XFDUDYJgAACzvnptvVoYEL","type":"message","role":"assistant","model":"small","content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":211,"cache_creation_input_tokens":0,"cache_read_input_tokens":0,"output_tokens":1}}`),
		event("content_block_start", `,"index":0,"content_block":{"type":"text","text":""}`))
	messages.piece = event("content_block_delta", `,"index":0,"delta":{"type":"text_delta","text":" threshold"}`)
	messages.end = slices.Concat(event("content_block_stop", `,"index":0`),
		event("message_delta", `,"delta":{"stop_reason":"end_turn","stop_sequence":null},"usage":{"output_tokens":200}`),
		event("message_stop", ""), []byte("0\r\n\r\n"))
	responses := wire{answer: whole(response(responseStatusDone, responseItem())), head: []byte(streaming)}
	for _, e := range responseEvents() {
		responses.head = append(responses.head, event(e[0], e[1])...)
	}
	responses.head = append(responses.head, "0\r\n\r\n"...)
	return script{models: whole(models), chat: chat, messages: messages, responses: responses}
}

// message is completion in the dialect of Messages.
const message = `{"id":"msg_01XFDUDYJgAACzvnptvVoYEL","type":"message","role":"assistant","model":"small","content":[{"type":"text","text":"A threshold is the strip of stone or wood that one steps over to enter a house. It belongs to neither room, which is why so many customs attend to it."}],"stop_reason":"end_turn","stop_sequence":null,"stop_details":null,"usage":{"input_tokens":211,"cache_creation_input_tokens":0,"cache_read_input_tokens":0,"output_tokens":37}}`

// serveUpstream runs until standard input ends, which is when the bench is gone.
func serveUpstream(addr string) error {
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return err
	}
	go exitWithParent()
	s := newScript()
	for {
		c, err := l.Accept()
		if err != nil {
			return err
		}
		go s.serve(c)
	}
}

func exitWithParent() {
	io.Copy(io.Discard, os.Stdin)
	os.Exit(0)
}

func (s script) serve(c net.Conn) {
	defer c.Close()
	r := bufio.NewReaderSize(c, 16<<10)
	for {
		what, length, err := readHead(r)
		if err != nil {
			return
		}
		var pace, pause time.Duration
		stream := false
		if length <= smallBody || what == askedResponse {
			body, err := r.Peek(min(length, smallBody))
			if err != nil {
				return
			}
			pace, stream = wanted(body)
			pause = marked(body, pauseMark, 0)
		}
		if _, err := r.Discard(length); err != nil {
			return
		}
		said := &s.chat
		if what == askedMessage {
			said = &s.messages
		}
		switch {
		case what == askedModels:
			_, err = c.Write(s.models)
		case what == askedResponse && stream:
			_, err = c.Write(renamed(s.responses.head))
		case what == askedResponse:
			_, err = c.Write(renamed(s.responses.answer))
		case stream:
			err = said.stream(c, pace)
		default:
			time.Sleep(pause)
			_, err = c.Write(said.answer)
		}
		if err != nil {
			return
		}
	}
}

// What the upstream is asked for.
const (
	askedChat = iota
	askedModels
	askedMessage
	askedResponse
)

// readHead reads a request up to its body.
func readHead(r *bufio.Reader) (what, length int, err error) {
	line, err := r.ReadSlice('\n')
	if err != nil {
		return 0, 0, err
	}
	switch {
	case bytes.HasPrefix(line, []byte("GET ")):
		what = askedModels
	case bytes.Contains(line, []byte("/messages ")):
		what = askedMessage
	case bytes.Contains(line, []byte("/responses ")):
		what = askedResponse
	}
	length, chunked, err := readFields(r)
	if chunked {
		return 0, 0, fmt.Errorf("a chunked request")
	}
	return what, max(length, 0), err
}

// wanted says whether a body asks for a stream, and at which pace.
func wanted(body []byte) (pace time.Duration, stream bool) {
	return marked(body, paceMark, defaultPace), bytes.Contains(body, []byte(`"stream":true`))
}

// marked is the number of milliseconds behind a mark.
func marked(body, mark []byte, otherwise time.Duration) time.Duration {
	if _, after, ok := bytes.Cut(body, mark); ok {
		digits, _, _ := bytes.Cut(after, []byte(";"))
		if ms, err := strconv.Atoi(string(digits)); err == nil {
			return time.Duration(ms) * time.Millisecond
		}
	}
	return otherwise
}

// stream keeps to the clock: a late piece does not delay the ones after it.
func (s *wire) stream(w io.Writer, pace time.Duration) error {
	start := time.Now()
	if _, err := w.Write(s.head); err != nil {
		return err
	}
	for i := range pieces {
		time.Sleep(time.Until(start.Add(time.Duration(i+1) * pace)))
		if _, err := w.Write(s.piece); err != nil {
			return err
		}
	}
	_, err := w.Write(s.end)
	return err
}
