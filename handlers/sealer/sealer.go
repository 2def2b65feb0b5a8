// Package sealer closes blocks: it finds how far the log is settled and seals it up to
// there.
//
//	1 read the last position drawn, V
//	2 afterwards, who holds a lock on the log as appenders do: whoever drew a position
//	  up to V and has not ended is among them, as the lock comes before the position
//	3 wait until those have ended; who came later does not matter
//	4 afterwards, in a transaction with snapshots of its own, read (last, V] and close it
//
// The order is what makes it right: read 2 before 1, or 4 in the snapshot of 2, and an
// event that commits in between is skipped for ever. Any process may seal, all may at
// once: the first three steps change nothing, and the fourth goes to whoever gets the
// head's row. Nothing is kept between rounds but what a process waits for, so killing one
// costs at most a round.
//
// It seals nothing while nothing is appended. It does not look at transactions that
// write elsewhere in the cluster.
package sealer

import (
	"context"
	"log/slog"
	"time"

	"waybill/projections"
)

// How long the pauses between rounds are. A busy log is sealed in few large blocks, soon;
// a quiet one within a second.
const (
	busyPause  = 250 * time.Millisecond
	quietPause = time.Second
	busy       = 256 // events in a round
	patience   = 2 * time.Second
	poll       = 5 * time.Millisecond // while appenders are waited for, at first
	slowPoll   = 200 * time.Millisecond
	faultPause = 2 * time.Second
)

// Ledger is what a sealer needs of the log; see the package for the order of the calls.
type Ledger interface {
	Head(ctx context.Context) (projections.Head, error)
	Drawn(ctx context.Context) (int64, error)
	Appenders(ctx context.Context) ([]projections.Appender, error)
	Seal(ctx context.Context, settled int64) (projections.Head, int, error)
}

// Config is what a Sealer works with. Ledger and Log are required.
type Config struct {
	Ledger   Ledger
	Log      *slog.Logger
	Patience time.Duration                // for appenders, in one round; 0: two seconds
	Sealed   func(projections.Head, int)  // told of each head moved here, and of how many events; may be nil
	Waiting  func([]projections.Appender) // told who holds the horizon back, and nobody after; may be nil
}

// Sealer seals one log. It is for one goroutine.
type Sealer struct {
	Config
	target  int64           // V of a round that is not finished; 0: none
	holders map[string]bool // virtual transactions that it waits for
}

// New returns a sealer that has not begun.
func New(c Config) *Sealer {
	if c.Patience <= 0 {
		c.Patience = patience
	}
	if c.Sealed == nil {
		c.Sealed = func(projections.Head, int) {}
	}
	if c.Waiting == nil {
		c.Waiting = func([]projections.Appender) {}
	}
	return &Sealer{Config: c}
}

// Run seals until ctx ends.
func (s *Sealer) Run(ctx context.Context) {
	for pause := time.Duration(0); ; {
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
		sealed, more, err := s.Round(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			s.Log.Error("the log could not be sealed", "error", err)
			pause = faultPause
		case more:
			pause = 0
		case sealed >= busy:
			pause = busyPause
		default:
			pause = quietPause
		}
	}
}

// Round seals what was settled when it began and returns how many events that was, and
// whether it knows of more. A round whose patience runs out goes on in the next.
func (s *Sealer) Round(ctx context.Context) (sealed int, more bool, err error) {
	head, err := s.Ledger.Head(ctx)
	if err != nil {
		return 0, false, err
	}
	if s.target <= head.Last { // another process was as fast
		if err := s.begin(ctx, head.Last); err != nil || s.target == 0 {
			return 0, false, err
		}
	}
	settled, err := s.wait(ctx)
	if err != nil || !settled {
		return 0, false, err
	}
	head, sealed, err = s.Ledger.Seal(ctx, s.target)
	if err != nil {
		return 0, false, err
	}
	more = sealed > 0 && head.Last < s.target
	if sealed > 0 || head.Last == s.target {
		s.Sealed(head, sealed)
	}
	if !more {
		s.target = 0
	}
	return sealed, more, nil
}

// begin takes the steps 1 and 2.
func (s *Sealer) begin(ctx context.Context, last int64) error {
	s.target, s.holders = 0, map[string]bool{}
	drawn, err := s.Ledger.Drawn(ctx)
	if err != nil || drawn <= last {
		return err
	}
	appenders, err := s.Ledger.Appenders(ctx)
	if err != nil {
		return err
	}
	for _, a := range appenders {
		s.holders[a.Transaction] = true
	}
	s.target = drawn
	return nil
}

// wait is step 3: it says whether all who were there have ended, within its patience.
func (s *Sealer) wait(ctx context.Context) (settled bool, err error) {
	end := time.Now().Add(s.Patience)
	for pause := poll; len(s.holders) > 0; pause = min(2*pause, slowPoll) {
		select {
		case <-ctx.Done():
			return false, ctx.Err()
		case <-time.After(pause):
		}
		present, err := s.Ledger.Appenders(ctx)
		if err != nil {
			return false, err
		}
		still := s.still(present)
		s.hold(still)
		if len(still) > 0 && time.Now().After(end) {
			s.Waiting(still)
			return false, nil
		}
	}
	s.Waiting(nil)
	return true, nil
}

// still is which of those who are present are waited for. One that is gone may have been
// prepared (as PREPARE TRANSACTION does) and go by another name now: then all that are
// prepared are waited for as well.
func (s *Sealer) still(present []projections.Appender) (list []projections.Appender) {
	there := make(map[string]bool, len(present))
	for _, a := range present {
		there[a.Transaction] = true
	}
	gone := false
	for h := range s.holders {
		gone = gone || !there[h]
	}
	for _, a := range present {
		if s.holders[a.Transaction] || gone && a.Prepared() {
			list = append(list, a)
		}
	}
	return list
}

func (s *Sealer) hold(still []projections.Appender) {
	s.holders = make(map[string]bool, len(still))
	for _, a := range still {
		s.holders[a.Transaction] = true
	}
}
