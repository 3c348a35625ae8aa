package store

import (
	"context"
	"database/sql/driver"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// postgres opens connections to Postgres by pgconn, which speaks the protocol.
// The driver for database/sql that pgx has knows every type of Postgres, which
// makes a tenth of the binary; the schema has four.
type postgres struct{ url string }

// Connect implements [driver.Connector]. A file that the URL names is read
// each time.
func (p postgres) Connect(ctx context.Context) (driver.Conn, error) {
	config, err := pgconn.ParseConfig(p.url)
	if err != nil {
		return nil, err
	}
	// These are pgx's own, which some have for a pooler before the server: it
	// may give each transaction another connection.
	mode := config.RuntimeParams["default_query_exec_mode"]
	for _, name := range []string{"default_query_exec_mode", "statement_cache_capacity", "description_cache_capacity"} {
		delete(config.RuntimeParams, name)
	}
	opened, err := pgconn.ConnectConfig(ctx, config)
	if err != nil {
		return nil, err
	}
	return &postgresConn{pg: opened, prepares: mode == "" || mode == "cache_statement", used: time.Now()}, nil
}

// Driver implements [driver.Connector].
func (p postgres) Driver() driver.Driver { return p }

// Open implements [driver.Driver].
func (p postgres) Open(url string) (driver.Conn, error) {
	return postgres{url}.Connect(context.Background())
}

// postgresConn is a connection to Postgres.
type postgresConn struct {
	pg       *pgconn.PgConn
	prepares bool      // statements may outlive a transaction
	prepared int       // so many statements, which are named by their number
	used     time.Time // when a use of the connection last began
}

const (
	// restedTime is after how long a connection that rests is tried before it
	// is used.
	restedTime = time.Second
	// closeTime is how long the server has for a farewell.
	closeTime = 5 * time.Second
)

// PrepareContext implements [driver.ConnPrepareContext].
func (c *postgresConn) PrepareContext(_ context.Context, text string) (driver.Stmt, error) {
	return &postgresStatement{conn: c, text: text}, nil
}

// Prepare implements [driver.Conn].
func (c *postgresConn) Prepare(text string) (driver.Stmt, error) {
	return c.PrepareContext(context.Background(), text)
}

// Begin implements [driver.Conn].
func (c *postgresConn) Begin() (driver.Tx, error) {
	return c.BeginTx(context.Background(), driver.TxOptions{})
}

// BeginTx implements [driver.ConnBeginTx].
func (c *postgresConn) BeginTx(ctx context.Context, options driver.TxOptions) (driver.Tx, error) {
	if options != (driver.TxOptions{}) {
		return nil, errors.New("transactions have no options")
	}
	if _, err := c.command(ctx, "BEGIN"); err != nil {
		c.Close()
		return nil, err
	}
	return postgresTx{ctx, c}, nil
}

// Ping implements [driver.Pinger].
func (c *postgresConn) Ping(ctx context.Context) error {
	if err := c.pg.Ping(ctx); err != nil {
		c.Close()
		return driver.ErrBadConn
	}
	return nil
}

// ResetSession implements [driver.SessionResetter].
func (c *postgresConn) ResetSession(ctx context.Context) error {
	if c.pg.IsClosed() || c.pg.TxStatus() != 'I' {
		return driver.ErrBadConn
	}
	rested := time.Since(c.used)
	c.used = time.Now()
	if rested > restedTime {
		return c.Ping(ctx)
	}
	return nil
}

// IsValid implements [driver.Validator].
func (c *postgresConn) IsValid() bool { return !c.pg.IsClosed() }

// Close implements [driver.Conn].
func (c *postgresConn) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), closeTime)
	defer cancel()
	return c.pg.Close(ctx)
}

// command runs statements without values, of which there may be several.
func (c *postgresConn) command(ctx context.Context, text string) (pgconn.CommandTag, error) {
	var tag pgconn.CommandTag
	results := c.pg.Exec(ctx, text)
	for results.NextResult() {
		tag, _ = results.ResultReader().Close() // Close has the failure of any
	}
	return tag, retriable(results.Close())
}

// retriable makes a failure before anything was sent one after which
// database/sql takes another connection.
func retriable(err error) error {
	if pgconn.SafeToRetry(err) {
		return driver.ErrBadConn
	}
	return err
}

// postgresTx is a transaction. It has the context that it began with because
// its methods are given none.
type postgresTx struct {
	ctx  context.Context
	conn *postgresConn
}

// Commit implements [driver.Tx].
func (t postgresTx) Commit() error {
	tag, err := t.conn.command(t.ctx, "COMMIT")
	switch {
	case err != nil:
		t.conn.Close()
		return err
	case tag.String() != "COMMIT":
		return errors.New("the transaction was rolled back, because a statement of it had failed")
	}
	return nil
}

// Rollback implements [driver.Tx].
func (t postgresTx) Rollback() error {
	_, err := t.conn.command(t.ctx, "ROLLBACK")
	if err != nil {
		t.conn.Close()
	}
	return err
}

// postgresStatement is a statement. The server prepares it when it comes for
// the second time: the first takes one round trip, as all others but that do.
type postgresStatement struct {
	conn *postgresConn
	text string
	used bool
	name string // at the server; empty when it is not prepared
}

// Close implements [driver.Stmt].
func (s *postgresStatement) Close() error {
	if s.name == "" || s.conn.pg.IsClosed() {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), closeTime)
	defer cancel()
	err := s.conn.pg.Deallocate(ctx, s.name)
	s.name = ""
	return err
}

