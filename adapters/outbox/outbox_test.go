package outbox_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"

	"waybill/adapters/outbox"
	"waybill/adapters/postgres"
	"waybill/adapters/postgres/postgrestest"
)

// TestInsertIsPartOfTheTransaction: with either driver, under a role that may only hand
// in, a rolled-back message is none and a committed one is as it was given.
func TestInsertIsPartOfTheTransaction(t *testing.T) {
	t.Parallel()
	db := postgrestest.New(t)
	if _, err := db.Super().Exec(t.Context(), `create table orders (id int); grant insert on orders to waybill_test_app;
		revoke all on waybill.outbox from waybill_test_app`); err != nil {
		t.Fatal(err)
	}
	if err := postgres.Migrate(t.Context(), db.OwnerURL, postgres.MigrateOptions{OutboxRole: "waybill_test_app"}); err != nil {
		t.Fatal(err)
	}
	endpoint, later := uuid.New(), time.Now().Add(time.Hour).UTC().Truncate(time.Microsecond)
	full := outbox.Message{Tenant: "shop", EndpointID: endpoint, EventType: "order.paid", ContentType: "text/plain",
		Payload: []byte("\x00\xff"), IdempotencyKey: "k", OrderingKey: "o", NotBefore: later}
	for _, commit := range []bool{false, true} {
		inPgx(t, db, full, commit)
		inSQL(t, db, outbox.Message{EventType: "order.paid"}, commit)
	}
	rows, err := db.Super().Query(t.Context(), `select tenant, endpoint_id, event_type, content_type, payload, idempotency_key,
		ordering_key, not_before from waybill.outbox order by id`)
	if err != nil {
		t.Fatal(err)
	}
	got, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (string, error) {
		v, err := row.Values()
		return fmt.Sprint(v), err
	})
	want := []string{
		fmt.Sprint([]any{"shop", [16]byte(endpoint), "order.paid", "text/plain", []byte("\x00\xff"), "k", "o", later}),
		fmt.Sprint([]any{"default", nil, "order.paid", "application/json", []byte{}, nil, nil, nil}),
	}
	if err != nil || fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got\n%v\nwant\n%v\n%v", got, want, err)
	}
	for _, sql := range []string{"select from waybill.outbox", "update waybill.outbox set error = 'x'", "delete from waybill.outbox",
		"insert into waybill.outbox (payload, error) values ('', 'x')"} {
		if _, err := db.App.Exec(t.Context(), sql); err == nil {
			t.Errorf("a role that may only hand in may also: %s", sql)
		}
	}
}

func inPgx(t *testing.T, db *postgrestest.DB, m outbox.Message, commit bool) {
	t.Helper()
	tx, err := db.App.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), "insert into orders values (1)"); err != nil {
		t.Fatal(err)
	}
	if err := outbox.Insert(t.Context(), outbox.Pgx(tx), m); err != nil {
		t.Fatal(err)
	}
	end := tx.Rollback
	if commit {
		end = tx.Commit
	}
	if err := end(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func inSQL(t *testing.T, db *postgrestest.DB, m outbox.Message, commit bool) {
	t.Helper()
	pool := stdlib.OpenDBFromPool(db.App)
	defer func() { _ = pool.Close() }()
	tx, err := pool.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := outbox.Insert(t.Context(), outbox.SQL(tx), m); err != nil {
		t.Fatal(err)
	}
	end := tx.Rollback
	if commit {
		end = tx.Commit
	}
	if err := end(); err != nil {
		t.Fatal(err)
	}
}
