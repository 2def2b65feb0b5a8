package main

import (
	"context"
	_ "embed"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"waybill/projections"
)

var (
	//go:embed sql/read_delivery_log.sql
	readDeliveryLog string
	//go:embed sql/count_unsettled.sql
	countUnsettled string
	//go:embed sql/read_delivery_rows.sql
	readDeliveryRows string
)

// collect takes the evidence: the log as it is in the table of events, and what the
// submitters and the receiver wrote down.
func (o *ordeal) collect(ctx context.Context, l *load) (evidence, error) {
	e := evidence{Arrivals: o.receiver.record(), Endpoints: map[uuid.UUID]tortureEndpoint{}}
	e.Accepted, e.Unanswered = l.known()
	for _, t := range o.endpoints {
		e.Endpoints[t.ID] = tortureEndpoint{Attempts: len(t.Delays), Hold: t.Hold}
	}
	rows, err := o.pool.Query(ctx, o.ledger.Schema.SQL(readDeliveryLog))
	if err != nil {
		return e, fmt.Errorf("read the log: %w", err)
	}
	if e.Log, err = pgx.CollectRows(rows, projections.ScanRecord); err != nil {
		return e, fmt.Errorf("read the log: %w", err)
	}
	if rows, err = o.pool.Query(ctx, o.ledger.Schema.SQL(readDeliveryRows)); err != nil {
		return e, fmt.Errorf("read the rows: %w", err)
	}
	if e.Rows, err = pgx.CollectRows(rows, pgx.RowToStructByPos[deliveryRow]); err != nil {
		return e, fmt.Errorf("read the rows: %w", err)
	}
	return e, nil
}

// unsettled is how many deliveries have not ended.
func (o *ordeal) unsettled(ctx context.Context) (n int, err error) {
	err = o.pool.QueryRow(ctx, o.ledger.Schema.SQL(countUnsettled)).Scan(&n)
	return n, err
}

// verify is the product's own verification, for the rows that the checker does not
// look at.
func (o *ordeal) verify(ctx context.Context) error {
	rep, err := o.ledger.Verify(ctx)
	for _, f := range rep.Faults {
		o.breach(ruleFold, "%s", f)
	}
	return err
}

// story is one delivery's history and arrivals, for who looks into a breach.
func (e evidence) story(id uuid.UUID) (lines []string) {
	for _, r := range e.Log {
		if r.StreamID == id {
			lines = append(lines, fmt.Sprintf("%8d %3d %s %s %s %s", r.Position, r.Seq, r.RecordedAt, r.Name, r.Actor, r.Data))
		}
	}
	for _, v := range e.Arrivals {
		if v.Delivery == id {
			lines = append(lines, fmt.Sprintf("arrival %s attempt %d whole %v answered %d", v.At.UTC().Format("15:04:05.000000"), v.Attempt, v.Whole, v.Answered))
		}
	}
	return lines
}

// stories tells those of the first few deliveries that breaches name.
func (e evidence) stories(breaches []breach) (told [][]string) {
	const most = 3
	seen := map[uuid.UUID]bool{uuid.Nil: true}
	for _, b := range breaches {
		if len(told) < most && !seen[b.Delivery] {
			seen[b.Delivery] = true
			told = append(told, append([]string{b.String()}, e.story(b.Delivery)...))
		}
	}
	return told
}
