package postgres

import (
	"cmp"
	"context"
	_ "embed"
	"fmt"
	"slices"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"waybill/events"
	"waybill/projections"
)

var (
	//go:embed sql/append_deliveries.sql
	appendDeliveries string
	//go:embed sql/record_results.sql
	recordResults string
	//go:embed sql/insert_events.sql
	insertEvents string
	//go:embed sql/insert_exchanges.sql
	insertExchanges string
)

// querier is a pool, a connection or a transaction.
type querier interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
}

// Append writes decisions about existing deliveries, events and rows together. It
// returns the ids of those that were decided on a version that is no longer the
// stream's: of these nothing is written. One delivery may appear only once.
func (l *Ledger) Append(ctx context.Context, changes []projections.DeliveryChange) (stale []uuid.UUID, err error) {
	err = again(ctx, func() error {
		stale, err = l.appendIn(ctx, l.pool, changes)
		return err
	})
	return stale, err
}

// transact runs one transaction; see [again] for when it runs it again.
func (l *Ledger) transact(ctx context.Context, do func(tx pgx.Tx) error) error {
	return again(ctx, func() error { return pgx.BeginFunc(ctx, l.pool, do) })
}

func (l *Ledger) appendIn(ctx context.Context, q querier, changes []projections.DeliveryChange) ([]uuid.UUID, error) {
	if len(changes) == 0 {
		return nil, nil
	}
	slices.SortFunc(changes, func(a, b projections.DeliveryChange) int { return compareIDs(a.After.ID, b.After.ID) })
	a := deliveryArgs(changes).with(eventArgs(recordsOf(changes)).without("e_streams"))
	return l.stale(ctx, q, appendDeliveries, a, "append")
}

// Record writes the results of claims that are believed to be present, without
// reading first. It returns the ids of those that were not (another version, or
// another claim's token): of these nothing is written.
func (l *Ledger) Record(ctx context.Context, results []projections.ResultChange) (stale []uuid.UUID, err error) {
	slices.SortFunc(results, func(a, b projections.ResultChange) int { return compareIDs(a.After.ID, b.After.ID) })
	changes := make([]projections.DeliveryChange, len(results))
	owners := make([]uuid.UUID, len(results))
	for i, r := range results {
		changes[i], owners[i] = r.DeliveryChange, r.Token
	}
	a := deliveryArgs(changes).with(eventArgs(recordsOf(changes)).without("e_streams")).
		with(exchangeArgs(exchangesOf(results))).with(args{"owners": uuids(owners)})
	err = again(ctx, func() error {
		stale, err = l.stale(ctx, l.pool, recordResults, a, "record results")
		return err
	})
	return stale, err
}

// AppendLate is Append for results of claims that have ended, with what their
// receivers answered.
func (l *Ledger) AppendLate(ctx context.Context, results []projections.ResultChange) (stale []uuid.UUID, err error) {
	changes := make([]projections.DeliveryChange, len(results))
	for i, r := range results {
		changes[i] = r.DeliveryChange
	}
	err = l.transact(ctx, func(tx pgx.Tx) error {
		if stale, err = l.appendIn(ctx, tx, changes); err != nil {
			return err
		}
		kept := slices.DeleteFunc(slices.Clone(results), func(r projections.ResultChange) bool {
			return slices.Contains(stale, r.After.ID)
		})
		_, err = tx.Exec(ctx, l.Schema.SQL(insertExchanges), exchangeArgs(exchangesOf(kept)))
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("append late results: %w", refusal(err))
	}
	return stale, nil
}

func (l *Ledger) stale(ctx context.Context, q querier, sql string, a args, doing string) ([]uuid.UUID, error) {
	rows, err := q.Query(ctx, l.Schema.SQL(sql), a)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", doing, err)
	}
	stale, err := pgx.CollectRows(rows, pgx.RowTo[uuid.UUID])
	if err != nil {
		return nil, fmt.Errorf("%s: %w", doing, refusal(err))
	}
	return stale, nil
}

// insertRecords adds records to the log inside a transaction.
func (l *Ledger) insertRecords(ctx context.Context, q querier, records []events.Record) error {
	if len(records) == 0 {
		return nil
	}
	if _, err := q.Exec(ctx, l.Schema.SQL(insertEvents), eventArgs(records)); err != nil {
		return fmt.Errorf("insert events: %w", refusal(err))
	}
	return nil
}

func exchangesOf(results []projections.ResultChange) []*projections.Exchange {
	var list []*projections.Exchange
	for _, r := range results {
		if r.Exchange != nil {
			list = append(list, r.Exchange)
		}
	}
	return list
}

func compareIDs(a, b uuid.UUID) int { return cmp.Compare(string(a[:]), string(b[:])) }
