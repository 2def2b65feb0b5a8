package command

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/google/uuid"

	"waybill/domain"
	"waybill/projections"
)

// OutboxLedger is what moving the outbox needs of the ledger.
type OutboxLedger interface {
	NewIDAt(at domain.Instant) uuid.UUID
	Tenant(ctx context.Context, name string) (projections.Tenant, error)
	SubmitEndpoints(ctx context.Context, ids []uuid.UUID) (map[uuid.UUID]projections.SubmitEndpoint, error)
	FanOut(ctx context.Context, tenant, eventType string) ([]projections.SubmitEndpoint, error)
	MoveOutbox(ctx context.Context, after int64, limit int, draft func(context.Context, []projections.OutboxRow, domain.Instant) ([]projections.OutboxDraft, error)) (projections.OutboxMove, error)
}

// Outbox moves what others have inserted into the outbox table into the log: each row
// once, within a moment of its commit, from any number of processes.
type Outbox struct {
	Ledger     OutboxLedger
	MaxPayload int64                       // bytes of one message; 0: no limit
	Accepted   func(endpoints []uuid.UUID) // told who has new work; may be nil
	Counted    func(moved, refused int)    // told what became of rows; may be nil
	Log        *slog.Logger                // nil: slog.Default()
}

// How the outbox is watched.
const (
	outboxBatch  = 500
	outboxOften  = 50 * time.Millisecond
	outboxSeldom = 500 * time.Millisecond
	outboxAway   = 5 * time.Second
)

// outboxActor is who hands in what the outbox brings: its database role is not known.
var outboxActor = domain.SystemActor("outbox")

// Run moves rows until ctx ends: without a pause while there are any, then ever more
// seldom.
func (o Outbox) Run(ctx context.Context) {
	pause := outboxOften
	for ctx.Err() == nil {
		n, err := o.Move(ctx)
		switch {
		case err != nil && n == 0 && ctx.Err() == nil:
			o.log().WarnContext(ctx, "trying again", "doing", "move the outbox", "error", err)
			pause = min(2*pause, outboxAway)
		case n > 0:
			pause = outboxOften
			continue
		default:
			pause = min(2*pause, outboxSeldom)
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
	}
}

func (o Outbox) log() *slog.Logger {
	if o.Log == nil {
		return slog.Default()
	}
	return o.Log
}

// Move moves one batch and returns how many rows it moved or refused. Where a batch
// fails its rows are tried one by one, so that one that somebody holds up, or that
// cannot be written, harms no other; the error is then that of the last such row.
func (o Outbox) Move(ctx context.Context) (int, error) {
	n, last, err := o.move(ctx, 0, outboxBatch)
	if err == nil || last == 0 || ctx.Err() != nil {
		return n, err
	}
	total, failed := 0, error(nil)
	for after := int64(0); after < last && ctx.Err() == nil; {
		n, at, err := o.move(ctx, after, 1)
		if total += n; err != nil {
			failed = err
		}
		if at == 0 {
			break
		}
		after = at
	}
	return total, failed
}

func (o Outbox) move(ctx context.Context, after int64, limit int) (n int, last int64, err error) {
	done, err := o.Ledger.MoveOutbox(ctx, after, limit, o.draft)
	if err != nil {
		return 0, done.Last, err
	}
	if done.Refused > 0 {
		o.log().WarnContext(ctx, "outbox rows refused; their column error says why", "rows", done.Refused)
	}
	if o.Counted != nil {
		o.Counted(done.Moved, done.Refused)
	}
	if o.Accepted != nil && len(done.Endpoints) > 0 {
		o.Accepted(done.Endpoints)
	}
	return done.Moved + done.Refused, done.Last, nil
}

func (o Outbox) draft(ctx context.Context, rows []projections.OutboxRow, at domain.Instant) ([]projections.OutboxDraft, error) {
	var ids []uuid.UUID
	for _, r := range rows {
		ids = append(ids, r.EndpointID)
	}
	known, err := o.Ledger.SubmitEndpoints(ctx, ids)
	if err != nil {
		return nil, err
	}
	drafts := make([]projections.OutboxDraft, len(rows))
	for i, r := range rows {
		s, err := o.draftOne(ctx, r, known, at)
		if drafts[i].Submission = s; err != nil && !errors.As(err, &drafts[i].Refused) {
			return nil, err
		}
	}
	return drafts, nil
}

func (o Outbox) draftOne(ctx context.Context, r projections.OutboxRow, known map[uuid.UUID]projections.SubmitEndpoint, at domain.Instant) (projections.Submission, error) {
	sub := Submission{EndpointID: r.EndpointID, EventType: r.EventType, ContentType: r.ContentType, OrderingKey: r.OrderingKey,
		NotBefore: r.NotBefore, Payload: r.Payload}
	if r.IdempotencyKey != nil {
		sub.IdempotencyKey, sub.HasKey = *r.IdempotencyKey, true
	}
	if o.MaxPayload > 0 && int64(len(r.Payload)) > o.MaxPayload {
		return projections.Submission{}, domain.ErrPayloadTooLarge.With(fmt.Sprintf("the payload is larger than %d bytes", o.MaxPayload))
	}
	if err := sub.Check(); err != nil {
		return projections.Submission{}, err
	}
	by := Caller{Tenant: r.Tenant, Actor: outboxActor}
	endpoints, scope, err := resolve(ctx, o.Ledger, by, sub, known)
	if err != nil {
		return projections.Submission{}, err
	}
	return sub.draft(by, scope, endpoints, at, func() uuid.UUID { return o.Ledger.NewIDAt(at) })
}
