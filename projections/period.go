package projections

import (
	"context"
	_ "embed"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"waybill/domain"
	"waybill/events"
)

var (
	//go:embed sql/get_moment_of.sql
	getMomentOf string
	//go:embed sql/get_month_positions.sql
	getMonthPositions string
	//go:embed sql/list_archived_months.sql
	listArchivedMonths string
)

// appendSkew bounds how long before an event was given its position it may say that it was
// recorded, by the database's clock: appends decide and insert within seconds. With it a
// period's events are found without an index on their time.
const appendSkew = time.Hour

// exportRange returns positions between which all of the export's events lie.
func (r Reader) exportRange(ctx context.Context, head events.ExportHead) (first, last int64, err error) {
	if head.Month != "" {
		m, err := r.MonthPositions(ctx, head.Month)
		if err != nil || m.Events == 0 {
			return 1, 0, err
		}
		return m.First, min(m.Last, head.Last), nil
	}
	first, last = 1, head.Last
	if !head.Since.IsZero() {
		if first, _, err = r.around(ctx, 0, last, head.Since.After(-appendSkew)); err != nil {
			return 0, 0, err
		}
		first++
	}
	if !head.Until.IsZero() {
		_, last, err = r.around(ctx, first-1, last, head.Until.After(appendSkew))
	}
	return first, last, err
}

// near is how close to an event the search for a moment comes, in positions.
const near = 2048

// around searches for a moment between two positions: everything up to low was recorded
// before it, everything from above high on at it or after, and low and high are near.
func (r Reader) around(ctx context.Context, low, high int64, moment domain.Instant) (int64, int64, error) {
	for high-low > near {
		middle := low + (high-low)/2
		at, recorded, err := r.momentOf(ctx, middle)
		switch {
		case err != nil:
			return 0, 0, err
		case at == 0 || at >= high:
			high = middle
		case recorded.Before(moment.Time):
			low = at
		default:
			high = at
		}
	}
	return low, high, nil
}

// momentOf returns the first event from a position on: where it is, 0 if there is none,
// and when it was recorded.
func (r Reader) momentOf(ctx context.Context, position int64) (at int64, recorded time.Time, err error) {
	rows, err := r.DB.Query(ctx, r.Schema.SQL(getMomentOf), pgx.StrictNamedArgs{"position": position})
	if err != nil {
		return 0, recorded, fmt.Errorf("export: %w", err)
	}
	_, err = pgx.ForEachRow(rows, []any{&at, &recorded}, func() error { return nil })
	if err != nil {
		return 0, recorded, fmt.Errorf("export: %w", err)
	}
	return at, recorded, nil
}

// MonthPositions is where a month's events are.
type MonthPositions struct {
	First, Last        int64
	Events, Deliveries int64
}

// MonthPositions looks at the events of a month's deliveries (2026-01), all of them.
func (r Reader) MonthPositions(ctx context.Context, month string) (m MonthPositions, err error) {
	low, high, err := events.MonthBounds(month)
	if err != nil {
		return m, err
	}
	rows, err := r.DB.Query(ctx, r.Schema.SQL(getMonthPositions), pgx.StrictNamedArgs{"low": low, "high": high})
	if err != nil {
		return m, fmt.Errorf("look at month %s: %w", month, err)
	}
	m, err = pgx.CollectExactlyOneRow(rows, func(row pgx.CollectableRow) (m MonthPositions, err error) {
		return m, row.Scan(&m.First, &m.Last, &m.Events, &m.Deliveries)
	})
	if err != nil {
		return m, fmt.Errorf("look at month %s: %w", month, err)
	}
	return m, nil
}

// ArchivedMonths lists the months whose deliveries have left the ledger.
func (r Reader) ArchivedMonths(ctx context.Context) ([]string, error) {
	rows, err := r.DB.Query(ctx, r.Schema.SQL(listArchivedMonths))
	if err != nil {
		return nil, fmt.Errorf("list the archives: %w", err)
	}
	return collect(rows, pgx.RowTo[string], "list the archives")
}
