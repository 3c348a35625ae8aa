package provider

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/limen-gateway/limen/internal/dialect"
)

// everything is a body with all members that some vendor drops or renames, and
// others around them.
const everything = `{"model":"m","frequency_penalty":1,"logit_bias":{"1":2},"logprobs":true,"max_completion_tokens":100,"moderation":"auto",` +
	`"messages":[{"role":"user","content":"hi","seed":1}],"presence_penalty":2,"prompt_cache_options":{},"prompt_cache_retention":"24h",` +
	`"safety_identifier":"s","seed":12345678901234567890,"service_tier":"auto","stop":["x"],"store":false,"stream":true,"stream_options":{"include_usage":true},` +
	`"temperature":1.50,"top_logprobs":3,"user":"u","verbosity":"low","x_unknown":{"seed": 1e400}}`

// edited is everything with members, as they are written there, replaced: each
// pair is a member and what comes in its place, "" when it goes.
func edited(pairs ...string) string {
	body := everything
	for i := 0; i < len(pairs); i += 2 {
		from, to := pairs[i]+",", pairs[i+1]+","
		if to == "," {
			to = ""
		}
		if strings.Count(body, from) != 1 {
			panic(pairs[i] + " is not in the body")
		}
		body = strings.Replace(body, from, to, 1)
	}
	return body
}

const (
	frequency   = `"frequency_penalty":1`
	logitBias   = `"logit_bias":{"1":2}`
	logprobs    = `"logprobs":true`
	limit       = `"max_completion_tokens":100`
	presence    = `"presence_penalty":2`
	seed        = `"seed":12345678901234567890`
	stop        = `"stop":["x"]`
	topLogprobs = `"top_logprobs":3`
	user        = `"user":"u"`
)

func TestFitVendors(t *testing.T) {
	type expected struct{ want, notes string }
	olderLimit := expected{edited(limit, `"max_tokens":100`), "rename:max_completion_tokens"}
	tests := map[string]expected{
		"deepseek": olderLimit, "together": olderLimit, "fireworks": olderLimit, "ollama": olderLimit,
		"sglang": olderLimit, "llamacpp": olderLimit, "lmstudio": olderLimit,
		"groq":     {edited(logitBias, "", logprobs, "", topLogprobs, ""), "drop:logit_bias drop:logprobs drop:top_logprobs"},
		"cerebras": {edited(frequency, "", logitBias, "", presence, ""), "drop:frequency_penalty drop:logit_bias drop:presence_penalty"},
		"qwen":     {edited(frequency, ""), "drop:frequency_penalty"},
		"zhipu":    {edited(limit, `"max_tokens":100`, user, `"user_id":"u"`), "rename:max_completion_tokens rename:user"},
		"mistral": {
			edited(logitBias, "", logprobs, "", limit, `"max_tokens":100`, `"moderation":"auto"`, "", `"prompt_cache_options":{}`, "", `"prompt_cache_retention":"24h"`, "",
				`"safety_identifier":"s"`, "", seed, `"random_seed":12345678901234567890`, `"service_tier":"auto"`, "", `"store":false`, "",
				`"stream_options":{"include_usage":true}`, "", topLogprobs, "", user, "", `"verbosity":"low"`, ""),
			"drop:logit_bias drop:logprobs drop:moderation drop:prompt_cache_options drop:prompt_cache_retention drop:safety_identifier drop:service_tier " +
				"drop:store drop:stream_options drop:top_logprobs drop:user drop:verbosity rename:max_completion_tokens rename:seed",
		},
		"xai": {everything, ""}, "moonshot": {everything, ""}, "minimax": {everything, ""},
	}
	for _, v := range Vendors() {
		tt, ok := tests[v.Name]
		if changes := len(v.Quirks.Drop)+len(v.Quirks.DropReasoning)+len(v.Quirks.Rename) > 0; changes != ok {
			t.Errorf("%s: changes bodies: %v; there is a test: %v", v.Name, changes, ok)
		}
		if !ok {
			continue
		}
		t.Run(v.Name, func(t *testing.T) { fit(t, v.Quirks, everything, false, tt.want, tt.notes) })
	}
}

// fit checks the outgoing bytes, and that nothing is noted that did not happen.
func fit(t *testing.T, q Quirks, body string, reasons bool, want, notes string) {
	t.Helper()
	in := []byte(body)
	got, noted, err := NewFitter(q).Fit(dialect.OpenAIChat, in, reasons)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if !json.Valid(got) {
		t.Errorf("not JSON: %s", got)
	}
	slices.Sort(noted)
	if said := strings.Join(noted, " "); said != notes {
		t.Errorf("noted %q, want %q", said, notes)
	}
	if string(in) != body {
		t.Error("the client's own bytes were changed")
	}
	if want == body && &got[0] != &in[0] {
		t.Error("a body without changes was copied")
	}
}

func TestFitVendorsForReasoningModels(t *testing.T) {
	xai, _ := Lookup("xai")
	fit(t, xai.Quirks, everything, true, edited(frequency, "", presence, "", stop, ""), "drop:frequency_penalty drop:presence_penalty drop:stop")
}

