package store

import (
	"bytes"
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/limen-gateway/limen/internal/store/storetest"
)

// onPostgres opens a database of the test's own.
func onPostgres(t *testing.T, parameters ...string) *Store {
	t.Helper()
	u, err := url.Parse(storetest.Postgres(t))
	mustDo(t, err)
	query := u.Query()
	for _, parameter := range parameters {
		name, value, _ := strings.Cut(parameter, "=")
		query.Set(name, value)
	}
	u.RawQuery = query.Encode()
	s, err := Open(t.Context(), "", u.String())
	mustDo(t, err)
	t.Cleanup(func() { s.Close() })
	return s
}

// TestPostgresValues has every type go there and back, by a statement that is
// not prepared and by one that is.
func TestPostgresValues(t *testing.T) {
	s := onPostgres(t)
	s.write.SetMaxOpenConns(1)
	_, err := s.write.ExecContext(t.Context(), `CREATE TABLE v (t TEXT, n BIGINT, b BOOLEAN, y BYTEA);
		CREATE INDEX v_n ON v (n)`)
	mustDo(t, err)
	type row struct {
		t sql.NullString
		n sql.NullInt64
		b sql.NullBool
		y []byte
	}
	for i, want := range []row{
		{sql.NullString{String: "ä\n'\\x", Valid: true}, sql.NullInt64{Int64: -1 << 63, Valid: true}, sql.NullBool{Bool: true, Valid: true}, []byte("\x00\xff\\x")},
		{sql.NullString{Valid: true}, sql.NullInt64{Int64: 1<<63 - 1, Valid: true}, sql.NullBool{Valid: true}, []byte{}},
		{},
	} {
		result, err := s.write.ExecContext(t.Context(), "INSERT INTO v (t, n, b, y) VALUES ($1, $2, $3, $4)", want.t, want.n, want.b, want.y)
		mustDo(t, err)
		if n, _ := result.RowsAffected(); n != 1 {
			t.Errorf("%d rows inserted, want 1", n)
		}
		var got row
		mustDo(t, s.read.QueryRowContext(t.Context(), "DELETE FROM v WHERE $1 = 1 RETURNING t, n, b, y", 1).Scan(&got.t, &got.n, &got.b, &got.y))
		if got.t != want.t || got.n != want.n || got.b != want.b || !bytes.Equal(got.y, want.y) || (got.y == nil) != (want.y == nil) {
			t.Errorf("row %d: got %v, want %v", i, got, want)
		}
	}
	var small int
	mustDo(t, s.read.QueryRow("SELECT -7").Scan(&small))
	if small != -7 {
		t.Errorf("got %d, want -7", small)
	}
	if err := s.read.QueryRow("SELECT 1.5").Scan(&small); err == nil || !strings.Contains(err.Error(), "the schema does not have") {
		t.Errorf("a number with a fraction: %v", err)
	}
	if _, err := s.write.Exec("INSERT INTO v (n) VALUES ($1)", time.Now()); err == nil || !strings.Contains(err.Error(), "value 1 is a time.Time") {
		t.Errorf("a time: %v", err)
	}
}

// TestPostgresPrepares counts the statements that the server keeps: those that
// came twice, and none where the URL says so.
func TestPostgresPrepares(t *testing.T) {
	for parameter, want := range map[string]int{"application_name=x": 1, "default_query_exec_mode=cache_statement": 1, "default_query_exec_mode=exec": 0} {
		s := onPostgres(t, parameter, "statement_cache_capacity=100", "description_cache_capacity=100")
		s.write.SetMaxOpenConns(1)
		for range 3 {
			_, err := s.write.ExecContext(t.Context(), "UPDATE settings SET value = $1", "v")
			mustDo(t, err)
		}
		_, err := s.write.ExecContext(t.Context(), "UPDATE settings SET name = $1", "once")
		mustDo(t, err)
		var got int
		mustDo(t, s.read.QueryRow("SELECT COUNT(*) FROM pg_prepared_statements WHERE statement LIKE 'UPDATE settings%'").Scan(&got))
		if got != want {
			t.Errorf("%s: %d statements are prepared, want %d", parameter, got, want)
		}
	}
}

