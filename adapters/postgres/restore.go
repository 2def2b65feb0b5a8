package postgres

import (
	"context"
	_ "embed"
	"fmt"

	"github.com/jackc/pgx/v5"

	"waybill/domain"
	"waybill/events"
	"waybill/projections"
)

//go:embed sql/accept_restore.sql
var acceptRestore string

// AcceptRestore takes the ledger as it is although a checkpoint outside the database tells
// of more: a new epoch begins, positions go on beyond the lost ones, and the log says so.
func (l *Ledger) AcceptRestore(ctx context.Context, by domain.Actor, reason string, lost events.Checkpoint) error {
	if err := domain.CheckReason(reason); err != nil {
		return err
	}
	now, err := l.clock.Now(ctx)
	if err != nil {
		return err
	}
	err = pgx.BeginFunc(ctx, l.pool, func(tx pgx.Tx) error {
		head, err := projections.Reader{DB: tx, Schema: l.Schema}.Head(ctx)
		if err != nil {
			return err
		}
		fact := domain.RestoreAccepted{Reason: reason, Last: head.Last, LostLast: lost.Last, LostSize: lost.Size,
			LostRoot: lost.Root[:], LostEpoch: lost.Epoch}
		if err := tx.QueryRow(ctx, l.Schema.SQL(acceptRestore), args{"beyond": lost.Last, "above": lost.Epoch}).Scan(&fact.Epoch); err != nil {
			return err
		}
		return l.administer(ctx, tx, domain.SystemTenant, by, now, fact)
	})
	if err != nil {
		return fmt.Errorf("accept the restore: %w", err)
	}
	return nil
}
