package worker

import (
	"context"
	"time"

	"github.com/google/uuid"

	"waybill/domain"
	"waybill/handlers/command"
)

// What one recording takes together.
const (
	recordMost   = 1000
	recordWithin = 5 * time.Millisecond
)

// recordLoop records results until the channel is closed and all is recorded, or ctx
// ends. What cannot be recorded is kept and tried again; nothing else is written
// about it, and its claim's lease goes on meanwhile.
func (w *Worker) recordLoop(ctx context.Context) {
	trouble := &backoff{least: 50 * time.Millisecond, most: 2 * time.Second}
	apart := newLane(w.Concurrency)
	defer apart.owned.Wait()
	for open := true; open && ctx.Err() == nil; {
		var batch []finished
		if batch, open = w.gather(ctx); len(batch) > 0 {
			w.recordUntil(ctx, batch, trouble, apart)
		}
	}
}

// gather waits for a result and takes what finishes close to it.
func (w *Worker) gather(ctx context.Context) (batch []finished, open bool) {
	deadline := time.NewTimer(time.Hour)
	defer deadline.Stop()
	for len(batch) < recordMost {
		select {
		case f, ok := <-w.results:
			if !ok {
				return batch, false
			}
			if len(batch) == 0 {
				deadline.Reset(recordWithin)
			}
			batch = append(batch, f)
		case <-deadline.C:
			return batch, true
		case <-ctx.Done():
			return batch, true
		}
	}
	return batch, true
}

// recordUntil records a batch, again and again while the database is away. Where one
// of several may have made it fail, each of them is tried apart.
func (w *Worker) recordUntil(ctx context.Context, batch []finished, trouble *backoff, apart *lane) {
	for ctx.Err() == nil {
		err := w.record(ctx, batch)
		if err == nil {
			trouble.reset()
			return
		}
		w.report(ctx, "record results", err, trouble)
		if w.Isolable(err) {
			for _, f := range batch {
				apart.take(ctx, f, w.record, func(err error) {
					w.Log.Error("result not recorded, trying again", "delivery", f.Delivery.ID, "error", err)
				})
			}
			return
		}
		wait(ctx, nil, trouble.next())
	}
}

// record appends the results and the releases of a batch and ends claims of which
// nothing is left.
func (w *Worker) record(ctx context.Context, batch []finished) error {
	var sent, unsent []command.Finished
	var over []finished
	for _, f := range batch {
		if f.unsent {
			unsent, over = append(unsent, f.Finished), append(over, f)
		} else {
			sent = append(sent, f.Finished)
		}
	}
	if len(unsent) > 0 {
		if err := w.recorder.Release(ctx, w.actor, unsent); err != nil {
			return err
		}
	}
	var answers []command.Recorded
	if len(sent) > 0 {
		var err error
		w.At(AtRecording)
		if answers, err = w.recorder.Record(ctx, w.actor, sent); err != nil {
			return err
		}
	}
	w.backlog.end(batch)
	for i, a := range answers {
		if a.Err != nil { // the delivery is as it was: its claim stays, to be recovered
			w.Log.Error("result refused by the ledger", "error", a.Err)
			continue
		}
		over = append(over, finished{Finished: sent[i]})
		w.settle(ctx, a)
	}
	w.endClaims(ctx, over)
	return nil
}

// settle does what follows from what is recorded now. None of it may be lost: work is
// found again, and the next 410 disables.
func (w *Worker) settle(ctx context.Context, a command.Recorded) {
	w.afterwards(a.Delivery, a.Delivery.UpdatedAt)
	if a.Delivery.FailureReason == domain.Rejected && w.Disable != nil {
		w.disable(ctx, a.Delivery.Tenant, a.Delivery.EndpointID, a.Delivery.ID)
	}
}

// endClaims removes claims of which nothing is left. Those that stay run out and are
// removed then.
func (w *Worker) endClaims(ctx context.Context, list []finished) {
	if over := w.leases.end(list); len(over) > 0 {
		if err := w.Ledger.EndClaims(ctx, over); err != nil {
			w.Log.Warn("claims stay until they run out", "error", err)
		}
	}
}

func (w *Worker) disable(ctx context.Context, tenant string, endpoint, delivery uuid.UUID) {
	if err := w.Disable(ctx, tenant, endpoint, delivery); err != nil {
		w.Log.Error("endpoint not disabled after 410", "endpoint", endpoint, "error", err)
	}
}
