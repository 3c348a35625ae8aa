package anthropic

import (
	"github.com/limen-gateway/limen/internal/jsonedit"
	"github.com/limen-gateway/limen/internal/sse"
)

// frames writes events. The members of an event are written between begin and
// end.
type frames struct {
	jsonedit.Writer
	dst  []byte
	room []byte // of the event's data, used again
	name string
}

// begin begins an event of a type, which is its name as well.
func (f *frames) begin(kind string) {
	f.name = kind
	f.Writer = *jsonedit.NewWriter(f.room[:0])
	f.BeginObject()
	f.SetText("type", kind)
}

// end appends the event that was begun.
func (f *frames) end() {
	f.EndObject()
	f.room = f.Bytes()
	f.dst = sse.Append(f.dst, []byte(f.name), f.room)
}

// start tells that a block begins, which is given as it is then.
func (f *frames) start(index int64, block []byte) {
	f.begin("content_block_start")
	f.SetInt("index", index)
	f.SetRaw("content_block", block)
	f.end()
}

// delta tells a piece of a block; without a value it tells nothing.
func (f *frames) delta(index int64, kind, name string, value []byte) {
	if len(value) == 0 || string(value) == `""` || value[0] == 'n' {
		return
	}
	f.begin("content_block_delta")
	f.SetInt("index", index)
	f.Object("delta")
	f.SetText("type", kind)
	f.SetRaw(name, value)
	f.EndObject()
	f.end()
}

// stop tells that a block is over.
func (f *frames) stop(index int64) {
	f.begin("content_block_stop")
	f.SetInt("index", index)
	f.end()
}
