package provider

import (
	"testing"

	"github.com/limen-gateway/limen/internal/dialect"
	vocabularies "github.com/limen-gateway/limen/internal/tokens"
)

func TestTokenizers(t *testing.T) {
	for _, tt := range []struct {
		model, vocabulary string
		guess             bool
	}{
		{"gpt-4o", "o200k_base", false},
		{"gpt-4o-mini-2024-07-18", "o200k_base", false},
		{"gpt-4.1-nano", "o200k_base", false},
		{"openai/gpt-5.4-mini", "o200k_base", false},
		{"o1", "o200k_base", false},
		{"o3-mini", "o200k_base", false},
		{"o4-mini-2025-04-16", "o200k_base", false},
		{"openai/gpt-oss-120b:free", "o200k_base", true},
		{"openai.gpt-oss-20b-1:0", "o200k_base", true},
		{"gpt-4", "cl100k_base", false},
		{"gpt-4-0613", "cl100k_base", false},
		{"gpt-4-turbo", "cl100k_base", false},
		{"gpt-3.5-turbo", "cl100k_base", false},
		{"gpt-35-turbo", "cl100k_base", false},
		{"text-embedding-3-small", "cl100k_base", false},
		{"claude-opus-4-8", "", false},
		{"llama-4-scout", "", false},
		{"o2", "", false},
		{"gpt-2", "", false},
	} {
		for _, d := range []dialect.Name{dialect.OpenAIChat, dialect.Bedrock} {
			got := Caps(Vendor{}, tt.model, Model{}, d).Tokenizer
			if got.Vocabulary != tt.vocabulary || got.Guess != tt.guess {
				t.Errorf("%s: got %+v, want %q, a guess %v", tt.model, got, tt.vocabulary, tt.guess)
			}
		}
	}
	for _, known := range tokenizers {
		if vocabularies.Named(known.by.Vocabulary) == nil {
			t.Errorf("nobody has the vocabulary %s", known.by.Vocabulary)
		}
	}
}
