package e2e

import (
	"bufio"
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/limen-gateway/limen/internal/e2e/upstream"
)

// sqlOn runs a statement on the database of a gateway, behind its back.
func sqlOn(t *testing.T, data, statement string) {
	t.Helper()
	db := database(t, data)
	defer db.Close()
	if _, err := db.Exec(statement); err != nil {
		t.Fatal(err)
	}
}

func database(t *testing.T, data string) *sql.DB {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+filepath.Join(data, "limen.db")+"?_pragma=busy_timeout(10000)")
	if err != nil {
		t.Fatal(err)
	}
	return db
}

// rows counts the rows of a table.
func rows(t *testing.T, data, table string) (n int) {
	t.Helper()
	db := database(t, data)
	defer db.Close()
	if err := db.QueryRow("SELECT COUNT(*) FROM " + table).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// readiness is what a probe is told.
func (g *gateway) readiness(t *testing.T) reply {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, g.root()+"/readyz", nil)
	if err != nil {
		t.Fatal(err)
	}
	return g.do(t, r)
}

// fill makes the database take nothing new of a table, as a disk that is full
// does.
func fill(t *testing.T, data, table string) (empty func()) {
	t.Helper()
	sqlOn(t, data, "CREATE TRIGGER full BEFORE INSERT ON "+table+" BEGIN SELECT RAISE(ABORT, 'database or disk is full'); END")
	return func() { t.Helper(); sqlOn(t, data, "DROP TRIGGER full") }
}

// get reads a stored object.
func (g *gateway) get(t *testing.T, path string) reply {
	t.Helper()
	return g.do(t, g.request(t, t.Context(), http.MethodGet, path, nil))
}

// TestStateLocked has another program lock the database while many want to
// write. Nobody waits longer than for one that could not, clients are told, and
// so are probes.
func TestStateLocked(t *testing.T) {
	t.Parallel()
	up := newUpstream(t)
	g := start(t, provider(up))
	made := checkedObject(t, g.post(t, "/conversations", `{}`))
	in := fmt.Sprintf(`{"model":"up/small","conversation":%s,"input":"In [[fault:pause arg=300]]"}`, made["id"])
	bodies := [][2]string{
		{"/responses", in}, // has the conversation, and is to give it back
		{"/responses", `{"model":"up/small","input":"Anew"}`},
		{"/responses", `{"model":"up/small","background":true,"input":"Run"}`},
		{"/conversations", `{}`},
		{"/conversations", `{}`},
	}
	db := database(t, g.data)
	defer db.Close()
	locked, err := db.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer locked.Close()

	var waiting sync.WaitGroup
	ask := func(path, body string) {
		began := time.Now()
		got := g.post(t, path, body)
		if took := time.Since(began); got.status != 503 || took > 8*time.Second {
			t.Errorf("%s %s: %d after %v", path, body, got.status, took)
		}
	}
	waiting.Go(func() { ask(bodies[0][0], bodies[0][1]) })
	find(t, up, "In [[", func(r upstream.Request) bool { return r.Fault != "" })
	if _, err := locked.ExecContext(t.Context(), "BEGIN IMMEDIATE"); err != nil {
		t.Fatal(err)
	}
	for _, b := range bodies[1:] {
		waiting.Go(func() { ask(b[0], b[1]) })
	}
	check(t, g.post(t, "/chat/completions", chatBody(false, "hello")), "answer")
	waiting.Wait()
	if got := g.readiness(t); got.status != 503 || !strings.Contains(got.body, "store") {
		t.Errorf("readiness: %d %s", got.status, got.body)
	}

	if _, err := locked.ExecContext(t.Context(), "ROLLBACK"); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the gateway is ready", func() bool { return g.readiness(t).status == 200 })
	completed(t, g.plain(t, `{"model":"up/small","input":"Anew"}`))
}

