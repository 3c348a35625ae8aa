package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"time"
)

// patience bounds one call.
const patience = 2 * time.Minute

// client is one connection that makes calls one after another. It speaks just the
// HTTP/1.1 that the proxies answer with.
type client struct {
	conn net.Conn
	r    *bufio.Reader
}

func dial(addr string) (*client, error) {
	c, err := net.DialTimeout("tcp", addr, 10*time.Second)
	if err != nil {
		return nil, err
	}
	return newClient(c), nil
}

func newClient(c net.Conn) *client { return &client{conn: c, r: bufio.NewReaderSize(c, 8<<10)} }

func (c *client) close() { c.conn.Close() }

// call sends a request and reads its answer, which must be a whole one of status 200.
// events is the number of its blank lines, which end events if it is a stream.
func (c *client) call(request []byte) (events int, err error) {
	length, err := c.send(request)
	if err != nil {
		return 0, err
	}
	if length >= 0 {
		_, err = c.r.Discard(length)
		return 0, err
	}
	return c.readChunks()
}

// fetch is call for an answer of a known length that is wanted.
func (c *client) fetch(request []byte) ([]byte, error) {
	length, err := c.send(request)
	if err != nil {
		return nil, err
	}
	body := make([]byte, max(length, 0))
	_, err = io.ReadFull(c.r, body)
	return body, err
}

// attempt is call for an answer of any status, whose body has a length.
func (c *client) attempt(request []byte) (status int, err error) {
	c.conn.SetDeadline(time.Now().Add(patience))
	if _, err := c.conn.Write(request); err != nil {
		return 0, err
	}
	line, err := c.r.ReadSlice('\n')
	if err != nil {
		return 0, err
	}
	if _, err := fmt.Sscanf(string(line), "HTTP/1.1 %d", &status); err != nil {
		return 0, err
	}
	length, _, err := readFields(c.r)
	if err == nil && length < 0 {
		err = errors.New("an answer without length")
	}
	if err != nil {
		return 0, err
	}
	_, err = c.r.Discard(length)
	return status, err
}

// open sends a request for a stream and waits for the first bytes of its body.
func (c *client) open(request []byte) error {
	if _, err := c.send(request); err != nil {
		return err
	}
	_, err := c.r.Peek(64)
	return err
}

// send sends a request and reads the head of its answer: the length of the body, or
// -1 if it is chunked.
func (c *client) send(request []byte) (length int, err error) {
	c.conn.SetDeadline(time.Now().Add(patience))
	if _, err := c.conn.Write(request); err != nil {
		return 0, err
	}
	line, err := c.r.ReadSlice('\n')
	if err != nil {
		return 0, err
	}
	if !bytes.HasPrefix(line, []byte("HTTP/1.1 200 ")) {
		return 0, c.refused(line)
	}
	length, chunked, err := readFields(c.r)
	if err == nil && !chunked && length < 0 {
		err = errors.New("an answer without length")
	}
	if chunked {
		length = -1
	}
	return length, err
}

// refused is an answer of another status, with the start of what follows it.
func (c *client) refused(line []byte) error {
	status := strings.TrimSpace(string(line))
	c.r.Peek(1)
	rest, _ := c.r.Peek(min(c.r.Buffered(), 1000))
	return fmt.Errorf("%s: %q", status, rest)
}

// readFields reads header fields up to the blank line. The length is -1 if none is
// given.
func readFields(r *bufio.Reader) (length int, chunked bool, err error) {
	length = -1
	for {
		line, err := r.ReadSlice('\n')
		if err != nil {
			return 0, false, err
		}
		line = bytes.TrimSpace(line)
		if len(line) == 0 {
			return length, chunked, nil
		}
		name, value, _ := bytes.Cut(line, []byte(":"))
		switch {
		case bytes.EqualFold(name, []byte("Content-Length")):
			if length, err = strconv.Atoi(string(bytes.TrimSpace(value))); err != nil {
				return 0, false, err
			}
		case bytes.EqualFold(name, []byte("Transfer-Encoding")):
			chunked = true
		}
	}
}

// readChunks reads a chunked body and counts its blank lines.
func (c *client) readChunks() (events int, err error) {
	newline := false // the byte before was one
	for {
		line, err := c.r.ReadSlice('\n')
		if err != nil {
			return events, err
		}
		size, err := strconv.ParseUint(string(bytes.TrimSpace(line)), 16, 31)
		if err != nil {
			return events, err
		}
		for left := int(size); left > 0; {
			part, err := c.r.Peek(min(left, max(c.r.Buffered(), 1)))
			if err != nil {
				return events, err
			}
			for _, b := range part {
				if b == '\n' && newline {
					events++
				}
				newline = b == '\n'
			}
			left -= len(part)
			c.r.Discard(len(part))
		}
		if _, err := c.r.ReadSlice('\n'); err != nil { // after the data, or the last line of all
			return events, err
		}
		if size == 0 {
			return events, nil
		}
	}
}

// chatRequest is a call as the Python SDK sends it: messages before the model, the
// headers it adds. The body has the given size.
func chatRequest(key string, size int) []byte {
	return post(key, chatPath, chatBody(size, "", ""))
}

// farther is a request for the model whose upstream speaks another dialect.
func farther(request []byte) []byte {
	return bytes.Replace(request, []byte(`"model":"fast"`), []byte(`"model": "far"`), 1)
}

// streamRequest is a call for a stream with the given pace.
func streamRequest(key string, pace time.Duration) []byte {
	return post(key, chatPath, chatBody(1<<10, fmt.Sprintf("%s%d;", paceMark, pace.Milliseconds()), `,"stream":true`))
}

// prose has what makes JSON text cost: quotes, line ends, letters beyond ASCII.
const prose = `The caf\u00e9 on the corner opens at six. \"You're early,\" says the owner, and wipes the counter.\n\nOutside, the first tram — empty but for its driver — turns into the square; nobody looks up.\n\t- two coffees, one with milk\n\t- a C:\\notes\\today.txt left open on the screen\n`

func chatBody(size int, start, members string) string {
	const before = `{"messages":[{"role":"system","content":"You are a careful editor."},{"role":"user","content":"`
	after := `"}],"model":"fast"` + members + "}"
	var b strings.Builder
	b.WriteString(before + start)
	room := func() int { return size - b.Len() - len(after) }
	for room() > len(prose) {
		b.WriteString(prose)
	}
	b.WriteString(strings.Repeat("a", max(room(), 0)))
	b.WriteString(after)
	return b.String()
}

const chatPath = "/v1/chat/completions"

func post(key, path, body string) []byte {
	return fmt.Appendf(nil, "POST %s HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept: application/json\r\n"+
		"Content-Type: application/json\r\nUser-Agent: OpenAI/Python 2.8.0\r\nX-Stainless-Lang: python\r\n"+
		"X-Stainless-Package-Version: 2.8.0\r\nX-Stainless-OS: Linux\r\nX-Stainless-Arch: x64\r\nX-Stainless-Runtime: CPython\r\n"+
		"X-Stainless-Runtime-Version: 3.13.1\r\nX-Stainless-Async: false\r\nX-Stainless-Retry-Count: 0\r\nX-Stainless-Read-Timeout: 600\r\n"+
		"Authorization: Bearer %s\r\nContent-Length: %d\r\n\r\n%s", path, key, len(body), body)
}

func listModels(key string) []byte {
	return fmt.Appendf(nil, "GET /v1/models HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer %s\r\n\r\n", key)
}
