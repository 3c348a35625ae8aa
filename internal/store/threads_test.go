package store

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

const owner = "key1"

// newItems makes items whose bodies are their IDs.
func newItems(ids ...string) []Item {
	items := make([]Item, len(ids))
	for i, id := range ids {
		items[i] = Item{ID: id, Created: day0.Add(time.Duration(i) * time.Second), Body: []byte("\x00\xff" + id)}
	}
	return items
}

// newTurn makes a turn with one item of input and one of output.
func newTurn(id, base string, length int64) *Turn {
	return &Turn{
		Response: Response{Owner: owner, ID: id, Status: "completed", Created: day0, Body: []byte("body of " + id)},
		Base:     base, BaseLength: length,
		Input: newItems(id + ".in"), Output: newItems(id + ".out"),
	}
}

func commit(t *testing.T, s *Store, turn *Turn) Response {
	t.Helper()
	mustDo(t, s.CommitTurn(t.Context(), turn))
	return turn.Response
}

// idsOf is the IDs of items, in order.
func idsOf(items []Item) string {
	ids := make([]string, len(items))
	for i := range items {
		ids[i] = items[i].ID
	}
	return strings.Join(ids, " ")
}

// wantItems checks what a response sees.
func wantItems(t *testing.T, s *Store, thread string, after, upTo int64, want string) {
	t.Helper()
	items, err := s.Items(t.Context(), owner, thread, after, upTo)
	if got := idsOf(items); got != want || err != nil {
		t.Errorf("items (%d, %d] of %s are %q, %v, want %q", after, upTo, thread, got, err, want)
	}
}

// stateTables are the tables of this migration.
var stateTables = []string{"threads", "items", "responses", "response_events", "conversations"}