// TestStateFull has a store that takes nothing while turns end: every client is
// told, nothing is half there, and when there is room again all goes on.
func TestStateFull(t *testing.T) {
	t.Parallel()
	g := start(t, everyDialectOf(newUpstream(t, upstream.WithModels(upstreamModels...))))
	for _, model := range overEvery {
		first := g.plain(t, fmt.Sprintf(`{"model":%q,"input":"First"}`, model))
		made := checkedObject(t, g.post(t, "/conversations", `{}`))
		before := [2]int{rows(t, g.data, "responses"), rows(t, g.data, "items")}
		empty := fill(t, g.data, "items")

		on := fmt.Sprintf(`"model":%q,"previous_response_id":%s,"input":"On"`, model, first["id"])
		in := fmt.Sprintf(`"model":%q,"conversation":%s,"input":"In"`, model, made["id"])
		for _, request := range []string{on, in, fmt.Sprintf(`"model":%q,"input":"Anew"`, model)} {
			if got := g.post(t, "/responses", `{`+request+`}`); observe(t, "/responses", got) != "503 service_unavailable" || !strings.Contains(got.body, "stored") {
				t.Errorf("%s: %d %s", model, got.status, got.body)
			}
			// What came all at once has not begun, and is refused whole.
			if got := g.post(t, "/responses", `{"stream":true,`+request+`}`); got.status != http.StatusServiceUnavailable {
				if end := eventsOf(t, got.body); text(end["status"]) != "failed" || !strings.Contains(string(end["error"]), "stored") {
					t.Errorf("%s, stream: %s", model, end)
				}
			}
			slow := strings.Replace(request, `"input":"`, `"input":"[[fault:slow 5]] `, 1)
			if end := g.streamed(t, `{"stream":true,`+slow+`}`); text(end["status"]) != "failed" || !strings.Contains(string(end["error"]), "stored") {
				t.Errorf("%s, stream: %s", model, end)
			}
			if end := g.open(t).turn(t, `{"type":"response.create",`+request+`}`); text(end["status"]) != "failed" && text(end["code"]) != "service_unavailable" {
				t.Errorf("%s, socket: %s", model, end)
			}
		}
		run := g.plain(t, `{"background":true,`+on+`}`)
		if failed := g.over(t, text(run["id"])); failed.Status != "failed" || failed.Error == nil || !strings.Contains(failed.Error.Message, "stored") {
			t.Errorf("%s, in the background: %+v", model, failed)
		}
		if got := g.post(t, "/conversations", `{"items":[{"role":"user","content":"x"}]}`); got.status != 503 {
			t.Errorf("%d %s", got.status, got.body)
		}
		// What is not to be stored goes on all the while.
		completed(t, g.streamed(t, `{"stream":true,"store":false,`+on+`}`))

		empty()
		if after := [2]int{rows(t, g.data, "responses"), rows(t, g.data, "items")}; after != [2]int{before[0] + 1, before[1]} { // the run
			t.Errorf("%s: rows of responses and items: %v, and before %v", model, after, before)
		}
		for _, request := range []string{on, in} {
			completed(t, g.plain(t, `{`+request+`}`))
			completed(t, g.streamed(t, `{"stream":true,`+request+`}`))
			completed(t, g.open(t).turn(t, `{"type":"response.create",`+request+`}`))
		}
		if got := g.post(t, "/responses", fmt.Sprintf(`{"model":%q,"previous_response_id":%s,"input":"x"}`, model, run["id"])); observe(t, "/responses", got) != "400 previous_response_not_found" {
			t.Errorf("%s: after a run that failed: %d %s", model, got.status, got.body)
		}
	}
	empty := fill(t, g.data, "responses")
	if got := g.post(t, "/responses", `{"model":"over-chat","background":true,"input":"x"}`); got.status != 503 {
		t.Errorf("a run that cannot be queued: %d %s", got.status, got.body)
	}
	empty()
}

func checkedObject(t *testing.T, got reply) (o object) {
	t.Helper()
	if err := json.Unmarshal([]byte(got.body), &o); err != nil || got.status != http.StatusOK {
		t.Fatalf("%d %s", got.status, got.body)
	}
	return o
}

