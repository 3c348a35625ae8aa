package state

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/limen-gateway/limen/internal/dialect"
	"github.com/limen-gateway/limen/internal/llm"
	"github.com/limen-gateway/limen/internal/seal"
	"github.com/limen-gateway/limen/internal/store"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const owner = "key_a"

var key = bytes.Repeat([]byte{7}, seal.KeySize)

func openStore(t *testing.T, dir string) *store.Store {
	t.Helper()
	st, err := store.Open(t.Context(), dir, "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { st.Close() })
	return st
}

func newKeeper(t *testing.T, st *store.Store) *Keeper {
	t.Helper()
	k, err := New(st, key, true)
	if err != nil {
		t.Fatal(err)
	}
	k.Apply(&Settings{Retention: time.Hour})
	return k
}

// keepers are a keeper on a new store, what makes others on the same, and what
// changes the database behind their backs.
func keepers(t *testing.T) (k *Keeper, another func() *Keeper, exec func(query string)) {
	t.Helper()
	dir := t.TempDir()
	st := openStore(t, dir)
	return newKeeper(t, st), func() *Keeper { return newKeeper(t, st) }, func(query string) {
		t.Helper()
		db, err := sql.Open("sqlite", "file:"+filepath.Join(dir, store.FileName)+"?_pragma=busy_timeout(5000)")
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		if _, err := db.ExecContext(t.Context(), query); err != nil {
			t.Fatal(err)
		}
	}
}

// user is an input of one message.
func user(text string) string { return fmt.Sprintf(`[{"role":"user","content":%q}]`, text) }

// answer is a response that is over, with one message.
func answer(text string) []byte {
	return fmt.Appendf(nil, `{"object":"response","status":"completed","output":[{"type":"message","role":"assistant","status":"completed","content":[{"type":"output_text","text":%q,"annotations":[]}]}]}`, text)
}

// ask is a request that is to be stored.
func ask(previous, input string) *dialect.Context {
	return &dialect.Context{Store: true, Previous: previous, Input: llm.Raw(input)}
}

func open(t *testing.T, k *Keeper, id string, a *dialect.Context, s *Session) *Turn {
	t.Helper()
	turn, err := k.Open(t.Context(), owner, id, a, s)
	if err != nil {
		t.Fatalf("%s: %v", id, err)
	}
	return turn
}

func commit(t *testing.T, turn *Turn, response []byte) {
	t.Helper()
	if err := turn.Commit(t.Context(), response); err != nil {
		t.Fatalf("%s: %v", turn.ID, err)
	}
	turn.Close(t.Context())
}

// take makes a whole turn and returns its response's ID.
func take(t *testing.T, k *Keeper, id, previous, says string) string {
	t.Helper()
	turn := open(t, k, id, ask(previous, user(says)), nil)
	commit(t, turn, answer("Re: "+says))
	return turn.ID
}

// texts are the texts of a turn's whole input, in order.
func texts(t *testing.T, turn *Turn) (list []string) {
	t.Helper()
	parts, size := turn.Input()
	whole := bytes.Join(parts, nil)
	if len(whole) != size {
		t.Errorf("the input has %d bytes, and is said to have %d", len(whole), size)
	}
	var items []struct {
		Type    string
		Content []struct{ Text string }
	}
	if err := json.Unmarshal([]byte("["+string(whole)+"]"), &items); err != nil {
		t.Fatalf("%v: %s", err, whole)
	}
	for _, it := range items {
		if it.Type == "" {
			t.Fatalf("an item has no type: %s", whole)
		}
		for _, part := range it.Content {
			list = append(list, part.Text)
		}
	}
	return list
}

// sees checks what a turn that goes on from a response sees before "on".
func sees(t *testing.T, k *Keeper, previous string, want ...string) {
	t.Helper()
	turn := open(t, k, "looks", ask(previous, user("on")), nil)
	defer turn.Close(t.Context())
	if got, want := fmt.Sprint(texts(t, turn)), fmt.Sprint(append(want, "on")); got != want {
		t.Errorf("after %s: got %s, want %s", previous, got, want)
	}
}

// code is the code of a failure.
func code(err error) string {
	if err == nil {
		return ""
	}
	return llm.AsError(err).Code
}

// TestLongChain has a thousand turns that each go on from the one before.
func TestLongChain(t *testing.T) {
	const turns = 1000
	k, another, exec := keepers(t)
	var want []string
	previous := ""
	for i := range turns {
		says := fmt.Sprint("turn ", i)
		previous = take(t, k, fmt.Sprint(i), previous, says)
		want = append(want, says, "Re: "+says)
	}
	sees(t, k, previous, want...)
	sees(t, another(), previous, want...) // whose memory has nothing of it

	// While a thread is in memory, a turn reads none of its items: with one that
	// nobody can open any more, it still goes on.
	exec("UPDATE items SET body = X'00'")
	sees(t, k, previous, want...)
	previous = take(t, k, "on", previous, "still")
	sees(t, k, previous, append(want, "still", "Re: still")...)
	if _, err := another().Open(t.Context(), owner, "x", ask(previous, user("x")), nil); !errors.Is(err, seal.ErrBox) {
		t.Errorf("what cannot be opened: got %v", err)
	}
}

// TestForks has twenty clients that go on from one response at once.
func TestForks(t *testing.T) {
	k, another, _ := keepers(t)
	base := take(t, k, "base", take(t, k, "root", "", "root"), "base")
	before := []string{"root", "Re: root", "base", "Re: base"}
	ids := make([]string, 20)
	var running sync.WaitGroup
	for i := range ids {
		running.Go(func() {
			id := base
			for n := range 3 {
				turn, err := k.Open(t.Context(), owner, fmt.Sprintf("f%d_%d", i, n), ask(id, user(fmt.Sprint("fork ", i, " ", n))), nil)
				if err == nil {
					err = turn.Commit(t.Context(), answer(fmt.Sprint("re ", i, " ", n)))
				}
				if err != nil {
					t.Error(err)
					return
				}
				id = turn.ID
			}
			ids[i] = id
		})
	}
	running.Wait()
	for _, k := range []*Keeper{k, another()} {
		for i, id := range ids {
			want := before
			for n := range 3 {
				want = append(want[:len(want):len(want)], fmt.Sprint("fork ", i, " ", n), fmt.Sprint("re ", i, " ", n))
			}
			sees(t, k, id, want...)
		}
	}
}

// TestReplicas has a thread that goes on in one process, while the memory of
// another has gone on from the same place with what is not in the store.
func TestReplicas(t *testing.T) {
	k, another, _ := keepers(t)
	base := take(t, k, "base", "", "base")
	session := NewSession()
	loose := ask(base, user("loose"))
	loose.Store = false
	commit(t, open(t, k, "loose", loose, session), answer("re loose"))
	next := take(t, another(), "next", base, "next")
	sees(t, k, next, "base", "Re: base", "next", "Re: next")

	// What the session has goes on too, and is stored whole when it is to be.
	turn := open(t, k, "kept", ask("resp_loose", user("kept")), session)
	commit(t, turn, answer("re kept"))
	for _, k := range []*Keeper{k, another()} {
		sees(t, k, turn.ID, "base", "Re: base", "loose", "re loose", "kept", "re kept")
	}
}

// TestDeletedMeanwhile deletes what a turn goes on from while it is open.
func TestDeletedMeanwhile(t *testing.T) {
	k, another, _ := keepers(t)
	base := take(t, k, "base", "", "base")
	turn := open(t, k, "next", ask(base, user("next")), nil)
	if err := k.DeleteResponse(t.Context(), owner, base); err != nil {
		t.Fatal(err)
	}
	commit(t, turn, answer("Re: next"))
	for _, k := range []*Keeper{k, another()} {
		sees(t, k, turn.ID, "base", "Re: base", "next", "Re: next")
		if _, err := k.Open(t.Context(), owner, "x", ask(base, user("x")), nil); code(err) != "previous_response_not_found" {
			t.Errorf("after what was deleted: %v", err)
		}
	}
	body, err := k.InputItems(t.Context(), owner, turn.ID, Page{Limit: 10, Ascending: true})
	if err != nil || strings.Count(string(body), `"type":"message"`) != 3 {
		t.Errorf("%v: %s", err, body)
	}

	// A conversation that is deleted meanwhile takes no turn any more.
	conversation := newConversation(t, k)
	in := &dialect.Context{Store: true, Conversation: conversation, Input: llm.Raw(`"Hi"`)}
	turn = open(t, k, "in", in, nil)
	if err := k.DeleteConversation(t.Context(), owner, conversation); err != nil {
		t.Fatal(err)
	}
	if err := turn.Commit(t.Context(), answer("x")); llm.AsError(err).Kind != llm.Unavailable {
		t.Errorf("a turn in a conversation that is gone: %v", err)
	}
	turn.Close(t.Context())
	if _, err := k.Response(t.Context(), owner, turn.ID); llm.AsError(err).Kind != llm.NotFound {
		t.Errorf("its response: %v", err)
	}
}

func newConversation(t *testing.T, k *Keeper) string {
	t.Helper()
	body, err := k.CreateConversation(t.Context(), owner, t.Name()[:4]+fmt.Sprint(time.Now().UnixNano()), []byte(`{"metadata":{"about":"weather"}}`))
	if err != nil {
		t.Fatal(err)
	}
	var c struct{ ID string }
	if err := json.Unmarshal(body, &c); err != nil {
		t.Fatal(err)
	}
	return c.ID
}

// TestForeign asks with one key for what is another's.
func TestForeign(t *testing.T) {
	k, _, _ := keepers(t)
	id, conversation := take(t, k, "a", "", "mine"), newConversation(t, k)
	const other = "key_b"
	ctx := t.Context()
	page := Page{Limit: 10}
	kinds := map[string]error{}
	_, kinds["open"] = k.Open(ctx, other, "x", ask(id, user("x")), nil)
	_, kinds["open in a conversation"] = k.Open(ctx, other, "x", &dialect.Context{Store: true, Conversation: conversation, Input: llm.Raw(`"x"`)}, nil)
	_, kinds["reference"] = k.Open(ctx, other, "x", ask("", `[{"id":"msg_a_1"}]`), nil)
	_, kinds["response"] = k.Response(ctx, other, id)
	_, kinds["input items"] = k.InputItems(ctx, other, id, page)
	_, kinds["cancel"] = k.Cancel(ctx, other, id)
	_, _, kinds["events"] = k.Events(ctx, other, id, -1)
	kinds["delete"] = k.DeleteResponse(ctx, other, id)
	_, kinds["conversation"] = k.Conversation(ctx, other, conversation)
	_, kinds["metadata"] = k.UpdateConversation(ctx, other, conversation, []byte(`{"metadata":{"x":"y"}}`))
	_, kinds["items"] = k.ConversationItems(ctx, other, conversation, page)
	_, kinds["add"] = k.AddItems(ctx, other, conversation, "x", []byte(`{"items":`+user("x")+`}`))
	_, kinds["item"] = k.Item(ctx, other, conversation, "msg_a_1")
	_, kinds["take an item out"] = k.DeleteItem(ctx, other, conversation, "msg_a_1")
	kinds["delete a conversation"] = k.DeleteConversation(ctx, other, conversation)
	for what, err := range kinds {
		want := llm.NotFound
		if what == "open" {
			want = llm.Invalid
		}
		if err == nil || llm.AsError(err).Kind != want {
			t.Errorf("%s: got %v", what, err)
		}
	}
	sees(t, k, id, "mine", "Re: mine")
	turn := open(t, k, "ref", ask("", `[{"id":"msg_a_1"}]`), nil)
	if got := texts(t, turn); len(got) != 1 || got[0] != "mine" {
		t.Errorf("the owner's own reference: %q", got)
	}
}

// TestNothingReadable looks for what was said in the files of the database.
func TestNothingReadable(t *testing.T) {
	dir := t.TempDir()
	k := newKeeper(t, openStore(t, dir))
	const secret = "correct horse battery staple"
	id := take(t, k, "a", "", secret)
	long := take(t, k, "b", id, strings.Repeat(secret+" ", 100))
	if _, err := k.CreateConversation(t.Context(), owner, "c", []byte(`{"metadata":{"m":"`+secret+`"},"items":`+user(secret)+`}`)); err != nil {
		t.Fatal(err)
	}
	if _, err := k.UpdateConversation(t.Context(), owner, "conv_c", []byte(`{"metadata":{"n":"`+secret+`"}}`)); err != nil {
		t.Fatal(err)
	}
	run := open(t, k, "d", &dialect.Context{Store: true, Background: true, Previous: long, Input: llm.Raw(user(secret))}, nil)
	if err := run.Queue(t.Context(), []byte(`{"status":"queued","instructions":"`+secret+`"}`), idle); err != nil {
		t.Fatal(err)
	}
	if err := run.KeepEvents(t.Context(), 0, [][]byte{[]byte(`{"sequence_number":0,"delta":"` + secret + `"}`)}); err != nil {
		t.Fatal(err)
	}
	commit(t, run, answer(secret))
	read := 0
	for _, name := range []string{store.FileName, store.FileName + "-wal"} {
		data, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			t.Fatal(err)
		}
		read += len(data)
		for _, word := range []string{"horse", "staple"} {
			if i := bytes.Index(data, []byte(word)); i >= 0 {
				t.Errorf("%s has %q in it: …%q…", name, word, data[max(0, i-40):i+40])
			}
		}
	}
	if read < 4096 {
		t.Errorf("%d bytes of a database were looked at", read)
	}
	if body, err := k.Conversation(t.Context(), owner, "conv_c"); err != nil || !strings.Contains(string(body), `"metadata":{"n":"`+secret+`"}`) {
		t.Errorf("%v: %s", err, body)
	}
}

