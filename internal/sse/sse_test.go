package sse

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
)

const testMax = 1 << 20

// show writes a frame the way the tables want it: "event|data", with "-" for
// nil, and "=" in front when the frame is canonical.
func show(f Frame) string {
	part := func(b []byte) string {
		if b == nil {
			return "-"
		}
		return string(b)
	}
	s := part(f.Event) + "|" + part(f.Data)
	if f.Canonical {
		s = "=" + s
	}
	return s
}

func frames(t *testing.T, src io.Reader, max int) (shown, raw []string) {
	t.Helper()
	for f, err := range All(src, max) {
		if err != nil {
			t.Fatal(err)
		}
		shown = append(shown, show(f))
		raw = append(raw, string(f.Raw))
	}
	return shown, raw
}

var streams = []struct {
	name, stream string
	want         []string
}{
	{"nothing", "", nil},
	{"chat", "data: {\"a\":1}\n\ndata: [DONE]\n\n", []string{`=-|{"a":1}`, `=-|[DONE]`}},
	{"responses", "event: response.created\ndata: {}\n\n", []string{`=response.created|{}`}},
	{"no space", "data:{}\n\n", []string{`-|{}`}},
	{"no space after event", "event:x\ndata: {}\n\n", []string{`x|{}`}},
	{"two spaces", "data:  {}\n\n", []string{`=-| {}`}},
	{"colon in the data", "data: a: b\n\n", []string{`=-|a: b`}},
	{"event behind the data", "data: {}\nevent: x\n\n", []string{`x|{}`}},
	{"two events, the last counts", "event: x\nevent: y\ndata: {}\n\n", []string{`y|{}`}},
	{"empty event", "event: \ndata: {}\n\n", []string{`-|{}`}},
	{"event only", "event: ping\n\n", []string{`ping|-`}},
	{"empty data", "data: \n\n", []string{`-|`}},
	{"data without colon", "data\n\n", []string{`-|`}},
	{"several lines", "data: {\ndata:  \"a\":1\ndata:}\n\ndata: a\ndata\ndata: b\n\n", []string{"-|{\n \"a\":1\n}", "-|a\n\nb"}},
	{"comment", ": keep-alive\n\ndata: 1\n\n", []string{`-|-`, `=-|1`}},
	{"comment in a frame", ": x\ndata: 1\n\n", []string{`-|1`}},
	{"id and retry", "id: 1\ndata: 1\n\nretry: 3\n\n", []string{`-|1`, `-|-`}},
	{"id behind", "data: 1\nid: 1\n\n", []string{`-|1`}},
	{"unknown field", "{\"error\":1}\n\nData: 1\n\n data: 1\n\n", []string{`-|-`, `-|-`, `-|-`}},
	{"more empty lines", "data: 1\n\n\n\ndata: 2\n\n", []string{`=-|1`, `-|-`, `-|-`, `=-|2`}},
	{"empty line in front", "\ndata: 1\n\n", []string{`-|-`, `=-|1`}},
	{"CR LF", "data: 1\r\n\r\nevent: x\r\ndata: 2\r\n\r\n", []string{`-|1`, `x|2`}},
	{"CR", "data: 1\r\revent: x\rdata: 2\r\r", []string{`-|1`, `x|2`}},
	{"mixed ends", "data: 1\n\r\ndata: 2\r\n\ndata: 3\n\rdata: 4\r\n\rdata: 5\n\n", []string{`-|1`, `-|2`, `-|3`, `-|4`, `=-|5`}},
	{"CR LF, more empty lines", "data: 1\r\n\r\n\r\n", []string{`-|1`, `-|-`}},
	{"LF after CR LF", "data: 1\r\n\r\ndata: 2\n\ndata: 3\n\n", []string{`-|1`, `-|2`, `=-|3`}},
	{"CR LF, several lines", "data: 1\r\ndata: 2\r\n\r\n", []string{"-|1\n2"}},
	{"byte order mark", "\uFEFFdata: 1\n\n\uFEFFdata: 2\n\n", []string{`-|1`, `-|-`}},
	{"byte order mark before an event", "\uFEFFevent: x\ndata: 1\n\n", []string{`x|1`}},
	{"no empty line at the end", "data: 1\n\ndata: 2\n", []string{`=-|1`, `-|2`}},
	{"no line end at the end", "data: 1\n\nevent: x\ndata: {\"a\"", []string{`=-|1`, `x|{"a"`}},
	{"CR LF, no empty line at the end", "data: 1\r\n", []string{`-|1`}},
	{"line end alone", "\n", []string{`-|-`}},
	{"NUL and bad UTF-8", "data: \x00\xff\n\n", []string{"=-|\x00\xff"}},
	{"long data", "data: " + strings.Repeat("x", 9000) + "\n\ndata: 1\n\n", []string{"=-|" + strings.Repeat("x", 9000), `=-|1`}},
}

