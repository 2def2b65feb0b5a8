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

//go:embed sql/spend_rates.sql
var spendRates string

// SpendRates grants what is left of budgets, in a commit of its own: every process
// shares the same counters, and what is granted is spent. A subject appears once. The
// counters are not logged: after a crash of the database a window may begin anew.
func (l *Ledger) SpendRates(ctx context.Context, list []projections.Spending) (map[uuid.UUID]projections.Budget, error) {
	budgets := make(map[uuid.UUID]projections.Budget, len(list))
	subjects, wanted, most, per := make([]uuid.UUID, len(list)), make([]int, len(list)), make([]int, len(list)), make([]int, len(list))
	for i, s := range list {
		subjects[i], wanted[i], most[i], per[i] = s.Subject, s.Wanted, s.Rate.Count, int(s.Rate.Per/time.Second)
		budgets[s.Subject] = projections.Budget{Rate: s.Rate}
	}
	err := again(ctx, func() error {
		rows, err := l.pool.Query(ctx, l.Schema.SQL(spendRates), args{"subjects": uuids(subjects), "wanted": wanted, "most": most, "per": per})
		if err != nil {
			return err
		}
		_, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (struct{}, error) { return struct{}{}, scanBudget(row, budgets) })
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("spend rates: %w", err)
	}
	return budgets, nil
}

func scanBudget(row pgx.CollectableRow, budgets map[uuid.UUID]projections.Budget) error {
	var id uuid.UUID
	var start, now time.Time
	var granted, remaining int
	err := row.Scan(&id, &granted, &remaining, &start, &now)
	b := budgets[id]
	b.Granted, b.Remaining, b.Reset = granted, max(0, remaining), start.Add(b.Rate.Per).Sub(now)
	budgets[id] = b
	return err
}
