package worker_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"waybill/adapters/webhook"
	"waybill/domain"
)

// TestHintBeforeTheCommitOrNever is case 13. The commit comes 2.5 s after its hint, when
// nobody remembers that any more and the delivery's id is too old to be among the recent
// ones; nor does anybody hint again. It is found all the same, by the look at all waiting
// work. It fails without findAll.
func TestHintBeforeTheCommitOrNever(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	rc := newReceiver(t, func(http.ResponseWriter, *http.Request) {})
	e := r.endpoint(rc.URL, quick)
	w, _ := r.start(r.config("w1"))
	tx, err := r.db.Super().Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), "lock table waybill.messages in share mode"); err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		ids := r.submitN(e, 1)
		r.await(ids, "delivered", in(domain.StateDelivered))
	}()
	time.Sleep(100 * time.Millisecond)
	w.Hint([]uuid.UUID{e})
	time.Sleep(2400 * time.Millisecond)
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	committed := time.Now()
	<-done
	if took := time.Since(committed); took > 8*time.Second {
		t.Errorf("it took %s", took)
	}
}

// TestNameThatResolvesAgain is case 15: while the name does not resolve an attempt is
// unreached and is retried; once it does the delivery goes out. It fails if a request
// that could not begin is not retried.
func TestNameThatResolvesAgain(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	rc := newReceiver(t, func(http.ResponseWriter, *http.Request) {})
	var up atomic.Bool
	resolver := &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
		return nil, &net.OpError{Op: "dial", Net: "udp", Err: net.UnknownNetworkError("down")}
	}}
	down := webhook.New(webhook.Config{AllowNetworks: loopback, Resolver: resolver})
	t.Cleanup(down.Close)
	c := r.config("w1")
	there := c.Sender
	c.Sender = sendVia(func(ctx context.Context, q domain.Request) domain.Result {
		if !up.Load() { // the name is what the address stands for in this test
			q.URL = strings.Replace(q.URL, "127.0.0.1", "hook.example.com", 1)
			return down.Send(ctx, q)
		}
		return there.Send(ctx, q)
	})
	e := r.endpoint(rc.URL, quick, func(p *domain.Policy) {
		p.Retries = domain.Retries{Delays: []domain.Duration{0, domain.Duration(100 * time.Millisecond), domain.Duration(400 * time.Millisecond)}}
	})
	ids := r.submitN(e, 1)
	r.start(c)
	within(t, "the first attempts are unreached", func() bool {
		d, err := r.Delivery(t.Context(), domain.DefaultTenant, ids[0])
		return err == nil && d.LastOutcome == domain.Unreached && d.LastAttempt >= 1
	})
	up.Store(true)
	d := r.await(ids, "delivered", in(domain.StateDelivered))[0]
	if d.Attempts < 2 || d.UnknownAttempts != 0 || len(rc.of(d.ID)) != 1 {
		t.Errorf("%+v arrived as %v", d, rc.of(d.ID))
	}
}

// TestDrainThatTakesTooLong is the other half of case 12: what has not ended when the
// drain's time is up is broken off and recorded as what it is, in doubt; a policy that
// holds holds it.
func TestDrainThatTakesTooLong(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	arrived := make(chan struct{}, 2)
	rc := newReceiver(t, func(_ http.ResponseWriter, q *http.Request) {
		_, _ = io.Copy(io.Discard, q.Body) // or a caller who hangs up is not noticed
		arrived <- struct{}{}
		<-q.Context().Done()
	})
	ids := append(r.submitN(r.endpoint(rc.URL, quick, patient), 1), r.submitN(r.endpoint(rc.URL, quick, patient, hold), 1)...)
	c := r.config("w1")
	c.DrainTimeout = 200 * time.Millisecond
	_, stop := r.start(c)
	<-arrived
	<-arrived
	stop()
	for i, want := range []domain.State{domain.StatePending, domain.StateHeld} {
		d, err := r.Delivery(t.Context(), domain.DefaultTenant, ids[i])
		if err != nil || d.State != want || !d.InDoubt() || d.CycleAttempts != 1 {
			t.Errorf("%+v %v", d, err)
		}
		if got := names(r.stream(ids[i])); !slices.Contains(got, "delivery.attempted") {
			t.Errorf("history %v", got)
		}
	}
	r.verify()
}

// sendVia is a sender that is a function.
type sendVia func(context.Context, domain.Request) domain.Result

// Send makes one attempt.
func (f sendVia) Send(ctx context.Context, r domain.Request) domain.Result { return f(ctx, r) }
