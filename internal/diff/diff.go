// Package diff shows how a text became another.
package diff

import (
	"fmt"
	"strings"
)

// around is how many lines stay on each side of a change.
const around = 3

// maxTable bounds the table that two texts are compared by, in cells. Texts
// that differ in more are shown as one taken away and the other put in.
const maxTable = 4 << 20

// line is one of a diff: kept (' '), taken away ('-') or put in ('+').
type line struct {
	mark byte
	text string
}

// Marks of lines that stand in neither text.
const (
	File = '=' // a name
	Hunk = '@' // a place
)

// Unified is the change of a text in the unified form. paint says how a line is shown, its mark included; nil is as it is.
func Unified(from, to, before, after string, paint func(mark byte, line string) string) string {
	if paint == nil {
		paint = func(_ byte, line string) string { return line }
	}
	var b strings.Builder
	put := func(mark byte, line string) { b.WriteString(paint(mark, line) + "\n") }
	put(File, "--- "+from)
	put(File, "+++ "+to)
	lines := compare(split(before), split(after))
	old, now := 1, 1
	for i := 0; i < len(lines); {
		end := hunk(lines, i)
		if end < 0 {
			break
		}
		for lines[i].mark == ' ' && !near(lines, i) {
			i, old, now = i+1, old+1, now+1
		}
		hunk := lines[i:end]
		gone, come := count(hunk)
		put(Hunk, fmt.Sprintf("@@ -%s +%s @@", place(old, gone), place(now, come)))
		for _, l := range hunk {
			put(l.mark, string(l.mark)+l.text)
		}
		i, old, now = end, old+gone, now+come
	}
	return b.String()
}

// hunk is where the next hunk from i on ends; -1 when there is none.
func hunk(lines []line, i int) int {
	for i < len(lines) && !near(lines, i) {
		i++
	}
	if i == len(lines) {
		return -1
	}
	for i < len(lines) && near(lines, i) {
		i++
	}
	return i
}

// near tells whether a line is a change or stands close to one.
func near(lines []line, i int) bool {
	for _, l := range lines[max(0, i-around):min(len(lines), i+around+1)] {
		if l.mark != ' ' {
			return true
		}
	}
	return false
}

func count(hunk []line) (old, now int) {
	for _, l := range hunk {
		if l.mark != '+' {
			old++
		}
		if l.mark != '-' {
			now++
		}
	}
	return old, now
}

func place(at, n int) string {
	if n == 0 {
		at--
	}
	return fmt.Sprintf("%d,%d", at, n)
}

func split(text string) []string {
	if text == "" {
		return nil
	}
	return strings.Split(strings.TrimSuffix(text, "\n"), "\n")
}

// compare finds what two texts have in common, line by line.
func compare(old, now []string) (lines []line) {
	start := 0
	for start < len(old) && start < len(now) && old[start] == now[start] {
		lines = append(lines, line{' ', old[start]})
		start++
	}
	same := 0
	for same < len(old)-start && same < len(now)-start && old[len(old)-1-same] == now[len(now)-1-same] {
		same++
	}
	lines = append(lines, between(old[start:len(old)-same], now[start:len(now)-same])...)
	for _, text := range old[len(old)-same:] {
		lines = append(lines, line{' ', text})
	}
	return lines
}

// between compares by the longest common subsequence.
func between(old, now []string) (lines []line) {
	var longest [][]int
	if len(old)*len(now) <= maxTable {
		longest = make([][]int, len(old)+1)
		longest[len(old)] = make([]int, len(now)+1)
		for i := len(old) - 1; i >= 0; i-- {
			longest[i] = make([]int, len(now)+1)
			for j := len(now) - 1; j >= 0; j-- {
				if longest[i][j] = max(longest[i+1][j], longest[i][j+1]); old[i] == now[j] {
					longest[i][j] = longest[i+1][j+1] + 1
				}
			}
		}
	}
	i, j := 0, 0
	for i < len(old) || j < len(now) {
		switch {
		case longest != nil && i < len(old) && j < len(now) && old[i] == now[j]:
			lines = append(lines, line{' ', old[i]})
			i, j = i+1, j+1
		case i < len(old) && (longest == nil || j == len(now) || longest[i+1][j] >= longest[i][j+1]):
			lines = append(lines, line{'-', old[i]})
			i++
		default:
			lines = append(lines, line{'+', now[j]})
			j++
		}
	}
	return lines
}
