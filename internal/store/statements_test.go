package store

import (
	"database/sql"
	"fmt"
	"strings"
	"testing"
)

// TestKeptStatements uses statements again on the one connection that writes:
// while another reads by the same text, after one failed, and after the table
// became another.
func TestKeptStatements(t *testing.T) {
	s, err := Open(t.Context(), t.TempDir(), "")
	mustDo(t, err)
	defer s.Close()
	exec := func(query string, args ...any) error {
		_, err := s.write.ExecContext(t.Context(), query, args...)
		return err
	}
	mustDo(t, exec("CREATE TABLE numbers (n BIGINT PRIMARY KEY, square BIGINT NOT NULL)"))
	const insert = "INSERT INTO numbers (n, square) VALUES ($1, $2)"
	for n := range 3 {
		mustDo(t, exec(insert, n, n*n))
		if err := exec(insert, n, nil); err == nil || !strings.Contains(err.Error(), "constraint failed") {
			t.Fatalf("a number twice: %v", err)
		}
	}

	const above = "SELECT n FROM numbers WHERE n >= $1 ORDER BY n"
	var seen []string
	mustDo(t, s.inTx(t.Context(), func(tx *sql.Tx) error {
		outer, err := tx.Query(above, 0)
		mustDo(t, err)
		defer outer.Close()
		for outer.Next() {
			var n int
			mustDo(t, outer.Scan(&n))
			inner, err := tx.Query(above, n)
			mustDo(t, err)
			for inner.Next() {
				var m int
				mustDo(t, inner.Scan(&m))
				seen = append(seen, fmt.Sprint(n, m))
				break // its statement is given back before its end
			}
			mustDo(t, inner.Close())
		}
		return outer.Err()
	}))
	if got := strings.Join(seen, ", "); got != "0 0, 1 1, 2 2" {
		t.Errorf("within one another, statements read %s", got)
	}

	const all = "SELECT * FROM numbers WHERE n = $1"
	var n, square, cube int
	mustDo(t, s.write.QueryRow(all, 2).Scan(&n, &square))
	mustDo(t, exec("ALTER TABLE numbers ADD COLUMN cube BIGINT NOT NULL DEFAULT 8"))
	mustDo(t, s.write.QueryRow(all, 2).Scan(&n, &square, &cube))
	if n != 2 || square != 4 || cube != 8 {
		t.Errorf("of the new table it read %d, %d, %d", n, square, cube)
	}
}

// TestStatementsAreBounded runs more statements than are kept, and long ones.
func TestStatementsAreBounded(t *testing.T) {
	s, err := Open(t.Context(), t.TempDir(), "")
	mustDo(t, err)
	defer s.Close()
	long := strings.Repeat(" ", longestStatement)
	for i := range 2 * statementsKept {
		var got int
		mustDo(t, s.write.QueryRow(fmt.Sprintf("SELECT %d + $1", i), 1).Scan(&got))
		mustDo(t, s.write.QueryRow(fmt.Sprintf("SELECT %d - $1%s", got, long), 1).Scan(&got))
		if got != i {
			t.Fatalf("%d became %d", i, got)
		}
	}
	c, err := s.write.Conn(t.Context())
	mustDo(t, err)
	defer c.Close()
	mustDo(t, c.Raw(func(driverConn any) error {
		kept := driverConn.(*conn).kept
		if len(kept) != statementsKept {
			t.Errorf("%d statements are kept, want %d", len(kept), statementsKept)
		}
		for text := range kept {
			if len(text) > longestStatement {
				t.Errorf("one of %d bytes is kept", len(text))
			}
		}
		return nil
	}))
}
