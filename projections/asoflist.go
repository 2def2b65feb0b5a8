package projections

import (
	"context"
	_ "embed"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"waybill/domain"
	"waybill/events"
)

var (
	//go:embed sql/list_deliveries_as_of.sql
	listDeliveriesAsOf string
	//go:embed sql/count_deliveries_as_of.sql
	countDeliveriesAsOf string
	//go:embed sql/read_streams_as_of.sql
	readStreamsAsOf string
)

// How many rows one step of a count looks at, and how many streams are folded at a time.
const (
	countStep = 50_000
	foldStep  = 500
)

// scanSteps bounds the steps that one page may take to find what a filter wants.
const scanSteps = 20

// holds reports whether the parts of the filter that change in a delivery's life hold.
func (f DeliveryFilter) holds(d Delivery) bool {
	return (f.State == "" || d.State == f.State) &&
		(f.InDoubt == nil || d.InDoubt() == *f.InDoubt) &&
		(f.EverUnknown == nil || (d.UnknownAttempts > 0) == *f.EverUnknown) &&
		(f.PayloadErased == nil || d.PayloadErased == *f.PayloadErased)
}

func (f DeliveryFilter) args(tenant string, at domain.Instant, before uuid.UUID, limit int) pgx.StrictNamedArgs {
	return pgx.StrictNamedArgs{
		"tenant": tenant, "at": at.Time, "before": orNull(before), "endpoint": orNull(f.EndpointID), "state": orNull(string(f.State)),
		"event_type": orNull(f.EventType), "idempotency_key": orNull(f.IdempotencyKey),
		"in_doubt": f.InDoubt, "ever_unknown": f.EverUnknown, "payload_erased": f.PayloadErased,
		"since": orNull(f.Since.Time), "until": orNull(f.Until.Time), "limit": limit,
	}
}

// DeliveriesAsOf returns a tenant's deliveries that there were at a time, as they were
// then, newest first from below the id before, at most limit, and the id to go on from
// (zero at the end). A page may hold fewer than there are: it looks at so many rows and no
// more. A row that has not changed since is the answer itself; only of the others is the
// stream folded.
func (r Reader) DeliveriesAsOf(ctx context.Context, tenant string, f DeliveryFilter, at domain.Instant, before uuid.UUID, limit int) (list []DeliveryThen, next uuid.UUID, err error) {
	head, err := r.Head(ctx)
	if err != nil {
		return nil, next, err
	}
	for range scanSteps {
		rows, err := r.DB.Query(ctx, r.Schema.SQL(listDeliveriesAsOf), f.args(tenant, at, before, limit))
		if err != nil {
			return nil, next, fmt.Errorf("list deliveries as of %s: %w", at, err)
		}
		page, err := collect(rows, scanDelivery, "list deliveries as of a time")
		if err != nil {
			return nil, next, err
		}
		then, err := r.back(ctx, tenant, page, at)
		if err != nil {
			return nil, next, err
		}
		for _, d := range then {
			before = d.ID
			if d.Version == 0 || !f.holds(d) {
				continue
			}
			list = append(list, DeliveryThen{d, head.basis(d.Version, head.settles(at))})
			if len(list) == limit {
				return list, before, nil
			}
		}
		if len(page) < limit {
			return list, uuid.Nil, nil
		}
	}
	return list, before, nil
}

// back returns rows as they were at a time, in the same order; blank where nothing was.
func (r Reader) back(ctx context.Context, tenant string, rows []Delivery, at domain.Instant) ([]Delivery, error) {
	var moved []uuid.UUID
	for _, d := range rows {
		if d.UpdatedAt.Time.After(at.Time) {
			moved = append(moved, d.ID)
		}
	}
	then := map[uuid.UUID]Delivery{}
	if len(moved) > 0 {
		if err := r.foldThen(ctx, tenant, moved, at, func(d Delivery) { then[d.ID] = d }); err != nil {
			return nil, err
		}
	}
	list := make([]Delivery, len(rows))
	for i, d := range rows {
		if d.UpdatedAt.Time.After(at.Time) {
			id := d.ID
			d = then[id]
			d.ID = id
		}
		list[i] = d
	}
	return list, nil
}

