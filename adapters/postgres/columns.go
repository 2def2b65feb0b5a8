package postgres

import (
	"context"
	"maps"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"waybill/domain"
	"waybill/events"
	"waybill/projections"
)

// args are a statement's named arguments: parallel arrays, one element an item.
type args pgx.StrictNamedArgs

// RewriteQuery puts the arguments in their places; see [pgx.StrictNamedArgs].
func (a args) RewriteQuery(ctx context.Context, conn *pgx.Conn, sql string, rest []any) (string, []any, error) {
	return pgx.StrictNamedArgs(a).RewriteQuery(ctx, conn, sql, rest)
}

// deliveryArgs lays rows out as arrays.
func deliveryArgs(changes []projections.DeliveryChange) args {
	n := len(changes)
	c := struct {
		ids                                            []uuid.UUID
		expected, versions, attempts, cycles, cycleAtt []int
		lastAttempts, unknowns, proofs, forced         []int
		states                                         []string
		dues                                           []*time.Time
		tokens, heldBy                                 []uuid.UUID
		reasons, outcomes                              []*string
		erased                                         []bool
		updated                                        []time.Time
		heads                                          [][]byte
	}{
		ids: make([]uuid.UUID, 0, n),
	}
	for i := range changes {
		before, d := &changes[i].Before, &changes[i].After
		c.ids = append(c.ids, d.ID)
		c.expected = append(c.expected, before.Version)
		c.versions = append(c.versions, d.Version)
		c.attempts = append(c.attempts, d.Attempts)
		c.cycles = append(c.cycles, d.Cycle)
		c.cycleAtt = append(c.cycleAtt, d.CycleAttempts)
		c.lastAttempts = append(c.lastAttempts, d.LastAttempt)
		c.unknowns = append(c.unknowns, d.UnknownAttempts)
		c.proofs = append(c.proofs, d.Proof)
		c.forced = append(c.forced, d.ForcedAfter)
		c.states = append(c.states, string(d.State))
		c.dues = append(c.dues, orNilTime(d.DueAt))
		c.tokens = append(c.tokens, d.Claim.Token)
		c.heldBy = append(c.heldBy, d.HeldBy)
		c.reasons = append(c.reasons, orNil(string(d.FailureReason)))
		c.outcomes = append(c.outcomes, orNil(string(d.LastOutcome)))
		c.erased = append(c.erased, d.PayloadErased)
		c.updated = append(c.updated, d.UpdatedAt.Time)
		c.heads = append(c.heads, d.Head[:])
	}
	return args{
		"ids": uuids(c.ids), "expected": c.expected, "states": c.states, "versions": c.versions, "attempts": c.attempts,
		"cycles": c.cycles, "cycle_attempts": c.cycleAtt, "dues": c.dues, "tokens": uuids(c.tokens), "reasons": c.reasons,
		"outcomes": c.outcomes, "last_attempts": c.lastAttempts, "unknowns": c.unknowns, "proofs": c.proofs,
		"forced": c.forced, "held_by": uuids(c.heldBy), "erased": c.erased, "updated": c.updated, "heads": c.heads,
	}
}

// eventArgs lays records out as arrays.
func eventArgs(records []events.Record) args {
	n := len(records)
	var (
		tenants, streams, names, actors = make([]string, 0, n), make([]string, 0, n), make([]string, 0, n), make([]string, 0, n)
		ids, seqs, versions             = make([]uuid.UUID, 0, n), make([]int, 0, n), make([]int, 0, n)
		recorded, endpoints             = make([]time.Time, 0, n), make([]uuid.UUID, 0, n)
		traces, data, hashes            = make([]*string, 0, n), make([][]byte, 0, n), make([][]byte, 0, n)
	)
	for i := range records {
		r := &records[i]
		tenants, streams, ids = append(tenants, r.Tenant), append(streams, string(r.Stream)), append(ids, r.StreamID)
		seqs, names, versions = append(seqs, r.Seq), append(names, r.Name), append(versions, r.Version)
		recorded, actors = append(recorded, r.RecordedAt.Time), append(actors, string(r.Actor))
		endpoints, traces = append(endpoints, r.EndpointID), append(traces, orNil(r.TraceParent))
		data, hashes = append(data, r.Data), append(hashes, r.Hash[:])
	}
	return args{
		"e_tenants": tenants, "e_streams": streams, "e_ids": uuids(ids), "e_seqs": seqs, "e_names": names, "e_versions": versions,
		"e_recorded": recorded, "e_actors": actors, "e_endpoints": uuids(endpoints), "e_traces": traces, "e_data": data,
		"e_hashes": hashes,
	}
}

// exchangeArgs lays exchanges out as arrays.
func exchangeArgs(list []*projections.Exchange) args {
	var ids []uuid.UUID
	var attempts []int
	var salts, excerpts, locations, details [][]byte
	for _, x := range list {
		ids, attempts = append(ids, x.DeliveryID), append(attempts, x.Attempt)
		salts, excerpts = append(salts, orEmpty(x.Salt)), append(excerpts, orEmpty(x.Excerpt))
		locations, details = append(locations, orEmpty(x.Location)), append(details, orEmpty(x.Detail))
	}
	return args{
		"x_ids": uuids(ids), "x_attempts": attempts, "x_salts": salts, "x_excerpts": excerpts, "x_locations": locations,
		"x_details": details,
	}
}

// uuids lays ids out as the driver writes them fastest; the zero id is null.
func uuids(ids []uuid.UUID) []pgtype.UUID {
	list := make([]pgtype.UUID, len(ids))
	for i, id := range ids {
		list[i] = pgtype.UUID{Bytes: id, Valid: id != uuid.Nil}
	}
	return list
}

// with joins arguments of one statement.
func (a args) with(more args) args {
	maps.Copy(a, more)
	return a
}

// without leaves out arguments that a statement does not use.
func (a args) without(names ...string) args {
	for _, n := range names {
		delete(a, n)
	}
	return a
}

func recordsOf(changes []projections.DeliveryChange) []events.Record {
	records := make([]events.Record, 0, 2*len(changes))
	for _, c := range changes {
		records = append(records, c.Records...)
	}
	return records
}

func orEmpty(b []byte) []byte {
	if b == nil {
		return []byte{}
	}
	return b
}

func orNil[T comparable](v T) *T {
	var zero T
	if v == zero {
		return nil
	}
	return &v
}

func orNilTime(i domain.Instant) *time.Time {
	if i.IsZero() {
		return nil
	}
	return &i.Time
}
