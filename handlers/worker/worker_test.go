package worker_test

import (
	"net/http"
	"slices"
	"testing"

	"waybill/domain"
)

func TestDeliversWhatIsDue(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	rc := newReceiver(t, func(http.ResponseWriter, *http.Request) {})
	ids := r.submitN(r.endpoint(rc.URL, quick), 200)
	r.start(r.config("w1"))
	r.await(ids, "delivered", in(domain.StateDelivered))
	for _, id := range ids {
		if got := rc.of(id); !slices.Equal(got, []string{"1"}) {
			t.Errorf("%s arrived as attempts %v", id, got)
		}
		want := []string{"delivery.scheduled", "delivery.claimed", "delivery.attempted", "delivery.delivered"}
		if got := names(r.stream(id)); !slices.Equal(got, want) {
			t.Errorf("history %v", got)
		}
	}
	r.verify()
}

// TestRetriesUntilItsCycleIsSpent is case 14: an endpoint that answers 403 for ever spends its schedule.
func TestRetriesUntilItsCycleIsSpent(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	rc := newReceiver(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusForbidden) })
	ids := r.submitN(r.endpoint(rc.URL, quick), 3)
	r.start(r.config("w1"))
	for _, d := range r.await(ids, "failed", in(domain.StateFailed)) {
		if d.FailureReason != domain.Exhausted || d.Attempts != 3 || !slices.Equal(rc.of(d.ID), []string{"1", "2", "3"}) {
			t.Errorf("%+v arrived as %v", d, rc.of(d.ID))
		}
	}
	r.verify()
}
