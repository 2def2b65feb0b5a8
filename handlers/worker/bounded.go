package worker

import (
	"context"
	"time"

	"github.com/google/uuid"

	"waybill/domain"
	"waybill/events"
	"waybill/projections"
)

// callLimit bounds a call of the ledger: longer than any statement may take on the
// server, so that it ends only what waits for an answer that never comes (a connection
// that is half open is noticed by TCP after a quarter of an hour). Whatever was cut off
// may have happened; each of these calls may be made again.
const callLimit = 45 * time.Second

// bounded is a ledger whose calls end.
type bounded struct {
	Ledger
	limit time.Duration
}

func (b bounded) within(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, b.limit)
}

// bound1 and bound2 make one bounded call with that many answers.
func bound1[A any](ctx context.Context, b bounded, call func(context.Context) (A, error)) (A, error) {
	ctx, cancel := b.within(ctx)
	defer cancel()
	return call(ctx)
}

func bound2[A, B any](ctx context.Context, b bounded, call func(context.Context) (A, B, error)) (A, B, error) {
	ctx, cancel := b.within(ctx)
	defer cancel()
	return call(ctx)
}

// Now is bounded.
func (b bounded) Now(ctx context.Context) (domain.Instant, error) {
	return bound1(ctx, b, b.Ledger.Now)
}

// Record is bounded.
func (b bounded) Record(ctx context.Context, list []projections.ResultChange) ([]uuid.UUID, error) {
	return bound1(ctx, b, func(ctx context.Context) ([]uuid.UUID, error) { return b.Ledger.Record(ctx, list) })
}

// Append is bounded.
func (b bounded) Append(ctx context.Context, list []projections.DeliveryChange) ([]uuid.UUID, error) {
	return bound1(ctx, b, func(ctx context.Context) ([]uuid.UUID, error) { return b.Ledger.Append(ctx, list) })
}

// AppendLate is bounded.
func (b bounded) AppendLate(ctx context.Context, list []projections.ResultChange) ([]uuid.UUID, error) {
	return bound1(ctx, b, func(ctx context.Context) ([]uuid.UUID, error) { return b.Ledger.AppendLate(ctx, list) })
}

// Streams is bounded.
func (b bounded) Streams(ctx context.Context, kind events.Stream, ids []uuid.UUID) (map[uuid.UUID][]events.Record, error) {
	return bound1(ctx, b, func(ctx context.Context) (map[uuid.UUID][]events.Record, error) {
		return b.Ledger.Streams(ctx, kind, ids)
	})
}

// Claim is bounded.
func (b bounded) Claim(ctx context.Context, r projections.ClaimRequest) (projections.Batch, error) {
	return bound1(ctx, b, func(ctx context.Context) (projections.Batch, error) { return b.Ledger.Claim(ctx, r) })
}

// EndClaims is bounded.
func (b bounded) EndClaims(ctx context.Context, tokens []uuid.UUID) error {
	ctx, cancel := b.within(ctx)
	defer cancel()
	return b.Ledger.EndClaims(ctx, tokens)
}

// Recover is bounded.
func (b bounded) Recover(ctx context.Context) (int, []projections.Delivery, error) {
	return bound2(ctx, b, b.Ledger.Recover)
}

// AdoptOrphans is bounded.
func (b bounded) AdoptOrphans(ctx context.Context) (int, error) {
	return bound1(ctx, b, b.Ledger.AdoptOrphans)
}

// EndGone is bounded.
func (b bounded) EndGone(ctx context.Context) (int, error) { return bound1(ctx, b, b.Ledger.EndGone) }

// RecentlyDue is bounded.
func (b bounded) RecentlyDue(ctx context.Context, since domain.Instant) ([]uuid.UUID, error) {
	return bound1(ctx, b, func(ctx context.Context) ([]uuid.UUID, error) { return b.Ledger.RecentlyDue(ctx, since) })
}

// AllDue is bounded.
func (b bounded) AllDue(ctx context.Context) ([]projections.DueEndpoint, domain.Instant, error) {
	return bound2(ctx, b, b.Ledger.AllDue)
}

// Beat is bounded.
func (b bounded) Beat(ctx context.Context, id uuid.UUID, name string, alive time.Duration) ([]uuid.UUID, error) {
	return bound1(ctx, b, func(ctx context.Context) ([]uuid.UUID, error) { return b.Ledger.Beat(ctx, id, name, alive) })
}
