package postgres

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"waybill/domain"
	"waybill/events"
	"waybill/projections"
)

var (
	//go:embed sql/lock_admin_head.sql
	lockAdminHead string
	//go:embed sql/move_admin_head.sql
	moveAdminHead string
	//go:embed sql/insert_tenant.sql
	insertTenant string
	//go:embed sql/list_tenants.sql
	listTenants string
	//go:embed sql/get_tenant.sql
	getTenant string
)

// administer appends to a tenant's administrative stream in the transaction of what
// the events are about. It locks the stream's head, so it is never stale.
func (l *Ledger) administer(ctx context.Context, tx pgx.Tx, tenant string, by domain.Actor, at domain.Instant, facts ...domain.Event) error {
	var stream uuid.UUID
	var version int
	var hash []byte
	var last *time.Time
	err := tx.QueryRow(ctx, l.Schema.SQL(lockAdminHead), args{"tenant": tenant}).Scan(&stream, &version, &hash, &last)
	if errors.Is(err, pgx.ErrNoRows) {
		return domain.ErrTenantNotFound
	}
	if err != nil {
		return err
	}
	var head events.Hash
	copy(head[:], hash)
	if last != nil {
		at = at.Later(domain.At(*last))
	}
	env := events.Envelope{Tenant: tenant, Stream: events.AdminStream, StreamID: stream, RecordedAt: at, Actor: by}
	records, err := events.Chain(env, version, head, facts)
	if err != nil {
		return err
	}
	if err := l.insertRecords(ctx, tx, records); err != nil {
		return err
	}
	end := records[len(records)-1]
	_, err = tx.Exec(ctx, l.Schema.SQL(moveAdminHead), args{
		"tenant": tenant, "version": end.Seq, "head_hash": end.Hash[:], "last_at": at.Time,
	})
	return err
}

// CreateTenant makes a tenant; ErrTenantExists if there is one of that name.
func (l *Ledger) CreateTenant(ctx context.Context, name string, by domain.Actor) (projections.Tenant, error) {
	now, err := l.clock.Now(ctx)
	if err != nil {
		return projections.Tenant{}, err
	}
	t := projections.Tenant{Name: name, ID: NewID(now), CreatedAt: now}
	err = l.transact(ctx, func(tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, l.Schema.SQL(insertTenant), args{"name": name, "id": t.ID, "created_at": now.Time})
		if err != nil {
			return err
		}
		if tag.RowsAffected() == 0 {
			return domain.ErrTenantExists
		}
		return l.administer(ctx, tx, domain.SystemTenant, by, now, domain.TenantCreated{Name: name})
	})
	if err != nil {
		return projections.Tenant{}, fmt.Errorf("create tenant %s: %w", name, err)
	}
	return t, nil
}

// Tenants returns all tenants, by name.
func (l *Ledger) Tenants(ctx context.Context) ([]projections.Tenant, error) {
	rows, err := l.pool.Query(ctx, l.Schema.SQL(listTenants))
	if err != nil {
		return nil, fmt.Errorf("list tenants: %w", err)
	}
	return pgx.CollectRows(rows, scanTenant)
}

// Tenant returns one tenant, or ErrTenantNotFound.
func (l *Ledger) Tenant(ctx context.Context, name string) (projections.Tenant, error) {
	rows, err := l.pool.Query(ctx, l.Schema.SQL(getTenant), args{"name": name})
	if err != nil {
		return projections.Tenant{}, fmt.Errorf("read tenant %s: %w", name, err)
	}
	t, err := pgx.CollectExactlyOneRow(rows, scanTenant)
	if errors.Is(err, pgx.ErrNoRows) {
		return t, domain.ErrTenantNotFound
	}
	return t, err
}

func scanTenant(row pgx.CollectableRow) (t projections.Tenant, err error) {
	var at time.Time
	err = row.Scan(&t.Name, &t.ID, &at)
	t.CreatedAt = domain.At(at)
	return t, err
}

// Note appends events to a tenant's administrative stream: what was done to no row.
func (l *Ledger) Note(ctx context.Context, tenant string, by domain.Actor, facts ...domain.Event) error {
	now, err := l.clock.Now(ctx)
	if err != nil {
		return err
	}
	return l.transact(ctx, func(tx pgx.Tx) error { return l.administer(ctx, tx, tenant, by, now, facts...) })
}
