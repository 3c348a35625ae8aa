package gateway

import (
	"compress/flate"
	"compress/gzip"
	"errors"
	"io"
	"net/http"
	"strings"

	"github.com/limen-gateway/limen/internal/buffer"
	"github.com/limen-gateway/limen/internal/llm"
)

// errOver is more than a limit allows.
var errOver = errors.New("over the limit")

// A body is given memory by what came of it, not by what its length says: at
// first little, and then at most growth times as much.
const (
	firstRead = 64 << 10
	growth    = 32
)

// readAll reads r to its end into a lent buffer, at most limit bytes. length is
// what the peer says, -1 when it does not. seen is told of every read.
func readAll(r io.Reader, length, limit int64, seen func(n int)) (*[]byte, error) {
	return readReserved(r, length, limit, seen, func(int64) error { return nil })
}

// readReserved is readAll of a body for which there may be no memory: reserve
// is asked before it takes so many bytes in all.
func readReserved(r io.Reader, length, limit int64, seen func(n int), reserve func(bytes int64) error) (*[]byte, error) {
	if length > limit {
		return nil, errOver
	}
	wanted := int(length) + 1 // one more, so that the end is seen without growing
	if length < 0 {
		wanted = 8 << 10
	}
	size := min(wanted, firstRead)
	if err := reserve(min(int64(size), limit)); err != nil {
		return nil, err
	}
	buf := buffer.Get(size)
	for {
		b := *buf
		if len(b) == cap(b) {
			size = max(min(wanted, growth*cap(b)), 2*cap(b))
			if err := reserve(min(int64(size), limit)); err != nil {
				buffer.Put(buf)
				return nil, err
			}
			larger := buffer.Get(min(size, int(limit)+1))
			*larger = append(*larger, b...)
			buffer.Put(buf)
			buf, b = larger, *larger
		}
		n, err := r.Read(b[len(b):cap(b)])
		*buf = b[:len(b)+n]
		seen(n)
		switch {
		case int64(len(*buf)) > limit:
			buffer.Put(buf)
			return nil, errOver
		case err == io.EOF:
			return buf, nil
		case err != nil:
			buffer.Put(buf)
			return nil, err
		}
	}
}

// readBody reads the body of a call.
func (g *Gateway) readBody(c *Call, r *http.Request) (*[]byte, error) {
	limit, length := c.set.MaxBody, r.ContentLength
	var reader io.Reader = r.Body
	switch encoding := strings.ToLower(r.Header.Get("Content-Encoding")); encoding {
	case "", "identity":
	case "gzip":
		// A body that ends too early reads as io.ErrUnexpectedEOF, whichever
		// of the two ended: the client's own is told apart here.
		whole := &wholeReader{r: r.Body}
		inner, err := gzip.NewReader(whole)
		if err != nil {
			return nil, c.bodyError(whole.explain(err), limit)
		}
		reader, length = &explained{inner, whole}, -1
	default:
		return nil, llm.Errorf(llm.BadMedia, "The content encoding %q cannot be read; send the body as it is, or with gzip.", clip(encoding))
	}
	buf, err := readReserved(reader, length, limit, c.answer.took, func(bytes int64) error { return g.reserve(c, bytes) })
	if err != nil {
		return nil, c.bodyError(err, limit)
	}
	return buf, nil
}

// wholeReader remembers whether a body came to its stated end.
type wholeReader struct {
	r     io.Reader
	ended bool
}

func (w *wholeReader) Read(p []byte) (int, error) {
	n, err := w.r.Read(p)
	w.ended = w.ended || err == io.EOF
	return n, err
}

// explain turns an early end of the gzip within a whole body into what it is.
func (w *wholeReader) explain(err error) error {
	if w.ended && (err == io.ErrUnexpectedEOF || err == io.EOF) {
		return gzip.ErrHeader
	}
	return err
}

// explained reads a gzip within a wholeReader.
type explained struct {
	inner io.Reader
	whole *wholeReader
}

func (e *explained) Read(p []byte) (int, error) {
	n, err := e.inner.Read(p)
	if err != nil && err != io.EOF {
		err = e.whole.explain(err)
	}
	return n, err
}

// badGzip reports whether a body came whole but is not the gzip that it says.
func badGzip(err error) bool {
	var corrupt flate.CorruptInputError
	return errors.As(err, &corrupt) || errors.Is(err, gzip.ErrHeader) || errors.Is(err, gzip.ErrChecksum)
}

func (c *Call) bodyError(err error, limit int64) error {
	var e *llm.Error
	switch {
	case errors.As(err, &e):
		return e
	case errors.Is(err, errOver):
		return llm.Errorf(llm.TooLarge, "The body of the request is larger than the %d bytes that are allowed.", limit)
	case c.ctx.Err() != nil:
		return ended(c.ctx, err)
	case badGzip(err):
		return &llm.Error{Kind: llm.Invalid, Message: "The body of the request is not the gzip that its header says.", Err: err}
	}
	return clientLeft(err)
}

// mediaError says whether a body that is no JSON claimed to be something else.
func mediaError(r *http.Request, err error) error {
	media, _, _ := strings.Cut(r.Header.Get("Content-Type"), ";")
	media = strings.ToLower(strings.TrimSpace(media))
	var e *llm.Error
	if media == "" || strings.HasSuffix(media, "json") || errors.As(err, &e) && e.Code != "" {
		return err
	}
	return llm.Errorf(llm.BadMedia, "The content type %q cannot be read: Content-Type must be application/json.", clip(media))
}
