package main

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
)

// A turn of Responses is 1 KB of a user and an answer of as much.

const (
	responsesPath = "/v1/responses"
	turnSize      = 1 << 10

	// freshID is replaced in each answer by another of its length: what is stored is
	// found by its ID.
	freshID = "0000000000000000"

	responseStatusDone  = `"completed"`
	responseStatusBegun = `"in_progress"`
	// answerPieces is how many deltas an answer has. They come at once.
	answerPieces = 8
)

// letters are drawn as text: compressed, it has about half its size, as prose has.
// The same text again and again would compress to nothing.
func letters(seed uint64, size int) string {
	const alphabet = "etaoinshrdlucm   "
	r := rand.New(rand.NewPCG(seed, 0))
	b := make([]byte, size)
	for i := range b {
		b[i] = alphabet[r.IntN(len(alphabet))]
	}
	return string(b)
}

var answerText = letters(1, turnSize)

func textPart(text string) string {
	return `{"type":"output_text","annotations":[],"logprobs":[],"text":"` + text + `"}`
}

// responseItem is the message that is the answer.
func responseItem() string {
	return `{"id":"msg_` + freshID + `","type":"message","status":"completed","role":"assistant","content":[` + textPart(answerText) + `]}`
}

func response(status, output string) string {
	usage := "null"
	if status == responseStatusDone {
		usage = `{"input_tokens":211,"input_tokens_details":{"cached_tokens":0},"output_tokens":200,"output_tokens_details":{"reasoning_tokens":0},"total_tokens":411}`
	}
	return `{"id":"resp_` + freshID + `","object":"response","created_at":1767225600,"status":` + status + `,"background":false,"error":null,"incomplete_details":null,"instructions":null,"max_output_tokens":null,"model":"small","output":[` + output + `],"parallel_tool_calls":true,"previous_response_id":null,"reasoning":{"effort":null,"summary":null},"service_tier":"default","store":false,"temperature":1,"text":{"format":{"type":"text"}},"tool_choice":"auto","tools":[],"top_p":1,"truncation":"disabled","usage":` + usage + `,"user":null,"metadata":{}}`
}

// responseEvents are the events of a streamed answer: kind, and members.
func responseEvents() (list [][2]string) {
	add := func(kind, members string) {
		list = append(list, [2]string{kind, fmt.Sprintf(`,"sequence_number":%d,%s`, len(list), members)})
	}
	const at = `"item_id":"msg_` + freshID + `","output_index":0,"content_index":0,`
	add("response.created", `"response":`+response(responseStatusBegun, ""))
	add("response.in_progress", `"response":`+response(responseStatusBegun, ""))
	add("response.output_item.added", `"output_index":0,"item":{"id":"msg_`+freshID+`","type":"message","status":"in_progress","role":"assistant","content":[]}`)
	add("response.content_part.added", at+`"part":`+textPart(""))
	for i := range answerPieces {
		const n = turnSize / answerPieces
		add("response.output_text.delta", at+`"logprobs":[],"delta":"`+answerText[i*n:(i+1)*n]+`"`)
	}
	add("response.output_text.done", at+`"logprobs":[],"text":"`+answerText+`"`)
	add("response.content_part.done", at+`"part":`+textPart(answerText))
	add("response.output_item.done", `"output_index":0,"item":`+responseItem())
	add("response.completed", `"response":`+response(responseStatusDone, responseItem()))
	return list
}

// renamed is an answer with an ID of its own.
func renamed(answer []byte) []byte {
	return bytes.ReplaceAll(answer, []byte(freshID), fmt.Appendf(nil, "%016x", rand.Uint64()))
}

// turnInput is what the user says in a turn, as an item.
func turnInput(turn int) string {
	const before, after = `{"type":"message","role":"user","content":"`, `"}`
	return before + letters(uint64(turn)+2, turnSize-len(before)-len(after)) + after
}

// turnBody is a request. The members, of which each ends with a comma, come before
// the input.
func turnBody(members string, input ...string) string {
	return `{"model":"fast",` + members + `"input":[` + strings.Join(input, ",") + `]}`
}

// goesOn is the member that names the response before; "" is none.
func goesOn(previous string) string {
	if previous == "" {
		return ""
	}
	return `"previous_response_id":"` + previous + `",`
}

// history is the input of the last of n turns, when nobody remembers any.
func history(n int) (items []string) {
	for turn := range n {
		if turn > 0 {
			items = append(items, string(renamed([]byte(responseItem()))))
		}
		items = append(items, turnInput(turn))
	}
	return items
}
