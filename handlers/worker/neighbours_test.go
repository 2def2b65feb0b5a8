package worker_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"waybill/domain"
	"waybill/handlers/command"
)

// TestSlowNeighbourEndsNoLease is Case 2: fifty deliveries in one claim, those of the first
// endpoint answered after 2 s. No lease runs out, and none is too short to begin in,
// because of a neighbour: each delivery is claimed once and sent once. The guard is that a
// worker claims what its free senders can start, and gives each delivery one of its own.
func TestSlowNeighbourEndsNoLease(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	slow := newReceiver(t, func(http.ResponseWriter, *http.Request) { time.Sleep(2 * time.Second) })
	quickly := newReceiver(t, answering(http.StatusOK))
	eight := func(p *domain.Policy) { p.Timeout = domain.Duration(8 * time.Second) } // of 20 less 5
	ids := append(r.submitN(r.endpoint(slow.URL, quick, eight), 20), r.submitN(r.endpoint(quickly.URL, quick, eight), 30)...)
	c := r.config("w1")
	c.Lease, c.Concurrency = 20*time.Second, 50
	r.start(c)
	r.await(ids, "delivered", in(domain.StateDelivered))
	for _, id := range ids {
		if history := r.stream(id); len(history) != 4 {
			t.Errorf("history %v", names(history))
		}
	}
	r.verify()
}

// TestReceiverThatReadsAndCloses is Case 6: a receiver answers the first request of each
// kept-alive connection and closes it after it has read the second, and the endpoint has a
// header Idempotency-Key, for which Go's transport by itself would send such a POST again.
// What arrived is what is on record, attempt by attempt. The guards, either of which
// suffices, are in adapters/webhook: an attempt ends when net/http looks for a second
// connection (attempt.wanted), and none but the first may write for it (attempt.hold).
func TestReceiverThatReadsAndCloses(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	rc := newClosing(t)
	name := "Idempotency-Key"
	e := r.endpoint(rc.url, quick, func(p *domain.Policy) {
		p.IdempotencyHeader, p.Retries.Delays = &name, make([]domain.Duration, 50)
	})
	c := r.config("w1")
	c.Concurrency = 4
	r.start(c)
	ids := append(r.submitN(e, 10), r.submitEmpty(e, 30)...)
	r.await(ids, "delivered", in(domain.StateDelivered))
	onRecord, unknown := map[string]int{}, 0
	for _, id := range ids {
		for _, a := range r.attempts(id) {
			if onRecord[fmt.Sprint(id, "/", a.Attempt)]++; a.Outcome == domain.Unknown {
				unknown++
			}
		}
	}
	rc.mu.Lock()
	defer rc.mu.Unlock()
	for attempt, times := range rc.arrivals {
		if times != 1 || onRecord[attempt] != 1 {
			t.Errorf("attempt %s arrived %d times and is %d times on record", attempt, times, onRecord[attempt])
		}
	}
	if len(rc.arrivals) != len(onRecord) || unknown == 0 || rc.keys != len(rc.arrivals) {
		t.Errorf("%d arrivals with %d keys, %d attempts, %d of them unknown", len(rc.arrivals), rc.keys, len(onRecord), unknown)
	}
	r.verify()
}

// submitEmpty hands in n messages without a byte: of a request without a body Go's
// transport needs no copy to send it again.
func (r *rig) submitEmpty(endpoint uuid.UUID, n int) (ids []uuid.UUID) {
	r.t.Helper()
	by := command.Caller{Tenant: domain.DefaultTenant, Actor: "key:test"}
	for _, a := range r.submit.SubmitBatch(r.t.Context(), by, slices.Repeat([]command.Submission{{EndpointID: endpoint, EventType: "t.a"}}, n)) {
		if a.Err != nil {
			r.t.Fatal(a.Err)
		}
		ids = append(ids, a.Deliveries[0].DeliveryID)
	}
	return ids
}

// closing is a receiver by Case 6.
type closing struct {
	url      string
	mu       sync.Mutex
	arrivals map[string]int // delivery/attempt: how often
	keys     int            // how many had an idempotency key
}

func newClosing(t *testing.T) *closing {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	rc := &closing{url: "http://" + l.Addr().String(), arrivals: map[string]int{}}
	var conns sync.WaitGroup
	conns.Go(func() {
		for c, err := l.Accept(); err == nil; c, err = l.Accept() {
			conns.Go(func() { rc.serve(c) })
		}
	})
	t.Cleanup(func() { _ = l.Close(); conns.Wait() })
	return rc
}

func (rc *closing) serve(c net.Conn) {
	defer func() { _ = c.Close() }()
	in := bufio.NewReader(c)
	for n := range 2 {
		q, err := http.ReadRequest(in)
		if err != nil {
			return
		}
		_, _ = io.Copy(io.Discard, q.Body)
		rc.mu.Lock()
		rc.arrivals[q.Header.Get("waybill-delivery-id")+"/"+q.Header.Get("waybill-attempt")]++
		if q.Header.Get("Idempotency-Key") == q.Header.Get("webhook-id") {
			rc.keys++
		}
		rc.mu.Unlock()
		if n == 0 {
			_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
		}
	}
}
