package anthropic

import (
	"strconv"

	"github.com/limen-gateway/limen/internal/dialect"
	"github.com/limen-gateway/limen/internal/llm"
	"github.com/limen-gateway/limen/internal/seal"
)

// sealer makes the signatures of thinking blocks that clients give back.
type sealer struct{ ask *dialect.Ask }

// seal packs state under a kind, with the origin where that is known.
func (s sealer) seal(kind string, origin string, fields ...seal.Field) llm.Raw {
	if origin == "" {
		origin = s.ask.Origin
	}
	if origin != "" {
		fields = append(fields, seal.Field{Name: "o", Value: llm.Quote(origin)})
	}
	return llm.Quote(s.ask.Seal.Seal(kind, fields...))
}

// signature is what a thinking block with that state carries. Thinking that
// nobody signed is marked, so that it is told from what an Anthropic upstream
// would take back.
func (s sealer) signature(id llm.Raw, o *llm.Opaque) llm.Raw {
	if o == nil {
		return s.seal("plain", "")
	}
	switch o.Kind {
	case llm.Signature:
		if o.Vendor == vendor {
			return o.Data
		}
		return s.seal(o.Vendor+".thinking", o.Origin, seal.Field{Name: "s", Value: o.Data})
	case llm.Encrypted:
		return s.seal(o.Vendor+".item", o.Origin, seal.Field{Name: "id", Value: id}, seal.Field{Name: "e", Value: o.Data})
	case llm.ThoughtSignature:
		return s.seal(o.Vendor+".call", o.Origin, seal.Field{Name: "c", Value: o.For}, seal.Field{Name: "s", Value: o.Data})
	}
	return s.seal("plain", "")
}

// callSignature is the signature of the call with that ID.
func (s sealer) callSignature(id llm.Raw, o llm.Opaque) llm.Raw {
	o.For = id
	return s.signature(nil, &o)
}

// textSignature is the signature of the text in the block of that index.
func (s sealer) textSignature(index int64, o llm.Opaque) llm.Raw {
	return s.seal(o.Vendor+".text", o.Origin, seal.Field{Name: "i", Value: strconv.AppendInt(nil, index, 10)}, seal.Field{Name: "s", Value: o.Data})
}

// redactedData is what a redacted block carries.
func (s sealer) redactedData(o llm.Opaque) llm.Raw {
	if o.Vendor == vendor {
		return o.Data
	}
	return s.seal(o.Vendor+".redacted", o.Origin, seal.Field{Name: "d", Value: o.Data})
}

// chosen is the state that a thinking block carries, of all that the reasoning
// has; nil when it has none.
func chosen(states []llm.Opaque) *llm.Opaque {
	for i := range states {
		if o := &states[i]; o.Kind == llm.Signature || o.Kind == llm.Encrypted || o.Kind == llm.ThoughtSignature && o.For != nil {
			return o
		}
	}
	return nil
}

// callState is the first signature of a call; nil when it has none.
func callState(states []llm.Opaque) *llm.Opaque {
	for i := range states {
		if states[i].Kind == llm.ThoughtSignature {
			return &states[i]
		}
	}
	return nil
}
