package jsonedit

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

var chatFields = NewFields("model", "stream", "stream_options", "max_tokens", "max_completion_tokens", "n",
	"service_tier", "store", "user", "metadata", "reasoning_effort", "temperature")

// The bodies of the benchmarks are made of random words, not of one repeated
// piece, so that the branch predictor cannot learn them.
func words(r *rand.Rand, dict []string, size, escapeEvery int) string {
	var b strings.Builder
	for next := escapeEvery; b.Len() < size; {
		b.WriteString(dict[r.IntN(len(dict))])
		if escapeEvery > 0 && b.Len() > next {
			b.WriteString([]string{"\n", "\n\n", "\"", "\t"}[r.IntN(4)])
			next = b.Len() + escapeEvery/2 + r.IntN(escapeEvery)
		} else if dict[0] == "the" {
			b.WriteByte(' ')
		}
	}
	return b.String()
}

var (
	english = strings.Fields("the of and to in is was for that with as on be by this which at from or an are it model answer request response please write a function that returns largest number, then explain; it's not obvious why: (see below). Therefore")
	chinese = strings.Fields("的 一 是 在 不 了 有 和 人 这 中 大 为 上 个 国 我 以 要 他 时 来 用 们 生 到 作 地 于 出 就 分 对 成 会 可 主 发 年 动 同 工 也 能 下 过 子 说 产 种 面 而 方 后 多 定 行 学 法 所 民 得 经 ， 。 、")
)

func chatBody(messages ...string) []byte {
	var b strings.Builder
	b.WriteString(`{"messages":[`)
	for i, m := range messages {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(`{"role":"user","content":`)
		b.Write(AppendQuote(nil, m))
		b.WriteByte('}')
	}
	b.WriteString(`],"model":"gpt-5.2","max_completion_tokens":1024,"stream":true,"stream_options":{"include_usage":true},"temperature":0.2,"tools":[` +
		`{"type":"function","function":{"name":"get_weather","description":"The weather at a place","parameters":{"type":"object","properties":{"city":{"type":"string"}},"required":["city"],"additionalProperties":false}}}]}`)
	return []byte(b.String())
}

// prose is the inside of a string with what real prompts have every hundred
// bytes: a dash, an escaped accented letter.
const prose = `The caf\u00e9 on the corner opens at six. \"You're early,\" says the owner, and wipes the counter.\n\n` +
	`Outside, the first tram — empty but for its driver — turns into the square; nobody looks up.\n` +
	`\t- two coffees, one with milk\n\t- a C:\\notes\\today.txt left open on the screen\n`

func benchmarkBodies() map[string][]byte {
	r := rand.New(rand.NewPCG(1, 2))
	var many []string
	for range 70 {
		many = append(many, words(r, english, 200+r.IntN(2400), 80))
	}
	base64 := make([]byte, 1<<20)
	for i := range base64 {
		base64[i] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"[r.IntN(64)]
	}
	tool, _ := json.Marshal(map[string]any{"path": "a.go", "text": words(r, english, 1<<18, 40)})
	return map[string][]byte{
		"1KB":       chatBody(words(r, english, 100, 80), words(r, english, 450, 80)),
		"100KB":     chatBody(many...),
		"1MBtext":   chatBody(words(r, english, 1<<20, 80)),
		"1MBbase64": chatBody(string(base64)),
		"1MBcjk":    chatBody(words(r, chinese, 1<<20, 200)),
		"1MBmixed":  chatBody(words(r, append(append(english, chinese...), "😀", "naïve", "größer"), 1<<20, 80)),
		"1MBprose":  []byte(`{"messages":[{"role":"user","content":"` + strings.Repeat(prose, 1<<20/len(prose)) + `"}],"model":"fast"}`),
		"1MBcode":   chatBody(words(r, english, 1<<20, 24)),
		"300KBtool": chatBody(string(tool)),
	}
}

func BenchmarkScan(b *testing.B) {
	bodies := benchmarkBodies()
	for _, name := range []string{"1KB", "100KB", "1MBtext", "1MBprose", "1MBcode", "1MBbase64", "1MBcjk", "1MBmixed", "300KBtool"} {
		body := bodies[name]
		b.Run(name, func(b *testing.B) {
			var o Object
			b.SetBytes(int64(len(body)))
			b.ReportAllocs()
			for b.Loop() {
				if err := Scan(body, chatFields, &o); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkEdit(b *testing.B) {
	body := benchmarkBodies()["1KB"]
	var o Object
	if err := Scan(body, chatFields, &o); err != nil {
		b.Fatal(err)
	}
	model, options := []byte(`"claude-opus-5"`), []byte(`{"include_usage":true}`)
	b.ReportAllocs()
	for b.Loop() {
		var edits [8]Edit
		var segments [16][]byte
		e := o.Edits(edits[:0], Set(0, model), Set(2, options), Remove(3), Set(8, model))
		if _, n := Splice(segments[:0], body, e); n < len(body) {
			b.Fatal(n)
		}
	}
}

func BenchmarkGet(b *testing.B) {
	chunk := []byte(`{"id":"chatcmpl-123","object":"chat.completion.chunk","created":1694268190,"model":"gpt-5.2","system_fingerprint":"fp_44709d6fcb","choices":[{"index":0,"delta":{"content":"Hello there"},"logprobs":null,"finish_reason":null}],"usage":null}`)
	b.ReportAllocs()
	for b.Loop() {
		if v, found := Get(chunk, "usage"); !found || len(v) != 4 {
			b.Fatal(fmt.Sprint(found, v))
		}
	}
}