// TestRuns has runs in the background that go on from a response.
func TestRuns(t *testing.T) {
	k, another, _ := keepers(t)
	base := take(t, k, "base", "", "base")
	queued := func(id string) *Turn {
		turn := open(t, k, id, &dialect.Context{Store: true, Background: true, Previous: base, Input: llm.Raw(user(id))}, nil)
		if err := turn.Queue(t.Context(), []byte(`{"id":"resp_`+id+`","status":"queued","background":true,"error":null,"output":[]}`), idle); err != nil {
			t.Fatal(err)
		}
		return turn
	}
	shows := func(id, want string) {
		t.Helper()
		if got, err := k.Response(t.Context(), owner, id); err != nil || string(got) != want {
			t.Errorf("%s: got %s, %v, want %s", id, got, err, want)
		}
	}
	ends := func(id string) {
		t.Helper()
		if _, err := k.Open(t.Context(), owner, "x", ask(id, user("x")), nil); code(err) != "previous_response_not_found" {
			t.Errorf("gone on from %s: %v", id, err)
		}
	}

	run := queued("runs")
	shows(run.ID, `{"id":"resp_runs","status":"queued","background":true,"error":null,"output":[]}`)
	if _, err := k.Open(t.Context(), owner, "x", ask(run.ID, user("x")), nil); code(err) != "invalid_value" {
		t.Errorf("gone on from while it is made: %v", err)
	}
	if err := k.DeleteResponse(t.Context(), owner, base); err != nil { // the run keeps what it has of it
		t.Fatal(err)
	}
	commit(t, run, answer("Re: runs"))
	sees(t, k, run.ID, "base", "Re: base", "runs", "Re: runs")
	base = run.ID

	fails := queued("fails")
	if err := fails.Fail(t.Context(), []byte(`{"code":"server_error"}`)); err != nil {
		t.Fatal(err)
	}
	fails.Close(t.Context())
	shows(fails.ID, `{"id":"resp_fails","status":"failed","background":true,"error":{"code":"server_error"},"output":[]}`)
	ends(fails.ID)

	cancelled := queued("cancelled")
	for range 2 {
		if _, err := another().Cancel(t.Context(), owner, cancelled.ID); err != nil {
			t.Fatal(err)
		}
	}
	if err := cancelled.Commit(t.Context(), answer("too late")); llm.AsError(err).Kind != llm.Canceled {
		t.Errorf("a commit after it was cancelled: %v", err)
	}
	cancelled.Close(t.Context())
	if got, err := k.Response(t.Context(), owner, cancelled.ID); err != nil || !strings.Contains(string(got), `"cancelled"`) || strings.Contains(string(got), "base") {
		t.Errorf("%s, %v", got, err)
	}
	ends(cancelled.ID)
}

