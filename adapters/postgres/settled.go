package postgres

import (
	"context"
	"time"

	"waybill/projections"
)

// settlePatience is how long appends that have begun are waited for before the position up
// to which the log is sealed is good enough.
const settlePatience = 500 * time.Millisecond

// settled returns a position up to which every record that ever will be can be read: as the
// sealer finds it (see the package handlers/sealer), without sealing; whether one runs does
// not matter.
func (r *rebuild) settled(ctx context.Context) (int64, error) {
	l := &Ledger{Reader: projections.Reader{DB: r.pool, Schema: r.schema}, pool: r.pool}
	head, err := l.Head(ctx)
	if err != nil {
		return 0, err
	}
	drawn, err := l.Drawn(ctx)
	if err != nil {
		return 0, err
	}
	began, err := l.Appenders(ctx)
	if err != nil {
		return 0, err
	}
	for end := time.Now().Add(settlePatience); ; {
		now, err := l.Appenders(ctx)
		switch {
		case err != nil:
			return 0, err
		case !anyLeft(began, now):
			return max(drawn, head.Last), nil
		case time.Now().After(end):
			return max(head.Last, r.after), nil
		}
		select {
		case <-ctx.Done():
			return 0, ctx.Err()
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// anyLeft reports whether one of those who had begun may still be there: by its name, or
// by another since it was prepared.
func anyLeft(began, now []projections.Appender) bool {
	if len(began) == 0 {
		return false
	}
	there := map[string]bool{}
	for _, a := range began {
		there[a.Transaction] = true
	}
	for _, a := range now {
		if a.Prepared() || there[a.Transaction] {
			return true
		}
	}
	return false
}
