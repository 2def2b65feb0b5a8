package command_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"waybill/domain"
	"waybill/handlers/command"
	"waybill/projections"
)

var why = domain.PayloadErased{Reason: "asked for", LegalBasis: "GDPR art. 17"}

// accept hands in a message and returns its delivery.
func (d desk) accept(endpoint uuid.UUID, key string) projections.Delivery {
	d.t.Helper()
	a, err := d.submit.Submit(d.t.Context(), by, message(endpoint, key, "secret bytes"))
	if err != nil {
		d.t.Fatal(err)
	}
	return d.row(a.Deliveries[0].DeliveryID)
}

func (d desk) row(id uuid.UUID) projections.Delivery {
	d.t.Helper()
	row, err := d.Delivery(d.t.Context(), by.Tenant, id)
	if err != nil {
		d.t.Fatal(err)
	}
	return row
}

func (d desk) cancel(id uuid.UUID) {
	d.t.Helper()
	if _, err := (command.Operations{Ledger: d}).Cancel(d.t.Context(), by, id, "r"); err != nil {
		d.t.Fatal(err)
	}
}

// claimed takes one delivery and returns what its worker would report.
func (d desk) claimed(id uuid.UUID) command.Finished {
	d.t.Helper()
	row := d.row(id)
	b, err := d.Claim(d.t.Context(), projections.ClaimRequest{Worker: "w", Lease: time.Minute, Batch: 1,
		From: []projections.ClaimQuota{{EndpointID: row.EndpointID, Limit: 1}}})
	if err != nil || len(b.Taken) != 1 || b.Taken[0].Delivery.ID != id {
		d.t.Fatalf("claim: %+v %v", b, err)
	}
	now, _ := d.Now(d.t.Context())
	return command.Finished{Delivery: b.Taken[0].Delivery, Token: b.Token, Policy: domain.DefaultPolicy(), EndpointVersion: 1,
		Result: domain.Result{Outcome: domain.Refused, Status: 500, Reason: domain.ReasonHTTPStatus, StartedAt: now.Time,
			Excerpt: []byte("secret answer"), Location: []byte("/secret"), Detail: []byte("secret")}}
}

// remains is how many rows still hold anything of the delivery's message or of its answers.
func (d desk) remains(id uuid.UUID) (n int) {
	d.t.Helper()
	err := d.db.Owner().QueryRow(d.t.Context(), `select
		(select count(*) from waybill.messages m join waybill.deliveries d on d.message_id = m.id
		 where d.id = $1 and (m.payload is not null or m.salt is not null))
		+ (select count(*) from waybill.exchanges where delivery_id = $1
		 and (salt is not null or excerpt is not null or location is not null or detail is not null))`, id).Scan(&n)
	if err != nil {
		d.t.Fatal(err)
	}
	return n
}

