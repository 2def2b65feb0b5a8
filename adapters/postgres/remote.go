package postgres

import (
	"context"
	_ "embed"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"waybill/projections"
)

var (
	//go:embed sql/extend_claim.sql
	extendClaim string
	//go:embed sql/remote_endpoints.sql
	remoteEndpoints string
)

// RemoteEndpoints returns a tenant's active endpoints that remote workers claim from.
func (l *Ledger) RemoteEndpoints(ctx context.Context, tenant string) ([]uuid.UUID, error) {
	rows, err := l.pool.Query(ctx, l.Schema.SQL(remoteEndpoints), args{"tenant": tenant})
	if err != nil {
		return nil, fmt.Errorf("list remote endpoints: %w", err)
	}
	ids, err := pgx.CollectRows(rows, pgx.RowTo[uuid.UUID])
	if err != nil {
		return nil, fmt.Errorf("list remote endpoints: %w", err)
	}
	return ids, nil
}

// ExtendClaim appends the extension of a claim of one delivery and moves the end of
// its lease, together. Stale means that nothing was written.
func (l *Ledger) ExtendClaim(ctx context.Context, c projections.DeliveryChange, until time.Time) (stale bool, err error) {
	err = l.transact(ctx, func(tx pgx.Tx) error {
		ids, err := l.appendIn(ctx, tx, []projections.DeliveryChange{c})
		if stale = len(ids) > 0; err != nil || stale {
			return err
		}
		_, err = tx.Exec(ctx, l.Schema.SQL(extendClaim), args{"token": c.After.Claim.Token, "lease_until": until})
		return err
	})
	if err != nil {
		return false, fmt.Errorf("extend claim: %w", refusal(err))
	}
	return stale, nil
}
