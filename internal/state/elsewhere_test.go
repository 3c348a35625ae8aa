package state

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/limen-gateway/limen/internal/dialect"
	"github.com/limen-gateway/limen/internal/llm"
)

// A response that its provider keeps is known here by its owner alone.
func TestElsewhere(t *testing.T) {
	k, _, _ := keepers(t)
	ctx := t.Context()
	kept := Elsewhere{Owner: owner, ID: "resp_x", Provider: "p", Running: true, Model: "m"}
	if err := k.Own(ctx, &kept); err != nil {
		t.Fatal(err)
	}
	operations := map[string]func(owner string) error{
		"read":   func(o string) error { _, err := k.Response(ctx, o, "resp_x"); return err },
		"delete": func(o string) error { return k.DeleteResponse(ctx, o, "resp_x") },
		"cancel": func(o string) error { _, err := k.Cancel(ctx, o, "resp_x"); return err },
		"input":  func(o string) error { _, err := k.InputItems(ctx, o, "resp_x", Page{Limit: 1}); return err },
		"events": func(o string) error { _, _, err := k.Events(ctx, o, "resp_x", -1); return err },
		"turn": func(o string) error {
			_, err := k.Open(ctx, o, "1", &dialect.Context{Previous: "resp_x", Input: llm.Raw(`"Hi"`)}, nil)
			return err
		},
	}
	for name, do := range operations {
		if e, ok := errors.AsType[*Elsewhere](do(owner)); !ok || *e != kept {
			t.Errorf("%s: got %+v", name, do(owner))
		}
		if e := llm.AsError(do("another")); e.Kind != llm.NotFound && e.Code != "previous_response_not_found" || strings.Contains(e.Message, "'p'") {
			t.Errorf("%s: another key got %v", name, e)
		}
	}

	// Its end is told once, and it is told again when it is committed after.
	if first, err := k.End(ctx, &kept); !first || err != nil {
		t.Errorf("%t, %v", first, err)
	}
	if first, err := k.End(ctx, &kept); first || err != nil {
		t.Errorf("%t, %v", first, err)
	}
	over := kept
	over.Running = false
	if err := k.Own(ctx, &over); err != nil {
		t.Error(err)
	}
	if e, _ := errors.AsType[*Elsewhere](operations["read"](owner)); e == nil || e.Running {
		t.Errorf("got %+v", e)
	}

	// An ID stands for one response.
	for _, e := range []Elsewhere{{Owner: owner, ID: "resp_x", Provider: "q"}, {Owner: owner, Provider: "p"}, {Owner: owner, ID: strings.Repeat("x", longestID+1), Provider: "p"}} {
		if err := k.Own(ctx, &e); err == nil {
			t.Errorf("%.40v is kept", e)
		}
	}
	if err := errors.Join(k.Disown(ctx, &kept), k.Disown(ctx, &kept)); err != nil {
		t.Error(err)
	}
	if e := llm.AsError(operations["read"](owner)); e.Kind != llm.NotFound {
		t.Errorf("got %v", e)
	}

	// It goes with its time, as others do.
	k.Apply(&Settings{Retention: time.Nanosecond})
	if err := k.Own(ctx, &over); err != nil {
		t.Fatal(err)
	}
	if n, err := k.store.Sweep(ctx, time.Now().Add(time.Second), 0); n != 1 || err != nil {
		t.Errorf("%d went, %v", n, err)
	}
}
