// Package storetest gives tests a place on Postgres.
package storetest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/url"
	"os"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
)

// Postgres makes a schema that lasts as long as the test, and returns the URL
// under which it is the only one. It is on the server that
// LIMEN_TEST_POSTGRES_URL names; without one the test is skipped.
func Postgres(t *testing.T) string {
	t.Helper()
	server := os.Getenv("LIMEN_TEST_POSTGRES_URL")
	if server == "" {
		t.Skip("LIMEN_TEST_POSTGRES_URL is not set")
	}
	u, err := url.Parse(server)
	if err != nil {
		t.Fatal(err)
	}
	name := fmt.Sprintf("limen_test_%016x", rand.Uint64())
	do(t, server, "CREATE SCHEMA "+name)
	t.Cleanup(func() { do(t, server, "DROP SCHEMA "+name+" CASCADE") })
	query := u.Query()
	query.Set("search_path", name)
	u.RawQuery = query.Encode()
	return u.String()
}

func do(t *testing.T, server, statement string) {
	t.Helper()
	conn, err := pgconn.Connect(context.Background(), server)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	if _, err := conn.Exec(context.Background(), statement).ReadAll(); err != nil {
		t.Error(err)
	}
}