// foldThen folds what streams had become by a time, one after another as they are read.
func (r Reader) foldThen(ctx context.Context, tenant string, ids []uuid.UUID, at domain.Instant, take func(Delivery)) error {
	rows, err := r.DB.Query(ctx, r.Schema.SQL(readStreamsAsOf), pgx.StrictNamedArgs{
		"stream": string(events.DeliveryStream), "tenant": tenant, "ids": ids, "at": at.Time,
	})
	if err != nil {
		return fmt.Errorf("read streams as of %s: %w", at, err)
	}
	defer rows.Close()
	f := &deliveryFold{}
	for rows.Next() {
		e, err := ScanRecord(rows)
		if err != nil {
			return fmt.Errorf("read streams as of %s: %w", at, err)
		}
		if e.StreamID != f.d.ID {
			if f.d.Version > 0 {
				take(f.d)
			}
			f.Begin(e.StreamID)
		}
		if err := f.Add(e); err != nil {
			return err
		}
	}
	if f.d.Version > 0 {
		take(f.d)
	}
	return rows.Err()
}

// CountThen is how many deliveries were in which state at a time.
type CountThen struct {
	AsOf    domain.Instant         `json:"as_of"`
	Horizon int64                  `json:"horizon"`
	Final   bool                   `json:"final"`
	Total   int64                  `json:"total"`
	States  map[domain.State]int64 `json:"states"`
}

// CountAsOf counts a tenant's deliveries by state as they were at a time. Told is called
// with the number of rows that have been looked at.
func (r Reader) CountAsOf(ctx context.Context, tenant string, f DeliveryFilter, at domain.Instant, told func(int64)) (CountThen, error) {
	c := CountThen{AsOf: at, States: map[domain.State]int64{}}
	head, err := r.Head(ctx)
	if err != nil {
		return c, err
	}
	c.Horizon, c.Final = head.Last, head.settles(at)
	count := func(s domain.State, n int64) { c.States[s] += n; c.Total += n }
	for before := uuid.Nil; ; {
		seen, lowest, moved, err := r.countStep(ctx, f.args(tenant, at, before, countStep), count)
		if err != nil {
			return c, err
		}
		for ; len(moved) > 0; moved = moved[min(foldStep, len(moved)):] {
			err := r.foldThen(ctx, tenant, moved[:min(foldStep, len(moved))], at, func(d Delivery) {
				if f.holds(d) {
					count(d.State, 1)
				}
			})
			if err != nil {
				return c, err
			}
		}
		told(seen)
		if lowest == uuid.Nil {
			return c, nil
		}
		before = lowest
	}
}

// countStep counts the rows of one range of ids that have not changed since, and names the
// others: both from one snapshot, so that none counts twice.
func (r Reader) countStep(ctx context.Context, args pgx.StrictNamedArgs, count func(domain.State, int64)) (seen int64, lowest uuid.UUID, moved []uuid.UUID, err error) {
	rows, err := r.DB.Query(ctx, r.Schema.SQL(countDeliveriesAsOf), args)
	if err != nil {
		return 0, lowest, nil, fmt.Errorf("count deliveries: %w", err)
	}
	var state *string
	var n, matching int64
	var ids []uuid.UUID
	var low uuid.UUID
	_, err = pgx.ForEachRow(rows, []any{&state, &n, &matching, &ids, &low}, func() error {
		seen, lowest = seen+n, low
		if state == nil {
			moved = append(moved, ids...)
		} else if matching > 0 {
			count(domain.State(*state), matching)
		}
		return nil
	})
	if err != nil {
		return 0, lowest, nil, fmt.Errorf("count deliveries: %w", err)
	}
	return seen, lowest, moved, nil
}