// TestErase: what is erased is gone, the history stays, nothing starts anew, and the key
// still answers without comparing.
func TestErase(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	e := d.endpoint()
	v := d.accept(e, "k")
	if _, err := (command.Recorder{Ledger: d}).Record(t.Context(), "worker:w", []command.Finished{d.claimed(v.ID)}); err != nil {
		t.Fatal(err)
	}
	eraser := command.Eraser{Ledger: d}
	if _, err := eraser.Delivery(t.Context(), by, v.ID, why); !errors.Is(err, domain.ErrNotSettled) {
		t.Fatalf("unsettled: %v", err)
	}
	d.cancel(v.ID)
	if d.remains(v.ID) != 2 {
		t.Fatal("there is nothing to erase")
	}
	after, err := eraser.Delivery(t.Context(), by, v.ID, why)
	if err != nil || !after.PayloadErased || after.State != domain.StateCancelled || d.remains(v.ID) != 0 {
		t.Fatalf("%+v %v, %d rows left", after, err, d.remains(v.ID))
	}
	if _, _, err := d.ReadPayload(t.Context(), by.Tenant, v.ID, by.Actor, "here", ""); !errors.Is(err, domain.ErrPayloadErased) {
		t.Errorf("reading: %v", err)
	}
	if _, err := (command.Operations{Ledger: d}).Replay(t.Context(), by, v.ID, "r", true); !errors.Is(err, domain.ErrPayloadErased) {
		t.Errorf("replaying: %v", err)
	}
	if _, err := eraser.Delivery(t.Context(), by, v.ID, why); !errors.Is(err, domain.ErrPayloadErased) {
		t.Errorf("again: %v", err)
	}
	if _, err := eraser.Message(t.Context(), command.Caller{Tenant: "other"}, v.MessageID, why); !errors.Is(err, domain.ErrMessageNotFound) {
		t.Errorf("another tenant: %v", err)
	}
	a, err := d.submit.Submit(t.Context(), by, message(e, "k", "other bytes"))
	if err != nil || !a.Duplicate || a.Deliveries[0].DeliveryID != v.ID {
		t.Errorf("the key answers %+v %v", a, err)
	}
	if x, err := d.Exchanges(t.Context(), by.Tenant, v.ID); err != nil || len(x) != 0 {
		t.Errorf("exchanges %v %v", x, err)
	}
	d.verify()
}

// TestEraseActsOnTheMessage: one unsettled delivery of a fan-out keeps all of it; a
// message that nobody wanted is erased too.
func TestEraseActsOnTheMessage(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.endpoint("t.*")
	d.endpoint("t.*")
	a, err := d.submit.Submit(t.Context(), by, message(uuid.Nil, "", "bytes"))
	if err != nil || len(a.Deliveries) != 2 {
		t.Fatalf("%+v %v", a, err)
	}
	one, two := a.Deliveries[0].DeliveryID, a.Deliveries[1].DeliveryID
	d.cancel(one)
	eraser := command.Eraser{Ledger: d}
	m, err := eraser.Message(t.Context(), by, a.MessageID, why)
	if !errors.Is(err, domain.ErrNotSettled) || len(m.Unsettled) != 1 || m.Unsettled[0] != two || d.row(one).PayloadErased {
		t.Fatalf("%+v %v", m, err)
	}
	d.cancel(two)
	if _, err := eraser.Delivery(t.Context(), by, one, why); err != nil || !d.row(two).PayloadErased || d.remains(two) != 0 {
		t.Fatalf("%+v %v", d.row(two), err)
	}
	sub := message(uuid.Nil, "", "nobody wants it")
	sub.EventType = "other"
	lone, err := d.submit.Submit(t.Context(), by, sub)
	if err != nil || len(lone.Deliveries) != 0 {
		t.Fatalf("%+v %v", lone, err)
	}
	if _, err := eraser.Message(t.Context(), by, lone.MessageID, why); err != nil {
		t.Fatal(err)
	}
	var kept, told int
	err = d.db.Owner().QueryRow(t.Context(), `select (select count(*) from waybill.messages where payload is not null or salt is not null),
		(select count(*) from waybill.events where name = 'admin.message_erased')`).Scan(&kept, &told)
	if err != nil || kept != 0 || told != 1 {
		t.Errorf("%d messages kept, %d events: %v", kept, told, err)
	}
	d.verify()
}

