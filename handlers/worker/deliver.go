package worker

import (
	"context"
	"sync"
	"time"

	"github.com/google/uuid"

	"waybill/domain"
	"waybill/handlers/command"
	"waybill/projections"
)

// finished is a claim's end on its way to the log: a result, or a release.
type finished struct {
	command.Finished
	unsent bool // given back, for the reason in Finished
}

// deliver makes one claimed delivery's request, unless the worker is stopping or too
// little of the lease is left, and hands on what came of it.
func (w *Worker) deliver(ctx, sending context.Context, a projections.Assignment, b projections.Batch, asOf time.Time) {
	f := finished{Finished: command.Finished{
		Delivery: a.Delivery, Token: b.Token, Policy: a.Endpoint.Policy, EndpointVersion: a.Endpoint.Version, TraceParent: a.TraceParent,
	}}
	timeout := w.timeout(a.Endpoint.Policy)
	switch {
	case ctx.Err() != nil:
		f.unsent, f.Why = true, domain.WhyDrain
	case time.Since(asOf)+timeout+LeaseMargin > w.Lease:
		f.unsent, f.Why = true, domain.WhyTooLate
	default:
		within, cancel := context.WithDeadline(sending, asOf.Add(w.Lease-LeaseMargin))
		w.At(AtSending)
		f.Result = w.Sender.Send(within, request(a, timeout, b.Now.After(time.Since(asOf))))
		w.At(AtAnswered)
		cancel()
	}
	w.backlog.add(f)
	select {
	case w.results <- f: // while results cannot be recorded their slots stay taken
	case <-w.gaveUp:
	}
	w.roster.done(a.Delivery.EndpointID)
	w.slots.giveBack()
}

// timeout is the policy's, cut to what the lease allows. The tenth of a second is
// for a claim that took as long to commit.
func (w *Worker) timeout(p domain.Policy) time.Duration {
	return min(time.Duration(p.Timeout), w.Lease-LeaseMargin-100*time.Millisecond)
}

func request(a projections.Assignment, timeout time.Duration, at domain.Instant) domain.Request {
	t := a.Endpoint.Target
	r := domain.Request{
		DeliveryID: a.Delivery.ID, MessageID: a.Delivery.MessageID, Attempt: a.Delivery.Attempts,
		EventType: a.Delivery.EventType, ContentType: a.ContentType, Payload: a.Payload, TraceParent: a.TraceParent,
		Timeout: timeout, URL: t.URL, Headers: t.Headers, Secrets: t.SigningAt(at.Time), At: at.Time,
	}
	if h := a.Endpoint.Policy.IdempotencyHeader; h != nil {
		r.IdempotencyHeader = *h
	}
	if ca := a.Endpoint.Policy.CA; ca != nil {
		r.CA = *ca
	}
	return r
}

// leases counts the deliveries of each claim that are not recorded yet.
type leases struct {
	mu   sync.Mutex
	open map[uuid.UUID]int
}

func newLeases() *leases { return &leases{open: map[uuid.UUID]int{}} }

func (l *leases) add(token uuid.UUID, n int) {
	if n == 0 {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.open[token] = n
}

// end notes recorded deliveries and returns the claims of which nothing is left.
func (l *leases) end(list []finished) []uuid.UUID {
	l.mu.Lock()
	defer l.mu.Unlock()
	var over []uuid.UUID
	for _, f := range list {
		if l.open[f.Token]--; l.open[f.Token] == 0 {
			delete(l.open, f.Token)
			over = append(over, f.Token)
		}
	}
	return over
}