// TestRestart has a process that begins where another was killed: its runs
// failed, its conversations are free, and what begins now is not touched.
func TestRestart(t *testing.T) {
	k, another, _ := keepers(t)
	conversation := newConversation(t, k)
	in := &dialect.Context{Store: true, Conversation: conversation, Input: llm.Raw(`"Hi"`)}
	open(t, k, "holds", in, nil)
	lost := open(t, k, "lost", &dialect.Context{Store: true, Background: true, Input: llm.Raw(`"Hi"`)}, nil)
	queue := func(turn *Turn) {
		t.Helper()
		if err := turn.Queue(t.Context(), []byte(`{"status":"queued","error":null,"output":[]}`), idle); err != nil {
			t.Fatal(err)
		}
	}
	queue(lost)
	for now := time.Now().UnixMilli(); time.Now().UnixMilli() == now; { // times are kept in ms
	}
	next := another()
	own := open(t, next, "own", &dialect.Context{Store: true, Background: true, Input: llm.Raw(`"Hi"`)}, nil)
	queue(own)
	log := slog.New(slog.NewTextHandler(failing{t}, &slog.HandlerOptions{Level: slog.LevelWarn}))
	next.markStale(t.Context(), next.begun.Add(store.RunnerGone), log)
	next.unlockStale(t.Context(), log)
	if got, err := next.Response(t.Context(), owner, lost.ID); err != nil || !strings.Contains(string(got), `"status":"failed"`) || !strings.Contains(string(got), "stopped") {
		t.Errorf("a run that was lost: %s, %v", got, err)
	}
	if got, err := next.Response(t.Context(), owner, own.ID); err != nil || !strings.Contains(string(got), `"status":"queued"`) {
		t.Errorf("a run that goes on: %s, %v", got, err)
	}
	turn := open(t, next, "again", in, nil)
	next.unlockStale(t.Context(), log)
	if _, err := next.Open(t.Context(), owner, "other", in, nil); code(err) != "conversation_locked" {
		t.Errorf("a conversation in use: %v", err)
	}
	turn.Close(t.Context())
	commit(t, open(t, next, "then", in, nil), answer("Re: Hi"))
}

