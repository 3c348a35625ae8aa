package store

import (
	"context"
	"database/sql/driver"
	"errors"
)

// connector opens connections that keep compiled statements: to compile one
// costs more than to run it.
type connector struct{ driver.Connector }

// Connect implements [driver.Connector].
func (c connector) Connect(ctx context.Context) (driver.Conn, error) {
	opened, err := c.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	inner, ok := opened.(driverConn)
	if !ok {
		return nil, errors.Join(errors.New("the driver's connections cannot do what is asked of them"), opened.Close())
	}
	return &conn{inner, map[string]statement{}}, nil
}

// driverConn is what is asked of a driver's connections.
type driverConn interface {
	driver.Conn
	driver.ConnBeginTx
	driver.ConnPrepareContext
	driver.Pinger
	driver.SessionResetter
	driver.Validator
}

// statement is what is asked of a driver's statements.
type statement interface {
	driver.Stmt
	driver.StmtExecContext
	driver.StmtQueryContext
}

// conn is a connection to the database. database/sql has it used by one
// goroutine at a time.
type conn struct {
	driverConn
	kept map[string]statement // by text; those that are in use are not among them
}

// A connection keeps so many statements, of texts that are no longer than
// that: lists of many values differ from one time to the next.
const (
	statementsKept   = 100
	longestStatement = 2 << 10
)

// take returns a statement, which is the caller's until it is given back.
func (c *conn) take(ctx context.Context, text string) (statement, error) {
	if s, ok := c.kept[text]; ok {
		delete(c.kept, text)
		return s, nil
	}
	made, err := c.PrepareContext(ctx, text)
	if err != nil {
		return nil, err
	}
	s, ok := made.(statement)
	if !ok {
		return nil, errors.Join(errors.New("the driver's statements cannot do what is asked of them"), made.Close())
	}
	return s, nil
}

// give takes a statement back.
func (c *conn) give(text string, s statement) error {
	if _, twice := c.kept[text]; twice || len(text) > longestStatement {
		return s.Close()
	}
	var err error
	if len(c.kept) >= statementsKept {
		for other, one := range c.kept { // any: what is often used comes back
			delete(c.kept, other)
			err = one.Close()
			break
		}
	}
	c.kept[text] = s
	return err
}

// ExecContext implements [driver.ExecerContext].
func (c *conn) ExecContext(ctx context.Context, text string, args []driver.NamedValue) (driver.Result, error) {
	s, err := c.take(ctx, text)
	if err != nil {
		return nil, err
	}
	result, err := s.ExecContext(ctx, args)
	return result, errors.Join(err, c.give(text, s))
}

// QueryContext implements [driver.QueryerContext].
func (c *conn) QueryContext(ctx context.Context, text string, args []driver.NamedValue) (driver.Rows, error) {
	s, err := c.take(ctx, text)
	if err != nil {
		return nil, err
	}
	found, err := s.QueryContext(ctx, args)
	if err != nil {
		return nil, errors.Join(err, c.give(text, s))
	}
	return &rows{found, func() error { return c.give(text, s) }}, nil
}

// Close implements [driver.Conn].
func (c *conn) Close() error {
	var failed error
	for _, s := range c.kept {
		failed = errors.Join(failed, s.Close())
	}
	return errors.Join(failed, c.driverConn.Close())
}

// rows are those of a kept statement, which is given back at their end.
type rows struct {
	driver.Rows
	give func() error
}

// Close implements [driver.Rows]. database/sql calls it once.
func (r *rows) Close() error { return errors.Join(r.Rows.Close(), r.give()) }
