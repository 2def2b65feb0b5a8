package worker_test

import (
	"context"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"waybill/domain"
	"waybill/handlers/command"
	"waybill/handlers/worker"
	"waybill/projections"
)

// TestNoTransactionIsOpenWhileARequestIsOnTheWire is rule 7. It fails if a sender
// keeps the claim's transaction.
func TestNoTransactionIsOpenWhileARequestIsOnTheWire(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	arrived, release := make(chan struct{}, 10), make(chan struct{})
	rc := newReceiver(t, func(http.ResponseWriter, *http.Request) { arrived <- struct{}{}; <-release })
	ids := r.submitN(r.endpoint(rc.URL, quick), 5)
	r.start(r.config("w1"))
	for range ids {
		<-arrived
	}
	var open int
	err := r.db.Super().QueryRow(t.Context(), `select count(*) from pg_stat_activity
		where datname = current_database() and pid <> pg_backend_pid() and xact_start < now() - interval '100 ms'`).Scan(&open)
	close(release)
	if err != nil || open != 0 {
		t.Errorf("%d transactions are open: %v", open, err)
	}
	r.await(ids, "delivered", in(domain.StateDelivered))
}

// TestNothingStartsThatCannotEndInItsLease is rule 7: with a lease of 10 s a request
// may last 4.9 s, and a claim that took longer than that to come back is given back
// unsent, its cycle attempt unspent.
func TestNothingStartsThatCannotEndInItsLease(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	rc := newReceiver(t, func(http.ResponseWriter, *http.Request) {})
	ids := r.submitN(r.endpoint(rc.URL, quick, func(p *domain.Policy) { p.Timeout = domain.Duration(30 * time.Second) }), 1)
	c := r.config("w1")
	c.Lease = 10 * time.Second
	slow := &slowClaims{Ledger: c.Ledger}
	slow.delay.Store(int64(300 * time.Millisecond))
	c.Ledger = slow
	r.start(c)
	r.await(ids, "released", func(d projections.Delivery) bool { return d.Version >= 3 })
	slow.delay.Store(0)
	d := r.await(ids, "delivered", in(domain.StateDelivered))[0]
	history := names(r.stream(d.ID))
	if history[2] != "delivery.released" || d.CycleAttempts != 1 || d.Attempts < 2 || len(rc.of(d.ID)) != 1 {
		t.Errorf("history %v, %+v", history, d)
	}
	r.verify()
}

// slowClaims makes claims come back late, as an overloaded machine does.
type slowClaims struct {
	worker.Ledger
	delay atomic.Int64
}

func (s *slowClaims) Claim(ctx context.Context, r projections.ClaimRequest) (projections.Batch, error) {
	b, err := s.Ledger.Claim(ctx, r)
	time.Sleep(time.Duration(s.delay.Load()))
	return b, err
}

// TestResultIsKeptUntilItIsRecorded is rule 9 and Case 3: while the log takes nothing, nothing
// else is written, the delivery keeps its state and its receiver is not asked again;
// then the result is recorded.
func TestResultIsKeptUntilItIsRecorded(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	owner := r.db.Owner()
	var once sync.Once
	rc := newReceiver(t, func(http.ResponseWriter, *http.Request) {
		once.Do(func() {
			if _, err := owner.Exec(context.Background(), "revoke insert on waybill.events from waybill_test_app; "+
				"revoke insert (hash) on waybill.events from waybill_test_app"); err != nil {
				t.Error(err)
			}
		})
	})
	ids := r.submitN(r.endpoint(rc.URL, quick), 1)
	w, _ := r.start(r.config("w1"))
	for deadline := time.Now().Add(10 * time.Second); w.Unrecorded() == 0 && time.Now().Before(deadline); {
		time.Sleep(10 * time.Millisecond)
	}
	time.Sleep(300 * time.Millisecond)
	d, err := r.Delivery(t.Context(), domain.DefaultTenant, ids[0])
	if err != nil || d.State != domain.StateProcessing || d.Version != 2 || w.Unrecorded() != 1 {
		t.Errorf("meanwhile %s at version %d, %d unrecorded: %v", d.State, d.Version, w.Unrecorded(), err)
	}
	if _, err := owner.Exec(t.Context(), "call waybill.grant_app('waybill_test_app')"); err != nil {
		t.Fatal(err)
	}
	r.await(ids, "delivered", in(domain.StateDelivered))
	if got := rc.of(ids[0]); !slices.Equal(got, []string{"1"}) {
		t.Errorf("arrived as %v", got)
	}
	r.verify()
}

