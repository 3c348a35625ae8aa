package provider

import "github.com/limen-gateway/limen/internal/llm"

// tokenizing is models whose texts are split by a vocabulary that is public.
type tokenizing struct {
	names []string // patterns of path.Match
	by    llm.Tokenizer
}

// As tiktoken's table of models says, and OpenAI's cookbook ("How to count
// tokens with tiktoken") of what stands around the texts. The first that
// matches holds. Other makers' vocabularies are not public, or nobody says what
// their servers put around a text.
var tokenizers = []tokenizing{
	// Its servers have prompts of their own around the conversation.
	{[]string{"gpt-oss*"}, llm.Tokenizer{Vocabulary: "o200k_base", Message: 3, Name: 1, Reply: 3, Function: 7, Guess: true}},
	{
		[]string{"gpt-4o*", "gpt-4.*", "gpt-[5-9]*", "chatgpt-4o*", "o[134]", "o[134]-*", "codex-*"},
		llm.Tokenizer{Vocabulary: "o200k_base", Message: 3, Name: 1, Reply: 3, Function: 7},
	},
	{
		[]string{"gpt-4", "gpt-4-*", "gpt-3.5*", "gpt-35-*", "text-embedding-3-*", "text-embedding-ada-002"},
		llm.Tokenizer{Vocabulary: "cl100k_base", Message: 3, Name: 1, Reply: 3, Function: 10},
	},
}

// tokenizerOf is how a model's tokens are counted; the zero value when that is
// not known.
func tokenizerOf(model string) llm.Tokenizer {
	name := ownName(model)
	for _, t := range tokenizers {
		if matches(t.names, name) {
			return t.by
		}
	}
	return llm.Tokenizer{}
}
