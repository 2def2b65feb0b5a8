package projections

import (
	"context"
	_ "embed"
	"fmt"
	"reflect"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"waybill/events"
)

var (
	//go:embed sql/page_deliveries.sql
	pageDeliveries string
	//go:embed sql/page_endpoints.sql
	pageEndpoints string
	//go:embed sql/read_streams.sql
	readStreams string
)

// Fault is one thing that verification found wrong.
type Fault struct {
	Stream   events.Stream `json:"stream"`
	StreamID uuid.UUID     `json:"stream_id"`
	Seq      int           `json:"seq,omitempty"`
	What     string        `json:"what"`
}

// String names the stream and the seq.
func (f Fault) String() string {
	return fmt.Sprintf("%s %s seq %d: %s", f.Stream, f.StreamID, f.Seq, f.What)
}

// Report is what a verification looked at and found.
type Report struct {
	Deliveries int     `json:"deliveries"`
	Endpoints  int     `json:"endpoints"`
	Events     int     `json:"events"`
	Faults     []Fault `json:"faults"`
}

// verifyPage is how many rows are compared with their streams at a time.
const verifyPage = 500

// Verify compares every projection row with the fold of its stream, and checks
// each stream's sequence and hash chain. r.DB must be one snapshot (a repeatable
// read transaction), else rows that change meanwhile look wrong.
func (r Reader) Verify(ctx context.Context) (Report, error) {
	var rep Report
	err := verifyRows(ctx, r, &rep, pageDeliveries, scanDelivery, events.DeliveryStream, checkDelivery)
	if err != nil {
		return rep, err
	}
	err = verifyRows(ctx, r, &rep, pageEndpoints, scanEndpoint, events.EndpointStream, checkEndpoint)
	return rep, err
}

// row is a projection's row as verification sees it.
type row interface{ key() uuid.UUID }

func (d Delivery) key() uuid.UUID { return d.ID }
func (p Endpoint) key() uuid.UUID { return p.ID }

func verifyRows[T row](ctx context.Context, r Reader, rep *Report, page string, scan pgx.RowToFunc[T],
	kind events.Stream, check func(*Report, T, []events.Record),
) error {
	after := uuid.Nil
	for {
		rows, err := r.DB.Query(ctx, r.Schema.SQL(page), pgx.StrictNamedArgs{"after": after, "limit": verifyPage})
		if err != nil {
			return fmt.Errorf("verify: %w", err)
		}
		list, err := collect(rows, scan, "verify")
		if err != nil || len(list) == 0 {
			return err
		}
		streams, err := r.Streams(ctx, kind, keys(list))
		if err != nil {
			return err
		}
		for _, v := range list {
			rep.Events += len(streams[v.key()])
			rep.chain(kind, v.key(), streams[v.key()])
			check(rep, v, streams[v.key()])
		}
		after = list[len(list)-1].key()
	}
}

func keys[T row](list []T) []uuid.UUID {
	ids := make([]uuid.UUID, len(list))
	for i, v := range list {
		ids[i] = v.key()
	}
	return ids
}

// Streams returns all records of many streams of one kind, each in order of seq.
func (r Reader) Streams(ctx context.Context, kind events.Stream, ids []uuid.UUID) (map[uuid.UUID][]events.Record, error) {
	rows, err := r.DB.Query(ctx, r.Schema.SQL(readStreams), pgx.StrictNamedArgs{"stream": string(kind), "ids": ids})
	if err != nil {
		return nil, fmt.Errorf("read streams: %w", err)
	}
	records, err := collect(rows, ScanRecord, "read streams")
	streams := make(map[uuid.UUID][]events.Record, len(ids))
	for _, rec := range records {
		streams[rec.StreamID] = append(streams[rec.StreamID], rec)
	}
	return streams, err
}

// chain checks that seq starts at 1 without holes, that every hash is that of its
// record and of the one before, and that positions rise.
func (rep *Report) chain(kind events.Stream, id uuid.UUID, records []events.Record) {
	var prev events.Hash
	var position int64
	for i, r := range records {
		switch {
		case r.Seq != i+1:
			rep.fault(kind, id, i+1, fmt.Sprintf("missing; the next record has seq %d", r.Seq))
			return
		case r.Hash != r.Sum(prev):
			rep.fault(kind, id, r.Seq, "the hash is not that of the record and the one before")
		case r.Position <= position:
			rep.fault(kind, id, r.Seq, "the position does not rise with seq")
		}
		prev, position = r.Hash, r.Position
	}
}

func (rep *Report) fault(kind events.Stream, id uuid.UUID, seq int, what string) {
	rep.Faults = append(rep.Faults, Fault{kind, id, seq, what})
}

func checkDelivery(rep *Report, d Delivery, records []events.Record) {
	rep.Deliveries++
	folded, _, err := FoldDelivery(records)
	switch {
	case err != nil:
		rep.fault(events.DeliveryStream, d.ID, d.Version, err.Error())
	case folded != d:
		rep.fault(events.DeliveryStream, d.ID, d.Version,
			fmt.Sprintf("the row is not the fold of its events:\n  row  %+v\n  fold %+v", d, folded))
	}
}

func checkEndpoint(rep *Report, p Endpoint, records []events.Record) {
	rep.Endpoints++
	folded, err := FoldEndpoint(records)
	switch {
	case err != nil:
		rep.fault(events.EndpointStream, p.ID, p.Version, err.Error())
	case !reflect.DeepEqual(folded, p):
		rep.fault(events.EndpointStream, p.ID, p.Version, "the row is not the fold of its events")
	}
}