func TestReader(t *testing.T) {
	for _, tt := range streams {
		t.Run(tt.name, func(t *testing.T) {
			for name, wrap := range map[string]func(io.Reader) io.Reader{
				"whole":            func(r io.Reader) io.Reader { return r },
				"byte by byte":     iotest.OneByteReader,
				"with its EOF":     iotest.DataErrReader,
				"half of the room": iotest.HalfReader,
			} {
				got, raw := frames(t, wrap(strings.NewReader(tt.stream)), testMax)
				if !slices.Equal(got, tt.want) {
					t.Errorf("%s: got %q, want %q", name, got, tt.want)
				}
				// Nothing is lost but the LF of a CR LF at the very end.
				if all := strings.Join(raw, ""); all != tt.stream && all+"\n" != tt.stream {
					t.Errorf("%s: raw bytes are %q, want %q", name, raw, tt.stream)
				}
			}
		})
	}
}

// Wherever the network cuts a stream, the frames are the same.
func TestReaderEverySplit(t *testing.T) {
	var corpus strings.Builder
	for _, tt := range streams {
		if len(tt.stream) < 100 {
			corpus.WriteString(tt.stream)
		}
	}
	for _, stream := range []string{corpus.String(), strings.ReplaceAll(corpus.String(), "\n", "\r\n"), strings.ReplaceAll(corpus.String(), "\n", "\r")} {
		want, wantRaw := frames(t, strings.NewReader(stream), testMax)
		for i := range len(stream) {
			src := io.MultiReader(strings.NewReader(stream[:i]), strings.NewReader(stream[i:]))
			got, gotRaw := frames(t, src, testMax)
			if !slices.Equal(got, want) || !slices.Equal(gotRaw, wantRaw) {
				t.Fatalf("split at %d: got %q\nwant %q", i, got, want)
			}
		}
	}
}

// An event is available as soon as the first byte of its empty line's end is.
func TestNextDoesNotWait(t *testing.T) {
	for _, stream := range []string{"data: 1\n\n", "data: 1\r\n\r", "data: 1\r\r"} {
		src, out := io.Pipe()
		r := NewReader(src, testMax)
		go io.WriteString(out, stream) // ends with the write, which Fill takes whole
		if err := r.Fill(); err != nil {
			t.Fatal(err)
		}
		if f, ok := r.Next(); !ok || string(f.Data) != "1" {
			t.Errorf("%q: no frame", stream)
		}
		r.Close()
	}
}

// Frames that arrived together lie together.
func TestRawIsContiguous(t *testing.T) {
	const stream = "data: 1\n\n: c\n\nevent: x\ndata: 2\n\ndata: 3\r\n\r\ndata: a\ndata: b\n\ndata: 4\n\n"
	r := NewReader(strings.NewReader(stream), testMax)
	defer r.Close()
	if err := r.Fill(); err != nil {
		t.Fatal(err)
	}
	first, ok := r.Next()
	n, data := len(first.Raw), []string{string(first.Data)}
	var kept []Frame
	for f, more := r.Next(); more; f, more = r.Next() {
		n += len(f.Raw)
		kept = append(kept, f)
	}
	if all := (*r.buf)[:n]; !ok || &all[0] != &first.Raw[0] || string(all) != stream {
		t.Errorf("got %q, want %q", all, stream)
	}
	for _, f := range kept {
		data = append(data, string(f.Data))
	}
	if want := []string{"1", "", "2", "3", "a\nb", "4"}; !slices.Equal(data, want) {
		t.Errorf("frames changed before the next Fill: %q, want %q", data, want)
	}
	_ = append(first.Raw, 'X')
	if string((*r.buf)[:n]) != stream {
		t.Error("appending to Raw writes into the frame after it")
	}
}

