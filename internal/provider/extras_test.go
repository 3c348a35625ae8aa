package provider

import (
	"testing"

	"github.com/limen-gateway/limen/internal/price"
)

func TestExtras(t *testing.T) {
	for _, test := range []struct{ vendor, model, listed, want string }{
		{"anthropic", "claude-opus-4-8", "5,25,0.5,6.25", "5,25,0.5,6.25,,,,10;search=0.01;priority=100;batch=50"},
		{"vertex-anthropic", "claude-sonnet-4-6@default", "3,15,0.3,3.75;200000:6,22.5,0.6,7.5", "3,15,0.3,3.75,,,,6;200000:6,22.5,0.6,7.5,,,,12"},
		{"bedrock", "eu.anthropic.claude-opus-4-8", "5.5,27.5", "5.5,27.5,,,,,,11"},
		{"bedrock", "amazon.nova-pro-v1:0", "0.8,3.2,0.2", "0.8,3.2,0.2"},
		{"openai", "gpt-5.4-2026-03-05", "2.5,15", "2.5,15;search=0.01;flex=50;priority=200;batch=50"},
		{"openai", "gpt-5.5", "5,30", "5,30;search=0.01;flex=50;priority=250;batch=50"},
		{"openai", "gpt-5-mini", "0.25,2", "0.25,2;search=0.01;flex=50;priority=180;batch=50"},
		{"openai", "gpt-4o", "2.5,10", "2.5,10;flex=50;priority=170;batch=50"},
		{"openai", "gpt-4o-2024-05-13", "5,15", "5,15;flex=50;priority=175;batch=50"},
		{"openai", "gpt-4o-mini", "0.15,0.6", "0.15,0.6;flex=50;batch=50"}, // its priority is no whole percent
		{"openai", "o3", "2,8", "2,8;search=0.01;flex=50;priority=175;batch=50"},
		{"gemini", "gemini-3.1-pro-preview", "2,12", "2,12;search=0.014;flex=50;batch=50"},
		{"gemini-openai", "gemini-2.5-pro", "1.25,10", "1.25,10;searched=0.035;flex=50;batch=50"},
		{"gemini", "gemini-2.5-flash-image", "0.3,30", "0.3,30,,,,,,,30;searched=0.035;flex=50;batch=50"},
		{"xai", "grok-4.3", "1.25,2.5", "1.25,2.5;search=0.005"},
		{"groq", "openai/gpt-oss-120b", "0.15,0.6", "0.15,0.6;flex=100;batch=50"},
		{"moonshot", "kimi-k2.5", "0.6,3", "0.6,3;batch=60"},
		{"openrouter", "anthropic/claude-opus-4-8", "5,25", "5,25"}, // it has its own
		{"lab", "claude-opus-4-8", "5,25", "5,25"},
		{"anthropic", "claude-opus-4-8", "", ""},
		{"openai", "gpt-5.4", "2.5,15;search=0.02;batch=40", "2.5,15;search=0.02;flex=50;priority=200;batch=40"},
	} {
		listed, err := price.ParseList(test.listed)
		if err != nil {
			t.Fatal(err)
		}
		if got := WithExtras(test.vendor, test.model, listed).String(); got != test.want {
			t.Errorf("%s %s: got %q, want %q", test.vendor, test.model, got, test.want)
		}
		if listed.String() != test.listed {
			t.Errorf("%s %s: the list itself is changed to %q", test.vendor, test.model, listed)
		}
	}
}

// What is the same at another address has the same prices.
func TestSameVendor(t *testing.T) {
	for _, test := range []struct{ vendor, same, model string }{
		{"gemini-openai", "gemini", "gemini-2.5-pro"}, {"bedrock-mantle", "bedrock", "openai.gpt-oss-120b"},
	} {
		got, _ := Embedded().Model(test.vendor, test.model)
		want, _ := Embedded().Model(test.same, test.model)
		if !want.Prices.Known() || !got.Prices.Equal(&want.Prices) {
			t.Errorf("%s has %s for %s, %s has %s", test.vendor, got.Prices, test.model, test.same, want.Prices)
		}
	}
}

func TestTakes(t *testing.T) {
	for _, test := range []struct {
		vendor, address, model string
		want                   bool
	}{
		{"ollama", "http://127.0.0.1:11434/v1", "llama3.3", false},
		{"ollama", "http://localhost:11434/v1", "llama3.3", false},
		{"ollama", "http://192.168.7.9:11434/v1", "llama3.3", false},
		{"ollama", "http://[fd00::7]:11434/v1", "llama3.3", false},
		{"ollama", "http://gpu:11434/v1", "llama3.3", false},
		{"vllm", "http://host.docker.internal:8000/v1", "m", false},
		{"lmstudio", "http://gpu.local:1234/v1", "m", false},
		{"llamacpp", "http://127.0.0.1:8080/v1", "m", false},
		{"ollama", "http://127.0.0.1:11434/v1", "gpt-oss:120b-cloud", true},
		{"ollama", "https://ollama.com/v1", "gpt-oss:120b", true},
		{"vllm", "https://vllm.example.com/v1", "m", true},
		{"vllm", "http://203.0.113.7:8000/v1", "m", true},
		{"openai", "http://127.0.0.1:9000/v1", "m", true},
		{"", "http://127.0.0.1:9000/v1", "m", true},
		{"vllm", ":", "m", true},
	} {
		v, _ := Lookup(test.vendor)
		if got := v.Takes(test.address, test.model); got != test.want {
			t.Errorf("%s at %s for %s: %v", test.vendor, test.address, test.model, got)
		}
	}
}
