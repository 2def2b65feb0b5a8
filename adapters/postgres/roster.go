package postgres

import (
	"context"
	_ "embed"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"waybill/domain"
	"waybill/projections"
)

var (
	//go:embed sql/due_endpoints_recent.sql
	dueEndpointsRecent string
	//go:embed sql/due_endpoints.sql
	dueEndpoints string
	//go:embed sql/beat.sql
	beat string
	//go:embed sql/leave.sql
	leave string
)

// RecentlyDue returns the endpoints that have due work among the deliveries made
// since the given moment: cheap, and asked often.
func (l *Ledger) RecentlyDue(ctx context.Context, since domain.Instant) ([]uuid.UUID, error) {
	rows, err := l.pool.Query(ctx, l.Schema.SQL(dueEndpointsRecent), args{"since": since.Time})
	if err != nil {
		return nil, fmt.Errorf("find due endpoints: %w", err)
	}
	ids, err := pgx.CollectRows(rows, pgx.RowTo[uuid.UUID])
	if err != nil {
		return nil, fmt.Errorf("find due endpoints: %w", err)
	}
	return ids, nil
}

// AllDue returns every endpoint that has waiting work, with its earliest due time,
// and the database's present time. It costs an index probe an endpoint.
func (l *Ledger) AllDue(ctx context.Context) ([]projections.DueEndpoint, domain.Instant, error) {
	rows, err := l.pool.Query(ctx, l.Schema.SQL(dueEndpoints))
	if err != nil {
		return nil, domain.Instant{}, fmt.Errorf("find all due endpoints: %w", err)
	}
	var now time.Time
	list, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (d projections.DueEndpoint, err error) {
		return d, row.Scan(&d.ID, &d.Due.Time, &now)
	})
	if err != nil {
		return nil, domain.Instant{}, fmt.Errorf("find all due endpoints: %w", err)
	}
	return list, domain.At(now), nil
}

// Beat says that a worker is alive and returns the ids of all that are, itself
// included, in order of id: those that said so within the given time.
func (l *Ledger) Beat(ctx context.Context, id uuid.UUID, name string, alive time.Duration) ([]uuid.UUID, error) {
	rows, err := l.pool.Query(ctx, l.Schema.SQL(beat), args{"id": id, "name": name, "alive": alive})
	if err != nil {
		return nil, fmt.Errorf("beat: %w", err)
	}
	ids, err := pgx.CollectRows(rows, pgx.RowTo[uuid.UUID])
	if err != nil {
		return nil, fmt.Errorf("beat: %w", err)
	}
	return ids, nil
}

// Leave says that a worker is gone.
func (l *Ledger) Leave(ctx context.Context, id uuid.UUID) error {
	if _, err := l.pool.Exec(ctx, l.Schema.SQL(leave), args{"id": id}); err != nil {
		return fmt.Errorf("leave: %w", err)
	}
	return nil
}