// TestStateAway takes the store's responses away while turns go on: who waits is
// told, no ID is called unknown, and when they are back, all goes on from there.
func TestStateAway(t *testing.T) {
	t.Parallel()
	g := start(t, provider(newUpstream(t)))
	first := g.plain(t, `{"model":"up/small","input":"First"}`)
	made := checkedObject(t, g.post(t, "/conversations", `{}`))
	on := fmt.Sprintf(`"model":"up/small","previous_response_id":%s,"input":"[[fault:slow 50]] On"`, first["id"])
	resp, err := g.client.Do(g.request(t, t.Context(), http.MethodPost, "/responses", strings.NewReader(`{"stream":true,`+on+`}`)))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	begun := make([]byte, 200)
	if _, err := io.ReadFull(resp.Body, begun); err != nil {
		t.Fatal(err)
	}
	tables := []string{"responses", "conversations", "items"}
	for _, table := range tables {
		sqlOn(t, g.data, "ALTER TABLE "+table+" RENAME TO "+table+"_away")
	}
	rest, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Errorf("the stream broke off: %v", err)
	}
	if end := eventsOf(t, string(begun)+string(rest)); text(end["status"]) != "failed" || !strings.Contains(string(end["error"]), "stored") {
		t.Errorf("%s", end)
	}
	path := "/responses/" + text(first["id"])
	for name, got := range map[string]reply{
		"going on":       g.post(t, "/responses", `{`+on+`}`),
		"a stream":       g.post(t, "/responses", `{"stream":true,`+on+`}`),
		"a background":   g.post(t, "/responses", `{"background":true,`+on+`}`),
		"a conversation": g.post(t, "/responses", fmt.Sprintf(`{"model":"up/small","conversation":%s,"input":"x"}`, made["id"])),
		"a reference":    g.post(t, "/responses", `{"model":"up/small","store":false,"input":[{"type":"item_reference","id":"msg_1"}]}`),
		"to read":        g.get(t, path),
		"its input":      g.get(t, path+"/input_items"),
		"its stream":     g.get(t, path+"?stream=true"),
		"to cancel":      g.post(t, path+"/cancel", ""),
		"its items":      g.get(t, "/conversations/"+text(made["id"])+"/items"),
	} {
		if observe(t, "/responses", got) != "503 service_unavailable" || got.header.Get("Retry-After") == "" {
			t.Errorf("%s: %d %s", name, got.status, got.body)
		}
	}
	if e := g.open(t).turn(t, `{"type":"response.create",`+on+`}`); text(e["code"]) != "service_unavailable" {
		t.Errorf("a socket: %s", e)
	}
	// What goes on from nothing and is not to be stored needs no store.
	completed(t, g.plain(t, `{"model":"up/small","store":false,"input":"Hi"}`))
	for _, table := range tables {
		sqlOn(t, g.data, "ALTER TABLE "+table+"_away RENAME TO "+table)
	}
	completed(t, g.plain(t, `{`+on+`}`))
	completed(t, g.plain(t, fmt.Sprintf(`{"model":"up/small","conversation":%s,"input":"x"}`, made["id"])))
}

// TestStateSocketFull: a socket goes on from what could be stored, and not from
// what could not.
func TestStateSocketFull(t *testing.T) {
	t.Parallel()
	g := start(t, provider(newUpstream(t)))
	s := g.open(t)
	turn := func(members string) object {
		return s.turn(t, `{"type":"response.create","model":"up/small",`+members+`}`)
	}
	first := turn(`"store":false,"input":"First"`)
	second := turn(fmt.Sprintf(`"store":false,"previous_response_id":%s,"input":"Second"`, first["id"]))
	empty := fill(t, g.data, "items")
	lost := turn(fmt.Sprintf(`"previous_response_id":%s,"input":"Lost [[fault:slow 5]]"`, second["id"]))
	if text(lost["status"]) != "failed" {
		t.Errorf("%s", lost)
	}
	empty()
	if e := turn(fmt.Sprintf(`"previous_response_id":%s,"input":"x"`, lost["id"])); text(e["code"]) != "previous_response_not_found" {
		t.Errorf("after what was lost: %s", e)
	}
	third := turn(fmt.Sprintf(`"previous_response_id":%s,"input":"Third"`, first["id"])) // a failure evicts what it went on from, and that alone
	completed(t, third)
	items := g.get(t, "/responses/"+text(third["id"])+"/input_items?order=asc").body
	if !strings.Contains(items, "First") || strings.Contains(items, "Second") || strings.Contains(items, "Lost") {
		t.Errorf("%s", items)
	}
}

