package dialect

import (
	"bytes"
	"encoding/binary"
	"slices"
	"strconv"
	"strings"

	"github.com/cespare/xxhash/v2"

	"github.com/limen-gateway/limen/internal/jsonedit"
	"github.com/limen-gateway/limen/internal/llm"
	"github.com/limen-gateway/limen/internal/seal"
)

// Prompt are the members of a request that say what a model is to do, as the
// client wrote them; nil where they are absent. They share memory with the
// body.
type Prompt struct {
	Tools        []byte
	Instructions []byte // where the dialect has a place of its own for them
	Items        []byte // the conversation: an array, or a text
	Format       []byte // of the answer
	MaxOutput    []byte
	Thread       []byte // the client's own name for the conversation
	Metadata     []byte
	Shows        []string // the types of parts with something to look at
	Choices      []byte   // how many answers
	Modalities   []byte   // of the answer
	Service      []byte   // the kind of service
}

// HasTools reports whether the request brings tools.
func (p *Prompt) HasTools() bool {
	for range jsonedit.Elements(p.Tools) {
		return true
	}
	return false
}

// HasSchema reports whether the request holds the answer to a JSON schema.
func (p *Prompt) HasSchema() bool {
	kind, _ := jsonedit.Get(p.Format, "type")
	return string(kind) == `"json_schema"`
}

// Limit is how long the answer may be, in tokens; 0 when that is not said.
func (p *Prompt) Limit() int64 { return natural(p.MaxOutput) }

// Answers is how many answers are asked for.
func (p *Prompt) Answers() int64 { return max(natural(p.Choices), 1) }

// natural is a number that is written as one, and not below 0; else 0.
func natural(text []byte) int64 {
	n, err := strconv.ParseInt(string(text), 10, 64)
	if err != nil {
		return 0
	}
	return max(n, 0)
}

// IsPriority reports whether the request may be served sooner for more money.
func (p *Prompt) IsPriority() bool {
	word := string(p.Service)
	return word != "" && word != `"flex"` && word != `"default"` && word != `"standard_only"`
}

// HasSound reports whether the conversation may be heard or the answer spoken.
func (p *Prompt) HasSound() bool {
	return bytes.Contains(p.Modalities, []byte(`"audio"`)) || bytes.Contains(p.Items, []byte(`"input_audio"`))
}

// MakesPictures reports whether the answer may be a picture.
func (p *Prompt) MakesPictures() bool { return bytes.Contains(p.Modalities, []byte(`"image"`)) }

// Opening is a hash of what every turn of the conversation begins with: the
// instructions, and all up to the first message of the user. It is the same in
// every process.
func (p *Prompt) Opening() uint64 {
	var d xxhash.Digest
	d.Reset()
	sample(&d, p.Instructions)
	if jsonedit.KindOf(p.Items) != jsonedit.KindArray {
		sample(&d, p.Items)
		return d.Sum64()
	}
	for item := range jsonedit.Elements(p.Items) {
		sample(&d, item)
		if role, _ := jsonedit.Get(item, "role"); string(role) == `"user"` {
			break
		}
	}
	return d.Sum64()
}

// sampled is how much of each end of a value is hashed.
const sampled = 8 << 10

// sample hashes a value. Of a long one the ends and the length do: they tell
// conversations apart as well.
func sample(d *xxhash.Digest, value []byte) {
	if len(value) <= 2*sampled {
		d.Write(value)
		return
	}
	d.Write(value[:sampled])
	d.Write(value[len(value)-sampled:])
	var length [8]byte
	binary.LittleEndian.PutUint64(length[:], uint64(len(value)))
	d.Write(length[:])
}

// maxSealed is how many sealed texts are looked at, from the newest on: an
// account's state of one turn is like that of the next.
const maxSealed = 4

// Origins are the accounts that alone can read state within the conversation.
func (p *Prompt) Origins(key seal.Key) (origins []string) {
	rest := p.Items
	for range maxSealed {
		at := bytes.LastIndex(rest, []byte(`"`+seal.Prefix))
		if at < 0 {
			break
		}
		text, _, _ := bytes.Cut(rest[at+1:], []byte{'"'})
		rest = rest[:at]
		sealed, ok := key.Open(string(text))
		if origin := llm.Raw(sealed.Get("o")).Text(); ok && origin != "" && !slices.Contains(origins, origin) {
			origins = append(origins, origin)
		}
	}
	return origins
}

// HasPictures reports whether the conversation shows pictures or documents.
func (p *Prompt) HasPictures() bool {
	for _, kind := range p.Shows { // a quick look whether the other can find anything
		if bytes.Contains(p.Items, []byte(kind)) {
			return p.shows(p.Items, maxNested)
		}
	}
	return false
}

// maxNested is how deep parts lie in one another: in a result within a message.
const maxNested = 4

// shows reports whether a part with something to look at is in a list, or in
// what its entries hold.
func (p *Prompt) shows(list []byte, depth int) bool {
	if depth == 0 {
		return false
	}
	for entry := range jsonedit.Elements(list) {
		for name, value := range jsonedit.Members(entry) {
			switch string(name) {
			case `"type"`:
				for _, kind := range p.Shows {
					if string(value) == `"`+kind+`"` {
						return true
					}
				}
			case `"content"`, `"output"`:
				if p.shows(value, depth-1) {
					return true
				}
			}
		}
	}
	return false
}

// embedded is how long a text is at least that is taken for a file.
const embedded = 1 << 10

// Embedded counts the files in a JSON document that are in it as base64, and
// their bytes. A text is taken for one by its end: what it begins with may name
// its type.
func Embedded(document []byte) (files, size int) {
	for {
		_, rest, found := bytes.Cut(document, []byte{'"'})
		if !found {
			return files, size
		}
		length := textLength(rest)
		if length >= embedded && !bytes.ContainsFunc(rest[length-embedded:length], notBase64) {
			files, size = files+1, size+length
		}
		document = rest[min(length+1, len(rest)):]
	}
}

// textLength is where a JSON string ends whose inside a text begins with.
func textLength(text []byte) (end int) {
	for {
		quote := bytes.IndexByte(text[end:], '"')
		if quote < 0 {
			return len(text)
		}
		end += quote
		if before := bytes.TrimRight(text[:end], `\`); (end-len(before))%2 == 0 {
			return end
		}
		end++
	}
}

// notBase64 reports whether a character is in no form of base64, slashes that
// are escaped included.
func notBase64(r rune) bool {
	letter := 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9'
	return !letter && !strings.ContainsRune(`+/-_=\`, r)
}
