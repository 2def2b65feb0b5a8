package command_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"waybill/domain"
	"waybill/handlers/command"
	"waybill/projections"
)

// TestImportsAtOnce: several imports of the same lines at once take each over exactly
// once, rows are the fold of their events, and nothing of it is ever due.
func TestImportsAtOnce(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	e := d.endpoint()
	at, err := d.Now(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	batch := make([]command.Imported, 200)
	for i := range batch {
		batch[i] = command.Imported{IdempotencyKey: fmt.Sprint("k", i), DeliveredAt: at.After(-time.Hour), Line: i + 1}
	}
	var mu sync.Mutex
	var all command.ImportCount
	var runs sync.WaitGroup
	for range 4 {
		runs.Go(func() {
			n, err := command.Importer{Ledger: d}.Import(t.Context(), by, e, batch)
			if err != nil {
				t.Error(err)
			}
			mu.Lock()
			defer mu.Unlock()
			all.Add(n)
		})
	}
	runs.Wait()
	if all != (command.ImportCount{Imported: 200, Duplicates: 600}) {
		t.Errorf("%+v", all)
	}
	b, err := d.Claim(t.Context(), projections.ClaimRequest{Worker: "w", Lease: time.Minute, Batch: 10,
		From: []projections.ClaimQuota{{EndpointID: e, Limit: 10}}})
	if err != nil || len(b.Taken) > 0 {
		t.Errorf("claimed %d: %v", len(b.Taken), err)
	}
	d.verify()
	answer, err := d.submit.Submit(t.Context(), by, message(e, "k7", "whatever"))
	if err != nil || !answer.Duplicate || answer.Deliveries[0].State != domain.StateDelivered {
		t.Errorf("a submission under an imported key: %+v %v", answer, err)
	}
}

// TestImportWaitsForAHeldKey: an import waits for a transaction that holds one of its
// keys longer than a submission would, and then finds it taken or free.
func TestImportWaitsForAHeldKey(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	e := d.endpoint()
	at, err := d.Now(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	tx, err := d.db.App.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), `insert into waybill.idempotency_keys (scope, key, tenant, message_id, fingerprint, created_at)
		values ($1, 'k', 'default', gen_random_uuid(), '', now())`, e); err != nil {
		t.Fatal(err)
	}
	time.AfterFunc(time.Second, func() { _ = tx.Rollback(context.WithoutCancel(t.Context())) })
	n, err := command.Importer{Ledger: d}.Import(t.Context(), by, e, []command.Imported{{IdempotencyKey: "k", DeliveredAt: at, Line: 1}})
	if err != nil || n.Imported != 1 {
		t.Errorf("%+v %v", n, err)
	}
}
