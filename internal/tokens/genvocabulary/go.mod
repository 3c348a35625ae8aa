// What writes the vocabularies that package tokens embeds, and checks the
// package against the library that they are taken from.
module github.com/limen-gateway/limen/internal/tokens/genvocabulary

go 1.26.0

require (
	github.com/limen-gateway/limen v0.0.0
	github.com/tiktoken-go/tokenizer v0.10.0
)

require github.com/dlclark/regexp2/v2 v2.5.1

require github.com/dsnet/compress v0.0.1

replace github.com/limen-gateway/limen => ../../..