// TestStateLeaver has clients that leave in the middle of a turn in a
// conversation: it stops upstream, nothing of it is kept, and the conversation
// is free.
func TestStateLeaver(t *testing.T) {
	t.Parallel()
	up := newUpstream(t)
	g := start(t, provider(up))
	conversation := checkedObject(t, g.post(t, "/conversations", `{}`))["id"]
	for _, stream := range []bool{true, false} {
		mark := fmt.Sprint("leaves with a stream ", stream)
		ctx, leave := context.WithCancel(t.Context())
		r := g.request(t, ctx, http.MethodPost, "/responses", strings.NewReader(fmt.Sprintf(`{"model":"up/small","stream":%t,"conversation":%s,"input":"%s [[fault:stall 5]]"}`, stream, conversation, mark)))
		if stream {
			resp, err := g.client.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			io.ReadAtLeast(resp.Body, make([]byte, 64<<10), 100)
			leave()
			resp.Body.Close()
		} else {
			go func() {
				find(t, up, mark, func(upstream.Request) bool { return true })
				leave()
			}()
			if resp, err := g.client.Do(r); err == nil {
				t.Errorf("%s", resp.Status)
			}
		}
		find(t, up, mark, func(r upstream.Request) bool { return !r.Cancelled.IsZero() })
		var after reply
		eventually(t, "the conversation is free", func() bool {
			after = g.post(t, "/responses", fmt.Sprintf(`{"model":"up/small","conversation":%s,"input":"after"}`, conversation))
			return after.status != http.StatusConflict
		})
		completed(t, checked(t, after.body))
	}
	items := g.get(t, "/conversations/"+text(conversation)+"/items?limit=100").body
	if strings.Contains(items, "leaves") || strings.Count(items, `"role":"user"`) != 2 {
		t.Errorf("%s", items)
	}
	if n := rows(t, g.data, "responses"); n != 2 {
		t.Errorf("%d responses are kept, want the 2 that ended", n)
	}
}

// TestConversationLocked has turns that meet in one conversation: one goes on,
// the others are told so at once.
func TestConversationLocked(t *testing.T) {
	t.Parallel()
	up := newUpstream(t)
	g := start(t, provider(up))
	made := checkedObject(t, g.post(t, "/conversations", `{}`))
	request := func(input string) string {
		return fmt.Sprintf(`"model":"up/small","conversation":%s,"input":%q}`, made["id"], input)
	}
	slow := make(chan reply)
	go func() { slow <- g.post(t, "/responses", `{`+request("holds it [[fault:pause arg=700]]")) }()
	find(t, up, "holds it", func(upstream.Request) bool { return true })
	got := g.post(t, "/responses", `{`+request("meets it"))
	if observe(t, "/responses", got) != "409 conversation_locked" || !strings.Contains(got.body, `"param":"conversation"`) {
		t.Errorf("%d %s", got.status, got.body)
	}
	if got := g.post(t, "/responses", `{"stream":true,`+request("meets it")); observe(t, "/responses", got) != "409 conversation_locked" {
		t.Errorf("%d %s", got.status, got.body)
	}
	if got := g.post(t, "/responses", `{"background":true,`+request("meets it")); observe(t, "/responses", got) != "409 conversation_locked" {
		t.Errorf("%d %s", got.status, got.body)
	}
	if e := g.open(t).turn(t, `{"type":"response.create",`+request("meets it")); text(e["code"]) != "conversation_locked" {
		t.Errorf("%s", e)
	}
	held := <-slow
	completed(t, checked(t, held.body))

	// All at once.
	var running sync.WaitGroup
	outcomes := make([]string, 8)
	for i := range outcomes {
		running.Go(func() { outcomes[i] = observe(t, "/responses", g.post(t, "/responses", `{`+request("races"))) })
	}
	running.Wait()
	won := 0
	for _, o := range outcomes {
		if o == "answer" {
			won++
		} else if o != "409 conversation_locked" {
			t.Errorf("a turn that raced: %s", o)
		}
	}
	items := g.get(t, "/conversations/"+text(made["id"])+"/items?limit=100").body
	if n := strings.Count(items, "races"); won == 0 || n != won || strings.Count(items, `"role":"assistant"`) != won+1 || strings.Contains(items, "meets") {
		t.Errorf("%d of 8 turns won, and %d are in the conversation: %s", won, n, items)
	}
	if got := g.post(t, "/responses", `{`+request("after")); got.status != 200 {
		t.Errorf("%d %s", got.status, got.body)
	}
}

