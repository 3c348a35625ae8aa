package config

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v4"
)

func TestByteSize(t *testing.T) {
	tests := []struct {
		text string
		want ByteSize
		show string
	}{
		{"0", 0, "0B"}, {"1", 1, "1B"}, {"512B", 512, "512B"}, {"1KB", 1000, "1KB"}, {"1KiB", 1024, "1KiB"},
		{"64 MiB", 64 << 20, "64MiB"}, {"10MB", 1e7, "10MB"}, {"2GiB", 2 << 30, "2GiB"}, {"3GB", 3e9, "3GB"},
		{"1536KiB", 1536 << 10, "1536KiB"}, {"-1", -1, "-1B"},
		{"9223372036854775807", 1<<63 - 1, "9223372036854775807B"},
	}
	for _, tt := range tests {
		var got ByteSize
		if err := got.parse(tt.text); err != nil || got != tt.want || got.String() != tt.show {
			t.Errorf("%q: got %d, %v, shown as %v, want %d, shown as %s", tt.text, int64(got), err, got, int64(tt.want), tt.show)
		}
	}
	for _, text := range []string{"", "B", "MiB", "1 ", "1k", "1mib", "1.5MiB", "0x10", "1_000", "9223372036854775808", "8589934592GiB"} {
		var got ByteSize
		if err := got.parse(text); err == nil {
			t.Errorf("%q: got %d, want an error", text, int64(got))
		}
	}
}

func TestDuration(t *testing.T) {
	tests := []struct{ text, show string }{
		{"0", "0s"}, {"0s", "0s"}, {"60s", "1m"}, {"60m", "1h"}, {"90m", "1h30m"}, {"1h0m1s", "1h0m1s"}, {"250ms", "250ms"}, {"10m", "10m"},
	}
	for _, tt := range tests {
		var got Duration
		if err := got.parse(tt.text); err != nil || got.String() != tt.show {
			t.Errorf("%q: got %v, %v, want %s", tt.text, got, err, tt.show)
		}
		if again, err := time.ParseDuration(tt.show); err != nil || again != got.Std() {
			t.Errorf("%q: shown as %s, which reads as %v, %v", tt.text, tt.show, again, err)
		}
	}
}

func TestPattern(t *testing.T) {
	tests := []struct {
		pattern Pattern
		name    string
		want    bool
	}{
		{"a", "a", true}, {"a", "ab", false}, {"a", "", false}, {"*", "", true}, {"*", "anything", true},
		{"a*", "a", true}, {"a*", "abc", true}, {"a*", "ba", false}, {"*a", "ba", true}, {"*a", "ab", false},
		{"a*a", "a", false}, {"a*a", "aa", true}, {"a*b*c", "aXbYc", true}, {"a*b*c", "acb", false},
		{"*ab*ab", "ab", false}, {"*ab*ab", "abab", true}, {"*aab", "aaab", true}, {"a**b", "ab", true}, {"A*", "ab", false},
	}
	for _, tt := range tests {
		if got := tt.pattern.Match(tt.name); got != tt.want {
			t.Errorf("%q on %q: got %v, want %v", tt.pattern, tt.name, got, tt.want)
		}
	}
	if !Pattern("a").Literal() || Pattern("a*").Literal() {
		t.Error("Literal: got it wrong for a or a*")
	}
}

func TestNearest(t *testing.T) {
	fields := []string{"listen", "data", "providers", "models", "public_url", "id"}
	tests := map[string]string{
		"provders": "providers", "provdiers": "providers", "Listen": "listen", "publicUrl": "public_url", "base": "",
		"x": "", "": "", "date": "data", "to": "", "providerslist": "providers", strings.Repeat("x", 1000): "",
	}
	for name, want := range tests {
		if got := nearest(name, fields); got != want {
			t.Errorf("%q: got %q, want %q", name, got, want)
		}
	}
}

const canary = "sk-canary-0123456789"

// A secret shows itself to Reveal and to nothing else.
func TestSecretStaysSecret(t *testing.T) {
	c := parse(t, "providers: { openai: { api_key: "+canary+", headers: { x-a: "+canary+" } } }")
	shown := map[string]string{}
	hook := SecretURL("https://hooks.example.com:8443/T/" + canary + "?k=" + canary)
	if got, want := hook.String(), "https://hooks.example.com:8443/[redacted]"; got != want || SecretURL("").String() != "" || SecretURL(":"+canary).String() != redacted {
		t.Errorf("the webhook is shown as %s, want %s", got, want)
	}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "% x", "%#q", "%t", "%10v"} {
		shown["configuration "+verb] = fmt.Sprintf(verb, c)
		shown["provider "+verb] = fmt.Sprintf(verb, c.Providers)
		shown["secret "+verb] = fmt.Sprintf(verb, c.Providers[0].APIKey)
		shown["webhook "+verb] = fmt.Sprintf(verb, Webhook{URL: hook, Secret: canary})
		shown["address "+verb] = fmt.Sprintf(verb, hook)
		shown["pointer "+verb] = fmt.Sprintf(verb, &c.Providers[0].APIKey)
	}
	c.Alerts.Webhook = &Webhook{URL: hook, Secret: canary}
	keep := func(name string) func([]byte, error) {
		return func(data []byte, err error) {
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
			shown[name] = string(data)
		}
	}
	keep("json")(json.Marshal(c))
	keep("yaml")(yaml.Dump(c.Providers[0].APIKey))
	keep("RedactedYAML")(c.RedactedYAML())
	keep("RedactedJSON")(c.RedactedJSON())
	var log bytes.Buffer
	slog.New(slog.NewTextHandler(&log, nil)).Info("", "c", c, "p", c.Providers[0], "s", c.Providers[0].APIKey, "u", hook)
	slog.New(slog.NewJSONHandler(&log, nil)).Info("", "c", c, "p", c.Providers[0], "s", c.Providers[0].APIKey)
	shown["slog"] = log.String()
	for name, text := range shown {
		if strings.Contains(text, "canary") || strings.Contains(text, fmt.Sprintf("%x", "canary")) || strings.Contains(text, fmt.Sprintf("%X", "canary")) {
			t.Errorf("%s shows the secret: %s", name, text)
		}
	}
	for _, name := range []string{"json", "yaml", "RedactedYAML", "RedactedJSON", "slog", "secret %v", "secret %#v"} {
		if !strings.Contains(shown[name], redacted) {
			t.Errorf("%s: got %s, want %s in it", name, shown[name], redacted)
		}
	}
	if got := c.Providers[0].APIKey.Reveal(); got != canary {
		t.Errorf("got %q, want %q", got, canary)
	}
}
