package worker_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"waybill/adapters/embedded"
	"waybill/adapters/postgres"
	"waybill/adapters/postgres/postgrestest"
	"waybill/adapters/secrets"
	"waybill/domain"
	"waybill/handlers/command"
)

// frailBench is a rig on a server of its own, which can be broken.
type frailBench struct {
	*rig
	server *embedded.Server
	super  *pgxpool.Pool
	vault  *secrets.Vault
	name   string // of the database
}

func newFrailBench(t *testing.T) *frailBench {
	t.Helper()
	server := postgrestest.Server(t, embedded.Config{})
	db := postgrestest.NewOn(t, server)
	vault, err := secrets.New()
	if err != nil {
		t.Fatal(err)
	}
	b := &frailBench{rig: &rig{t: t, db: db}, server: server, super: db.Super(), vault: vault}
	b.name = b.super.Config().ConnConfig.Database
	b.Ledger = b.ledger(8)
	b.submit = command.NewSubmitter(b.Ledger, command.SubmitOptions{Isolable: postgres.Isolable})
	t.Cleanup(b.submit.Close)
	return b
}

// ledger opens the ledger with a pool of its own.
func (b *frailBench) ledger(conns int32) *postgres.Ledger {
	b.t.Helper()
	pool, err := postgres.Connect(b.t.Context(), b.db.URL, postgres.ConnectOptions{MaxConns: conns})
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(pool.Close)
	return postgres.Open(pool, postgres.Config{Vault: b.vault})
}

// within waits until a condition holds.
func within(t testing.TB, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !holds(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%s: not within 20 s", what)
		}
	}
}

// submitSoon hands in n messages, again and again while the database is on its way back.
func (b *frailBench) submitSoon(to uuid.UUID, n int) []uuid.UUID {
	b.t.Helper()
	subs := make([]command.Submission, n)
	for i := range subs {
		subs[i] = command.Submission{EndpointID: to, EventType: "t.a", IdempotencyKey: uuid.NewString(), HasKey: true, Payload: []byte("x")}
	}
	ids := make([]uuid.UUID, n)
	within(b.t, "submitted", func() bool {
		by := command.Caller{Tenant: domain.DefaultTenant, Actor: "key:test"}
		for i, a := range b.submit.SubmitBatch(b.t.Context(), by, subs) {
			if a.Err != nil {
				return false
			}
			ids[i] = a.Deliveries[0].DeliveryID
		}
		return true
	})
	return ids
}

// must runs a statement as superuser, whose connections a restart has cut too.
func (b *frailBench) must(sql string) {
	b.t.Helper()
	var err error
	for range 10 {
		if _, err = b.super.Exec(b.t.Context(), sql); err == nil {
			return
		}
	}
	b.t.Fatalf("%s: %v", sql, err)
}

// delivered counts how many of the deliveries are; none while nobody answers.
func (b *frailBench) delivered(ids []uuid.UUID) (n int) {
	_ = b.super.QueryRow(b.t.Context(), "select count(*) from waybill.deliveries where id = any($1) and state = 'delivered'", ids).Scan(&n)
	return n
}

// cut ends every connection of the application, as a failover or a firewall does.
func (b *frailBench) cut() {
	b.t.Helper()
	b.must("select pg_terminate_backend(pid) from pg_stat_activity where usename = 'waybill_test_app'")
}

// lock holds the rows of deliveries until the transaction ends.
func (b *frailBench) lock(ids []uuid.UUID) pgx.Tx {
	b.t.Helper()
	tx, err := b.super.Begin(b.t.Context())
	if err == nil {
		_, err = tx.Exec(b.t.Context(), "select from waybill.deliveries where id = any($1) for update", ids)
	}
	if err != nil {
		b.t.Fatal(err)
	}
	return tx
}

// cancelUntil lets statements that wait for a lock end as their timeout would end them
// (57014), until it is told to stop.
func (b *frailBench) cancelUntil(stop <-chan struct{}) {
	for {
		select {
		case <-stop:
			return
		case <-time.After(20 * time.Millisecond):
			_, _ = b.super.Exec(context.Background(), "select pg_cancel_backend(pid) from pg_stat_activity where usename = 'waybill_test_app' and wait_event_type = 'Lock'")
		}
	}
}

func (b *frailBench) restart() {
	b.t.Helper()
	if err := b.server.Restart(b.t.Context()); err != nil {
		b.t.Fatal(err)
	}
}

// limitFiles lets no file of the server grow beyond so many bytes, or any number. The
// server meets that as it meets a full disk: it cannot extend a table. It is done in the
// server's own name, so that it works for root and for everybody, and mounts nothing.
func (b *frailBench) limitFiles(most string) {
	b.t.Helper()
	b.must(fmt.Sprintf(`copy (select pid from pg_stat_activity where pid <> pg_backend_pid() union select %d)
		to program 'while read p; do prlimit --pid $p --fsize=%s: || ! kill -0 $p || exit 1; done'`, b.server.PID(), most))
}

// fill makes the table of what receivers answered larger than a segment of the
// write-ahead log, which must stay writable, and returns its size in bytes.
func (b *frailBench) fill() string {
	b.t.Helper()
	b.must(`insert into waybill.exchanges (delivery_id, attempt, salt, excerpt, location, detail)
		select gen_random_uuid(), 1, '', convert_to(repeat(md5(i::text), 30), 'UTF8'), '', '' from generate_series(1, 20000) i`)
	var size int64
	if err := b.super.QueryRow(b.t.Context(), "select pg_relation_size('waybill.exchanges')").Scan(&size); err != nil {
		b.t.Fatal(err)
	}
	if size <= 16<<20 {
		b.t.Fatal(fmt.Sprint("the table has only ", size, " bytes"))
	}
	return fmt.Sprint(size)
}