func rowsOf(t *testing.T, s *Store, table string) (n int) {
	t.Helper()
	mustDo(t, s.read.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM "+table).Scan(&n))
	return n
}

func wantEmpty(t *testing.T, s *Store) {
	t.Helper()
	for _, table := range stateTables {
		if n := rowsOf(t, s, table); n != 0 {
			t.Errorf("%d rows are left in %s", n, table)
		}
	}
}

// wantBytes checks the sums that are kept against the rows.
func wantBytes(t *testing.T, s *Store) {
	t.Helper()
	for what, query := range map[string]string{
		"threads": `SELECT COUNT(*) FROM threads t WHERE bytes <>
			(SELECT COALESCE(SUM(LENGTH(body)), 0) FROM items i WHERE i.owner = t.owner AND i.thread = t.id)`,
		"responses": `SELECT COUNT(*) FROM responses r WHERE bytes <> LENGTH(body) +
			(SELECT COALESCE(SUM(LENGTH(body)), 0) FROM response_events e WHERE e.owner = r.owner AND e.response = r.id)`,
		"items without a thread": "SELECT COUNT(*) FROM items i WHERE NOT EXISTS (SELECT 1 FROM threads t WHERE t.owner = i.owner AND t.id = i.thread)",
	} {
		var n int
		mustDo(t, s.read.QueryRowContext(t.Context(), query).Scan(&n))
		if n != 0 {
			t.Errorf("%d %s have a wrong number of bytes, or are lost", n, what)
		}
	}
}

func TestTurnsOnOneThread(t *testing.T) {
	onEach(t, func(t *testing.T, open func() *Store) {
		s := open()
		a := commit(t, s, newTurn("a", "", 0))
		b := commit(t, s, newTurn("b", a.Thread, a.Length))
		c := commit(t, s, newTurn("c", b.Thread, b.Length))
		if c.Thread != a.Thread || c.From != 4 || c.Inputs != 5 || c.Length != 6 {
			t.Errorf("third turn stands at %q (%d, %d, %d), want at %q (4, 5, 6)", c.Thread, c.From, c.Inputs, c.Length, a.Thread)
		}
		wantItems(t, s, c.Thread, 0, c.Length, "a.in a.out b.in b.out c.in c.out")
		wantItems(t, s, c.Thread, c.From, c.Inputs, "c.in")
		wantItems(t, s, c.Thread, c.Inputs, c.Length, "c.out")
		wantItems(t, s, b.Thread, 0, b.Length, "a.in a.out b.in b.out")
		items, err := s.Items(t.Context(), owner, a.Thread, 0, 1)
		mustDo(t, err)
		if got, want := fmt.Sprint(items), fmt.Sprint([]Item{{"a.in", 1, time.UnixMilli(day0.UnixMilli()), []byte("\x00\xffa.in")}}); got != want {
			t.Errorf("first item is %s, want %s", got, want)
		}
		if n := rowsOf(t, s, "threads"); n != 1 {
			t.Errorf("one line of turns made %d threads", n)
		}
		wantBytes(t, s)
	})
}

func TestForks(t *testing.T) {
	onEach(t, func(t *testing.T, open func() *Store) {
		s := open()
		a := commit(t, s, newTurn("a", "", 0))
		b := commit(t, s, newTurn("b", a.Thread, a.Length))
		fork := commit(t, s, newTurn("f", a.Thread, a.Length))
		onFork := commit(t, s, newTurn("g", fork.Thread, fork.Length))
		deep := commit(t, s, newTurn("h", fork.Thread, fork.Length))
		low := commit(t, s, newTurn("l", deep.Thread, 1)) // within what is the lowest thread's
		if fork.Thread == a.Thread || onFork.Thread != fork.Thread || deep.Thread == fork.Thread || onFork.Length != 6 {
			t.Errorf("threads are %q, %q, %q, %q", a.Thread, fork.Thread, onFork.Thread, deep.Thread)
		}
		wantItems(t, s, b.Thread, 0, b.Length, "a.in a.out b.in b.out")
		wantItems(t, s, fork.Thread, 0, fork.Length, "a.in a.out f.in f.out")
		wantItems(t, s, onFork.Thread, 0, onFork.Length, "a.in a.out f.in f.out g.in g.out")
		wantItems(t, s, deep.Thread, 0, deep.Length, "a.in a.out f.in f.out h.in h.out")
		wantItems(t, s, deep.Thread, 1, 5, "a.out f.in f.out h.in")
		wantItems(t, s, low.Thread, 0, low.Length, "a.in l.in l.out")
		wantItems(t, s, low.Thread, 3, 3, "")
		wantBytes(t, s)
	})
}

// A turn without items is one too: a request that only warms up.
func TestTurnWithoutItems(t *testing.T) {
	onEach(t, func(t *testing.T, open func() *Store) {
		s := open()
		empty := newTurn("a", "", 0)
		empty.Input, empty.Output = nil, nil
		a := commit(t, s, empty)
		wantItems(t, s, a.Thread, 0, a.Length, "")
		b := commit(t, s, newTurn("b", a.Thread, a.Length))
		c := commit(t, s, newTurn("c", a.Thread, a.Length))
		wantItems(t, s, b.Thread, 0, b.Length, "b.in b.out")
		wantItems(t, s, c.Thread, 0, c.Length, "c.in c.out")
	})
}

func TestItemsOfNoThread(t *testing.T) {
	onEach(t, func(t *testing.T, open func() *Store) {
		s := open()
		a := commit(t, s, newTurn("a", "", 0))
		for name, of := range map[string][2]string{"missing": {owner, "none"}, "another's": {"key2", a.Thread}, "NUL": {owner, "a\x00"}, "none": {owner, ""}} {
			if _, err := s.Items(t.Context(), of[0], of[1], 0, 9); !errors.Is(err, ErrNotFound) {
				t.Errorf("%s: Items got %v, want ErrNotFound", name, err)
			}
			if _, _, err := s.ListItems(t.Context(), of[0], of[1], 0, 9, "", false, 1); !errors.Is(err, ErrNotFound) {
				t.Errorf("%s: ListItems got %v, want ErrNotFound", name, err)
			}
		}
	})
}

// Of many that go on from one place at once, one appends and the others fork.
func TestCommitsAtOnce(t *testing.T) {
	onEach(t, func(t *testing.T, open func() *Store) {
		s := open()
		a := commit(t, s, newTurn("a", "", 0))
		turns := make([]*Turn, 20)
		var wg sync.WaitGroup
		for i := range turns {
			turns[i] = newTurn("r"+strconv.Itoa(i), a.Thread, a.Length)
			wg.Go(func() {
				if err := s.CommitTurn(t.Context(), turns[i]); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		appended := 0
		for _, turn := range turns {
			r := turn.Response
			if r.Thread == a.Thread {
				appended++
			}
			wantItems(t, s, r.Thread, 0, r.Length, fmt.Sprintf("a.in a.out %s.in %s.out", r.ID, r.ID))
		}
		if appended != 1 {
			t.Errorf("%d turns were appended, want 1", appended)
		}
		wantBytes(t, s)
	})
}

// Turns, deletions and sweeps of two replicas at once wait for each other,
// but never for good, and leave nothing.
func TestEverythingAtOnce(t *testing.T) {
	onEach(t, func(t *testing.T, open func() *Store) {
		stores := []*Store{open(), open()}
		root := commit(t, stores[0], newTurn("root", "", 0))
		var wg sync.WaitGroup
		for w := range 6 {
			s := stores[w%2]
			wg.Go(func() {
				at := root
				for i := range 15 {
					turn := newTurn(fmt.Sprintf("w%d.%d", w, i), at.Thread, at.Length)
					if i%4 == 3 {
						turn.Response.Expires = day0
					}
					if err := s.CommitTurn(t.Context(), turn); err != nil {
						t.Error(err)
						return
					}
					if i%3 == 2 && i%4 != 3 { // the new one keeps what it needs
						if err := s.DeleteResponse(t.Context(), owner, at.ID); err != nil && !errors.Is(err, ErrNotFound) {
							t.Error(err)
						}
					}
					if i%4 == 3 {
						if _, err := s.Sweep(t.Context(), day0, 0); err != nil {
							t.Error(err)
						}
						continue
					}
					at = turn.Response
				}
			})
		}
		wg.Wait()
		wantBytes(t, stores[0])
		names, err := stores[0].names(t.Context(), "SELECT owner, id FROM responses")
		mustDo(t, err)
		for _, n := range names {
			mustDo(t, stores[0].DeleteResponse(t.Context(), n.owner, n.id))
		}
		wantEmpty(t, stores[0])
	})
}

func TestItemsByID(t *testing.T) {
	onEach(t, func(t *testing.T, open func() *Store) {
		s := open()
		first := newTurn("a", "", 0)
		first.Input = newItems("x", "y", "z")
		commit(t, s, first)
		second := newTurn("b", "", 0)
		second.Input = newItems("y", "x") // y has the time that x has in the first
		second.Input[0].Body, second.Input[1].Body = []byte("older y"), []byte("newer x")
		commit(t, s, second)
		stranger := newTurn("c", "", 0)
		stranger.Response.Owner, stranger.Input = "key2", newItems("w")
		commit(t, s, stranger)

		items, err := s.ItemsByID(t.Context(), owner, []string{"x", "none", "y", "w", "a.out", "\x00"})
		mustDo(t, err)
		var got []string
		for _, i := range items {
			got = append(got, i.ID+"="+string(i.Body))
		}
		slices.Sort(got)
		want := []string{"a.out=\x00\xffa.out", "x=newer x", "y=\x00\xffy"}
		if !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
		if items, err := s.ItemsByID(t.Context(), owner, nil); len(items) != 0 || err != nil {
			t.Errorf("no IDs give %v, %v", items, err)
		}
		many := make([]string, 3*rowsPerTx)
		for i := range many {
			many[i] = "none" + strconv.Itoa(i)
		}
		many[len(many)-1] = "z"
		if items, err := s.ItemsByID(t.Context(), owner, many); idsOf(items) != "z" || err != nil {
			t.Errorf("among many IDs %q, %v was found, want z", idsOf(items), err)
		}
	})
}

// The ID of an item is the client's, whatever it is.
func TestItemsTakeAnyID(t *testing.T) {
	onEach(t, func(t *testing.T, open func() *Store) {
		s := open()
		for i, id := range []string{"", "\x00", "\xff", "é \"';", strings.Repeat("x", 1024)} {
			turn := newTurn("r"+strconv.Itoa(i), "", 0)
			turn.Input[0].ID = id
			commit(t, s, turn)
			if got, err := s.ItemsByID(t.Context(), owner, []string{id}); len(got) != 1 || err != nil {
				t.Errorf("%.20q: found %d, %v", id, len(got), err)
			}
		}
	})
}

// More items than one statement takes.
func TestLongTurn(t *testing.T) {
	onEach(t, func(t *testing.T, open func() *Store) {
		s := open()
		turn := newTurn("a", "", 0)
		var ids []string
		for i := range 2*itemsPerInsert + 1 {
			ids = append(ids, "i"+strconv.Itoa(i))
		}
		turn.Input = newItems(ids...)
		r := commit(t, s, turn)
		if turn.Input[200].Seq != 201 || turn.Output[0].Seq != 202 {
			t.Errorf("items got the numbers %d and %d, want 201 and 202", turn.Input[200].Seq, turn.Output[0].Seq)
		}
		wantItems(t, s, r.Thread, 0, r.Length, strings.Join(ids, " ")+" a.out")
	})
}

func TestListItems(t *testing.T) {
	onEach(t, func(t *testing.T, open func() *Store) {
		s := open()
		a := commit(t, s, newTurn("a", "", 0))
		commit(t, s, newTurn("b", a.Thread, a.Length))
		fork := commit(t, s, newTurn("f", a.Thread, a.Length))
		g := commit(t, s, newTurn("g", fork.Thread, fork.Length))
		for _, tt := range []struct {
			after, upTo int64
			from        string
			descending  bool
			limit       int
			want        string
		}{
			{0, 6, "", false, 9, "a.in a.out f.in f.out g.in g.out"},
			{0, 6, "", true, 9, "g.out g.in f.out f.in a.out a.in"},
			{0, 6, "", false, 3, "a.in a.out f.in +"},
			{0, 6, "", false, 6, "a.in a.out f.in f.out g.in g.out"},
			{0, 6, "", true, 5, "g.out g.in f.out f.in a.out +"},
			{0, 6, "a.out", false, 2, "f.in f.out +"},
			{0, 6, "f.in", true, 1, "a.out +"},
			{0, 6, "f.in", true, 2, "a.out a.in"},
			{0, 6, "a.in", true, 2, ""},
			{0, 6, "g.out", false, 2, ""},
			{1, 4, "", false, 9, "a.out f.in f.out"},
			{1, 4, "f.out", true, 9, "f.in a.out"},
			{2, 2, "", true, 9, ""},
			{0, 6, "b.in", false, 9, "not found"}, // of the thread below, but after the fork
			{1, 6, "a.in", false, 9, "not found"},
			{0, 4, "g.in", false, 9, "not found"},
			{0, 6, "none", true, 9, "not found"},
			{0, 6, "\x00", true, 9, "not found"},
		} {
			items, more, err := s.ListItems(t.Context(), owner, g.Thread, tt.after, tt.upTo, tt.from, tt.descending, tt.limit)
			got := idsOf(items)
			if more {
				got += " +"
			}
			if errors.Is(err, ErrNotFound) {
				got, err = "not found", nil
			}
			if got != tt.want || err != nil {
				t.Errorf("(%d, %d] from %q, descending %v, limit %d: got %q, %v, want %q", tt.after, tt.upTo, tt.from, tt.descending, tt.limit, got, err, tt.want)
			}
		}
	})
}

// Who pages by the ID of the last item comes to an end, also when one ID stands
// more than once.
func TestListItemsEnds(t *testing.T) {
	onEach(t, func(t *testing.T, open func() *Store) {
		s := open()
		turn := newTurn("a", "", 0)
		turn.Input = newItems("x", "y", "x", "z", "x", "w")
		r := commit(t, s, turn)
		for _, descending := range []bool{false, true} {
			from, pages := "", 0
			for more := true; more; pages++ {
				var items []Item
				var err error
				items, more, err = s.ListItems(t.Context(), owner, r.Thread, 0, r.Length, from, descending, 1)
				mustDo(t, err)
				if pages > 7 {
					t.Fatalf("descending %v: the pages have no end", descending)
				}
				if len(items) > 0 {
					from = items[0].ID
				}
			}
		}
	})
}

// A chain of many turns on one thread is one range.
func TestLongChain(t *testing.T) {
	s, err := Open(t.Context(), t.TempDir(), "")
	mustDo(t, err)
	defer s.Close()
	_, err = s.write.Exec("PRAGMA synchronous = OFF")
	mustDo(t, err)
	at := commit(t, s, newTurn("r0", "", 0))
	for i := 1; i < 1000; i++ {
		at = commit(t, s, newTurn("r"+strconv.Itoa(i), at.Thread, at.Length))
	}
	spans, err := s.spans(t.Context(), owner, at.Thread, 0, at.Length)
	if len(spans) != 1 || spans[0] != (span{at.Thread, 0, 2000}) || err != nil {
		t.Errorf("a line of 1,000 turns is read as %v, %v", spans, err)
	}
	items, err := s.Items(t.Context(), owner, at.Thread, 0, at.Length)
	if len(items) != 2000 || items[1999].ID != "r999.out" || err != nil {
		t.Errorf("%d items are read, %v, want 2,000", len(items), err)
	}
	for i := range 1000 { // from the front: what the later ones need stays
		mustDo(t, s.DeleteResponse(t.Context(), owner, "r"+strconv.Itoa(i)))
		if i == 500 {
			wantItems(t, s, at.Thread, 1998, at.Length, "r999.in r999.out")
		}
	}
	wantEmpty(t, s)
}

// Every query of stored state finds its rows by an index, whatever the number
// of rows. The queries are read from the code.
func TestQueriesUseIndexes(t *testing.T) {
	s, err := Open(t.Context(), t.TempDir(), "")
	mustDo(t, err)
	defer s.Close()
	queries := queriesIn(t, "threads.go", "responses.go", "runs.go", "conversations.go", "state_sweep.go")
	if len(queries) < 40 {
		t.Fatalf("only %d queries were found", len(queries))
	}
	scan := regexp.MustCompile(`^SCAN (threads|t|items|i|n|responses|response_events|conversations|c)\b`)
	for _, query := range queries {
		rows, err := s.read.Query("EXPLAIN QUERY PLAN "+query, make([]any, strings.Count(query, "$"))...)
		if err != nil {
			t.Errorf("%v in %s", err, query)
			continue
		}
		for rows.Next() {
			var id, parent, unused int
			var detail string
			mustDo(t, rows.Scan(&id, &parent, &unused, &detail))
			if scan.MatchString(detail) && !strings.Contains(detail, "INDEX") || strings.Contains(detail, "AUTOMATIC") {
				t.Errorf("%s: %s", detail, query)
			}
		}
		mustDo(t, rows.Err())
		rows.Close()
	}
}

// queriesIn returns the SQL statements in files: all strings, put together
// from constants, that begin with the name of one.
func queriesIn(t *testing.T, files ...string) (queries []string) {
	t.Helper()
	var parsed []*ast.File
	constants := map[string]ast.Expr{}
	for _, file := range files {
		f, err := parser.ParseFile(token.NewFileSet(), filepath.Clean(file), nil, 0)
		mustDo(t, err)
		parsed = append(parsed, f)
		ast.Inspect(f, func(n ast.Node) bool {
			if spec, ok := n.(*ast.ValueSpec); ok && len(spec.Values) == 1 {
				constants[spec.Names[0].Name] = spec.Values[0]
			}
			return true
		})
	}
	statement := regexp.MustCompile(`^(SELECT|INSERT|UPDATE|DELETE|WITH)\b`)
	for _, f := range parsed {
		ast.Inspect(f, func(n ast.Node) bool {
			e, ok := n.(ast.Expr)
			if !ok {
				return true
			}
			if _, isName := e.(*ast.Ident); isName {
				return true
			}
			text := textOf(e, constants)
			if !statement.MatchString(text) {
				return true
			}
			if whole := strings.HasSuffix(text, ")") || !strings.HasPrefix(text, "WITH"); whole && !strings.HasSuffix(text, "VALUES ") && text != chain {
				queries = append(queries, text)
			}
			return false
		})
	}
	return queries
}

// textOf is the value of a string expression; a list of placeholders has one.
func textOf(e ast.Expr, constants map[string]ast.Expr) string {
	switch e := e.(type) {
	case *ast.BasicLit:
		text, _ := strconv.Unquote(e.Value)
		return text
	case *ast.Ident:
		return textOf(constants[e.Name], constants)
	case *ast.BinaryExpr:
		return textOf(e.X, constants) + textOf(e.Y, constants)
	case *ast.CallExpr:
		if f, ok := e.Fun.(*ast.Ident); ok && f.Name == "placeholders" {
			return "($1)"
		}
	}
	return ""
}