// NumInput implements [driver.Stmt]: the server counts.
func (s *postgresStatement) NumInput() int { return -1 }

// Exec implements [driver.Stmt], which database/sql asks for contexts' sake.
func (s *postgresStatement) Exec([]driver.Value) (driver.Result, error) {
	return nil, errors.ErrUnsupported
}

// Query implements [driver.Stmt], as Exec does.
func (s *postgresStatement) Query([]driver.Value) (driver.Rows, error) {
	return nil, errors.ErrUnsupported
}

// ExecContext implements [driver.StmtExecContext].
func (s *postgresStatement) ExecContext(ctx context.Context, args []driver.NamedValue) (driver.Result, error) {
	if len(args) == 0 {
		tag, err := s.conn.command(ctx, s.text)
		return driver.RowsAffected(tag.RowsAffected()), err
	}
	result, err := s.run(ctx, args)
	if err != nil {
		return nil, err
	}
	tag, err := result.Close()
	if err != nil {
		return nil, s.failed(err)
	}
	return driver.RowsAffected(tag.RowsAffected()), nil
}

// QueryContext implements [driver.StmtQueryContext].
func (s *postgresStatement) QueryContext(ctx context.Context, args []driver.NamedValue) (driver.Rows, error) {
	result, err := s.run(ctx, args)
	if err != nil {
		return nil, err
	}
	rows := &postgresRows{result: result, more: result.NextRow()} // most failures come with the first row
	for _, field := range result.FieldDescriptions() {
		rows.names = append(rows.names, field.Name)
	}
	if !rows.more {
		if err := rows.Close(); err != nil {
			return nil, s.failed(err)
		}
	}
	return rows, nil
}

// run sends the statement. Values of rows come in their binary form.
func (s *postgresStatement) run(ctx context.Context, args []driver.NamedValue) (*pgconn.ResultReader, error) {
	values, forms, err := encodeValues(args)
	if err != nil {
		return nil, err
	}
	if s.used && s.name == "" && s.conn.prepares {
		name := "limen" + strconv.Itoa(s.conn.prepared)
		if _, err := s.conn.pg.Prepare(ctx, name, s.text, nil); err != nil {
			return nil, retriable(err)
		}
		s.name = name
		s.conn.prepared++
	}
	s.used = true
	if s.name == "" {
		return s.conn.pg.ExecParams(ctx, s.text, values, nil, forms, []int16{binaryForm}), nil
	}
	return s.conn.pg.ExecPrepared(ctx, s.name, values, forms, []int16{binaryForm}), nil
}

// failed is told of a failure, after which the statement is prepared anew: the
// table may have become another.
func (s *postgresStatement) failed(err error) error {
	return errors.Join(retriable(err), s.Close())
}

// postgresRows are the rows of a result, of which the first has been read.
type postgresRows struct {
	result *pgconn.ResultReader
	names  []string
	more   bool // there is a row
	given  bool // that row has been given
}

// Columns implements [driver.Rows].
func (r *postgresRows) Columns() []string { return r.names }

// Close implements [driver.Rows].
func (r *postgresRows) Close() error {
	_, err := r.result.Close()
	return err
}

// Next implements [driver.Rows].
func (r *postgresRows) Next(row []driver.Value) error {
	if r.given {
		r.more = r.result.NextRow()
	}
	r.given = true
	if !r.more {
		if err := r.Close(); err != nil {
			return err
		}
		return io.EOF
	}
	fields := r.result.FieldDescriptions()
	for i, raw := range r.result.Values() {
		var err error
		if row[i], err = decodeValue(fields[i].DataTypeOID, raw); err != nil {
			return fmt.Errorf("column %s: %w", fields[i].Name, err)
		}
	}
	return nil
}

// The forms of a value.
const (
	textForm   = 0
	binaryForm = 1
)

// The types that rows have, by the numbers that Postgres gives them.
const (
	typeBool  = 16
	typeBytea = 17
	typeInt8  = 20
	typeInt4  = 23
	typeText  = 25
)

// encodeValues are a statement's values, whose types the server knows: it reads
// the text of any. Bytes are sent as they are.
func encodeValues(args []driver.NamedValue) (values [][]byte, forms []int16, err error) {
	values, forms = make([][]byte, len(args)), make([]int16, len(args))
	texts := make([]byte, 0, 16*len(args))
	for i := range args {
		start := len(texts)
		switch v := args[i].Value.(type) {
		case nil:
			continue
		case []byte:
			values[i], forms[i] = v, binaryForm
			continue
		case string:
			texts = append(texts, v...)
		case int64:
			texts = strconv.AppendInt(texts, v, 10)
		case bool:
			texts = strconv.AppendBool(texts, v)
		default:
			return nil, nil, fmt.Errorf("value %d is a %T", i+1, v)
		}
		values[i], forms[i] = texts[start:], textForm
	}
	return values, forms, nil
}

// decodeValue is a value of a row. It is good until the next row is read.
func decodeValue(of uint32, raw []byte) (driver.Value, error) {
	switch {
	case raw == nil:
		return nil, nil
	case of == typeText:
		return string(raw), nil
	case of == typeBytea:
		return raw, nil
	case of == typeInt8 && len(raw) == 8:
		return int64(binary.BigEndian.Uint64(raw)), nil
	case of == typeInt4 && len(raw) == 4:
		return int64(int32(binary.BigEndian.Uint32(raw))), nil
	case of == typeBool && len(raw) == 1:
		return raw[0] != 0, nil
	}
	return nil, fmt.Errorf("%d bytes of type %d, which the schema does not have", len(raw), of)
}
