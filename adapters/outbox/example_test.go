package outbox_test

import (
	"context"
	"database/sql"
	"os"
	"testing"

	"github.com/jackc/pgx/v5"

	"waybill/adapters/outbox"
	"waybill/adapters/postgres/postgrestest"
)

// TestExamplesRun runs the examples below against a real database.
func TestExamplesRun(t *testing.T) {
	db := postgrestest.New(t)
	if _, err := db.Super().Exec(t.Context(), `create table orders (id int, paid boolean); insert into orders values (4711, false);
		grant select, update on orders to waybill_test_app`); err != nil {
		t.Fatal(err)
	}
	t.Setenv("APP_DATABASE_URL", db.URL)
	Example_pgx()
	Example_sql()
	var rows int
	var paid bool
	err := db.Super().QueryRow(t.Context(), `select count(*), (select paid from orders) from waybill.outbox
		where event_type = 'order.paid' and payload = '{"order":4711}'`).Scan(&rows, &paid)
	if err != nil || rows != 2 || !paid {
		t.Errorf("%d rows, paid %v: %v", rows, paid, err)
	}
}

// With pgx the message commits with the program's own row.
func Example_pgx() {
	ctx := context.Background()
	conn, err := pgx.Connect(ctx, os.Getenv("APP_DATABASE_URL"))
	if err != nil {
		return
	}
	_ = pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "update orders set paid = true where id = $1", 4711); err != nil {
			return err
		}
		return outbox.Insert(ctx, outbox.Pgx(tx), outbox.Message{
			EventType: "order.paid", IdempotencyKey: "order-4711-paid", Payload: []byte(`{"order":4711}`),
		})
	})
}

// With database/sql likewise.
func Example_sql() {
	ctx := context.Background()
	db, err := sql.Open("pgx", os.Getenv("APP_DATABASE_URL"))
	if err != nil {
		return
	}
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return
	}
	defer func() { _ = tx.Rollback() }()
	err = outbox.Insert(ctx, outbox.SQL(tx), outbox.Message{EventType: "order.paid", Payload: []byte(`{"order":4711}`)})
	if err == nil {
		_ = tx.Commit()
	}
}
