package command_test

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"waybill/domain"
	"waybill/handlers/command"
	"waybill/projections"
)

// put inserts into the outbox as an application does.
func (d desk) put(q interface {
	QueryRow(sql string, args ...any) pgx.Row
}, sql string, args ...any) (id int64) {
	d.t.Helper()
	if err := q.QueryRow(sql, args...).Scan(&id); err != nil {
		d.t.Fatal(err)
	}
	return id
}

// plain runs statements outside any transaction of the test's.
type plain struct{ desk }

func (p plain) QueryRow(sql string, args ...any) pgx.Row {
	return p.db.Super().QueryRow(p.t.Context(), sql, args...)
}

const insertOutbox = `insert into waybill.outbox (endpoint_id, event_type, payload, idempotency_key) values ($1, $2, $3, $4) returning id`

// left are the outbox's rows and the codes that they stay with.
func (d desk) left() map[int64]string {
	d.t.Helper()
	rows, err := d.db.Super().Query(d.t.Context(), "select id, coalesce(error, '') from waybill.outbox")
	if err != nil {
		d.t.Fatal(err)
	}
	left := map[int64]string{}
	var id int64
	var code string
	if _, err := pgx.ForEachRow(rows, []any{&id, &code}, func() error { left[id] = code; return nil }); err != nil {
		d.t.Fatal(err)
	}
	return left
}

// deliveries are the tenant's, newest first.
func (d desk) deliveries() []projections.Delivery {
	d.t.Helper()
	list, err := d.Deliveries(d.t.Context(), domain.DefaultTenant, projections.DeliveryFilter{}, uuid.Nil, 500)
	if err != nil {
		d.t.Fatal(err)
	}
	return list
}

// TestOutboxMovesWhatCommits: rows go into the log once their transaction has
// committed, rolled-back ones never, and an open one holds up nobody else's.
func TestOutboxMovesWhatCommits(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	e := d.endpoint()
	o := command.Outbox{Ledger: d.Ledger}
	gone, err := d.db.Super().Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := gone.Exec(t.Context(), insertOutbox, e, "t.a", []byte("rolled back"), nil); err != nil {
		t.Fatal(err)
	}
	if err := gone.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	open, err := d.db.Super().Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := open.Exec(t.Context(), insertOutbox, e, "t.a", []byte("open"), nil); err != nil {
		t.Fatal(err)
	}
	d.put(plain{d}, insertOutbox, e, "t.a", []byte("committed"), "k")
	if n, err := o.Move(t.Context()); n != 1 || err != nil {
		t.Errorf("moved %d: %v", n, err)
	}
	if list := d.deliveries(); len(list) != 1 || list[0].IdempotencyKey != "k" || list[0].State != domain.StatePending {
		t.Errorf("%+v", list)
	}
	if err := open.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n, err := o.Move(t.Context()); n != 1 || err != nil || len(d.deliveries()) != 2 || len(d.left()) != 0 {
		t.Errorf("moved %d: %v, left %v", n, err, d.left())
	}
	d.verify()
}

// TestOutboxRefusals: a refused row stays with its code, and its neighbours go on; a
// repeated key is moved into nothing new.
func TestOutboxRefusals(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	e := d.endpoint()
	p := plain{d}
	want := map[int64]string{
		d.put(p, insertOutbox, uuid.New(), "t.a", []byte("x"), nil):                                                  domain.ErrEndpointNotFound.Code,
		d.put(p, insertOutbox, e, "a b", []byte("x"), nil):                                                           domain.ErrInvalidRequest.Code,
		d.put(p, insertOutbox, e, "t.a", []byte("x"), ""):                                                            domain.ErrIdempotencyKey.Code,
		d.put(p, insertOutbox, e, "t.a", []byte("larger than the limit"), nil):                                       domain.ErrPayloadTooLarge.Code,
		d.put(p, insertOutbox, nil, "", []byte("x"), nil):                                                            domain.ErrInvalidRequest.Code,
		d.put(p, `insert into waybill.outbox (tenant, event_type, payload) values ('nobody', 't', '') returning id`): domain.ErrTenantNotFound.Code,
	}
	d.put(p, insertOutbox, e, "t.a", []byte("good"), "k")
	d.put(p, insertOutbox, e, "t.a", []byte("good"), "k")
	want[d.put(p, insertOutbox, e, "t.a", []byte("other"), "k")] = domain.ErrIdempotencyConflict.Code
	d.put(p, insertOutbox, nil, "t.a", []byte("good"), nil)
	o := command.Outbox{Ledger: d.Ledger, MaxPayload: 10}
	if n, err := o.Move(t.Context()); n != 10 || err != nil {
		t.Errorf("moved %d: %v", n, err)
	}
	if got := d.left(); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("left %v, want %v", got, want)
	}
	if n, err := o.Move(t.Context()); n != 0 || err != nil || len(d.deliveries()) != 2 {
		t.Errorf("again: moved %d, %v; %d deliveries", n, err, len(d.deliveries()))
	}
	d.verify()
}

// TestOutboxFromManyProcesses: each row is moved once.
func TestOutboxFromManyProcesses(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	e := d.endpoint()
	if _, err := d.db.Super().Exec(t.Context(), `insert into waybill.outbox (endpoint_id, payload, idempotency_key)
		select $1, convert_to(n::text, 'UTF8'), n::text from generate_series(1, 1500) n`, e); err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for range 6 {
		wg.Go(func() {
			for {
				n, err := (command.Outbox{Ledger: d.Ledger}).Move(t.Context())
				if err != nil {
					t.Error(err)
				}
				if n == 0 {
					return
				}
			}
		})
	}
	wg.Wait()
	for { // a row that another held at the last look
		n, err := (command.Outbox{Ledger: d.Ledger}).Move(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if n == 0 {
			break
		}
	}
	var deliveries, keys int
	if err := d.db.App.QueryRow(t.Context(), "select count(*), count(distinct idempotency_key) from waybill.deliveries").Scan(&deliveries, &keys); err != nil || deliveries != 1500 || keys != 1500 {
		t.Errorf("%d deliveries of %d keys: %v", deliveries, keys, err)
	}
	d.verify()
}

// TestHeldKeyInTheOutboxDelaysNobodyElse: a key that an open transaction holds costs
// its row a turn, and not the others.
func TestHeldKeyInTheOutboxDelaysNobodyElse(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	e := d.endpoint()
	tx, err := d.db.Super().Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), `insert into waybill.idempotency_keys (scope, key, tenant, message_id, fingerprint, created_at)
		values ($1, 'held', 'default', gen_random_uuid(), '', now())`, e); err != nil {
		t.Fatal(err)
	}
	held := d.put(plain{d}, insertOutbox, e, "t.a", []byte("x"), "held")
	for i := range 5 {
		d.put(plain{d}, insertOutbox, e, "t.a", []byte("x"), fmt.Sprint("free-", i))
	}
	o := command.Outbox{Ledger: d.Ledger}
	for range 3 {
		if _, err := o.Move(t.Context()); err != nil && !errors.Is(err, t.Context().Err()) {
			t.Log("as expected of the held row:", err)
		}
	}
	if got := d.left(); len(got) != 1 || !slices.Contains([]string{""}, got[held]) {
		t.Errorf("left %v", got)
	}
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n, err := o.Move(t.Context()); n != 1 || err != nil {
		t.Errorf("moved %d: %v", n, err)
	}
}
