package bedrock

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/limen-gateway/limen/internal/sse"
)

// framedAs is one of an event stream. Headers are pairs of name and text.
func framedAs(payload string, headers ...string) []byte {
	var h []byte
	for i := 0; i < len(headers); i += 2 {
		h = append(append(h, byte(len(headers[i]))), headers[i]...)
		h = append(h, typeString)
		h = binary.BigEndian.AppendUint16(h, uint16(len(headers[i+1])))
		h = append(h, headers[i+1]...)
	}
	return framed(h, payload)
}

func framed(headers []byte, payload string) []byte {
	out := binary.BigEndian.AppendUint32(nil, uint32(preludeSize+len(headers)+len(payload)+trailerSize))
	out = binary.BigEndian.AppendUint32(out, uint32(len(headers)))
	out = binary.BigEndian.AppendUint32(out, crc32.ChecksumIEEE(out))
	out = append(append(out, headers...), payload...)
	return binary.BigEndian.AppendUint32(out, crc32.ChecksumIEEE(out))
}

func event(name, payload string) []byte {
	return framedAs(payload, ":event-type", name, ":content-type", "application/json", ":message-type", "event")
}

// readAll reads a stream to its end: "name data" of every frame.
func readAll(src io.Reader, limit int) (frames []string, err error) {
	r := newReader(src, limit)
	defer r.Close()
	for {
		for {
			f, ok := r.Next()
			if !ok {
				break
			}
			frames = append(frames, string(f.Event)+" "+string(f.Data))
		}
		if err := r.Fill(); err != nil {
			return frames, err
		}
	}
}

func TestFrames(t *testing.T) {
	long := strings.Repeat("x", 100_000)
	stream := slices.Concat(
		event("messageStart", `{}`),
		event("contentBlockDelta", long),
		framedAs(`{"message":"slow"}`, ":message-type", "exception", ":exception-type", "throttlingException"),
		framedAs("", ":message-type", "error", ":error-code", "InternalError", ":error-message", `a "b"`),
		framed(slices.Concat([]byte{1, 'b', typeTrue}, []byte{1, 'i', typeInt, 0, 0, 0, 1}, []byte{1, 'y', typeBytes, 0, 2, 9, 9}, []byte("\x0b:event-type\x07\x00\x01e")), "p"),
	)
	want := []string{"messageStart {}", "contentBlockDelta " + long, `exception:throttlingException {"message":"slow"}`, `exception:InternalError {"message":"a \"b\""}`, "e p"}
	for name, src := range map[string]io.Reader{
		"at once": bytes.NewReader(stream), "by bytes": iotest.OneByteReader(bytes.NewReader(stream)), "with the end": iotest.DataErrReader(bytes.NewReader(stream)),
	} {
		got, err := readAll(src, 1<<20)
		if err != io.EOF || !slices.Equal(got, want) {
			t.Errorf("%s: got %.200q, %v", name, got, err)
		}
	}
}

func TestFramesThatCannotBe(t *testing.T) {
	good := event("messageStart", `{}`)
	broken := func(at int) []byte {
		b := bytes.Clone(good)
		b[at] ^= 1
		return b
	}
	short := binary.BigEndian.AppendUint32(nil, 20)
	short = binary.BigEndian.AppendUint32(short, 9)
	short = binary.BigEndian.AppendUint32(short, crc32.ChecksumIEEE(short))
	for name, c := range map[string]struct {
		stream []byte
		want   error
	}{
		"prelude":      {broken(1), errPrelude},
		"payload":      {broken(len(good) - 5), errSum},
		"sum":          {broken(len(good) - 1), errSum},
		"JSON":         {[]byte(`{"message":"no stream at all"}`), errPrelude},
		"lengths":      {short, errLengths},
		"header":       {framed([]byte{3, 'a'}, ""), errHeaders},
		"type":         {framed([]byte{1, 'a', 99}, ""), errHeaders},
		"too long":     {event("e", strings.Repeat("x", 300)), sse.ErrTooLong},
		"cut":          {good[:len(good)-1], io.ErrUnexpectedEOF},
		"cut early":    {good[:5], io.ErrUnexpectedEOF},
		"nothing":      {nil, io.EOF},
		"cut, a frame": {append(bytes.Clone(good), good[:20]...), io.ErrUnexpectedEOF},
	} {
		for _, src := range []io.Reader{bytes.NewReader(c.stream), iotest.OneByteReader(bytes.NewReader(c.stream))} {
			if _, err := readAll(src, 256); !errors.Is(err, c.want) {
				t.Errorf("%s: got %v, want %v", name, err, c.want)
			}
		}
	}
}

func FuzzFrames(f *testing.F) {
	f.Add(event("messageStart", `{}`))
	f.Add(framedAs("", ":message-type", "error", ":error-code", "x"))
	f.Fuzz(func(t *testing.T, stream []byte) {
		whole, err := readAll(bytes.NewReader(stream), 1<<12)
		pieces, err2 := readAll(iotest.OneByteReader(bytes.NewReader(stream)), 1<<12)
		if !slices.Equal(whole, pieces) || err != err2 {
			t.Errorf("at once %q, %v; by bytes %q, %v", whole, err, pieces, err2)
		}
	})
}
