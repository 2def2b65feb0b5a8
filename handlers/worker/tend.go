package worker

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"time"
)

// How often a worker looks after what is not its own work.
const (
	beatEvery    = 5 * time.Second
	aliveFor     = 15 * time.Second
	recoverEvery = time.Second
	goneEvery    = 2 * time.Second
)

// beatLoop says that this worker is alive and learns who else is.
func (w *Worker) beatLoop(ctx context.Context) {
	trouble := &backoff{least: time.Second, most: beatEvery}
	now, err := w.Ledger.Now(ctx)
	for err != nil && ctx.Err() == nil {
		w.report(ctx, "read the clock", err, trouble)
		wait(ctx, nil, trouble.next())
		now, err = w.Ledger.Now(ctx)
	}
	id := w.Ledger.NewIDAt(now)
	for ctx.Err() == nil {
		alive, err := w.Ledger.Beat(ctx, id, w.Name, aliveFor)
		if err != nil {
			w.report(ctx, "beat", err, trouble)
		} else {
			w.crew.Store(&crew{size: len(alive), rank: slices.Index(alive, id)})
			trouble.reset()
		}
		wait(ctx, nil, beatEvery)
	}
	leaving, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	if err := w.Ledger.Leave(leaving, id); err != nil {
		w.Log.Warn("left without saying so", "error", err)
	}
}

// Tend does until ctx ends what every node does, also one that delivers nothing: it
// ends claims that ran out, whoever's they were, and what waits at archived endpoints.
// Run does it too.
func (w *Worker) Tend(ctx context.Context) {
	var both sync.WaitGroup
	both.Go(func() { w.recoverLoop(ctx) })
	both.Go(func() { w.goneLoop(ctx) })
	both.Wait()
}

// recoverLoop ends claims that ran out, whoever's they were.
func (w *Worker) recoverLoop(ctx context.Context) {
	trouble := &backoff{least: recoverEvery, most: 10 * time.Second}
	adopted := false
	for ctx.Err() == nil {
		if !adopted {
			adopted = w.adopt(ctx)
		}
		claims, ended, err := w.Ledger.Recover(ctx)
		for _, d := range ended {
			w.Log.Warn("claim ran out; its attempt is in doubt", "delivery", d.ID, "attempt", d.LastAttempt, "state", d.State)
			w.afterwards(d, d.UpdatedAt)
		}
		if err != nil {
			w.report(ctx, "recover", err, trouble)
			wait(ctx, nil, trouble.next())
			continue
		}
		trouble.reset()
		if claims == 0 {
			wait(ctx, nil, recoverEvery/2+rand.N(recoverEvery))
		}
	}
}

func (w *Worker) adopt(ctx context.Context) bool {
	n, err := w.Ledger.AdoptOrphans(ctx)
	if err != nil {
		return false
	}
	if n > 0 {
		w.Log.Warn("deliveries were processing under claims that are gone", "claims", n)
	}
	return true
}

// goneLoop ends what waits at archived endpoints.
func (w *Worker) goneLoop(ctx context.Context) {
	trouble := &backoff{least: goneEvery, most: 10 * time.Second}
	for ctx.Err() == nil {
		n, err := w.Ledger.EndGone(ctx)
		if err != nil {
			w.report(ctx, "end what waits at archived endpoints", err, trouble)
		}
		if n == 0 {
			wait(ctx, nil, goneEvery)
		}
	}
}

// report logs a fault that is tried again, but not each time.
func (w *Worker) report(ctx context.Context, doing string, err error, b *backoff) {
	if ctx.Err() == nil && b.worthSaying() {
		w.Log.Warn("trying again", "doing", doing, "error", err)
	}
}

// backoff grows from least to most while something fails.
type backoff struct {
	least, most, now time.Duration
	said             time.Time
}

func (b *backoff) next() time.Duration {
	b.now = min(max(2*b.now, b.least), b.most)
	return b.now/2 + rand.N(b.now/2+1)
}

func (b *backoff) reset() { b.now = 0 }

func (b *backoff) worthSaying() bool {
	if time.Since(b.said) < 5*time.Second {
		return false
	}
	b.said = time.Now()
	return true
}
