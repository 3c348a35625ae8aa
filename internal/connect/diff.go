package connect

import (
	"regexp"

	"github.com/limen-gateway/limen/internal/diff"
)

// Diff shows a change in the unified form, with colours where a terminal
// shows them. Keys are shortened.
func (ch *Change) Diff(colours bool) string {
	from, to := ch.Path, ch.Path
	if ch.Made {
		from = "/dev/null"
	}
	if ch.Removes {
		to = "/dev/null"
	}
	colour := map[byte]string{diff.File: "1", diff.Hunk: "36", '-': "31", '+': "32"}
	return diff.Unified(from, to, ch.Before, ch.After, func(mark byte, line string) string {
		if mark != diff.File {
			line = shorten(line)
		}
		if !colours || colour[mark] == "" {
			return line
		}
		return "\x1b[" + colour[mark] + "m" + line + "\x1b[0m"
	})
}

// keyLike are keys as gateways and most vendors make them.
var keyLike = regexp.MustCompile(`\b(limen_|sk-)([A-Za-z0-9]{4})[A-Za-z0-9_-]{8,}`)

func shorten(text string) string { return keyLike.ReplaceAllString(text, "$1$2…") }