func TestReaderErrors(t *testing.T) {
	broken := errors.New("connection reset")
	for name, wrap := range map[string]func(io.Reader) io.Reader{
		"apart":    func(r io.Reader) io.Reader { return r },
		"together": iotest.DataErrReader,
	} {
		src := wrap(io.MultiReader(strings.NewReader("data: 1\n\ndata: 2\n"), iotest.ErrReader(broken)))
		r := NewReader(src, testMax)
		if err := r.Fill(); err != nil {
			t.Fatalf("%s: Fill = %v", name, err)
		}
		if f, ok := r.Next(); !ok || string(f.Data) != "1" {
			t.Fatalf("%s: Next = %q, %v", name, f.Data, ok)
		}
		for range 2 {
			if f, ok := r.Next(); ok {
				t.Fatalf("%s: the broken frame is there: %q", name, f.Raw)
			}
			if err := r.Fill(); err != broken {
				t.Fatalf("%s: Fill = %v, want %v", name, err, broken)
			}
		}
		r.Close()
		if err := r.Fill(); err == nil || err == io.EOF {
			t.Errorf("%s: Fill after Close = %v", name, err)
		}
		if _, ok := r.Next(); ok {
			t.Errorf("%s: Next after Close has a frame", name)
		}
		r.Close()
	}
}

func TestEOF(t *testing.T) {
	r := NewReader(strings.NewReader("data: 1"), testMax)
	defer r.Close()
	for i, want := range []string{"", "1"} {
		if err := r.Fill(); err != nil {
			t.Fatalf("Fill %d = %v", i, err)
		}
		if f, ok := r.Next(); ok != (want != "") || string(f.Data) != want {
			t.Fatalf("Next %d = %q, %v, want %q", i, f.Data, ok, want)
		}
	}
	for range 2 {
		if err := r.Fill(); err != io.EOF {
			t.Fatalf("Fill = %v, want io.EOF", err)
		}
	}
}

func TestTooLong(t *testing.T) {
	for _, max := range []int{64, minBuffer - 1, minBuffer, minBuffer + 1, 3 * minBuffer, 100_000} {
		frame := "data: " + strings.Repeat("x", max-len("data: \n\n")) + "\n\n"
		for _, tt := range []struct {
			stream string
			frames int
			err    error
		}{
			{frame + frame + "data: 1\n\n" + frame, 4, nil},
			{frame + "data: 1\n\n" + "x" + frame + "data: 2\n\n", 2, ErrTooLong},
			{"data: 1\n\n" + strings.Repeat(":\n", max), 1, ErrTooLong},
		} {
			for _, wrap := range []func(io.Reader) io.Reader{func(r io.Reader) io.Reader { return r }, iotest.HalfReader, iotest.OneByteReader} {
				n := 0
				var err error
				for _, e := range All(wrap(strings.NewReader(tt.stream)), max) {
					if err = e; e == nil {
						n++
					}
				}
				if n != tt.frames || err != tt.err {
					t.Errorf("max %d: got %d frames and %v, want %d and %v", max, n, err, tt.frames, tt.err)
				}
			}
		}
	}
}

// endless is a line that never ends.
type endless struct{ read int }

func (e *endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'x'
	}
	e.read += len(p)
	return len(p), nil
}

func TestEndlessLine(t *testing.T) {
	const max = 64 << 20
	src := new(endless)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	var err error
	for _, err = range All(src, max) {
	}
	runtime.ReadMemStats(&after)
	if err != ErrTooLong || src.read != max {
		t.Errorf("got %v after %d bytes, want %v after %d", err, src.read, ErrTooLong, max)
	}
	if n := after.TotalAlloc - before.TotalAlloc; n > 2*max+1<<20 {
		t.Errorf("allocated %d bytes for a frame of at most %d", n, max)
	}
}

// A large buffer is given back when the stream has gone on to small frames.
func TestLargeBufferIsNotKept(t *testing.T) {
	src, out := io.Pipe()
	r := NewReader(src, testMax)
	defer r.Close()
	go func() { // ends when everything is read
		io.WriteString(out, "data: "+strings.Repeat("x", 200_000)+"\n\n")
		io.WriteString(out, "data: 1\n\n")
	}()
	for _, want := range []struct{ data, buffer int }{{200_000, 256 << 10}, {1, minBuffer}} {
		for {
			if f, ok := r.Next(); ok {
				if len(f.Data) != want.data || len(*r.buf) > 2*want.buffer {
					t.Errorf("%d bytes of data in a buffer of %d, want %d and %d", len(f.Data), len(*r.buf), want.data, want.buffer)
				}
				break
			}
			if err := r.Fill(); err != nil {
				t.Fatal(err)
			}
		}
	}
	if len(*r.buf) != minBuffer {
		t.Errorf("the buffer has %d bytes, want %d", len(*r.buf), minBuffer)
	}
}