// TestStateExpires has responses whose time is over: they are unknown, and are
// deleted.
func TestStateExpires(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	config := "state: {retention: 1s}\n" + provider(newUpstream(t))
	g := startOn(t, data, config)
	key := g.key
	first := g.plain(t, `{"model":"up/small","input":"First"}`)
	conversation := checkedObject(t, g.post(t, "/conversations", `{"items":[{"role":"user","content":"x"}]}`))
	path := "/responses/" + text(first["id"])
	if got := g.get(t, path); got.status != 200 {
		t.Errorf("%d %s", got.status, got.body)
	}
	eventually(t, "they are unknown", func() bool {
		return g.get(t, path).status == 404 && g.get(t, "/conversations/"+text(conversation["id"])).status == 404
	})
	on := fmt.Sprintf(`{"model":"up/small","previous_response_id":%s,"input":"On"}`, first["id"])
	if got := g.post(t, "/responses", on); observe(t, "/responses", got) != "400 previous_response_not_found" {
		t.Errorf("%d %s", got.status, got.body)
	}
	if got := g.post(t, "/responses", fmt.Sprintf(`{"model":"up/small","conversation":%s,"input":"On"}`, conversation["id"])); got.status != 404 {
		t.Errorf("%d %s", got.status, got.body)
	}
	for _, below := range []string{"/input_items", "?stream=true"} {
		if got := g.get(t, path+below); got.status != 404 {
			t.Errorf("%s: %d %s", below, got.status, got.body)
		}
	}
	g.stop()
	g = startOn(t, data, config) // which sweeps
	g.key = key
	eventually(t, "nothing is left", func() bool {
		return rows(t, data, "responses")+rows(t, data, "items")+rows(t, data, "threads")+rows(t, data, "conversations") == 0
	})
}

// TestRunsKilled kills a gateway in the middle of several runs. After it, each
// has failed and says why, and what they held is free.
func TestRunsKilled(t *testing.T) {
	t.Parallel()
	up := newUpstream(t)
	data := t.TempDir()
	g := spawn(t, data, provider(up))
	key := g.key
	first := g.plain(t, `{"model":"up/small","input":"First"}`)
	conversation := checkedObject(t, g.post(t, "/conversations", `{}`))["id"]
	var ids []string
	for i, members := range []string{
		``, ``, fmt.Sprintf(`"previous_response_id":%s,`, first["id"]), fmt.Sprintf(`"conversation":%s,`, conversation),
	} {
		r := g.plain(t, fmt.Sprintf(`{"model":"up/small","background":true,%s"input":"run %d [[fault:stall 5]]"}`, members, i))
		ids = append(ids, text(r["id"]))
	}
	streamed, err := g.client.Do(g.request(t, t.Context(), http.MethodPost, "/responses", strings.NewReader(`{"model":"up/small","background":true,"stream":true,"input":"run 4 [[fault:stall 5]]"}`)))
	if err != nil {
		t.Fatal(err)
	}
	defer streamed.Body.Close()
	line := make([]byte, 300)
	if _, err := io.ReadFull(streamed.Body, line); err != nil {
		t.Fatal(err)
	}
	_, after, _ := strings.Cut(string(line), `"id":"`)
	id, _, _ := strings.Cut(after, `"`)
	ids = append(ids, id)
	for i := range ids {
		find(t, up, fmt.Sprintf("run %d ", i), func(r upstream.Request) bool { return r.Frames > 0 })
	}
	g.kill()

	g = spawn(t, data, provider(up))
	g.key = key
	for i, id := range ids {
		g.over(t, id)
		r := g.kept(t, id)
		if text(r["status"]) != "failed" || !strings.Contains(string(r["error"]), "stopped") || string(r["output"]) != "[]" {
			t.Errorf("run %d: %s, %s, %s", i, r["status"], r["error"], r["output"])
		}
		if end := eventsOfRun(t, g.get(t, "/responses/"+id+"?stream=true").body); end != "response.failed" {
			t.Errorf("run %d as a stream ends with %s", i, end)
		}
	}
	completed(t, g.plain(t, fmt.Sprintf(`{"model":"up/small","previous_response_id":%s,"input":"On"}`, first["id"])))
	eventually(t, "the conversation is free", func() bool {
		return g.post(t, "/responses", fmt.Sprintf(`{"model":"up/small","conversation":%s,"input":"On"}`, conversation)).status == 200
	})
}

