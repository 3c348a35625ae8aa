package upstream

import (
	"bytes"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// answer is one answer before it is written. Made correct, a fault may bend it.
type answer struct {
	status int         // 200 if zero
	header http.Header // beside or in place of the usual
	body   any         // the JSON answer, or nil
	frames []frame     // the stream, if body is nil

	number    int // of the first event of Responses
	framing   framing
	pretty    bool          // indent the JSON answer
	pieceSize int           // bytes a write; 0 is a whole frame
	delay     time.Duration // before each write
	pause     time.Duration // once, before the frame pauseAt
	pauseAt   int
	after     time.Duration            // before the connection may end
	endAt     int                      // frames to write before end
	end       func(*exchange, *answer) // what ends the answer too early, or nil
}

// frame is one event of a stream.
type frame struct {
	event    string // the event line, which Chat has not
	data     any    // json.RawMessage is written as it is, even if it is no JSON
	terminal bool   // the correct end of the stream
	finish   bool   // tells why the answer ends; Chat's is known by its content
	failed   bool   // is an exception of Bedrock's event stream
}

// framing is how frames become bytes. The zero value is how vendors do it.
type framing struct {
	binary    bool   // Amazon's event stream in place of server-sent events
	newline   string // "\n" if empty
	noSpace   bool   // "data:{" in place of "data: {"
	bom       bool   // U+FEFF before the first byte
	comments  bool   // a comment before each frame
	multiLine bool   // indented JSON, a data line for each of its lines
	openEnd   bool   // no blank line after the last frame
}

// correct is the answer as the vendor would give it.
func (x *exchange) correct() *answer {
	if x.prompt.stream {
		return &answer{frames: x.door.stream(x.entry.ID, x.reply, x.usage), framing: framing{binary: x.vendor == bedrock}}
	}
	return &answer{body: x.door.whole(x.entry.ID, x.reply, x.usage)}
}

// fail answers with an error.
func (x *exchange) fail(status int, e apiError) {
	x.send(x.vendor.failure(x, status, e))
}

// send writes an answer, frame by frame, until its end or the client's.
func (x *exchange) send(a *answer) {
	chunks := a.encode()
	h := x.w.Header()
	h.Set(x.vendor.requestID, "req_"+strconv.Itoa(x.entry.ID))
	if a.framing.binary && a.body == nil {
		h.Set("Content-Type", "application/vnd.amazon.eventstream")
	} else if a.body != nil {
		h.Set("Content-Type", "application/json")
		if a.end == nil {
			h.Set("Content-Length", strconv.Itoa(length(chunks)))
		}
	} else {
		h.Set("Content-Type", "text/event-stream; charset=utf-8")
		h.Set("Cache-Control", "no-cache")
	}
	for name, values := range a.header {
		h[name] = values
	}
	if a.pauseAt == 0 && !x.sleep(a.pause) {
		return
	}
	if a.status != 0 {
		x.w.WriteHeader(a.status)
	}
	for i, c := range chunks {
		if a.end != nil && (i == a.endAt || c.terminal) {
			a.end(x, a)
			return
		}
		if i > 0 && i == a.pauseAt && !x.sleep(a.pause) {
			return
		}
		if !x.writeChunk(a, c) {
			return
		}
	}
	x.sleep(a.after)
}

// chunk is a frame, or a half of a JSON answer, as bytes.
type chunk struct {
	bytes    []byte
	terminal bool
}

func length(chunks []chunk) int {
	n := 0
	for _, c := range chunks {
		n += len(c.bytes)
	}
	return n
}

// encode turns an answer into bytes. A JSON answer has two halves, so that faults of
// the middle can strike it too.
func (a *answer) encode() []chunk {
	if a.body != nil {
		whole := marshal(a.body)
		if a.pretty {
			whole = indent(whole)
		}
		half := len(whole) / 2
		return []chunk{{bytes: whole[:half]}, {bytes: whole[half:], terminal: true}}
	}
	var chunks []chunk
	number := a.number
	for i, f := range a.frames {
		if e, ok := f.data.(*event); ok {
			e.SequenceNumber = number
			number++
		}
		chunks = append(chunks, chunk{bytes: a.framing.encode(f, i == 0, i == len(a.frames)-1), terminal: f.terminal})
	}
	return chunks
}

func (f framing) encode(fr frame, first, last bool) []byte {
	if f.binary {
		return eventMessage(fr)
	}
	var b bytes.Buffer
	line := func(field, value string) {
		b.WriteString(field)
		if !f.noSpace {
			b.WriteByte(' ')
		}
		b.WriteString(value)
		b.WriteByte('\n')
	}
	if f.bom && first {
		b.WriteString("\ufeff")
	}
	if f.comments {
		b.WriteString(": keepalive\n\n")
	}
	if fr.event != "" {
		line("event:", fr.event)
	}
	data := marshal(fr.data)
	if f.multiLine {
		data = indent(data)
	}
	for l := range strings.SplitSeq(string(data), "\n") {
		line("data:", l)
	}
	if !f.openEnd || !last {
		b.WriteByte('\n')
	}
	if f.newline != "" {
		return bytes.ReplaceAll(b.Bytes(), []byte("\n"), []byte(f.newline))
	}
	return b.Bytes()
}

// marshal leaves <, > and & as they are, as vendors do.
func marshal(v any) []byte {
	if raw, ok := v.(json.RawMessage); ok {
		return raw
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		panic(err) // a fault made a value that is no JSON: a bug of this package
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

// indent leaves alone what is no JSON, such as [DONE].
func indent(raw []byte) []byte {
	var b bytes.Buffer
	if json.Indent(&b, raw, "", "  ") != nil {
		return raw
	}
	return b.Bytes()
}

// writeChunk says whether the client is still there. The terminal is noted before it
// is written: a client may leave at once when it has read it, and did not cancel.
func (x *exchange) writeChunk(a *answer, c chunk) bool {
	if c.terminal {
		x.note(func(e *Request) { e.Terminal = true })
	}
	size := a.pieceSize
	if size == 0 {
		size = max(len(c.bytes), 1)
	}
	for piece := range slices.Chunk(c.bytes, size) {
		if !x.sleep(a.delay) || !x.write(piece) {
			x.note(func(e *Request) { e.Terminal = false })
			x.gone()
			return false
		}
	}
	if a.body == nil {
		x.note(func(e *Request) { e.Frames++ })
	}
	return true
}

func (x *exchange) write(p []byte) bool {
	if _, err := x.w.Write(p); err != nil {
		return false
	}
	return http.NewResponseController(x.w).Flush() == nil
}

// sleep says whether the client is still there.
func (x *exchange) sleep(d time.Duration) bool {
	if d == 0 {
		return true
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-x.r.Context().Done():
	case <-x.srv.done:
	}
	return false
}

// hold waits until the client goes.
func (x *exchange) hold() {
	select {
	case <-x.r.Context().Done():
	case <-x.srv.done:
	}
}

// raw gives the connection to use, for answers that net/http would not write, and
// closes it after.
func (x *exchange) raw(use func(*net.TCPConn)) {
	c, _, err := http.NewResponseController(x.w).Hijack()
	if err != nil {
		return // the client has gone
	}
	defer c.Close()
	s := x.srv
	s.mu.Lock()
	s.raw[c] = struct{}{}
	closed := s.closed
	s.mu.Unlock()
	if !closed {
		use(c.(*net.TCPConn))
	}
	s.mu.Lock()
	delete(s.raw, c)
	s.mu.Unlock()
}

// holdRaw is hold for a raw connection.
func (x *exchange) holdRaw(c net.Conn) {
	io.Copy(io.Discard, c)
	x.gone()
}

// reset ends the connection with RST in place of FIN.
func (x *exchange) reset() {
	x.raw(func(c *net.TCPConn) { c.SetLinger(0) })
}