// TestLocks has a turn that lasts longer than a lock.
func TestLocks(t *testing.T) {
	k, another, exec := keepers(t)
	conversation := newConversation(t, k)
	in := &dialect.Context{Store: true, Conversation: conversation, Input: llm.Raw(`"Hi"`)}
	turn := open(t, k, "long", in, nil)
	exec("UPDATE conversations SET lock_until_ms = 1")
	log := slog.New(slog.NewTextHandler(failing{t}, nil))
	k.touch(t.Context(), log)
	if _, err := another().Open(t.Context(), owner, "x", in, nil); code(err) != "conversation_locked" {
		t.Errorf("while it is in use: %v", err)
	}
	turn.Close(t.Context())
	k.touch(t.Context(), log) // takes back nothing that was given back
	open(t, another(), "y", in, nil).Close(t.Context())
}

// TestUnlockLater has a store that takes nothing as a turn gives its
// conversation back.
func TestUnlockLater(t *testing.T) {
	k, another, exec := keepers(t)
	in := &dialect.Context{Store: true, Conversation: newConversation(t, k), Input: llm.Raw(`"Hi"`)}
	turn := open(t, k, "first", in, nil)
	exec("CREATE TRIGGER full BEFORE UPDATE ON conversations BEGIN SELECT RAISE(ABORT, 'no'); END")
	turn.Close(t.Context())
	exec("DROP TRIGGER full")
	if _, err := another().Open(t.Context(), owner, "x", in, nil); code(err) != "conversation_locked" {
		t.Errorf("as the store has it: %v", err)
	}
	k.touch(t.Context(), slog.New(slog.NewTextHandler(failing{t}, nil)))
	open(t, another(), "y", in, nil).Close(t.Context())
}

