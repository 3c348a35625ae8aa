package config

import (
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"
)

// References are the ${…} in values. They are resolved in the values of the parsed document, so that what a variable
// holds can never be read as YAML. But YAML has to be read first, and inside {…} and […] it gives the reference's own
// characters a meaning: { api_key: ${KEY} } would be a mapping within a mapping. So those characters, within
// references only, change place with characters that Unicode keeps out of texts (protect), and come back in the
// parsed values (restore). One for one: lines and columns stay as they are in the file.
const (
	structural  = "{}[],:#"
	placeholder = '\uFDD0' // … to U+FDD6, in the order of structural
)

// reference is a variable with an optional default or complaint, a file, or a secret; all on one line. It ends at the first }
// that has no $ before it.
var reference = regexp.MustCompile(`\$\{(?:([A-Za-z_][A-Za-z0-9_]*)(?:(:[-?])(` + referenceText + `*))?|file:(` + referenceText + `+)|secret:(` + secretName + `))\}`)

const referenceText = `(?:[^$}\r\n]|\$\}|\$[^}\r\n])`

const secretName = `[A-Za-z0-9][A-Za-z0-9_.-]{0,79}`

const referenceHelp = "write ${NAME}, ${NAME:-default}, ${NAME:?message}, ${file:/path} or ${secret:NAME}, and $${ for a plain ${"

// maxReferenced is the most that ${file:…} reads.
const maxReferenced = 64 << 10

func protect(text string) string {
	return reference.ReplaceAllStringFunc(text, func(ref string) string {
		return strings.Map(func(r rune) rune {
			if i := strings.IndexRune(structural, r); i >= 0 {
				return placeholder + rune(i)
			}
			return r
		}, ref)
	})
}

func restore(text string) string {
	return strings.Map(func(r rune) rune {
		if i := r - placeholder; i >= 0 && int(i) < len(structural) {
			return rune(structural[i])
		}
		return r
	}, text)
}

// unresolved says which reference of a value has no value, why, and what to do.
type unresolved struct {
	ref     string
	message string
	hint    string
}

// resolver gives references their values.
type resolver struct {
	getenv   func(string) (string, bool)
	readFile func(string) ([]byte, error)
	secret   func(string) (string, error)
}

// expand replaces every reference of a value. It reports whether there were any.
func (r resolver) expand(text string) (expanded string, found bool, problem *unresolved) {
	var out strings.Builder
	for rest := text; ; {
		start := strings.Index(rest, "${")
		if start < 0 {
			out.WriteString(rest)
			return out.String(), found, nil
		}
		if start > 0 && rest[start-1] == '$' {
			out.WriteString(rest[:start-1] + "${")
			rest = rest[start+2:]
			continue
		}
		out.WriteString(rest[:start])
		rest = rest[start:]
		match := reference.FindStringSubmatchIndex(rest)
		if match == nil || match[0] != 0 {
			return "", true, &unresolved{ref: "${", message: "${ does not begin a reference", hint: referenceHelp}
		}
		value, problem := r.resolve(submatches(rest, match), rest[match[1]:])
		if problem != nil {
			problem.ref = rest[:match[1]]
			return "", true, problem
		}
		out.WriteString(value)
		rest, found = rest[match[1]:], true
	}
}

// referenceParts are the parts of one reference; of name, file and secret, one is not empty.
type referenceParts struct{ name, operator, text, file, secret string }

func submatches(text string, match []int) referenceParts {
	group := func(i int) string {
		if match[2*i] < 0 {
			return ""
		}
		return text[match[2*i]:match[2*i+1]]
	}
	return referenceParts{name: group(1), operator: group(2), text: group(3), file: group(4), secret: group(5)}
}

