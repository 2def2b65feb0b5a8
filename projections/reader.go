package projections

import (
	"context"
	_ "embed"
	"errors"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"waybill/domain"
	"waybill/events"
)

var (
	//go:embed sql/get_delivery.sql
	getDelivery string
	//go:embed sql/list_deliveries.sql
	listDeliveries string
	//go:embed sql/read_stream.sql
	readStream string
	//go:embed sql/read_streams.sql
	readStreams string
	//go:embed sql/get_endpoint.sql
	getEndpoint string
	//go:embed sql/list_endpoints.sql
	listEndpoints string
)

// DB is where questions are asked: a pool, a connection or a transaction.
type DB interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}

// Reader asks questions of the projections and of single streams.
type Reader struct {
	DB     DB
	Schema Schema
}

// MaxLimit bounds a page's size.
const MaxLimit = 500

// Delivery returns one delivery of a tenant, or ErrDeliveryNotFound, or
// ErrDeliveryArchived.
func (r Reader) Delivery(ctx context.Context, tenant string, id uuid.UUID) (Delivery, error) {
	rows, err := r.DB.Query(ctx, r.Schema.SQL(getDelivery), pgx.StrictNamedArgs{"tenant": tenant, "id": id})
	if err != nil {
		return Delivery{}, fmt.Errorf("read delivery %s: %w", id, err)
	}
	d, err := pgx.CollectExactlyOneRow(rows, scanDelivery)
	if errors.Is(err, pgx.ErrNoRows) {
		return d, r.Absent(ctx, id)
	}
	return d, found(err, domain.ErrDeliveryNotFound, "read delivery %s", id)
}

// DeliveryFilter narrows a list of deliveries; zero members do not.
type DeliveryFilter struct {
	EndpointID     uuid.UUID
	State          domain.State
	EventType      string
	IdempotencyKey string
	InDoubt        *bool
	EverUnknown    *bool // unknown_attempts above zero
	PayloadErased  *bool
	Since, Until   domain.Instant // half-open on the creation time
}

// Deliveries returns a tenant's deliveries, newest first, those below the id
// before (zero: from the newest), at most limit (1 to MaxLimit).
func (r Reader) Deliveries(ctx context.Context, tenant string, f DeliveryFilter, before uuid.UUID, limit int) ([]Delivery, error) {
	rows, err := r.DB.Query(ctx, r.Schema.SQL(listDeliveries), pgx.StrictNamedArgs{
		"tenant": tenant, "before": orNull(before), "endpoint": orNull(f.EndpointID), "state": orNull(string(f.State)),
		"event_type": orNull(f.EventType), "idempotency_key": orNull(f.IdempotencyKey),
		"in_doubt": f.InDoubt, "ever_unknown": f.EverUnknown, "payload_erased": f.PayloadErased,
		"since": orNull(f.Since.Time), "until": orNull(f.Until.Time), "limit": limit,
	})
	if err != nil {
		return nil, fmt.Errorf("list deliveries: %w", err)
	}
	return collect(rows, scanDelivery, "list deliveries")
}

// Stream returns a stream's records of one tenant in order of seq, from above
// after, at most limit.
func (r Reader) Stream(ctx context.Context, tenant string, kind events.Stream, id uuid.UUID, after, limit int) ([]events.Record, error) {
	rows, err := r.DB.Query(ctx, r.Schema.SQL(readStream), pgx.StrictNamedArgs{
		"tenant": tenant, "stream": string(kind), "id": id, "after": after, "limit": limit,
	})
	if err != nil {
		return nil, fmt.Errorf("read stream %s: %w", id, err)
	}
	return collect(rows, ScanRecord, "read stream")
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

// Endpoint returns one endpoint of a tenant, or ErrEndpointNotFound.
func (r Reader) Endpoint(ctx context.Context, tenant string, id uuid.UUID) (Endpoint, error) {
	rows, err := r.DB.Query(ctx, r.Schema.SQL(getEndpoint), pgx.StrictNamedArgs{"tenant": tenant, "id": id})
	if err != nil {
		return Endpoint{}, fmt.Errorf("read endpoint %s: %w", id, err)
	}
	p, err := pgx.CollectExactlyOneRow(rows, scanEndpoint)
	return p, found(err, domain.ErrEndpointNotFound, "read endpoint %s", id)
}

// Endpoints returns a tenant's endpoints, newest first, those below the id before
// (zero: from the newest), at most limit (1 to MaxLimit).
func (r Reader) Endpoints(ctx context.Context, tenant string, before uuid.UUID, limit int) ([]Endpoint, error) {
	rows, err := r.DB.Query(ctx, r.Schema.SQL(listEndpoints), pgx.StrictNamedArgs{
		"tenant": tenant, "before": orNull(before), "limit": limit,
	})
	if err != nil {
		return nil, fmt.Errorf("list endpoints: %w", err)
	}
	return collect(rows, scanEndpoint, "list endpoints")
}

func scanEndpoint(row pgx.CollectableRow) (Endpoint, error) { return ScanEndpoint(row) }

func collect[T any](rows pgx.Rows, scan pgx.RowToFunc[T], doing string) ([]T, error) {
	list, err := pgx.CollectRows(rows, scan)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", doing, err)
	}
	return list, nil
}

// found turns the absence of a row into a refusal.
func found(err error, missing *domain.Error, doing string, args ...any) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, pgx.ErrNoRows):
		return missing
	}
	return fmt.Errorf(doing+": %w", append(args, err)...)
}

// orNull is nil for a zero value, which an optional argument takes as "any".
func orNull[T comparable](v T) any {
	var zero T
	if v == zero {
		return nil
	}
	return v
}