// failing fails a test that writes to it.
type failing struct{ t *testing.T }

func (f failing) Write(p []byte) (int, error) {
	f.t.Errorf("%s", p)
	return len(p), nil
}

// TestSession has more turns than a socket remembers.
func TestSession(t *testing.T) {
	k, _, _ := keepers(t)
	s := NewSession()
	loose := func(previous string) *dialect.Context {
		return &dialect.Context{Previous: previous, Input: llm.Raw(user("on"))}
	}
	var ids []string
	previous := ""
	for i := range sessionTurns + 4 {
		turn := open(t, k, fmt.Sprint("s", i), loose(previous), s)
		commit(t, turn, answer(fmt.Sprint("re ", i)))
		previous = turn.ID
		ids = append(ids, previous)
	}
	for i, id := range ids {
		turn, err := k.Open(t.Context(), owner, "x", loose(id), s)
		switch {
		case i < 4 && code(err) != "previous_response_not_found":
			t.Errorf("turn %d of %d: %v", i, len(ids), err)
		case i >= 4 && err != nil:
			t.Errorf("turn %d of %d: %v", i, len(ids), err)
		case i >= 4 && len(texts(t, turn)) != 2*(i+1)+1:
			t.Errorf("turn %d sees %q", i, texts(t, turn))
		}
	}
	s.Forget(previous)
	s.Forget("resp_none")
	if _, err := k.Open(t.Context(), owner, "x", loose(previous), s); code(err) != "previous_response_not_found" {
		t.Errorf("one that was forgotten: %v", err)
	}
	for i := range 10 * sessionTurns { // what is forgotten takes no room
		turn := open(t, k, fmt.Sprint("t", i), loose(""), s)
		commit(t, turn, answer("x"))
		s.Forget(turn.ID)
	}
	if len(s.turns) > sessionTurns || len(s.order) > sessionTurns {
		t.Errorf("%d turns, %d in order", len(s.turns), len(s.order))
	}
	if _, err := k.Open(t.Context(), owner, "x", loose(ids[5]), NewSession()); code(err) != "previous_response_not_found" {
		t.Errorf("another socket: %v", err)
	}
}

