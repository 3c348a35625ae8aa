package http1

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/textproto"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/limen-gateway/limen/internal/buffer"
)

// exchange sends a request and reads the head of its answer.
func (c *conn) exchange(req *http.Request) (*http.Response, error) {
	early, err := c.send(req)
	if err != nil {
		return nil, err
	}
	resp, body, err := c.readHead(req)
	if err != nil {
		return nil, err
	}
	if early { // what was not sent of the request would be read as the next
		body.last = true
	}
	resp.Body = body
	return resp, nil
}

// copied is up to which size a body is copied behind its head, to be written
// at once.
const copied = 8 << 10

// stall is how long a write may stand still before it is looked whether the
// answer has come already.
const stall = 100 * time.Millisecond

// send writes the request. early says that the answer came before the request
// was taken whole.
func (c *conn) send(req *http.Request) (early bool, err error) {
	pooled := buffer.Get(bufferSize)
	defer buffer.Put(pooled)
	head := appendHead(*pooled, req)
	var segments [][]byte
	if req.Body != nil && req.ContentLength > 0 {
		if segments, err = bodySegments(req); err != nil {
			return false, err
		}
	}
	if req.ContentLength > copied {
		return c.sendLarge(req, append(net.Buffers{head}, segments...))
	}
	for _, s := range segments {
		head = append(head, s...)
	}
	_, err = c.Write(head)
	return false, err
}

// sendLarge writes a request that may not fit the buffers of the connection.
// A server that refuses it may answer and read no further.
func (c *conn) sendLarge(req *http.Request, buffers net.Buffers) (early bool, err error) {
	ctx := req.Context()
	for {
		if err := c.SetWriteDeadline(time.Now().Add(stall)); err != nil {
			return false, err
		}
		if err := ctx.Err(); err != nil { // abort's deadline was just overwritten
			return false, err
		}
		_, err := buffers.WriteTo(c.Conn)
		if err == nil {
			c.SetWriteDeadline(time.Time{})
			return false, ctx.Err()
		}
		if c.answered() {
			c.SetWriteDeadline(time.Time{})
			return true, ctx.Err()
		}
		if !errors.Is(err, os.ErrDeadlineExceeded) {
			return false, err
		}
	}
}

// answered reports whether something of the answer has come, without waiting.
func (c *conn) answered() bool {
	c.SetReadDeadline(time.Now().Add(time.Millisecond))
	err := c.fill()
	c.SetReadDeadline(time.Time{})
	return err == nil
}

// bodySegments is the body in memory.
func bodySegments(req *http.Request) ([][]byte, error) {
	if s, ok := req.Body.(Segmented); ok {
		return s.Segments(), nil
	}
	data, err := io.ReadAll(io.LimitReader(req.Body, req.ContentLength))
	if err == nil && int64(len(data)) != req.ContentLength {
		err = io.ErrUnexpectedEOF
	}
	return [][]byte{data}, err
}

func appendHead(dst []byte, req *http.Request) []byte {
	dst = append(dst, req.Method...)
	dst = append(dst, ' ')
	dst = append(dst, req.URL.RequestURI()...)
	dst = append(dst, " HTTP/1.1\r\nHost: "...)
	dst = append(dst, req.Host...)
	dst = append(dst, "\r\n"...)
	for name, values := range req.Header {
		for _, v := range values {
			dst = append(dst, name...)
			dst = append(dst, ": "...)
			dst = append(dst, v...)
			dst = append(dst, "\r\n"...)
		}
	}
	if req.Body != nil {
		dst = append(dst, "Content-Length: "...)
		dst = strconv.AppendInt(dst, req.ContentLength, 10)
		dst = append(dst, "\r\n"...)
	}
	return append(dst, "\r\n"...)
}

// maxInterim bounds the interim answers (1xx) before the answer.
const maxInterim = 8

// maxHeaders bounds the header fields of an answer.
const maxHeaders = 256

// readHead reads the head of the answer, interim answers aside.
func (c *conn) readHead(req *http.Request) (*http.Response, *body, error) {
	for range maxInterim {
		head, err := c.nextHead()
		if err != nil {
			return nil, nil, err
		}
		resp, err := parseHead(head)
		if err != nil {
			return nil, nil, err
		}
		if resp.StatusCode >= 200 {
			resp.Request = req
			b, err := c.newBody(resp)
			return resp, b, err
		}
		if resp.StatusCode == http.StatusSwitchingProtocols {
			return nil, nil, errors.New("http1: the answer switches protocols, which was not asked for")
		}
	}
	return nil, nil, errors.New("http1: too many interim answers")
}

// nextHead returns the next head, without its empty line, as a string of its
// own.
func (c *conn) nextHead() (string, error) {
	searched := 0 // from start on
	for {
		data := c.buf[c.start:c.end]
		for {
			i := bytes.IndexByte(data[searched:], '\n')
			if i < 0 {
				break
			}
			end := searched + i + 1
			rest := data[end:]
			if len(rest) > 0 && rest[0] == '\r' {
				rest = rest[1:]
			}
			if len(rest) == 0 {
				break // the next line has yet to begin
			}
			if rest[0] == '\n' {
				c.start = c.end - len(rest) + 1
				return string(data[:end]), nil
			}
			searched = end
		}
		if err := c.fill(); err != nil {
			return "", err
		}
	}
}

var errMalformed = errors.New("http1: the head of the answer is malformed")

// parseHead parses a status line and header fields. The parts of the header
// share memory with head.
func parseHead(head string) (*http.Response, error) {
	line, rest := cutLine(head)
	proto, status, _ := strings.Cut(line, " ")
	code, _, _ := strings.Cut(status, " ")
	n, err := strconv.Atoi(code)
	if err != nil || len(code) != 3 || n < 100 || (proto != "HTTP/1.1" && proto != "HTTP/1.0") {
		return nil, errMalformed
	}
	resp := &http.Response{
		Status: status, StatusCode: n, Proto: proto, ProtoMajor: 1, ProtoMinor: int(proto[len(proto)-1] - '0'),
	}
	fields := strings.Count(rest, "\n")
	if fields > maxHeaders {
		return nil, fmt.Errorf("http1: the answer has %d header fields", fields)
	}
	resp.Header = make(http.Header, fields)
	values := make([]string, fields) // one allocation for all
	for rest != "" {
		line, rest = cutLine(rest)
		name, value, ok := strings.Cut(line, ":")
		if !ok || name == "" || strings.ContainsAny(name, " \t\r") {
			return nil, errMalformed // obsolete folding, too
		}
		name = textproto.CanonicalMIMEHeaderKey(name)
		value = strings.Trim(value, " \t")
		if have := resp.Header[name]; have != nil {
			resp.Header[name] = append(have, value)
			continue
		}
		values[0] = value
		resp.Header[name] = values[:1:1]
		values = values[1:]
	}
	return resp, nil
}

// cutLine returns the first line, without its end, and what follows.
func cutLine(s string) (line, rest string) {
	line, rest, _ = strings.Cut(s, "\n")
	return strings.TrimSuffix(line, "\r"), rest
}
