package mcp

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/limen-gateway/limen/internal/sse"
)

// request is what is asked of a server.
type request struct {
	method string
	params []byte
	name   string      // of the tool; "" is none
	told   http.Header // arguments that the server wants in header fields
}

// Bounds of what is read: a message, and what says why there is none.
const (
	maxMessage = 2 << 20
	maxRefusal = 64 << 10
)

// exchange sends a request and returns the result that the server answers.
func (s *Session) exchange(ctx context.Context, r request) ([]byte, error) {
	s.last++
	id := strconv.FormatInt(s.last, 10)
	answer, err := s.post(ctx, id, r)
	if err != nil && ctx.Err() != nil && s.version != "" { // a handshake is not taken back
		s.left = s.last
	}
	return answer, err
}

func (s *Session) post(ctx context.Context, id string, r request) ([]byte, error) {
	var h http.Header
	if s.version == single {
		h = named(r.told, r)
	}
	resp, err := s.send(ctx, http.MethodPost, h, say([]byte(id), r.method, r.params))
	if err != nil {
		return nil, err
	}
	defer release(resp.Body)
	if err := s.refusal(resp); err != nil {
		return nil, err
	}
	if s.version == "" { // the answer of the handshake
		s.id = resp.Header.Get("Mcp-Session-Id")
	}
	switch media(resp) {
	case "application/json":
		return whole(resp.Body, id)
	case "text/event-stream":
		return s.follow(ctx, resp, id)
	}
	return nil, errAnswer
}

// notify tells the server something that has no answer.
func (s *Session) notify(ctx context.Context, method string, params []byte) error {
	return s.tell(ctx, say(nil, method, params))
}

// tell sends a message that has no answer.
func (s *Session) tell(ctx context.Context, body []byte) error {
	resp, err := s.send(ctx, http.MethodPost, nil, body)
	if err != nil {
		return err
	}
	defer release(resp.Body)
	return s.refusal(resp)
}

// send makes an HTTP request in the session, with further header fields. The
// body is nil for none.
func (s *Session) send(ctx context.Context, method string, h http.Header, body []byte) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, s.url, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	if h != nil {
		req.Header = h
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Accept", "application/json, text/event-stream")
	}
	if s.version != "" {
		req.Header.Set("Mcp-Protocol-Version", s.version)
	}
	if s.id != "" {
		req.Header.Set("Mcp-Session-Id", s.id)
	}
	return s.client.Do(req)
}

// refusal is why an answer is no success; nil when it is one. Servers that are
// busy or broken say nothing that would be worth telling.
func (s *Session) refusal(resp *http.Response) error {
	status := resp.StatusCode
	switch {
	case status >= 200 && status < 300:
		return nil
	case status == http.StatusNotFound && s.id != "":
		s.id = ""
		return errLost
	case status < 500 && status != http.StatusTooManyRequests:
		text, err := io.ReadAll(io.LimitReader(resp.Body, maxRefusal))
		if err != nil {
			return err
		}
		if all, err := parse(text); err == nil && len(all) == 1 && all[0].Error != nil {
			return all[0].Error
		}
	}
	return failure(status)
}

// failure is a status that is no success, and said no more.
type failure int

// Error implements error.
func (f failure) Error() string { return "mcp: status " + strconv.Itoa(int(f)) }

func media(resp *http.Response) string {
	kind, _, _ := strings.Cut(resp.Header.Get("Content-Type"), ";")
	return strings.ToLower(strings.TrimSpace(kind))
}

// whole reads an answer that is a document.
func whole(body io.Reader, id string) ([]byte, error) {
	text, err := io.ReadAll(io.LimitReader(body, maxMessage))
	if err != nil {
		return nil, err
	}
	all, err := parse(text)
	if err != nil {
		return nil, err
	}
	m := find(all, id)
	if m == nil {
		return nil, errAnswer
	}
	return m.answer()
}

// Bounds of a stream: how often it is taken up again, how many of the server's
// requests are answered.
const (
	maxAgain = 64
	maxAsked = 64
)

// follow reads a stream up to the answer. One that ends before it is taken up
// again behind the last event that has an ID.
func (s *Session) follow(ctx context.Context, resp *http.Response, id string) ([]byte, error) {
	f := stream{session: s, id: id, wait: time.Second}
	for range maxAgain {
		answer, err := f.read(ctx, resp.Body)
		if answer != nil || err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
			return answer, err
		}
		if f.event == "" || s.version == single {
			return nil, errCut
		}
		again, err := f.resume(ctx)
		if err != nil {
			return nil, err
		}
		defer release(again.Body)
		resp = again
	}
	return nil, errCut
}

// stream is a stream of events that is read for the answer of one request.
type stream struct {
	session *Session
	id      string        // of the request
	event   string        // the ID of the last event that has one
	wait    time.Duration // before the stream is taken up again
	asked   int           // requests of the server
}

// read reads what comes, up to the answer. It is nil where the stream ended
// before it.
func (f *stream) read(ctx context.Context, body io.Reader) ([]byte, error) {
	for frame, err := range sse.All(body, maxMessage) {
		if err != nil {
			return nil, err
		}
		f.note(frame)
		if len(frame.Data) == 0 || frame.Event != nil && string(frame.Event) != "message" {
			continue
		}
		all, err := parse(frame.Data)
		if err != nil {
			return nil, err
		}
		if m := find(all, f.id); m != nil {
			return m.answer()
		}
		for i := range all {
			f.serve(ctx, &all[i])
		}
	}
	return nil, nil
}

// note keeps what is needed to take the stream up again.
func (f *stream) note(frame sse.Frame) {
	if frame.Canonical {
		return
	}
	if id := frame.Field("id"); id != nil {
		f.event = string(id)
	}
	if ms, err := strconv.ParseInt(string(frame.Field("retry")), 10, 32); err == nil && ms >= 0 {
		f.wait = time.Duration(ms) * time.Millisecond
	}
}

// serve answers a request of the server. Whether that reaches it shows in what
// comes next.
func (f *stream) serve(ctx context.Context, m *message) {
	if !m.asks() || f.session.version == single {
		return
	}
	if f.asked++; f.asked <= maxAsked {
		_ = f.session.tell(ctx, m.reply())
	}
}

// resume waits as long as the server wants, and takes the stream up again. A
// server that has lost it may have served the request: it is not sent again.
func (f *stream) resume(ctx context.Context) (*http.Response, error) {
	timer := time.NewTimer(f.wait)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	h := http.Header{"Accept": {"text/event-stream"}, "Last-Event-Id": {f.event}}
	resp, err := f.session.send(ctx, http.MethodGet, h, nil)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode != http.StatusOK || media(resp) != "text/event-stream" {
		release(resp.Body)
		return nil, errCut
	}
	return resp, nil
}

// What follows an answer, its end as a rule, is waited for a moment, so that
// the connection can serve again.
const (
	linger  = 20 * time.Millisecond
	maxRest = 4 << 10
)

// release closes a body.
func release(body io.ReadCloser) {
	late := time.AfterFunc(linger, func() { body.Close() })
	_, _ = io.CopyN(io.Discard, body, maxRest) // it only spares a connection
	late.Stop()
	body.Close()
}
