package postgres

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"waybill/domain"
	"waybill/projections"
)

var (
	//go:embed sql/lock_outbox.sql
	lockOutbox string
	//go:embed sql/delete_outbox.sql
	deleteOutbox string
	//go:embed sql/refuse_outbox.sql
	refuseOutbox string
)

// MoveOutbox takes at most limit waiting rows of the outbox beyond the row after, lets draft turn them into
// submissions or refusals, in order, and in one transaction accepts the submissions and
// removes their rows; refused rows stay with their code. Rows that another process is
// moving are passed over, so that each is moved once. draft may read from the database,
// but not in this transaction.
func (l *Ledger) MoveOutbox(ctx context.Context, after int64, limit int, draft func(context.Context, []projections.OutboxRow, domain.Instant) ([]projections.OutboxDraft, error)) (projections.OutboxMove, error) {
	var done projections.OutboxMove
	at, err := l.clock.Now(ctx)
	if err != nil {
		return done, err
	}
	err = l.transact(ctx, func(tx pgx.Tx) error {
		done = projections.OutboxMove{}
		rows, err := l.lockOutbox(ctx, tx, after, limit)
		if err != nil || len(rows) == 0 {
			return err
		}
		done.Last = rows[len(rows)-1].ID
		drafts, err := draft(ctx, rows, at)
		if err != nil {
			return err
		}
		return l.moveRows(ctx, tx, rows, drafts, at, &done)
	})
	if err != nil {
		return projections.OutboxMove{Last: done.Last}, fmt.Errorf("move the outbox: %w", refusal(err))
	}
	return done, nil
}

func (l *Ledger) moveRows(ctx context.Context, tx pgx.Tx, rows []projections.OutboxRow, drafts []projections.OutboxDraft, at domain.Instant, done *projections.OutboxMove) error {
	var submissions []projections.Submission
	var moved, refused []int64
	var codes []string
	for i, d := range drafts {
		if d.Refused != nil {
			refused, codes = append(refused, rows[i].ID), append(codes, d.Refused.Code)
			continue
		}
		submissions, moved = append(submissions, d.Submission), append(moved, rows[i].ID)
	}
	answers, err := l.scheduleIn(ctx, tx, submissions, at)
	if err != nil {
		return err
	}
	kept := moved[:0]
	for i, a := range answers {
		var refusedLate *domain.Error
		if errors.As(a.Err, &refusedLate) {
			refused, codes = append(refused, moved[i]), append(codes, refusedLate.Code)
			continue
		}
		kept = append(kept, moved[i])
		for _, d := range a.Deliveries {
			done.Endpoints = append(done.Endpoints, d.EndpointID)
		}
	}
	done.Moved, done.Refused = len(kept), len(refused)
	batch := &pgx.Batch{}
	batch.Queue(l.Schema.SQL(deleteOutbox), args{"ids": kept})
	batch.Queue(l.Schema.SQL(refuseOutbox), args{"ids": refused, "codes": codes})
	return tx.SendBatch(ctx, batch).Close()
}

func (l *Ledger) lockOutbox(ctx context.Context, tx pgx.Tx, after int64, limit int) ([]projections.OutboxRow, error) {
	rows, err := tx.Query(ctx, l.Schema.SQL(lockOutbox), args{"after": after, "limit": limit})
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (r projections.OutboxRow, err error) {
		var endpoint *uuid.UUID
		var ordering *string
		var notBefore *time.Time
		err = row.Scan(&r.ID, &r.Tenant, &endpoint, &r.EventType, &r.ContentType, &r.Payload, &r.IdempotencyKey, &ordering, &notBefore)
		if endpoint != nil {
			r.EndpointID = *endpoint
		}
		if ordering != nil {
			r.OrderingKey = *ordering
		}
		if notBefore != nil {
			r.NotBefore = domain.At(*notBefore)
		}
		return r, err
	})
}