// TestAwayIsNoMiss: a store that cannot be asked never makes a good ID bad.
func TestAwayIsNoMiss(t *testing.T) {
	k, _, _ := keepers(t)
	id := take(t, k, "a", "", "Hi")
	turn := open(t, k, "b", ask(id, user("on")), nil)
	k.store.Close()
	err := turn.Commit(t.Context(), answer("x"))
	if e := llm.AsError(err); e.Kind != llm.Unavailable {
		t.Errorf("commit: %v", err)
	}
	turn.Close(t.Context())
	errs := map[string]error{}
	_, errs["open"] = k.Open(t.Context(), owner, "x", ask(id, user("x")), nil)
	_, errs["reference"] = k.Open(t.Context(), owner, "x", ask("", `[{"id":"msg_a_1"}]`), nil)
	_, errs["response"] = k.Response(t.Context(), owner, id)
	_, errs["conversation"] = k.Conversation(t.Context(), owner, "conv_x")
	errs["delete"] = k.DeleteResponse(t.Context(), owner, id)
	for what, err := range errs {
		if e := llm.AsError(err); e.Kind != llm.Unavailable || e.RetryAfter == 0 {
			t.Errorf("%s: %v", what, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := turn.Commit(ctx, []byte(`[]`)); err == nil {
		t.Error("a response that is none was kept")
	}
}

// idle is a run that does nothing.
var idle = Run{Cancel: func() {}, Finished: func() [][]byte { return nil }}
