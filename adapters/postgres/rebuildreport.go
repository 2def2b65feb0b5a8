package postgres

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"waybill/domain"
	"waybill/projections"
)

// count reads what differed.
func (r *rebuild) count(ctx context.Context) error {
	r.o.Phase("report", 0)
	differ := r.schema.SQL("waybill.") + r.p.Name + "_differ"
	r.report.Kinds, r.report.Columns, r.report.First = map[string]int64{}, map[string]int64{}, []projections.Differing{}
	rows, err := r.conn.Query(ctx, "select key, kind, columns from "+differ+" order by key")
	if err != nil {
		return err
	}
	var d projections.Differing
	_, err = pgx.ForEachRow(rows, []any{&d.Key, &d.Kind, &d.Columns}, func() error {
		r.report.Differing++
		r.report.Kinds[d.Kind]++
		for _, c := range d.Columns {
			r.report.Columns[c]++
		}
		if len(r.report.First) < rebuildNames {
			r.report.First = append(r.report.First, d)
		}
		return nil
	})
	return err
}

// rebuildNames is how many rows that differed a report names.
const rebuildNames = 100

// RebuildDone says in the log that a rebuild took place.
func (l *Ledger) RebuildDone(ctx context.Context, by domain.Actor, r projections.Rebuilt) error {
	now, err := l.clock.Now(ctx)
	if err != nil {
		return err
	}
	fact := domain.RebuildDone{Projection: r.Projection, Version: r.Version, Rows: r.Rows, Differing: r.Differing}
	err = l.transact(ctx, func(tx pgx.Tx) error { return l.administer(ctx, tx, domain.SystemTenant, by, now, fact) })
	if err != nil {
		return fmt.Errorf("record the rebuild: %w", err)
	}
	return nil
}