// What has been searched for the end of a line is not searched again,
// wherever the buffer is moved to.
func TestLinearInReads(t *testing.T) {
	for _, end := range []string{"\n", "\r\n", "\r"} {
		stream := ":" + end + end + "data: " + strings.Repeat("x", 100_000) + end + strings.Repeat(":"+end, 1000) + end
		r := NewReader(iotest.OneByteReader(strings.NewReader(stream)), testMax)
		n := 0
		for r.Fill() == nil {
			if unseen := r.end - r.scan; unseen > 1 {
				t.Fatalf("%q: Next searches %d bytes after a read of one", end, unseen)
			}
			for f, ok := r.Next(); ok; f, ok = r.Next() {
				n += len(f.Data)
			}
		}
		if n != 100_000 {
			t.Errorf("%q: got %d bytes", end, n)
		}
		r.Close()
	}
}

func TestReaderAllocates(t *testing.T) {
	stream := bytes.Repeat([]byte("event: response.output_text.delta\ndata: {\"delta\":\"x\"}\n\n: c\n\ndata:{}\r\n\r\n"), 1000)
	src := bytes.NewReader(stream)
	r := NewReader(src, testMax)
	defer r.Close()
	if n := testing.AllocsPerRun(10, func() {
		src.Reset(stream)
		r.err = nil // the source goes on
		for r.Fill() == nil {
			for _, ok := r.Next(); ok; _, ok = r.Next() {
			}
		}
	}); n != 0 {
		t.Errorf("reading 3000 frames allocates %v times, want 0", n)
	}
}

func TestAppend(t *testing.T) {
	for _, tt := range []struct{ event, data, want string }{
		{"", "{}", "data: {}\n\n"},
		{"x", "{}", "event: x\ndata: {}\n\n"},
		{"", "{\n  \"a\":\r\n1}", "data: {  \"a\":1}\n\n"},
		{"x\ny", "\r", "event: xy\ndata: \n\n"},
	} {
		if got := string(Append([]byte("- "), []byte(tt.event), []byte(tt.data))); got != "- "+tt.want {
			t.Errorf("Append(%q, %q) = %q, want %q", tt.event, tt.data, got, tt.want)
		}
	}
}

func TestAllStops(t *testing.T) {
	for f := range All(strings.NewReader("data: 1\n\ndata: 2\n\n"), testMax) {
		if string(f.Data) != "1" {
			t.Fatalf("goes on to %q after a break", f.Data)
		}
		break
	}
}

// reference reads a stream by the rules, line by line, in the plainest way.
func reference(stream []byte) (events []string) {
	text := strings.TrimPrefix(string(stream), "\uFEFF")
	text = strings.ReplaceAll(strings.ReplaceAll(text, "\r\n", "\n"), "\r", "\n")
	var event string
	var data []string
	flush := func() {
		if event != "" || data != nil {
			events = append(events, fmt.Sprintf("%q %q %v", event, strings.Join(data, "\n"), data != nil))
		}
		event, data = "", nil
	}
	for line := range strings.SplitSeq(text, "\n") {
		if line == "" {
			flush()
			continue
		}
		name, value, _ := strings.Cut(line, ":")
		value = strings.TrimPrefix(value, " ")
		switch name {
		case "event":
			event = value
		case "data":
			data = append(data, value)
		}
	}
	flush()
	return events
}

// cutReader reads in pieces, whose lengths are the bytes of cuts.
type cutReader struct {
	r    io.Reader
	cuts []byte
}

func (c *cutReader) Read(p []byte) (int, error) {
	n := 1
	if len(c.cuts) > 0 {
		n, c.cuts = int(c.cuts[0])%64+1, c.cuts[1:]
	}
	return c.r.Read(p[:min(n, len(p))])
}

