package dialect

import (
	"bytes"
	"strconv"

	"github.com/cespare/xxhash/v2"

	"github.com/limen-gateway/limen/internal/jsonedit"
)

// Wants is what a request asks of a model, as far as a choice between several
// needs to know it. It shares memory with the request's body.
type Wants struct {
	Vision    bool  // it shows pictures or documents
	Tools     bool  // it brings tools
	Schema    bool  // it holds the answer to a JSON schema
	MaxOutput int64 // tokens; 0 when it does not say
	// Thread is the client's own name for the conversation, nil when there is
	// none.
	Thread []byte
	// Opening is a hash of what every turn of the conversation begins with: the
	// instructions, and all up to the first message of the user. It is the same
	// in every process.
	Opening uint64
	// Metadata is an object of the client's own, nil when there is none.
	Metadata []byte
}

// WantWords are the names that a dialect has for what Wants tells.
type WantWords struct {
	Instructions, Items string
	MaxOutput           []string
	Format              []string // the path of the answer's format within the request
	Thread              string
	Parts               []string // the types of parts that show something
}

// Of reads a request that Inspect accepted. Its members are read by their
// names as they are written, which is how any sender writes them.
func (words *WantWords) Of(body []byte) (w Wants) {
	var instructions, items []byte
	for name, value := range jsonedit.Members(body) {
		switch name := string(name[1 : len(name)-1]); name {
		case words.Items:
			items = value
		case words.Instructions:
			instructions = value
		case "tools":
			w.Tools = len(bytes.TrimSpace(value)) > len("[]") && jsonedit.KindOf(value) == jsonedit.KindArray
		case words.Format[0]:
			w.Schema = words.schema(value)
		case "metadata":
			if jsonedit.KindOf(value) == jsonedit.KindObject {
				w.Metadata = value
			}
		case words.Thread:
			if jsonedit.KindOf(value) == jsonedit.KindString && len(value) > len(`""`) {
				w.Thread = value
			}
		default:
			for _, known := range words.MaxOutput {
				if name == known {
					w.MaxOutput, _ = strconv.ParseInt(string(value), 10, 64)
				}
			}
		}
	}
	w.Opening = opening(instructions, items)
	w.Vision = words.shows(body) && words.pictured(items, maxNested)
	return w
}

func (words *WantWords) schema(format []byte) bool {
	if len(words.Format) > 1 {
		format, _ = jsonedit.Get(format, words.Format[1:]...)
	}
	return jsonedit.KindOf(format) == jsonedit.KindObject && Text(format, "type") == "json_schema"
}

// shows is a quick look whether pictured can find anything.
func (words *WantWords) shows(body []byte) bool {
	for _, kind := range words.Parts {
		if bytes.Contains(body, []byte(kind)) {
			return true
		}
	}
	return false
}

// maxNested is how deep parts lie in one another: in a result within a message.
const maxNested = 4

// pictured reports whether one of the parts that show something is in a list,
// or in what its entries hold.
func (words *WantWords) pictured(list []byte, depth int) bool {
	if depth == 0 || jsonedit.KindOf(list) != jsonedit.KindArray {
		return false
	}
	for entry := range jsonedit.Elements(list) {
		if jsonedit.KindOf(entry) != jsonedit.KindObject {
			continue
		}
		for name, value := range jsonedit.Members(entry) {
			switch string(name) {
			case `"type"`:
				for _, kind := range words.Parts {
					if string(value) == `"`+kind+`"` {
						return true
					}
				}
			case `"content"`, `"output"`:
				if words.pictured(value, depth-1) {
					return true
				}
			}
		}
	}
	return false
}

// opening is the hash of a conversation's opening; a text in place of messages
// is one of the user.
func opening(instructions, items []byte) uint64 {
	var d xxhash.Digest
	d.Reset()
	d.Write(instructions)
	if jsonedit.KindOf(items) != jsonedit.KindArray {
		d.Write(items)
		return d.Sum64()
	}
	for item := range jsonedit.Elements(items) {
		d.Write(item)
		if role, _ := jsonedit.Get(item, "role"); string(role) == `"user"` {
			break
		}
	}
	return d.Sum64()
}
