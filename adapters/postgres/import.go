package postgres

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"waybill/domain"
	"waybill/projections"
)

// keyTries is how often an import waits, each time for keyTimeout, for keys that another
// transaction holds: a submission must not wait long, an import may.
const keyTries = 40

// Import takes over, in one transaction, what another system has delivered already, and
// answers each item as Schedule does: its own ids, or those of whoever has its key. Each
// has one delivery, which is settled before anybody can see it waiting. An error means
// what it means for Schedule.
func (l *Ledger) Import(ctx context.Context, items []projections.Import, at domain.Instant) ([]projections.Acceptance, error) {
	submissions := make([]projections.Submission, len(items))
	for i, item := range items {
		submissions[i] = item.Submission
	}
	answers, err := l.importOnce(ctx, items, submissions, at)
	for n := 1; n < keyTries && waitedInVain(err) && ctx.Err() == nil; n++ {
		answers, err = l.importOnce(ctx, items, submissions, at)
	}
	if err = l.settle(ctx, err, messageExists, anyFresh(answers)); err != nil {
		return nil, fmt.Errorf("import: %w", refusal(err))
	}
	return answers, nil
}

// waitedInVain reports a lock timeout, after which nothing was written.
func waitedInVain(err error) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && pg.Code == codeLockTimeout
}

func (l *Ledger) importOnce(ctx context.Context, items []projections.Import, submissions []projections.Submission, at domain.Instant) (answers []projections.Acceptance, err error) {
	err = l.transact(ctx, func(tx pgx.Tx) (err error) {
		if answers, err = l.scheduleIn(ctx, tx, submissions, at); err != nil {
			return err
		}
		settled := settledBy(items, answers)
		stale, err := l.appendIn(ctx, tx, settled)
		if err == nil && len(stale) > 0 {
			err = fmt.Errorf("%d new deliveries are not as they were written", len(stale))
		}
		return err
	})
	return answers, err
}

// settledBy returns the changes that settle what is new, and says so in the answers, of
// which later ones may be about earlier ones of the same batch.
func settledBy(items []projections.Import, answers []projections.Acceptance) (settled []projections.DeliveryChange) {
	states := map[uuid.UUID]domain.State{}
	for i, a := range answers {
		if !a.Duplicate {
			after := items[i].Settled.After
			settled, states[after.ID] = append(settled, items[i].Settled), after.State
		}
	}
	for _, a := range answers {
		for i, d := range a.Deliveries {
			if state, ok := states[d.DeliveryID]; ok {
				a.Deliveries[i].State = state
			}
		}
	}
	return settled
}
