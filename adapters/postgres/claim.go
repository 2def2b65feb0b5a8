package postgres

import (
	"cmp"
	"context"
	_ "embed"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"waybill/domain"
	"waybill/events"
	"waybill/projections"
)

var (
	//go:embed sql/select_due.sql
	selectDue string
	//go:embed sql/take_claims.sql
	takeClaims string
	//go:embed sql/insert_claim.sql
	insertClaim string
	//go:embed sql/insert_claims.sql
	insertClaims string
	//go:embed sql/delete_claims.sql
	deleteClaims string
)

// due is a locked due delivery as the claim's first statement returns it.
type due struct {
	projections.Assignment
	tid   pgtype.TID
	fault error // its endpoint's target does not open: it stays where it is
}

// Claim takes due deliveries of the endpoints given, at most as many of each and in
// all as asked, and gives them one token and one lease, which begins at the
// database's present time. Deliveries that others hold are passed over, not waited
// for; so are those of endpoints that are not active. A delivery that makes its claim
// fail is named in Faults and passed over for a while, so that it harms no other.
func (l *Ledger) Claim(ctx context.Context, r projections.ClaimRequest) (projections.Batch, error) {
	r.By, r.Mode = cmp.Or(r.By, domain.WorkerActor(r.Worker)), cmp.Or(r.Mode, domain.ModeHTTP)
	b, _, err := l.claim(ctx, r)
	if err != nil && Isolable(err) {
		b, err = l.claimApart(ctx, r)
	}
	if err != nil {
		return projections.Batch{}, fmt.Errorf("claim: %w", err)
	}
	return b, nil
}

// claim is one transaction. It returns the deliveries that it had locked, also where
// it failed.
func (l *Ledger) claim(ctx context.Context, r projections.ClaimRequest) (b projections.Batch, locked []due, err error) {
	err = l.transact(ctx, func(tx pgx.Tx) error {
		b, locked = projections.Batch{}, nil
		list, now, err := l.lockDue(ctx, tx, r)
		if locked = list; err != nil || len(list) == 0 {
			return err
		}
		b = projections.Batch{Now: now, LeaseUntil: now.After(r.Lease)}
		if !r.TokenEach {
			b.Token = NewID(now)
		}
		return l.take(ctx, tx, r, list, &b)
	})
	return b, locked, refusal(l.settle(ctx, err, claimExists, anyToken(b)))
}

// claimApart claims endpoint by endpoint and, where one's claim fails, delivery by
// delivery, until something is claimed; what fails by itself is set aside.
func (l *Ledger) claimApart(ctx context.Context, r projections.ClaimRequest) (projections.Batch, error) {
	var faults []error
	for _, q := range r.From {
		one := r
		one.From = []projections.ClaimQuota{q}
		b, _, err := l.claim(ctx, one)
		for tries := 0; err != nil && Isolable(err) && tries < q.Limit; tries++ {
			one.From[0].Limit, one.Batch = 1, 1
			var locked []due
			if b, locked, err = l.claim(ctx, one); err != nil && Isolable(err) && len(locked) == 1 {
				faults = append(faults, l.aside.put(locked[0].Delivery.ID, err))
			}
		}
		if err != nil && !Isolable(err) {
			return b, err
		}
		if err == nil && len(b.Taken)+len(b.Ended)+len(b.Faults) > 0 {
			b.Faults = append(faults, b.Faults...)
			return b, nil
		}
	}
	return projections.Batch{Faults: faults}, nil
}

// anyToken is a token that the transaction wrote, if it wrote any.
func anyToken(b projections.Batch) uuid.UUID {
	for _, a := range b.Taken {
		return a.Delivery.Claim.Token
	}
	return uuid.Nil
}

func (l *Ledger) lockDue(ctx context.Context, tx pgx.Tx, r projections.ClaimRequest) ([]due, domain.Instant, error) {
	known := l.routes.of(r.From)
	a := quotaArgs(r.From, known)
	a["batch"], a["workers"], a["rank"] = r.Batch, max(r.Workers, 1), r.Rank
	a["mode"], a["tenant"], a["skip"] = string(r.Mode), orNil(r.Tenant), uuids(l.aside.list())
	rows, err := tx.Query(ctx, l.Schema.SQL(selectDue), a)
	if err != nil {
		return nil, domain.Instant{}, err
	}
	var list []due
	var now time.Time
	list, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (due, error) { return l.scanDue(row, known, &now) })
	if len(list) > 0 {
		l.clock.observe(now)
	}
	return list, domain.At(now), err
}

func quotaArgs(from []projections.ClaimQuota, known map[uuid.UUID]*projections.Route) args {
	n := len(from)
	ids, since, quotas := make([]uuid.UUID, n), make([]pgtype.Timestamptz, n), make([]int, n)
	busy, versions := make([]int, n), make([]int, n)
	for i, q := range from {
		ids[i], quotas[i], busy[i] = q.EndpointID, q.Limit, q.Busy
		if k := known[q.EndpointID]; k != nil {
			versions[i] = k.Version
		}
		since[i] = pgtype.Timestamptz{Time: q.Since.Time, Valid: true}
		if q.Since.IsZero() {
			since[i] = pgtype.Timestamptz{InfinityModifier: pgtype.NegativeInfinity, Valid: true}
		}
	}
	return args{"endpoints": uuids(ids), "since": since, "quotas": quotas, "busy": busy, "known": versions}
}