func (r resolver) resolve(ref referenceParts, after string) (string, *unresolved) {
	if strings.Contains(ref.text+ref.file, "${") {
		return "", &unresolved{message: "a reference cannot contain another"}
	}
	if ref.operator == ":-" && strayBrace(after) {
		return "", &unresolved{message: "the default ends at the first }", hint: "write $} for a } inside it"}
	}
	if ref.file != "" {
		return r.resolveFile(unescape(ref.file))
	}
	if ref.secret != "" {
		return r.resolveSecret(ref.secret)
	}
	value, set := r.getenv(ref.name)
	switch {
	case ref.operator == "" && set, value != "":
		return value, nil
	case ref.operator == ":-":
		return unescape(ref.text), nil
	case ref.operator == ":?" && ref.text != "":
		return "", &unresolved{message: fmt.Sprintf("environment variable %s is not set: %s", ref.name, unescape(ref.text))}
	default:
		return "", &unresolved{
			message: fmt.Sprintf("environment variable %s is not set", ref.name),
			hint:    fmt.Sprintf("set it, or write ${%s:-}", ref.name),
		}
	}
}

func (r resolver) resolveFile(path string) (string, *unresolved) {
	data, err := r.readFile(path)
	if err != nil {
		return "", &unresolved{message: fmt.Sprintf("cannot read the file %s: %s", path, cause(err))}
	}
	if len(data) > maxReferenced {
		return "", &unresolved{message: fmt.Sprintf("the file %s is larger than 64KiB", path)}
	}
	text := strings.TrimSuffix(string(data), "\n")
	return strings.TrimSuffix(text, "\r"), nil
}

func (r resolver) resolveSecret(name string) (string, *unresolved) {
	value, err := r.secret(name)
	if err != nil {
		return "", &unresolved{message: err.Error(), hint: fmt.Sprintf("set it with 'limen config secret set %s'", name)}
	}
	return value, nil
}

// ownVariables is what the names of the gateway's own variables begin with.
const ownVariables = "LIMEN_"

// misplaced finds a reference that has no place in a document of the store. Who writes that need not be let at the machine:
// so the files there are not read, the gateway's own variables neither, and nothing is put where clients are shown it.
func misplaced(value string, secret bool) *unresolved {
	for _, match := range reference.FindAllStringSubmatchIndex(value, -1) {
		if match[0] > 0 && value[match[0]-1] == '$' {
			continue // $${ is a plain ${
		}
		ref, text := submatches(value, match), value[match[0]:match[1]]
		switch {
		case !secret:
			return &unresolved{ref: text, message: "only secrets can be referred to by a document of the store", hint: "write the value itself"}
		case ref.file != "":
			return &unresolved{ref: text, message: "a document of the store reads no files", hint: "keep it with 'limen config secret set NAME', and write ${secret:NAME}"}
		case strings.HasPrefix(ref.name, ownVariables):
			return &unresolved{ref: text, message: "the gateway's own variables cannot be referred to by a document of the store"}
		}
	}
	return nil
}

// ValidSecretName reports whether ${secret:…} can name a secret so.
func ValidSecretName(name string) bool { return wholeSecretName.MatchString(name) }

var wholeSecretName = regexp.MustCompile("^" + secretName + "$")

// scheme is what may stand in clear beside a secret, as in Bearer ${secret:docs}.
var scheme = regexp.MustCompile(`^(?i:bearer|basic|token|key|apikey)?[ :=]*$`)

// revealing reports whether a value holds something of a secret itself, besides references to it.
func revealing(value string) bool {
	rest := reference.ReplaceAllStringFunc(value, func(ref string) string {
		if parts := submatches(ref, reference.FindStringSubmatchIndex(ref)); parts.operator == ":-" {
			return parts.text
		}
		return ""
	})
	return !scheme.MatchString(rest)
}

// pureReference reports a value that is one reference without a default, and nothing else.
func pureReference(value string) bool {
	match := reference.FindStringSubmatchIndex(value)
	return match != nil && match[0] == 0 && match[1] == len(value) && submatches(value, match).operator != ":-"
}

// strayBrace reports a } before any {: the rest of a default that was meant to go on.
func strayBrace(text string) bool {
	i := strings.IndexAny(text, "{}")
	return i >= 0 && text[i] == '}'
}

func unescape(text string) string { return strings.ReplaceAll(text, "$}", "}") }

// escape writes a value so that expand gives it back.
func escape(value string) string { return strings.ReplaceAll(value, "${", "$${") }

// printable reports whether a value is text: UTF-8 without control characters, other than line breaks and tabs.
func printable(value string) bool {
	for _, r := range value {
		if (r < ' ' && r != '\n' && r != '\t') || (r >= 0x7f && r < 0xa0) {
			return false
		}
	}
	return utf8.ValidString(value)
}
