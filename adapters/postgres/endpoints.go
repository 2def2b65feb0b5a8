package postgres

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"waybill/domain"
	"waybill/projections"
)

var (
	//go:embed sql/get_submit_endpoints.sql
	getSubmitEndpoints string
	//go:embed sql/fanout_endpoints.sql
	fanoutEndpoints string
	//go:embed sql/lock_endpoint.sql
	lockEndpoint string
	//go:embed sql/put_endpoint.sql
	putEndpoint string
	//go:embed sql/put_endpoint_secrets.sql
	putEndpointSecrets string
)

// CreateEndpoint writes a new endpoint: its events, its row and its sealed target.
func (l *Ledger) CreateEndpoint(ctx context.Context, c projections.EndpointChange, target domain.Target) error {
	err := l.transact(ctx, func(tx pgx.Tx) error { return l.putEndpoint(ctx, tx, c, &target) })
	if err != nil {
		return fmt.Errorf("create endpoint: %w", refusal(err))
	}
	return nil
}

// ChangeEndpoint locks an endpoint, lets decide look at it and at its opened target,
// and writes what it decides. Changes of one endpoint follow one another, so decide
// usually runs once; it must be quick and must not touch the database.
func (l *Ledger) ChangeEndpoint(ctx context.Context, tenant string, id uuid.UUID,
	decide func(projections.Endpoint, domain.Target) (projections.EndpointDecision, error),
) (after projections.Endpoint, err error) {
	return l.changeEndpoint(ctx, tenant, id, func(p projections.Endpoint, sealed []byte) (projections.EndpointDecision, error) {
		target, err := l.openTarget(id, sealed)
		if err != nil {
			return projections.EndpointDecision{}, err
		}
		return decide(p, target)
	})
}

// ChangeEndpointStatus is ChangeEndpoint for decisions that need no target: they can
// be taken by who has no keyset.
func (l *Ledger) ChangeEndpointStatus(ctx context.Context, tenant string, id uuid.UUID,
	decide func(projections.Endpoint) (projections.EndpointDecision, error),
) (after projections.Endpoint, err error) {
	return l.changeEndpoint(ctx, tenant, id, func(p projections.Endpoint, _ []byte) (projections.EndpointDecision, error) {
		return decide(p)
	})
}

func (l *Ledger) changeEndpoint(ctx context.Context, tenant string, id uuid.UUID,
	decide func(projections.Endpoint, []byte) (projections.EndpointDecision, error),
) (after projections.Endpoint, err error) {
	err = l.transact(ctx, func(tx pgx.Tx) error {
		before, sealed, err := l.lockEndpoint(ctx, tx, tenant, id)
		if err != nil {
			return err
		}
		d, err := decide(before, sealed)
		if err != nil {
			return err
		}
		if after = before; len(d.Change.Records) == 0 {
			return nil
		}
		after = d.Change.After
		return l.putEndpoint(ctx, tx, d.Change, d.Target)
	})
	if err != nil {
		return projections.Endpoint{}, fmt.Errorf("change endpoint %s: %w", id, refusal(err))
	}
	return after, nil
}

func (l *Ledger) lockEndpoint(ctx context.Context, tx pgx.Tx, tenant string, id uuid.UUID) (p projections.Endpoint, sealed []byte, err error) {
	rows, err := tx.Query(ctx, l.Schema.SQL(lockEndpoint), args{"tenant": tenant, "id": id})
	if err != nil {
		return p, nil, err
	}
	p, err = pgx.CollectExactlyOneRow(rows, func(row pgx.CollectableRow) (projections.Endpoint, error) {
		return projections.ScanEndpoint(row, &sealed)
	})
	if errors.Is(err, pgx.ErrNoRows) {
		return p, nil, domain.ErrEndpointNotFound
	}
	return p, sealed, err
}

func (l *Ledger) putEndpoint(ctx context.Context, tx pgx.Tx, c projections.EndpointChange, target *domain.Target) error {
	p := c.After
	policy, err := json.Marshal(p.Config.Policy)
	if err != nil {
		return err
	}
	if err := l.insertRecords(ctx, tx, c.Records); err != nil {
		return err
	}
	_, err = tx.Exec(ctx, l.Schema.SQL(putEndpoint), args{
		"id": p.ID, "tenant": p.Tenant, "url": p.Config.URL, "url_fingerprint": []byte(p.Config.URLFingerprint),
		"description": p.Config.Description, "mode": string(p.Config.Mode), "event_types": p.Config.EventTypes,
		"policy": policy, "status": string(p.Status), "version": p.Version, "head_hash": p.Head[:],
		"created_at": p.CreatedAt.Time, "updated_at": p.UpdatedAt.Time,
	})
	if err != nil || target == nil {
		return err
	}
	sealed, err := l.sealTarget(p.ID, *target)
	if err != nil {
		return err
	}
	_, err = tx.Exec(ctx, l.Schema.SQL(putEndpointSecrets), args{"id": p.ID, "version": p.Version, "sealed": sealed})
	return err
}

// SubmitEndpoints returns those of the endpoints that exist, of any tenant.
func (l *Ledger) SubmitEndpoints(ctx context.Context, ids []uuid.UUID) (map[uuid.UUID]projections.SubmitEndpoint, error) {
	rows, err := l.pool.Query(ctx, l.Schema.SQL(getSubmitEndpoints), args{"ids": ids})
	if err != nil {
		return nil, fmt.Errorf("read endpoints: %w", err)
	}
	found := map[uuid.UUID]projections.SubmitEndpoint{}
	_, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (projections.SubmitEndpoint, error) {
		e, err := scanSubmitEndpoint(row)
		found[e.ID] = e
		return e, err
	})
	if err != nil {
		return nil, fmt.Errorf("read endpoints: %w", err)
	}
	return found, nil
}

// FanOut returns the tenant's endpoints that want messages of the event type, in
// order of id.
func (l *Ledger) FanOut(ctx context.Context, tenant, eventType string) ([]projections.SubmitEndpoint, error) {
	rows, err := l.pool.Query(ctx, l.Schema.SQL(fanoutEndpoints), args{"tenant": tenant})
	if err != nil {
		return nil, fmt.Errorf("find endpoints of %q: %w", eventType, err)
	}
	var list []projections.SubmitEndpoint
	_, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (struct{}, error) {
		var wants domain.Endpoint
		e, err := scanSubmitEndpoint(row, &wants.Config.EventTypes)
		if wants.Wants(eventType) {
			list = append(list, e)
		}
		return struct{}{}, err
	})
	if err != nil {
		return nil, fmt.Errorf("find endpoints of %q: %w", eventType, err)
	}
	return list, nil
}

func scanSubmitEndpoint(row pgx.CollectableRow, more ...any) (e projections.SubmitEndpoint, err error) {
	var rate, delay string
	if err := row.Scan(append([]any{&e.ID, &e.Tenant, &e.Status, &rate, &delay}, more...)...); err != nil {
		return e, err
	}
	return e, errors.Join(e.Rate.UnmarshalText([]byte(rate)), e.Delay.UnmarshalText([]byte(delay)))
}
