package openairesponses

import (
	"github.com/limen-gateway/limen/internal/dialect"
	"github.com/limen-gateway/limen/internal/jsonedit"
	"github.com/limen-gateway/limen/internal/llm"
)

// Forget implements dialect.Forgetful. Encrypted reasoning is read only by the
// account that made it; without it, an item of reasoning says nothing.
func (Dialect) Forget(dst, body []byte, req *dialect.Request) ([]byte, llm.Notes) {
	var notes llm.Notes
	w := jsonedit.NewWriter(nil)
	w.BeginArray()
	for item := range jsonedit.Elements(req.Object.Value(fieldInput)) {
		if encrypted(item) {
			notes.Drop("reasoning.encrypted_content")
			continue
		}
		w.Raw(item)
	}
	w.EndArray()
	if len(notes) == 0 {
		return append(dst, body...), nil
	}
	return append(dst, jsonedit.Edited(body, &req.Object, jsonedit.Set(fieldInput, w.Bytes()))...), notes
}

func encrypted(item []byte) bool {
	if dialect.Text(item, "type") != "reasoning" {
		return false
	}
	state, ok := jsonedit.Get(item, "encrypted_content")
	return ok && jsonedit.KindOf(state) == jsonedit.KindString
}
