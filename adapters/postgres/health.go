package postgres

import (
	"context"
	_ "embed"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"waybill/projections"
)

var (
	//go:embed sql/get_outbox_health.sql
	getOutboxHealth string
	//go:embed sql/get_overdue_claims.sql
	getOverdueClaims string
	//go:embed sql/get_months_ahead.sql
	getMonthsAhead string
	//go:embed sql/get_power.sql
	getPower string
)

// OutboxHealth says how many rows of the outbox wait, and how many were refused and
// wait for a person, by code. What has no rows is not there.
func (l *Ledger) OutboxHealth(ctx context.Context) ([]projections.OutboxGroup, error) {
	rows, err := l.pool.Query(ctx, l.Schema.SQL(getOutboxHealth))
	if err != nil {
		return nil, fmt.Errorf("look at the outbox: %w", err)
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (g projections.OutboxGroup, err error) {
		var age float64
		err = row.Scan(&g.Code, &g.Rows, &g.Oldest, &age)
		g.Age = seconds(age)
		return g, err
	})
}

// OverdueClaims says how many claims ran out more than a minute ago and were not
// recovered, and how long ago the oldest did.
func (l *Ledger) OverdueClaims(ctx context.Context) (n int, oldest time.Duration, err error) {
	var age float64
	if err = l.pool.QueryRow(ctx, l.Schema.SQL(getOverdueClaims)).Scan(&n, &age); err != nil {
		return 0, 0, fmt.Errorf("look at the claims: %w", err)
	}
	return n, seconds(age), nil
}

// MonthsAhead says how many months beyond the present one the log has partitions for,
// without a gap; -1 if it has none for the present one. It looks 24 months ahead.
func (l *Ledger) MonthsAhead(ctx context.Context) (n int, err error) {
	if err = l.pool.QueryRow(ctx, l.Schema.SQL(getMonthsAhead)).Scan(&n); err != nil {
		return 0, fmt.Errorf("look at the partitions: %w", err)
	}
	return n, nil
}

// Power says what the connected role could do to the log.
func (l *Ledger) Power(ctx context.Context) (p projections.Power, err error) {
	err = l.pool.QueryRow(ctx, l.Schema.SQL(getPower)).Scan(&p.Role, &p.Superuser, &p.Owner, &p.Change)
	if err != nil {
		return p, fmt.Errorf("look at the role's privileges: %w", err)
	}
	return p, nil
}

func seconds(s float64) time.Duration {
	return time.Duration(s * float64(time.Second)).Round(time.Second)
}
