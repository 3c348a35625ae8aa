package gateway

import (
	"net/http"
	"slices"
	"strings"
	"unicode"

	"github.com/limen-gateway/limen/internal/jsonedit"
)

// Tags say what clients may tell of their calls, to find them again in the
// usage.
type Tags struct {
	Metadata []string // members of a request's metadata, by their names
	Headers  []HeaderTag
}

// HeaderTag is a header, by its canonical name, that becomes a tag.
type HeaderTag struct{ Header, Tag string }

// maxTagValue bounds what is kept of a tag's value, in bytes.
const maxTagValue = 200

// of are the tags of a call, as they are recorded. Of two with one name that of
// the metadata counts, then that of the first header.
func (t *Tags) of(header http.Header, metadata []byte) string {
	var tags []string
	seen := map[string]bool{}
	add := func(name, value string) {
		if value = tagValue(value); value != "" && !seen[name] {
			seen[name] = true
			tags = append(tags, name+"="+value)
		}
	}
	for name, value := range jsonedit.Members(metadata) {
		n, _ := jsonedit.Unquote(name)
		if text, ok := jsonedit.Unquote(value); ok && slices.Contains(t.Metadata, n) {
			add(n, text)
		}
	}
	for _, h := range t.Headers {
		if !slices.Contains(credentialHeaders, h.Header) {
			add(h.Tag, header.Get(h.Header))
		}
	}
	slices.Sort(tags)
	return strings.Join(tags, "\n")
}

// tagValue is a client's text as it can stand in a line and in a table.
func tagValue(text string) string {
	text = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || r == '\u2028' || r == '\u2029' {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(text[:min(len(text), 2*maxTagValue)], ""))
	return strings.TrimSpace(cut(strings.TrimSpace(text), maxTagValue))
}