// TestWorkerThatVanished: its claim runs out, is in doubt, and is tried again or held
// as the endpoint's policy says. The late result of the first claim then counts.
//
// Case 11: lease_expired, then retried or held by policy.
func TestWorkerThatVanished(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	rc := newReceiver(t, func(http.ResponseWriter, *http.Request) {})
	retried, held := r.endpoint(rc.URL, quick), r.endpoint(rc.URL, quick, hold)
	ids := append(r.submitN(retried, 1), r.submitN(held, 1)...)
	lost, err := r.Claim(t.Context(), projections.ClaimRequest{Worker: "gone", Lease: 200 * time.Millisecond, Batch: 2,
		From: []projections.ClaimQuota{{EndpointID: retried, Limit: 1}, {EndpointID: held, Limit: 1}}})
	if err != nil || len(lost.Taken) != 2 {
		t.Fatal(lost, err)
	}
	r.start(r.config("w1"))
	r.await(ids[:1], "delivered", in(domain.StateDelivered))
	r.await(ids[1:], "held", in(domain.StateHeld))
	if got := rc.of(ids[0]); !slices.Equal(got, []string{"2"}) {
		t.Errorf("the retried one arrived as %v", got)
	}
	rec := command.Recorder{Ledger: r.Ledger}
	var late []command.Finished
	for _, a := range lost.Taken {
		late = append(late, command.Finished{Delivery: a.Delivery, Token: lost.Token, Policy: a.Endpoint.Policy,
			EndpointVersion: 1, Result: domain.Result{Outcome: domain.Succeeded, Status: 200, StartedAt: lost.Now.Time}})
	}
	for range 2 { // whoever reports twice gets the first answer
		answers, err := rec.Record(t.Context(), "worker:gone", late)
		if err != nil {
			t.Fatal(err)
		}
		for _, a := range answers {
			if !a.Attempt.Superseded || a.Attempt.Attempt != 1 || a.Delivery.State != domain.StateDelivered {
				t.Errorf("late: %+v", a)
			}
		}
	}
	want := []string{"delivery.scheduled", "delivery.claimed", "delivery.lease_expired", "delivery.held", "delivery.attempted", "delivery.delivered"}
	if got := names(r.stream(ids[1])); !slices.Equal(got, want) {
		t.Errorf("held: %v", got)
	}
	r.verify()
}

// TestSupersededAttemptDoesNotCostTheHolder: a late report moves the version under
// the rightful holder, whose result must then be decided again and not be taken for
// superseded, else it would be sent again.
func TestSupersededAttemptDoesNotCostTheHolder(t *testing.T) {
	t.Parallel()
	for _, late := range []domain.Outcome{domain.Refused, domain.Succeeded} {
		for _, present := range []domain.Outcome{domain.Refused, domain.Succeeded} {
			r := newRig(t)
			e := r.endpoint("https://example.test", quick)
			r.submitN(e, 1)
			first := r.claimOne(e, time.Millisecond)
			time.Sleep(5 * time.Millisecond)
			if _, _, err := r.Recover(t.Context()); err != nil {
				t.Fatal(err)
			}
			second := r.claimOne(e, time.Minute)
			rec := command.Recorder{Ledger: r.Ledger}
			if _, err := rec.Record(t.Context(), "worker:a", []command.Finished{result(first, late)}); err != nil {
				t.Fatal(err)
			}
			answers, err := rec.Record(t.Context(), "worker:b", []command.Finished{result(second, present)})
			if err != nil {
				t.Fatal(err)
			}
			want := domain.StatePending
			if late == domain.Succeeded || present == domain.Succeeded {
				want = domain.StateDelivered
			}
			if a := answers[0]; a.Attempt.Superseded || a.Attempt.Attempt != 2 || a.Delivery.State != want || a.Delivery.CycleAttempts != 2 {
				t.Errorf("late %s, present %s: %+v", late, present, a)
			}
			r.verify()
		}
	}
}

func (r *rig) claimOne(endpoint uuid.UUID, lease time.Duration) projections.Batch {
	r.t.Helper()
	b, err := r.Claim(r.t.Context(), projections.ClaimRequest{Worker: "w", Lease: lease, Batch: 1,
		From: []projections.ClaimQuota{{EndpointID: endpoint, Limit: 1}}})
	if err != nil || len(b.Taken) != 1 {
		r.t.Fatal(b, err)
	}
	return b
}

func result(b projections.Batch, o domain.Outcome) command.Finished {
	a := b.Taken[0]
	return command.Finished{Delivery: a.Delivery, Token: b.Token, Policy: a.Endpoint.Policy,
		EndpointVersion: a.Endpoint.Version, Result: domain.Result{Outcome: o, StartedAt: b.Now.Time}}
}
