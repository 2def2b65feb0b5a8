package worker_test

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"waybill/domain"
	"waybill/handlers/command"
	"waybill/projections"
)

// hangUp reads the request whole and ends the connection without an answer: by a reset,
// or else by closing it after a beginning of one.
func hangUp(beginning string, reset bool) http.HandlerFunc {
	return func(w http.ResponseWriter, q *http.Request) {
		_, _ = io.Copy(io.Discard, q.Body)
		c, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		_, _ = io.WriteString(c, beginning)
		if t, ok := c.(*net.TCPConn); ok && reset {
			_ = t.SetLinger(0)
		}
		_ = c.Close()
	}
}

func answering(status int) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) }
}

// silent answers when its caller has given up.
func silent(_ http.ResponseWriter, q *http.Request) {
	_, _ = io.Copy(io.Discard, q.Body)
	<-q.Context().Done()
}

// TestHoldHoldsWhatNobodyCanKnow: at endpoints that hold, an attempt is held if it went
// out and no answer came, however that happened, and no other is: an answer of whatever
// kind, a connection, a name or a session that did not come about, an address that is not
// allowed. Each hold is then ended in one of the ways there are. The guard is that
// Delivery.next holds Unknown and nothing else, and that the sender tells unknown from
// unreached by what it has written.
func TestHoldHoldsWhatNobodyCanKnow(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	secure := httptest.NewTLSServer(answering(http.StatusOK)) // by an authority that nobody knows
	t.Cleanup(secure.Close)
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_ = closed.Close()
	ends := []struct {
		url     string
		outcome domain.Outcome
		reason  domain.Reason
	}{
		{newReceiver(t, hangUp("", true)).URL, domain.Unknown, domain.ReasonReset},
		{newReceiver(t, hangUp("", false)).URL, domain.Unknown, domain.ReasonReset},
		{newReceiver(t, hangUp("HTTP/1.1 20", false)).URL, domain.Unknown, domain.ReasonReset},
		{newReceiver(t, silent).URL, domain.Unknown, domain.ReasonTimeout},
		{newReceiver(t, answering(http.StatusInternalServerError)).URL, domain.Refused, domain.ReasonHTTPStatus},
		{newReceiver(t, answering(http.StatusRequestTimeout)).URL, domain.Refused, domain.ReasonHTTPStatus},
		{newReceiver(t, answering(http.StatusFound)).URL, domain.Refused, domain.ReasonRedirect},
		{"http://" + closed.Addr().String() + "/", domain.Unreached, domain.ReasonConnect},
		{"http://nobody.invalid/", domain.Unreached, domain.ReasonDNS},
		{secure.URL, domain.Unreached, domain.ReasonTLS},
		{"http://10.0.0.1/", domain.Unreached, domain.ReasonBlockedAddress},
	}
	var ids []uuid.UUID
	for _, end := range ends {
		ids = append(ids, r.submitN(r.endpoint(end.url, quick, hold, oneSecond), 1)...)
	}
	r.start(r.config("w1"))
	for i, end := range ends {
		want := domain.StateFailed
		if end.outcome == domain.Unknown {
			want = domain.StateHeld
		}
		d := r.await(ids[i:i+1], "settled", func(d projections.Delivery) bool {
			return d.State == domain.StateFailed || d.State == domain.StateHeld
		})[0]
		last := r.attempts(d.ID)
		if d.State != want || d.InDoubt() != (want == domain.StateHeld) || last[len(last)-1].Outcome != end.outcome || last[len(last)-1].Reason != end.reason {
			t.Errorf("%s: %s, attempts %+v; want %s, %s", end.url, d.State, last, end.outcome, end.reason)
		}
	}
	r.resolveAll(ids[:4])
	r.verify()
}

func oneSecond(p *domain.Policy) { p.Timeout = domain.Duration(time.Second) }

func (r *rig) attempts(id uuid.UUID) (list []domain.Attempted) {
	r.t.Helper()
	for _, rec := range r.stream(id) {
		e, err := rec.Event()
		if err != nil {
			r.t.Fatal(err)
		}
		if a, ok := e.(domain.Attempted); ok {
			list = append(list, a)
		}
	}
	return list
}

