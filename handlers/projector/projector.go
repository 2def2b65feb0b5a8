// Package projector moves the asynchronous projections along the sealed log.
//
// Each has a checkpoint, and rows and checkpoint change in one transaction that holds the
// checkpoint's row: whoever is killed leaves nothing half done, nothing is counted twice,
// and any number of processes may run a projector. One that finds a row held leaves that
// projection to whoever holds it.
//
// An event that a projection cannot take, as it cannot be read or applied, stops that
// projection before it, and no other. It says so in the log once, in `waybill projections
// list`, in doctor and by its lag; once the cause is mended a rebuild starts it anew.
package projector

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"waybill/projections"
)

// How much one transaction moves over, and how long the pauses are.
const (
	batch      = 5_000 // positions
	idlePause  = time.Second
	faultPause = 2 * time.Second
)

// Ledger is what a projector needs.
type Ledger interface {
	ListProjections(ctx context.Context) ([]projections.ProjectionStatus, error)
	Project(ctx context.Context, p projections.Projection, most int64) (moved int64, err error)
	StopProjection(ctx context.Context, p projections.Projection, cause error) error
}

// Config is what a Projector works with. Ledger, Log and Transient are required.
type Config struct {
	Ledger    Ledger
	Log       *slog.Logger
	Transient func(error) bool                     // whether a fault may pass by itself
	Seen      func([]projections.ProjectionStatus) // told how far each projection is, each round; may be nil
}

// Projector moves every asynchronous projection. It is for one goroutine.
type Projector struct{ Config }

// New returns a projector that has not begun.
func New(c Config) *Projector {
	if c.Seen == nil {
		c.Seen = func([]projections.ProjectionStatus) {}
	}
	return &Projector{c}
}

// Run moves projections until ctx ends.
func (p *Projector) Run(ctx context.Context) {
	for pause := time.Duration(0); ; {
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
		moved, err := p.Round(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			p.Log.Error("a projection could not be moved", "error", err)
			pause = faultPause
		case moved > 0:
			pause = 0
		default:
			pause = idlePause
		}
	}
}

// Round moves each projection over one batch and returns over how many positions in all.
// What goes wrong with one keeps no other from moving.
func (p *Projector) Round(ctx context.Context) (moved int64, err error) {
	list, err := p.Ledger.ListProjections(ctx)
	if err != nil {
		return 0, err
	}
	p.Seen(list)
	var faults []error
	for _, s := range list {
		known, unknown := projections.FindProjection(s.Name)
		if unknown != nil || known.Inline() || s.State != projections.ProjectionRunning || s.Lag == 0 {
			continue
		}
		n, err := p.move(ctx, known)
		moved += n
		faults = append(faults, err)
	}
	return moved, errors.Join(faults...)
}

// move moves one projection. Where a batch fails for good it looks for the event that makes
// it fail, in smaller and smaller ones, and stops before that.
func (p *Projector) move(ctx context.Context, of projections.Projection) (moved int64, err error) {
	for most := int64(batch); ; most = max(most/10, 1) {
		n, err := p.Ledger.Project(ctx, of, most)
		moved += n
		var poison *projections.Poison
		switch {
		case errors.As(err, &poison):
			p.stopped(of, poison)
			return moved, nil
		case err == nil || ctx.Err() != nil || p.Transient(err):
			return moved, err
		case most > 1:
			continue
		}
		if err = p.Ledger.StopProjection(ctx, of, err); errors.As(err, &poison) {
			p.stopped(of, poison)
			return moved, nil
		}
		return moved, err
	}
}

func (p *Projector) stopped(of projections.Projection, at *projections.Poison) {
	r := at.Record
	p.Log.Error("a projection has stopped at an event that it cannot take; once that is mended: waybill rebuild "+of.Name,
		"projection", of.Name, "stream", r.Stream, "stream_id", r.StreamID, "seq", r.Seq, "error", at.Cause)
}
