package main

import (
	"context"
	"time"

	"waybill/adapters/postgres"
	"waybill/projections"
)

// horizonPatience is how long the horizon may stay behind: a sealer needs a second, an
// append that goes well much less.
const horizonPatience = time.Minute

// horizon is where the log is settled, and what keeps the rest from it.
type horizon struct {
	head    projections.Head
	drawn   int64         // the last position
	waited  time.Duration // of the first event that is not sealed
	holders []projections.Appender
}

// checkHorizon finds out whether the log is sealed as it grows and, if not, who holds it.
func checkHorizon(ctx context.Context, l *postgres.Ledger) ([]finding, error) {
	var h horizon
	var err error
	if h.head, err = l.Head(ctx); err != nil {
		return nil, err
	}
	if h.drawn, err = l.Drawn(ctx); err != nil {
		return nil, err
	}
	if h.holders, err = l.Appenders(ctx); err != nil {
		return nil, err
	}
	first, err := l.Sealed(ctx, h.head.Last, h.drawn, 1)
	if err != nil {
		return nil, err
	}
	if len(first) > 0 {
		now, err := l.Now(ctx)
		if err != nil {
			return nil, err
		}
		h.waited = now.Sub(first[0].RecordedAt.Time)
	}
	return []finding{h.finding()}, nil
}

func (h horizon) finding() finding {
	lag := h.drawn - h.head.Last
	for _, a := range h.holders {
		switch {
		case a.Age < horizonPatience:
		case a.Prepared():
			return found("horizon", false, "%d positions wait above %d: a prepared transaction (%s) has held the log for %s; commit or roll it back, pg_prepared_xacts names it",
				lag, h.head.Last, a.Transaction, a.Age.Round(time.Second))
		default:
			return found("horizon", false, "%d positions wait above %d: backend %d (%s, %s) has held the log for %s; end it: select pg_terminate_backend(%d)",
				lag, h.head.Last, a.PID, a.Application, a.State, a.Age.Round(time.Second), a.PID)
		}
	}
	if h.waited >= horizonPatience {
		return found("horizon", false, "%d positions wait above %d, the first event since %s, and nobody holds them; does a serve run?",
			lag, h.head.Last, h.waited.Round(time.Second))
	}
	return found("horizon", true, "sealed up to position %d in %d blocks, %d behind", h.head.Last, h.head.Blocks, lag)
}