func FuzzReader(f *testing.F) {
	for _, tt := range streams {
		if len(tt.stream) < 100 {
			f.Add([]byte(tt.stream), []byte{3, 1, 20})
		}
	}
	f.Fuzz(func(t *testing.T, stream, cuts []byte) {
		var got []string
		for f, err := range All(bytes.NewReader(stream), len(stream)+1) {
			if err != nil {
				t.Fatal(err)
			}
			if f.Canonical && !bytes.Equal(Append(nil, f.Event, f.Data), f.Raw) {
				t.Fatalf("%q is canonical, but %q and %q make %q", f.Raw, f.Event, f.Data, Append(nil, f.Event, f.Data))
			}
			if !f.IsComment() {
				got = append(got, fmt.Sprintf("%q %q %v", f.Event, f.Data, f.Data != nil))
			}
			if len(bytes.Trim(f.Data, "\n")) == 0 {
				continue // nothing to send
			}
			for again := range All(bytes.NewReader(Append(nil, f.Event, f.Data)), testMax) {
				if !again.Canonical {
					t.Fatalf("Append(%q, %q) is not canonical", f.Event, f.Data)
				}
			}
		}
		if want := reference(stream); !slices.Equal(got, want) {
			t.Fatalf("%q: got %q, want %q", stream, got, want)
		}
		whole, wholeRaw := frames(t, bytes.NewReader(stream), len(stream)+1)
		pieces, piecesRaw := frames(t, &cutReader{bytes.NewReader(stream), cuts}, len(stream)+1)
		if !slices.Equal(whole, pieces) || !slices.Equal(wholeRaw, piecesRaw) {
			t.Fatalf("%q cut by %v: got %q, want %q", stream, cuts, pieces, whole)
		}
		if all := strings.Join(wholeRaw, ""); all != string(stream) && all+"\n" != string(stream) {
			t.Fatalf("raw bytes are %q, want %q", all, stream)
		}
	})
}

func BenchmarkReader(b *testing.B) {
	chunk := `{"id":"chatcmpl-123","object":"chat.completion.chunk","created":1694268190,"model":"gpt-5.2","service_tier":"default","system_fingerprint":"fp_44709d6fcb","choices":[{"index":0,"delta":{"content":" token"},"logprobs":null,"finish_reason":null}],"usage":null,"obfuscation":"aBcDeFgHiJkLmNoPqRs"}`
	for _, bb := range []struct{ name, frame string }{
		{"chat", "data: " + chunk + "\n\n"},
		{"responses", "event: response.output_text.delta\ndata: " + chunk + "\n\n"},
		{"cr", "data: " + chunk + "\r\r"},
		{"crlf", "data: " + chunk + "\r\n\r\n"},
		{"lines", "data: " + chunk[:100] + "\ndata: " + chunk[100:] + "\n\n"},
	} {
		b.Run(bb.name, func(b *testing.B) {
			stream := bytes.Repeat([]byte(bb.frame), 1000)
			src := bytes.NewReader(stream)
			b.SetBytes(int64(len(bb.frame)))
			b.ReportAllocs()
			r := NewReader(src, testMax)
			defer r.Close()
			n := 0
			for b.Loop() {
				f, ok := r.Next()
				for !ok {
					if r.Fill() != nil {
						src.Reset(stream)
						r.err = nil
					}
					f, ok = r.Next()
				}
				n += len(f.Data)
			}
		})
	}
	b.Run("1MiB", func(b *testing.B) {
		stream := []byte("data: " + strings.Repeat("x", 1<<20) + "\n\n")
		b.SetBytes(int64(len(stream)))
		b.ReportAllocs()
		for b.Loop() {
			for _, err := range All(bytes.NewReader(stream), 2<<20) {
				if err != nil {
					b.Fatal(err)
				}
			}
		}
	})
}

func BenchmarkAppend(b *testing.B) {
	data := []byte(strings.Repeat(`{"delta":"token"}`, 18))
	var dst []byte
	b.ReportAllocs()
	for b.Loop() {
		dst = Append(dst[:0], nil, data)
	}
}

func TestField(t *testing.T) {
	for _, c := range []struct{ frame, name, want string }{
		{"id: 7\ndata: x\n\n", "id", "7"},
		{"id:7\r\nid: 8 \r\nretry: 10\r\n\r", "id", "8 "},
		{"id:7\r\nretry: 10\r\n\r", "retry", "10"},
		{"id\ndata: id: 9\n\n", "id", ""},
		{":id: 7\nids: 8\ndata: x\n\n", "id", "none"},
	} {
		got := "none"
		if value := (Frame{Raw: []byte(c.frame)}).Field(c.name); value != nil {
			got = string(value)
		}
		if got != c.want {
			t.Errorf("%s of %q is %q, want %q", c.name, c.frame, got, c.want)
		}
	}
}