// TestPostgresFailures uses one connection again after what failed on it.
func TestPostgresFailures(t *testing.T) {
	s := onPostgres(t)
	s.write.SetMaxOpenConns(1)
	exec := func(query string, args ...any) error {
		_, err := s.write.ExecContext(t.Context(), query, args...)
		return err
	}
	mustDo(t, exec("CREATE TABLE numbers (n BIGINT PRIMARY KEY, square BIGINT NOT NULL)"))
	const insert = "INSERT INTO numbers (n, square) VALUES ($1, $2)"
	for n := range 4 {
		mustDo(t, exec(insert, n, n*n))
		if err := exec(insert, n, 1); err == nil || !strings.Contains(err.Error(), "SQLSTATE 23505") {
			t.Fatalf("a number twice: %v", err)
		}
	}
	if err := s.read.QueryRow("SELECT n / (n - n) FROM numbers").Scan(new(int)); err == nil || !strings.Contains(err.Error(), "division by zero") {
		t.Errorf("a division by zero: %v", err)
	}
	if err := s.read.QueryRow("SELECT n FROM numbers WHERE n > $1", 99).Scan(new(int)); !errors.Is(err, sql.ErrNoRows) {
		t.Errorf("no row: %v", err)
	}

	// What comes late in a result is an error of it, and not its end.
	rows, err := s.read.Query("SELECT 1 / (9000 - i) FROM generate_series(1, 10000) AS i")
	mustDo(t, err)
	read := 0
	for rows.Next() {
		read++
	}
	if err := rows.Err(); err == nil || read == 0 || !strings.Contains(err.Error(), "division by zero") {
		t.Errorf("after %d rows: %v", read, err)
	}
	rows.Close()

	// A transaction with a failed statement does not commit.
	err = s.inTx(t.Context(), func(tx *sql.Tx) error {
		_, err := tx.Exec(insert, 9, 81)
		mustDo(t, err)
		_, err = tx.Exec(insert, 9, 81)
		if err == nil {
			t.Error("a number twice in a transaction")
		}
		return nil
	})
	if err == nil || !strings.Contains(err.Error(), "rolled back") {
		t.Errorf("a commit after a failure: %v", err)
	}

	// A table that has become another fails a prepared statement once.
	const all = "SELECT * FROM numbers WHERE n = $1"
	var n, square, cube int
	for range 2 {
		mustDo(t, s.read.QueryRow(all, 2).Scan(&n, &square))
	}
	mustDo(t, exec("ALTER TABLE numbers ADD COLUMN cube BIGINT NOT NULL DEFAULT 8"))
	if err := s.read.QueryRow(all, 2).Scan(&n, &square, &cube); err == nil || !strings.Contains(err.Error(), "SQLSTATE 0A000") {
		t.Errorf("another table: %v", err)
	}
	mustDo(t, s.read.QueryRow(all, 2).Scan(&n, &square, &cube))
	if n != 2 || square != 4 || cube != 8 {
		t.Errorf("got %d, %d, %d", n, square, cube)
	}

	// What its client no longer waits for ends, and the connection with it.
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := s.write.ExecContext(ctx, "SELECT pg_sleep($1)", 60); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a deadline: %v", err)
	}
	mustDo(t, exec(insert, 10, 100))
}

// TestPostgresConnectionGone has the server end a connection that rests.
func TestPostgresConnectionGone(t *testing.T) {
	s := onPostgres(t)
	s.read.SetMaxOpenConns(2)
	victim, err := s.read.Conn(t.Context())
	mustDo(t, err)
	var pid int64
	mustDo(t, victim.QueryRowContext(t.Context(), "SELECT pg_backend_pid()").Scan(&pid))
	other, err := s.read.Conn(t.Context())
	mustDo(t, err)
	var gone bool
	mustDo(t, other.QueryRowContext(t.Context(), "SELECT pg_terminate_backend($1::int, 5000)", pid).Scan(&gone))
	if !gone {
		t.Fatal("the server does not end the connection")
	}
	mustDo(t, victim.Raw(func(c any) error {
		c.(*conn).driverConn.(*postgresConn).used = time.Time{} // it rested for long
		return nil
	}))
	mustDo(t, victim.Close())
	for range 3 {
		mustDo(t, s.Ping(t.Context()))
		mustDo(t, s.read.QueryRow("SELECT 1").Scan(new(int)))
	}
	mustDo(t, other.Close())
	if _, err := (&postgresConn{}).BeginTx(t.Context(), driver.TxOptions{ReadOnly: true}); err == nil {
		t.Error("an option of a transaction is ignored")
	}
}