func TestFitVendorsWithNewLimit(t *testing.T) {
	for _, name := range []string{"moonshot", "minimax"} {
		v, _ := Lookup(name)
		fit(t, v.Quirks, `{"max_tokens":7,"model":"m"}`, false, `{"max_completion_tokens":7,"model":"m"}`, "rename:max_tokens")
	}
}

func TestFit(t *testing.T) {
	q := Quirks{Drop: []string{"a", "b"}, Rename: []Pair{{"old", "new"}}}
	for name, tt := range map[string]struct{ body, want, notes string }{
		"nothing to do":         {`{"c":1}`, `{"c":1}`, ""},
		"empty":                 {` {} `, ` {} `, ""},
		"all members go":        {`{"a":1,"b":2}`, `{}`, "drop:a drop:b"},
		"white space in values": {"{\n \"a\" : 1 ,\n \"c\" : [ 2 ]\n}\n", `{"c":[ 2 ]}`, "drop:a"},
		"nested stay":           {`{"c":{"a":1,"old":2}}`, `{"c":{"a":1,"old":2}}`, ""},
		"escaped name":          {`{"\u0061":1,"c":2}`, `{"c":2}`, "drop:a"},
		"renamed alone":         {`{"old":1e400}`, `{"new":1e400}`, "rename:old"},
		"renamed among others":  {`{"x":1,"old":[1, 2],"y":2}`, `{"x":1,"new":[1, 2],"y":2}`, "rename:old"},
		"new name is taken":     {`{"old":1,"new":2}`, `{"new":2}`, "drop:old"},
		"new name is there":     {`{"new":2}`, `{"new":2}`, ""},
		"null is dropped":       {`{"a":null,"c":1}`, `{"c":1}`, "drop:a"},
	} {
		t.Run(name, func(t *testing.T) { fit(t, q, tt.body, false, tt.want, tt.notes) })
	}
}

// A member that is null is as good as absent: clients send all they know.
func TestFitNullIsAbsent(t *testing.T) {
	q := Quirks{Rename: []Pair{oldLimit}}
	got, _, err := NewFitter(q).Fit(dialect.OpenAIChat, []byte(`{"max_tokens":null,"max_completion_tokens":100}`), false)
	var limit struct {
		MaxTokens int `json:"max_tokens"`
	}
	if err != nil || json.Unmarshal(got, &limit) != nil || limit.MaxTokens != 100 {
		t.Errorf("got %s, %v: the client's limit is lost", got, err)
	}
}

func TestFitRefusesAmbiguousBodies(t *testing.T) {
	for _, body := range []string{`{"seed":1,"seed":2}`, `{"Seed":1}`, `[]`, `{"a":1`, ``} {
		if got, _, err := NewFitter(Quirks{Drop: []string{"seed"}}).Fit(dialect.OpenAIChat, []byte(body), false); err == nil {
			t.Errorf("%s passes as %s", body, got)
		}
	}
}

func TestFitPasses(t *testing.T) {
	if f := NewFitter(Quirks{TokenLimit: "max_completion_tokens"}); f != nil {
		t.Error("there is a fitter for quirks that change no body")
	}
	body := []byte(`not even JSON`)
	for name, f := range map[string]*Fitter{"no fitter": nil, "another dialect": NewFitter(Quirks{Drop: []string{"seed"}})} {
		got, notes, err := f.Fit(dialect.OpenAIResponses, body, true)
		if err != nil || notes != nil || &got[0] != &body[0] {
			t.Errorf("%s: got %q, %v, %v, want the body itself", name, got, notes, err)
		}
	}
}

// An operator can name any member: the configuration takes all but spaces and
// quotes, and must not be able to stop the gateway.
func TestFitTakesAnyName(t *testing.T) {
	many := Quirks{}
	for i := range 70 {
		many.Drop = append(many.Drop, fmt.Sprint("member_", i))
	}
	for name, q := range map[string]Quirks{
		"capitals": {Drop: []string{"topK"}}, "dash": {Drop: []string{"x-foo"}}, "renamed to capitals": {Rename: []Pair{{"top_k", "topK"}}}, "many": many,
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if p := recover(); p != nil {
					t.Errorf("NewFitter panics: %v", p)
				}
			}()
			body := []byte(`{"topK":1,"x-foo":2,"top_k":3,"member_69":4}`)
			got, notes, err := NewFitter(q).Fit(dialect.OpenAIChat, body, false)
			if err != nil || len(notes) != 1 || slices.Equal(got, body) {
				t.Errorf("got %s, %v, %v, want one change", got, notes, err)
			}
		})
	}
}

// A body of nothing but tiny members costs no more than a small multiple of
// its bytes: clients choose it.
func TestFitTakesLittleMemory(t *testing.T) {
	v, _ := Lookup("mistral")
	f := NewFitter(v.Quirks)
	body := []byte(`{"seed":1` + strings.Repeat(`,"a":1`, 1<<20/6) + `}`)
	result := testing.Benchmark(func(b *testing.B) {
		for b.Loop() {
			if _, _, err := f.Fit(dialect.OpenAIChat, body, false); err != nil {
				b.Fatal(err)
			}
		}
	})
	if got, most := result.AllocedBytesPerOp(), int64(4*len(body)); got > most {
		t.Errorf("a body of %d bytes takes %d bytes of memory, want at most %d", len(body), got, most)
	}
}