// eventsOfRun is the last event of a stream, whose numbers must be in order.
func eventsOfRun(t *testing.T, stream string) (last string) {
	t.Helper()
	list := frames(t, stream)
	number := -1
	for _, e := range list[:len(list)-1] {
		var head struct {
			Sequence int `json:"sequence_number"`
		}
		if err := json.Unmarshal([]byte(e.data), &head); err != nil || head.Sequence <= number {
			t.Errorf("%d after %d: %s", head.Sequence, number, e.data)
		}
		number, last = head.Sequence, e.name
	}
	return last
}

// sized is a message of a size for a model that there is not.
func sized(size int) string {
	const head, tail = `{"stream_id":"sized","type":"response.create","model":"none","input":"`, `"}`
	return head + strings.Repeat("x", size-len(head)-len(tail)) + tail
}

// TestSocketLargest has messages as large as they may be, and larger.
func TestSocketLargest(t *testing.T) {
	t.Parallel()
	g := spawn(t, t.TempDir(), provider(newUpstream(t)))
	s := g.socket(t, g.withKey())
	const limit = 64 << 20
	if e := s.turn(sized(limit - 4<<10)); e.Status != 404 || e.Error.Code != "model_not_found" {
		t.Errorf("%+v", e)
	}
	if e := s.turn(`{"type":"response.create","model":"up/small","input":"Hi"}`); e.Type != "response.completed" {
		t.Errorf("after it: %+v", e)
	}
	s.conn.Write(s.ctx, websocket.MessageText, []byte(sized(limit+1<<20)))
	if _, _, err := s.conn.Read(s.ctx); err == nil {
		t.Error("a message over the limit was taken")
	}
}

// TestSocketQueue has messages that wait: as many as are together within the
// limit of one, and the others are refused before they fill the memory.
func TestSocketQueue(t *testing.T) {
	t.Parallel()
	const limit = 1 << 20
	g := start(t, "limits: {body: 1MiB}\ntimeouts: {drain: 1s}\n"+provider(newUpstream(t)))
	s := g.socket(t, g.withKey())
	s.send(`{"type":"response.create","model":"up/small","stream_id":"held","input":"[[fault:stall 5]]"}`)
	for s.next().Type != "response.created" {
	}
	for range 2 { // the second finds the first
		s.send(sized(limit/2 + 1<<10))
	}
	for e := s.next(); ; e = s.next() {
		if e.Lane == "sized" {
			if e.Status != 503 {
				t.Errorf("%+v", e)
			}
			break
		}
	}
}

// TestConversationGoesOn has a client that begins the next turn of a
// conversation as soon as it hears that the last one is over, or has failed.
func TestConversationGoesOn(t *testing.T) {
	t.Parallel()
	g := start(t, provider(newUpstream(t)))
	var conv struct{ ID string }
	if made := g.post(t, "/conversations", `{}`); json.Unmarshal([]byte(made.body), &conv) != nil || conv.ID == "" {
		t.Fatalf("%d %s", made.status, made.body)
	}
	for i, prompt := range []string{"Hi", "[[fault:cut]]", "And?", "Hi", "[[fault:error-late 4]]", "On", "Hi", "Hi", "Hi", "Hi"} {
		r, err := g.client.Do(g.request(t, t.Context(), http.MethodPost, "/responses", strings.NewReader(
			fmt.Sprintf(`{"model":"up/small","stream":true,"conversation":%q,"input":%q}`, conv.ID, prompt))))
		if err != nil {
			t.Fatal(err)
		}
		defer r.Body.Close()
		if r.StatusCode != 200 {
			t.Fatalf("turn %d: status %d", i, r.StatusCode)
		}
		lines := bufio.NewReader(r.Body)
		for over := false; !over; {
			line, err := lines.ReadString('\n')
			if err != nil {
				t.Fatal(err)
			}
			over = strings.HasPrefix(line, "event: response.completed") || strings.HasPrefix(line, "event: response.failed")
		}
	}
}
