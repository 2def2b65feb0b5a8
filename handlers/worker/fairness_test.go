package worker_test

import (
	"context"
	"net/http"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"waybill/domain"
	"waybill/handlers/command"
	"waybill/projections"
)

// TestSlowEndpointHoldsUpNobody: one endpoint with far more due work than there are
// senders, answering slowly, leaves room for the others.
func TestSlowEndpointHoldsUpNobody(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	release := make(chan struct{})
	slow := newReceiver(t, func(http.ResponseWriter, *http.Request) { <-release })
	quickly := newReceiver(t, func(http.ResponseWriter, *http.Request) {})
	slowIDs := r.submitN(r.endpoint(slow.URL, quick, patient), 300)
	r.start(r.config("w1"))
	time.Sleep(200 * time.Millisecond)
	for range 5 {
		r.await(r.submitN(r.endpoint(quickly.URL, quick), 20), "delivered", in(domain.StateDelivered))
	}
	close(release)
	r.await(slowIDs, "delivered", in(domain.StateDelivered))
}

func patient(p *domain.Policy) { p.Timeout = domain.Duration(30 * time.Second) }

// TestCapHoldsForAllWorkersTogether: two workers never have more of an endpoint's
// deliveries in flight than its policy says.
func TestCapHoldsForAllWorkersTogether(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	var now, most atomic.Int64
	rc := newReceiver(t, func(http.ResponseWriter, *http.Request) {
		n := now.Add(1)
		for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
		}
		time.Sleep(20 * time.Millisecond)
		now.Add(-1)
	})
	three := 3
	e := r.endpoint(rc.URL, quick, func(p *domain.Policy) { p.MaxInFlight = &three })
	r.start(r.config("w1"))
	r.start(r.config("w2"))
	r.awaitCrew(2)
	ids := r.submitN(e, 60)
	r.await(ids, "delivered", in(domain.StateDelivered))
	if most.Load() > 3 {
		t.Errorf("%d were in flight at a time", most.Load())
	}
}

// awaitCrew waits until so many workers are alive and know it of each other.
func (r *rig) awaitCrew(n int) {
	r.t.Helper()
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		var alive int
		if err := r.db.App.QueryRow(r.t.Context(), "select count(*) from waybill.workers where seen_at > started_at").Scan(&alive); err != nil {
			r.t.Fatal(err)
		}
		if alive >= n {
			return
		}
	}
	r.t.Fatal("the workers do not see each other")
}

// TestPausedEndpointWaitsAndArchivedOneEnds is case 16: what waits at an archived endpoint ends as endpoint_gone.
func TestPausedEndpointWaitsAndArchivedOneEnds(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	rc := newReceiver(t, func(http.ResponseWriter, *http.Request) {})
	e := r.endpoint(rc.URL, quick)
	r.change(e, domain.EndpointPaused{})
	ids := r.submitN(e, 3)
	r.start(r.config("w1"))
	time.Sleep(700 * time.Millisecond)
	for _, id := range ids {
		if len(rc.of(id)) != 0 {
			t.Error("sent while paused")
		}
	}
	r.change(e, domain.EndpointResumed{})
	r.await(ids, "delivered", in(domain.StateDelivered))

	r.change(e, domain.EndpointPaused{})
	waiting := r.submitN(e, 2)
	r.change(e, domain.EndpointArchived{})
	for _, d := range r.await(waiting, "failed", in(domain.StateFailed)) {
		if d.FailureReason != domain.EndpointGone {
			t.Errorf("failed as %s", d.FailureReason)
		}
	}
	r.verify()
}

// change appends one event to an endpoint's stream.
func (r *rig) change(id uuid.UUID, fact domain.Event) {
	r.t.Helper()
	_, err := r.ChangeEndpoint(r.t.Context(), domain.DefaultTenant, id, func(e projections.Endpoint, _ domain.Target) (projections.EndpointDecision, error) {
		c, err := e.Advance("operator:test@here", r.now(), fact)
		return projections.EndpointDecision{Change: c}, err
	})
	if err != nil {
		r.t.Fatal(err)
	}
}

// TestGoneFailsAndDisables: 410 ends the delivery as rejected and is handed on so
// that the endpoint is disabled.
func TestGoneFailsAndDisables(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	rc := newReceiver(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusGone) })
	e := r.endpoint(rc.URL, quick)
	ids := r.submitN(e, 1)
	c := r.config("w1")
	disabled := make(chan uuid.UUID, 1)
	c.Disable = func(_ context.Context, _ string, endpoint, _ uuid.UUID) error {
		disabled <- endpoint
		return nil
	}
	r.start(c)
	if d := r.await(ids, "failed", in(domain.StateFailed))[0]; d.FailureReason != domain.Rejected || d.Attempts != 1 {
		t.Errorf("%+v", d)
	}
	if got := <-disabled; got != e {
		t.Errorf("disabled %s", got)
	}
}

// TestDrainFinishesWhatIsOnTheWire: a stopping worker records what it has sent, and
// what it had not is not marked as failed.
//
// Case 12.
func TestDrainFinishesWhatIsOnTheWire(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	arrived := make(chan struct{}, 100)
	rc := newReceiver(t, func(http.ResponseWriter, *http.Request) {
		arrived <- struct{}{}
		time.Sleep(300 * time.Millisecond)
	})
	ids := r.submitN(r.endpoint(rc.URL, quick), 40)
	_, stop := r.start(r.config("w1"))
	for range 4 {
		<-arrived
	}
	stop()
	rows := r.await(ids, "settled", func(d projections.Delivery) bool { return d.State != domain.StateProcessing })
	for _, d := range rows {
		sent := len(rc.of(d.ID)) == 1
		if sent != (d.State == domain.StateDelivered) || !sent && (d.State != domain.StatePending || d.CycleAttempts != 0) {
			t.Errorf("%s after %d arrivals: %v", d.State, len(rc.of(d.ID)), names(r.stream(d.ID)))
		}
	}
	r.start(r.config("w2"))
	r.await(ids, "delivered", in(domain.StateDelivered))
	r.verify()
}

// TestReceiverThatResetsIsHeld: an answer that nobody can know is held where the
// policy says so, and a replayable failure is not.
//
// Case 24.
func TestReceiverThatResetsIsHeld(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	rc := newReceiver(t, func(w http.ResponseWriter, _ *http.Request) {
		conn, _, err := http.NewResponseController(w).Hijack()
		if err == nil {
			_ = conn.Close()
		}
	})
	ids := r.submitN(r.endpoint(rc.URL, quick, hold), 1)
	nobody := r.submitN(r.endpoint("http://127.0.0.1:1/", quick, hold), 1)
	r.start(r.config("w1"))
	held := r.await(ids, "held", in(domain.StateHeld))[0]
	if !held.InDoubt() || held.UnknownAttempts != 1 {
		t.Errorf("%+v", held)
	}
	if d := r.await(nobody, "failed", in(domain.StateFailed))[0]; d.InDoubt() || d.LastOutcome != domain.Unreached {
		t.Errorf("%+v", d)
	}
	op := command.Operations{Ledger: r.Ledger}
	by := command.Caller{Tenant: domain.DefaultTenant, Actor: "key:k"}
	if _, err := op.Resolve(t.Context(), by, ids[0], domain.ResolvedDelivered, "the partner has it"); err != nil {
		t.Fatal(err)
	}
	want := []string{"delivery.scheduled", "delivery.claimed", "delivery.attempted", "delivery.held", "delivery.resolved"}
	if got := names(r.stream(ids[0])); !slices.Equal(got, want) {
		t.Errorf("%v", got)
	}
	r.verify()
}
