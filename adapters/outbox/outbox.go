// Package outbox hands in messages from a Go program inside a transaction of its own,
// so that the program's row and the delivery commit together or not at all.
//
//	tx, err := pool.Begin(ctx)                     // pgx, or db.BeginTx for database/sql
//	…                                              // the program's own statements
//	err = outbox.Insert(ctx, outbox.Pgx(tx), outbox.Message{EndpointID: id, Payload: body})
//	err = tx.Commit(ctx)
//
// A running waybill moves the row into the log within a moment of the commit. What it
// refuses stays in the table, with the code in the column error.
package outbox

import (
	"context"
	"database/sql"
	_ "embed"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgconn"

	"waybill/projections"
)

//go:embed sql/insert_outbox.sql
var insertOutbox string

// Message is what is handed in. Payload is sent as it is; the other members may be left
// out, but one of EndpointID and EventType is needed.
type Message struct {
	Tenant         string    // empty: default
	EndpointID     uuid.UUID // zero: every endpoint of the tenant that wants EventType
	EventType      string
	ContentType    string // empty: application/json
	Payload        []byte
	IdempotencyKey string    // empty: none; 1 to 255 printable ASCII characters
	OrderingKey    string    // empty: none
	NotBefore      time.Time // zero: at once
	Schema         string    // the ledger's; empty: waybill
}

// Execer runs one statement in the caller's transaction; see [Pgx] and [SQL].
type Execer func(ctx context.Context, statement string, args ...any) error

// Pgx runs statements in a pgx transaction, connection or pool.
func Pgx(tx interface {
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
}) Execer {
	return func(ctx context.Context, statement string, args ...any) error {
		_, err := tx.Exec(ctx, statement, args...)
		return err
	}
}

// SQL runs statements in a database/sql transaction, connection or pool.
func SQL(tx interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
}) Execer {
	return func(ctx context.Context, statement string, args ...any) error {
		_, err := tx.ExecContext(ctx, statement, args...)
		return err
	}
}

// Insert hands the message in, as part of the transaction.
func Insert(ctx context.Context, in Execer, m Message) error {
	schema := projections.Schema(m.Schema)
	if m.Schema != "" {
		if err := schema.Check(); err != nil {
			return err
		}
	}
	if m.Payload == nil {
		m.Payload = []byte{}
	}
	var endpoint any
	if m.EndpointID != uuid.Nil {
		endpoint = m.EndpointID.String()
	}
	err := in(ctx, schema.SQL(insertOutbox), or(m.Tenant, "default"), endpoint, m.EventType, or(m.ContentType, "application/json"),
		m.Payload, null(m.IdempotencyKey), null(m.OrderingKey), sql.NullTime{Time: m.NotBefore, Valid: !m.NotBefore.IsZero()})
	if err != nil {
		return fmt.Errorf("insert into the outbox: %w", err)
	}
	return nil
}

func or(s, other string) string {
	if s == "" {
		return other
	}
	return s
}

func null(s string) sql.NullString { return sql.NullString{String: s, Valid: s != ""} }