func (l *Ledger) scanDue(row pgx.CollectableRow, known map[uuid.UUID]*projections.Route, now *time.Time) (due, error) {
	var d due
	var version int
	var policy, sealed []byte
	targets, finish := projections.DeliveryTargets(&d.Delivery)
	targets = append(targets, &d.tid, &d.ContentType, &d.Payload, &d.TraceParent, &version, &policy, &sealed, now)
	if err := row.Scan(targets...); err != nil {
		return d, err
	}
	finish()
	d.WasDue = d.Delivery.DueAt
	id := d.Delivery.EndpointID
	if d.Endpoint = known[id]; d.Endpoint == nil || d.Endpoint.Version != version {
		d.Endpoint, d.fault = l.route(id, version, policy, sealed)
		known[id] = d.Endpoint
	}
	return d, nil
}

// take decides, appends, changes the rows and writes the claim, in one round trip.
func (l *Ledger) take(ctx context.Context, tx pgx.Tx, r projections.ClaimRequest, list []due, b *projections.Batch) error {
	var t takenRows
	order := domain.ClaimOrder{Token: b.Token, Worker: r.Worker, LeaseUntil: b.LeaseUntil}
	for _, d := range list {
		if r.TokenEach {
			order.Token = NewID(b.Now)
		}
		if d.fault != nil {
			b.Faults = append(b.Faults, l.aside.put(d.Delivery.ID, d.fault))
			continue
		}
		facts, err := d.Delivery.TakeClaim(order, domain.StatusActive, d.Endpoint.Policy, b.Now)
		if err != nil {
			continue // the estimate says due, the row says no: it stays as it is
		}
		change, err := d.Delivery.AdvanceTraced(r.By, d.TraceParent, b.Now, facts...)
		if err != nil {
			return err
		}
		t.add(d.tid, change)
		if d.Delivery = change.After; d.Delivery.State == domain.StateProcessing {
			b.Taken = append(b.Taken, d.Assignment)
		} else {
			b.Ended = append(b.Ended, d.Delivery)
		}
	}
	return l.writeClaim(ctx, tx, r, t, b)
}

func (l *Ledger) writeClaim(ctx context.Context, tx pgx.Tx, r projections.ClaimRequest, t takenRows, b *projections.Batch) error {
	if len(t.records) == 0 {
		return nil
	}
	batch := &pgx.Batch{}
	batch.Queue(l.Schema.SQL(insertEvents), eventArgs(t.records))
	batch.Queue(l.Schema.SQL(takeClaims), t.args())
	switch {
	case len(t.claimed) == 0:
	case r.TokenEach:
		batch.Queue(l.Schema.SQL(insertClaims), args{
			"tokens": uuids(t.tokens), "worker": r.Worker, "lease_until": b.LeaseUntil.Time, "ids": uuids(t.claimed),
		})
	default:
		batch.Queue(l.Schema.SQL(insertClaim), args{
			"token": b.Token, "worker": r.Worker, "lease_until": b.LeaseUntil.Time, "delivery_ids": uuids(t.claimed),
		})
	}
	return tx.SendBatch(ctx, batch).Close()
}

// takenRows are the rows that a claim changes.
type takenRows struct {
	tids    []pgtype.TID
	rows    []projections.Delivery
	records []events.Record
	claimed []uuid.UUID
	tokens  []uuid.UUID // of the claimed
}

func (t *takenRows) add(tid pgtype.TID, c projections.DeliveryChange) {
	t.tids, t.rows = append(t.tids, tid), append(t.rows, c.After)
	t.records = append(t.records, c.Records...)
	if c.After.State == domain.StateProcessing {
		t.claimed, t.tokens = append(t.claimed, c.After.ID), append(t.tokens, c.After.Claim.Token)
	}
}

func (t *takenRows) args() args {
	n := len(t.rows)
	states, reasons, tokens := make([]string, n), make([]*string, n), make([]uuid.UUID, n)
	versions, attempts, cycle := make([]int, n), make([]int, n), make([]int, n)
	updated, heads := make([]time.Time, n), make([][]byte, n)
	for i := range t.rows {
		d := &t.rows[i]
		states[i], reasons[i], tokens[i] = string(d.State), orNil(string(d.FailureReason)), d.Claim.Token
		versions[i], attempts[i], cycle[i] = d.Version, d.Attempts, d.CycleAttempts
		updated[i], heads[i] = d.UpdatedAt.Time, d.Head[:]
	}
	return args{
		"tids": t.tids, "states": states, "versions": versions, "attempts": attempts, "cycle_attempts": cycle,
		"tokens": uuids(tokens), "reasons": reasons, "updated": updated, "heads": heads,
	}
}

// EndClaims removes claims none of whose deliveries is processing under them any
// more.
func (l *Ledger) EndClaims(ctx context.Context, tokens []uuid.UUID) error {
	if _, err := l.pool.Exec(ctx, l.Schema.SQL(deleteClaims), args{"tokens": uuids(tokens)}); err != nil {
		return fmt.Errorf("end claims: %w", err)
	}
	return nil
}
