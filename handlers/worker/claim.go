package worker

import (
	"context"
	"time"

	"waybill/domain"
	"waybill/projections"
)

// crew is who shares the endpoints' caps with this worker.
type crew struct{ size, rank int }

// gatherSlots is how long a busy worker waits for more senders to become free.
const gatherSlots = 3 * time.Millisecond

// claimLoop claims what free senders can start at once, until ctx ends.
func (w *Worker) claimLoop(ctx, sending context.Context) {
	trouble := &backoff{least: 50 * time.Millisecond, most: 2 * time.Second}
	for ctx.Err() == nil {
		free := w.slots.free()
		if free == 0 {
			wait(ctx, w.slots.freed, time.Minute)
			continue
		}
		if free < w.Concurrency/4 { // busy: a claim for a few costs as much as one for many
			wait(ctx, nil, gatherSlots)
			free = w.slots.free()
		}
		asked, idle := w.roster.pick(free)
		if len(asked) == 0 {
			wait(ctx, w.roster.woken, idle)
			continue
		}
		if err := w.claim(ctx, sending, asked, free); err != nil {
			w.roster.failed(asked)
			w.report(ctx, "claim", err, trouble)
			wait(ctx, nil, trouble.next())
			continue
		}
		trouble.reset()
	}
}

// claim asks for one batch and starts its requests. The lease is counted from before
// it was asked for. A claim that was committed is worked on even if ctx has ended.
func (w *Worker) claim(ctx, sending context.Context, asked []projections.ClaimQuota, free int) error {
	c := w.crew.Load()
	asOf := time.Now()
	b, err := w.Ledger.Claim(context.WithoutCancel(ctx), projections.ClaimRequest{
		Worker: w.Name, Lease: w.Lease, Batch: free, From: asked, Workers: c.size, Rank: c.rank,
	})
	if err != nil {
		return err
	}
	for _, fault := range b.Faults {
		w.Log.Error("delivery passed over", "error", fault)
	}
	if len(b.Taken) > 0 {
		w.At(AtClaimed)
	}
	w.roster.claimed(asked, b)
	w.slots.take(len(b.Taken))
	w.leases.add(b.Token, len(b.Taken))
	for _, a := range b.Taken {
		w.senders.Go(func() { w.deliver(ctx, sending, a, b, asOf) })
	}
	return nil
}

// wait sleeps until ctx ends, a signal comes (nil: none), or the time is up.
func wait(ctx context.Context, signal <-chan struct{}, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-signal:
	case <-timer.C:
	}
}

// findRecent looks for due work among the deliveries made since it last looked: often
// while it finds some, seldom while it does not.
func (w *Worker) findRecent(ctx context.Context) {
	const often, seldom, overlap = 25 * time.Millisecond, 500 * time.Millisecond, 250 * time.Millisecond
	pause, trouble := often, &backoff{least: seldom, most: 5 * time.Second}
	last := time.Now()
	for ctx.Err() == nil {
		now, err := w.Ledger.Now(ctx)
		if err == nil {
			began := time.Now()
			found, findErr := w.Ledger.RecentlyDue(ctx, now.After(-overlap-time.Since(last)))
			if err = findErr; err == nil {
				last = began
			}
			if len(found) > 0 {
				w.roster.hint(found)
				pause = often
			}
		}
		if err != nil {
			w.report(ctx, "find recent work", err, trouble)
			pause = trouble.next()
		} else {
			trouble.reset()
		}
		wait(ctx, nil, pause)
		pause = min(2*pause, seldom)
	}
}

// findAll looks for all waiting work, the more seldom the more workers do. What
// others miss, or what nobody was told of, is found here.
func (w *Worker) findAll(ctx context.Context) {
	const every = 2 * time.Second
	trouble := &backoff{least: every, most: 10 * time.Second}
	for ctx.Err() == nil {
		list, now, err := w.Ledger.AllDue(ctx)
		if err != nil {
			w.report(ctx, "find all work", err, trouble)
			wait(ctx, nil, trouble.next())
			continue
		}
		trouble.reset()
		for _, d := range list {
			w.roster.due(d.ID, d.Due, now)
		}
		wait(ctx, nil, every*time.Duration(w.crew.Load().size))
	}
}

// afterwards tells the roster when a delivery is due again.
func (w *Worker) afterwards(d projections.Delivery, now domain.Instant) {
	if d.State == domain.StatePending {
		w.roster.due(d.EndpointID, d.DueAt, now)
	}
}