// TestEraseRaces: an eraser, another one, a replay, a late result and a repeated
// submission meet at one delivery, in pairs and all together. Whoever is first, nothing
// of the payload or the answers is left beside an erasure, and nothing erased is due.
func TestEraseRaces(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	e := d.endpoint()
	for i := range 40 {
		v := d.accept(e, fmt.Sprintf("k%d", i))
		late := d.claimed(v.ID)
		d.cancel(v.ID) // the result is on its way
		var erased, replayed, duplicate, recorded error
		var second error
		race(
			func() { _, erased = command.Eraser{Ledger: d}.Delivery(t.Context(), by, v.ID, why) },
			func() { _, second = command.Eraser{Ledger: d}.Delivery(t.Context(), by, v.ID, why) },
			func() { _, replayed = command.Operations{Ledger: d}.Replay(t.Context(), by, v.ID, "r", true) },
			func() {
				_, recorded = command.Recorder{Ledger: d}.Record(t.Context(), "worker:w", []command.Finished{late})
			},
			func() {
				var a projections.Acceptance
				a, duplicate = d.submit.Submit(t.Context(), by, message(e, fmt.Sprintf("k%d", i), "secret bytes"))
				if duplicate == nil && (!a.Duplicate || a.Deliveries[0].DeliveryID != v.ID) {
					t.Errorf("the key answers %+v", a)
				}
			},
		)
		if recorded != nil || duplicate != nil {
			t.Fatalf("round %d: late result %v, submission %v", i, recorded, duplicate)
		}
		after := d.row(v.ID)
		won := 0
		for _, err := range []error{erased, second, replayed} {
			switch {
			case err == nil:
				won++
			case !errors.Is(err, domain.ErrNotSettled) && !errors.Is(err, domain.ErrPayloadErased):
				t.Errorf("round %d: %v", i, err)
			}
		}
		if won != 1 || after.PayloadErased == (replayed == nil) || after.PayloadErased && d.remains(v.ID) != 0 ||
			after.PayloadErased && !after.DueAt.IsZero() {
			t.Fatalf("round %d: %d won (%v, %v, %v), %d left of %+v", i, won, erased, second, replayed, d.remains(v.ID), after)
		}
		if after.State == domain.StatePending {
			d.cancel(v.ID)
		}
	}
	d.verify()
}

// race runs functions at once and waits for them.
func race(list ...func()) {
	start := make(chan struct{})
	var wait sync.WaitGroup
	for _, f := range list {
		wait.Go(func() { <-start; f() })
	}
	close(start)
	wait.Wait()
}

// TestEraseAll: what is settled goes, what is not is counted and named; stopped and run
// again it goes on.
func TestEraseAll(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	e, other := d.endpoint(), d.endpoint()
	for i := range 250 {
		v := d.accept(e, "")
		if i%5 != 0 {
			d.cancel(v.ID)
		}
	}
	d.cancel(d.accept(other, "").ID)
	now, err := d.Now(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	eraser := command.Eraser{Ledger: d}
	scope := command.ErasureScope{EndpointID: e, Before: now.After(time.Minute), Why: why, DryRun: true}
	count, err := eraser.All(t.Context(), by, scope, func(int) {})
	if err != nil || count.Erased != 200 || count.Unsettled != 50 || len(count.First) != 10 {
		t.Fatalf("dry run: %+v %v", count, err)
	}
	scope.DryRun = false
	ctx, stop := context.WithCancel(t.Context())
	first, err := eraser.All(ctx, by, scope, func(int) { stop() })
	if !errors.Is(err, context.Canceled) || first.Erased == 0 || first.Erased == 200 {
		t.Fatalf("stopped: %+v %v", first, err)
	}
	rest, err := eraser.All(t.Context(), by, scope, func(int) {})
	if err != nil || first.Erased+rest.Erased != 200 || rest.Unsettled != 50 {
		t.Fatalf("%+v and %+v %v", first, rest, err)
	}
	everywhere, err := eraser.All(t.Context(), by, command.ErasureScope{Before: scope.Before, Why: why}, func(int) {})
	if err != nil || everywhere.Erased != 1 || everywhere.Unsettled != 50 {
		t.Fatalf("by age: %+v %v", everywhere, err)
	}
	early, err := eraser.All(t.Context(), by, command.ErasureScope{Before: now.After(-time.Hour), Why: why}, func(int) {})
	if err != nil || early.Erased+early.Unsettled != 0 {
		t.Fatalf("nothing is that old: %+v %v", early, err)
	}
	d.verify()
}
