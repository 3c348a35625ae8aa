package http1

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
)

// body is the body of an answer. Closing it before its end closes the
// connection; after the end the connection serves again.
type body struct {
	conn    *conn
	rest    int64 // of the body, or of the chunk; untilClose when there is no length
	chunked bool
	begun   bool // the first chunk has begun
	last    bool // the connection serves no other call
	err     error
}

const untilClose = -1

var (
	errChunk  = errors.New("http1: malformed chunk")
	errClosed = errors.New("http1: body is closed")
)

// newBody decides how the end of the body is known. An answer that says it in
// two ways is refused: what comes after it could be taken for another.
func (c *conn) newBody(resp *http.Response) (*body, error) {
	b := &body{conn: c, rest: untilClose}
	h := resp.Header
	b.last = resp.ProtoMinor == 0 && !hasToken(h["Connection"], "keep-alive") || hasToken(h["Connection"], "close")
	lengths, encodings := h["Content-Length"], h["Transfer-Encoding"]
	resp.ContentLength = -1
	switch {
	case resp.StatusCode == http.StatusNoContent || resp.StatusCode == http.StatusNotModified:
		b.rest, resp.ContentLength = 0, 0
		b.err = io.EOF
	case len(encodings) > 0:
		if len(encodings) > 1 || !strings.EqualFold(encodings[0], "chunked") || len(lengths) > 0 {
			return nil, errors.New("http1: the answer has a transfer encoding that cannot be read")
		}
		b.chunked, b.rest = true, 0
	case len(lengths) > 0:
		for _, l := range lengths[1:] {
			if l != lengths[0] {
				return nil, errors.New("http1: the answer has two lengths")
			}
		}
		n, err := strconv.ParseUint(lengths[0], 10, 63)
		if err != nil {
			return nil, fmt.Errorf("http1: the answer has the length %q", lengths[0])
		}
		b.rest, resp.ContentLength = int64(n), int64(n)
		if n == 0 {
			b.err = io.EOF
		}
	default:
		b.last = true
	}
	return b, nil
}

func hasToken(values []string, token string) bool {
	for _, v := range values {
		for part := range strings.SplitSeq(v, ",") {
			if strings.EqualFold(strings.TrimSpace(part), token) {
				return true
			}
		}
	}
	return false
}

// Read implements io.Reader. io.EOF is the end that the answer stated; any
// other end is io.ErrUnexpectedEOF. Chunks that have come already are returned
// together.
func (b *body) Read(p []byte) (n int, err error) {
	if b.err != nil || len(p) == 0 {
		return 0, b.err
	}
	for n == 0 || b.err == nil && n < len(p) && b.chunkCame() {
		m, err := b.readPart(p[n:])
		n += m
		if b.err = err; err != nil {
			break
		}
	}
	if n > 0 {
		return n, nil // the error comes with the next read
	}
	return 0, b.err
}

// readPart reads from within one chunk, or from the body that has none.
func (b *body) readPart(p []byte) (int, error) {
	if b.chunked && b.rest == 0 {
		if err := b.nextChunk(); err != nil {
			return 0, err
		}
	}
	if b.rest >= 0 && int64(len(p)) > b.rest {
		p = p[:b.rest]
	}
	n, err := b.conn.read(p)
	if b.rest > 0 {
		b.rest -= int64(n)
	}
	switch {
	case err == io.EOF && b.rest != untilClose:
		return n, io.ErrUnexpectedEOF
	case err == nil && b.rest == 0 && !b.chunked:
		return n, io.EOF
	}
	return n, err
}

// chunkCame reports whether the line before the next chunk is in the buffer,
// so that going on to it does not wait.
func (b *body) chunkCame() bool {
	if !b.chunked || b.rest != 0 {
		return false
	}
	data := b.conn.buf[b.conn.start:b.conn.end]
	line, ok := bytes.CutPrefix(data, []byte("\r\n"))
	i := bytes.IndexByte(line, '\n')
	if !ok || i < 0 {
		return false
	}
	// The last chunk is followed by an empty line at least; a chunk by data.
	return line[0] != '0' && i+1 < len(line) || bytes.HasPrefix(line, []byte("0\r\n\r\n"))
}

// read returns what is in the buffer, else reads past it.
func (c *conn) read(p []byte) (int, error) {
	if c.start == c.end {
		if len(p) >= bufferSize {
			return c.Conn.Read(p)
		}
		c.start, c.end = 0, 0
		if err := c.fill(); err != nil {
			if err == io.ErrUnexpectedEOF {
				err = io.EOF
			}
			return 0, err
		}
	}
	n := copy(p, c.buf[c.start:c.end])
	c.start += n
	return n, nil
}

// maxChunkLine bounds the line before a chunk, its extensions included, and
// each trailer.
const maxChunkLine = 4 << 10

// nextChunk reads the line before a chunk; the last one ends the body.
func (b *body) nextChunk() error {
	if b.begun {
		line, err := b.conn.line()
		if err != nil {
			return err
		}
		if len(line) > 0 {
			return errChunk
		}
	}
	b.begun = true
	line, err := b.conn.line()
	if err != nil {
		return err
	}
	if b.rest, err = chunkSize(line); err != nil || b.rest > 0 {
		return err
	}
	for range maxHeaders { // trailers are read and dropped
		line, err := b.conn.line()
		if err != nil {
			return err
		}
		if len(line) == 0 {
			return io.EOF
		}
	}
	return errChunk
}

// chunkSize reads the hexadecimal digits that a chunk's line begins with.
func chunkSize(line []byte) (size int64, err error) {
	line, _, _ = bytes.Cut(line, []byte(";"))
	line = bytes.TrimRight(line, " \t")
	if len(line) == 0 || len(line) > 15 {
		return 0, errChunk
	}
	for _, c := range line {
		digit := strings.IndexByte("0123456789abcdef", c|0x20)
		if digit < 0 || c < '0' {
			return 0, errChunk
		}
		size = size<<4 | int64(digit)
	}
	return size, nil
}

// line reads a line of the framing; it is good until more is read.
func (c *conn) line() ([]byte, error) {
	for searched := 0; ; {
		data := c.buf[c.start:c.end]
		if i := bytes.IndexByte(data[searched:], '\n'); i >= 0 {
			line := data[:searched+i]
			c.start += len(line) + 1
			if len(line) == 0 || line[len(line)-1] != '\r' {
				return nil, errChunk
			}
			return line[:len(line)-1], nil
		}
		if searched = len(data); searched > maxChunkLine {
			return nil, errChunk
		}
		if err := c.fill(); err != nil {
			return nil, err
		}
	}
}

// Close implements io.Closer.
func (b *body) Close() error {
	if b.conn == nil {
		return nil
	}
	if b.err == io.EOF && !b.last {
		b.conn.keep()
	} else {
		b.conn.close()
	}
	b.conn, b.err = nil, errClosed
	return nil
}
