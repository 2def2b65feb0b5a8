package worker_test

import (
	"net/http"
	"slices"
	"sync"
	"testing"

	"github.com/google/uuid"

	"waybill/domain"
	"waybill/handlers/worker"
)

// TestPointsAreWhereTheySay: at each named point, what the log says and whether the
// request has arrived. A crash harness relies on it.
func TestPointsAreWhereTheySay(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	rc := newReceiver(t, func(http.ResponseWriter, *http.Request) {})
	id := r.submitN(r.endpoint(rc.URL, quick), 1)[0]
	type sight struct {
		point, last string
		arrivals    int
	}
	var mu sync.Mutex
	var seen []sight
	c := r.config("w1")
	c.At = func(point string) {
		history := names(r.stream(id))
		mu.Lock()
		defer mu.Unlock()
		seen = append(seen, sight{point, history[len(history)-1], len(rc.of(id))})
	}
	_, stop := r.start(c)
	r.await([]uuid.UUID{id}, "delivered", in(domain.StateDelivered))
	stop()
	want := []sight{
		{worker.AtClaimed, "delivery.claimed", 0}, {worker.AtSending, "delivery.claimed", 0},
		{worker.AtAnswered, "delivery.claimed", 1}, {worker.AtRecording, "delivery.claimed", 1},
	}
	if !slices.Equal(seen, want) {
		t.Errorf("saw %+v", seen)
	}
}