// resolveAll ends four holds: as delivered, as failed, and, with the endpoints healed, the
// others as ones to try again.
func (r *rig) resolveAll(held []uuid.UUID) {
	r.t.Helper()
	by := command.Caller{Tenant: domain.DefaultTenant, Actor: "key:k"}
	for i, as := range []domain.Resolution{domain.ResolvedDelivered, domain.ResolvedFailed, domain.ResolvedRetry, domain.ResolvedRetry} {
		if _, err := (command.Operations{Ledger: r.Ledger}).Resolve(r.t.Context(), by, held[i], as, "a person looked"); err != nil {
			r.t.Fatal(err)
		}
	}
	r.await(held[:1], "delivered", in(domain.StateDelivered))
	if d := r.await(held[1:2], "failed", in(domain.StateFailed))[0]; d.FailureReason != domain.ByPerson {
		r.t.Errorf("%+v", d)
	}
	for _, d := range r.await(held[2:], "held again", func(d projections.Delivery) bool { return d.State == domain.StateHeld && d.Cycle == 2 }) {
		if d.Attempts != 2 || d.CycleAttempts != 1 || d.UnknownAttempts != 2 {
			r.t.Errorf("%+v", d)
		}
	}
}

// TestWhatALivingWorkerDidNotSendIsNotHeld: a worker that stops, or that gets its claim too
// late to start, gives back what it has not written, at an endpoint that holds as well:
// it is released, not held, and its cycle attempt is not spent. After a dead worker it is
// the other way round: its claim is in doubt although it never sent; see
// TestWorkerThatVanished.
func TestWhatALivingWorkerDidNotSendIsNotHeld(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	rc := newReceiver(t, answering(http.StatusOK))
	e := r.endpoint(rc.URL, quick, hold, func(p *domain.Policy) { p.Timeout = domain.Duration(30 * time.Second) })
	ids := r.submitN(e, 5)
	c := r.config("w1")
	c.Lease = 10 * time.Second
	slow := &slowClaims{Ledger: c.Ledger}
	slow.delay.Store(int64(300 * time.Millisecond)) // and 4.9 s for the request, and the margin
	c.Ledger = slow
	_, stop := r.start(c)
	r.await(ids, "given back", func(d projections.Delivery) bool { return d.Version >= 3 })
	slow.delay.Store(0)
	r.await(ids, "delivered", in(domain.StateDelivered))
	slow.delay.Store(int64(1500 * time.Millisecond))
	ids = append(ids, r.submitN(e, 5)...)
	r.await(ids[5:], "claimed", func(d projections.Delivery) bool { return d.Version >= 2 })
	stop() // while the claim's answer is on its way
	for _, d := range r.await(ids, "given back or sent", func(d projections.Delivery) bool { return d.State != domain.StateProcessing }) {
		history := strings.Join(names(r.stream(d.ID)), " ")
		sent := len(rc.of(d.ID))
		if d.State == domain.StateHeld || d.UnknownAttempts != 0 || (sent == 1) != (d.State == domain.StateDelivered) || sent > 1 {
			t.Errorf("%s after %d arrivals: %s", d.State, sent, history)
		}
		if !strings.Contains(history, "delivery.released") || d.State == domain.StatePending && d.CycleAttempts != 0 {
			t.Errorf("not given back: %s, %d attempts in its cycle", history, d.CycleAttempts)
		}
	}
	r.verify()
}

// TestReplaysBeginCyclesOfTheirOwn is Case 8: a failed delivery is replayed three times.
// Lifetime numbers go on, cycle numbers begin again, and each cycle has its whole
// allowance. The guard is newCycle in Delivery.Evolve.
func TestReplaysBeginCyclesOfTheirOwn(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	rc := newReceiver(t, answering(http.StatusForbidden))
	ids := r.submitN(r.endpoint(rc.URL, quick), 1)
	r.start(r.config("w1"))
	by := command.Caller{Tenant: domain.DefaultTenant, Actor: "key:k"}
	for cycle := 1; cycle <= 4; cycle++ {
		d := r.await(ids, "failed again", func(d projections.Delivery) bool { return d.State == domain.StateFailed && d.Cycle == cycle })[0]
		if d.Attempts != 3*cycle || d.CycleAttempts != 3 || d.FailureReason != domain.Exhausted {
			t.Errorf("cycle %d: %+v", cycle, d)
		}
		if cycle == 4 {
			break
		}
		if _, err := (command.Operations{Ledger: r.Ledger}).Replay(t.Context(), by, ids[0], "again", false); err != nil {
			t.Fatal(err)
		}
	}
	var numbers []int
	for i, a := range r.attempts(ids[0]) {
		if numbers = append(numbers, a.Attempt); a.CycleAttempt != i%3+1 {
			t.Errorf("attempt %d is number %d of its cycle", a.Attempt, a.CycleAttempt)
		}
	}
	if want := []int{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}; !slices.Equal(numbers, want) || len(rc.of(ids[0])) != len(want) {
		t.Errorf("on record %v, arrived %v", numbers, rc.of(ids[0]))
	}
	r.verify()
}
