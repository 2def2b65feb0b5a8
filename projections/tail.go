package projections

import (
	"context"
	_ "embed"
	"fmt"

	"github.com/jackc/pgx/v5"

	"waybill/events"
)

//go:embed sql/tail_sealed.sql
var tailSealed string

// tailWindow is how many positions one step looks at: so that a small tenant, or a rare
// name, never has everybody's log read in one statement.
const tailWindow = 10_000

// Tail returns a tenant's next sealed records above a position, those of some names (none:
// all), and the position up to which it has looked. A page may be empty though more
// follow: there is more while next is below the horizon, last.
func (r Reader) Tail(ctx context.Context, tenant string, names []string, after, last int64) (list []events.Record, next int64, err error) {
	next = min(after+tailWindow, last)
	rows, err := r.DB.Query(ctx, r.Schema.SQL(tailSealed), pgx.StrictNamedArgs{
		"tenant": tenant, "names": names, "after": after, "last": next, "limit": MaxLimit,
	})
	if err != nil {
		return nil, after, fmt.Errorf("read the log: %w", err)
	}
	if list, err = collect(rows, ScanRecord, "read the log"); err != nil {
		return nil, after, err
	}
	if len(list) == MaxLimit {
		next = list[len(list)-1].Position
	}
	return list, next, nil
}
