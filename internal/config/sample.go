package config

import _ "embed"

//go:embed sample.yaml
var sample string

// Sample is a document to start from: it says in comments what can be set, and means the same as an empty one.
// Prose stands one space after the #, settings to uncomment stand at once or two spaces after it.
func Sample() []byte {
	return []byte("# yaml-language-server: $schema=" + SchemaURL + "\n" + sample)
}
