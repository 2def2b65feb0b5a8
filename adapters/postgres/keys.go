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
	"waybill/projections"
)

var (
	//go:embed sql/insert_key.sql
	insertKey string
	//go:embed sql/list_keys.sql
	listKeys string
	//go:embed sql/revoke_key.sql
	revokeKey string
	//go:embed sql/find_key.sql
	findKey string
)

// CreateKey keeps an API key's digest and says so in the log, together.
func (l *Ledger) CreateKey(ctx context.Context, k projections.Key, digest []byte, by domain.Actor) error {
	err := l.transact(ctx, func(tx pgx.Tx) error {
		fact := domain.KeyCreated{KeyID: k.ID, Name: k.Name, Scopes: k.Scopes, Rate: k.Rate}
		if err := l.administer(ctx, tx, k.Tenant, by, k.CreatedAt, fact); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, l.Schema.SQL(insertKey), args{
			"id": k.ID, "tenant": k.Tenant, "name": k.Name, "digest": digest, "scopes": k.Scopes, "rate": orNil(k.Rate.String()), "created_at": k.CreatedAt.Time,
		})
		return err
	})
	if err != nil {
		return fmt.Errorf("create key: %w", err)
	}
	return nil
}

// Keys returns a tenant's API keys, newest first.
func (l *Ledger) Keys(ctx context.Context, tenant string) ([]projections.Key, error) {
	rows, err := l.pool.Query(ctx, l.Schema.SQL(listKeys), args{"tenant": tenant})
	if err != nil {
		return nil, fmt.Errorf("list keys: %w", err)
	}
	return pgx.CollectRows(rows, scanKey)
}

// KeyByDigest returns the API key that has the digest, or ErrUnauthorized if there is
// none or it is revoked.
func (l *Ledger) KeyByDigest(ctx context.Context, digest []byte) (projections.Key, error) {
	rows, err := l.pool.Query(ctx, l.Schema.SQL(findKey), args{"digest": digest})
	if err != nil {
		return projections.Key{}, fmt.Errorf("find key: %w", err)
	}
	k, err := pgx.CollectExactlyOneRow(rows, scanKey)
	if errors.Is(err, pgx.ErrNoRows) {
		return k, domain.ErrUnauthorized
	}
	return k, err
}

func scanKey(row pgx.CollectableRow) (k projections.Key, err error) {
	var created time.Time
	var revoked *time.Time
	var rate string
	err = row.Scan(&k.ID, &k.Tenant, &k.Name, &k.Scopes, &rate, &created, &revoked)
	k.CreatedAt = domain.At(created)
	if revoked != nil {
		k.RevokedAt = domain.At(*revoked)
	}
	if err == nil {
		err = k.Rate.UnmarshalText([]byte(rate))
	}
	return k, err
}

// RevokeKey makes a tenant's API key open nothing any more, and says so in the log.
// Revoking twice is no event; ErrKeyNotFound if the tenant has no such key.
func (l *Ledger) RevokeKey(ctx context.Context, tenant string, id uuid.UUID, by domain.Actor) error {
	now, err := l.clock.Now(ctx)
	if err != nil {
		return err
	}
	keys, err := l.Keys(ctx, tenant)
	if err != nil {
		return err
	}
	for _, k := range keys {
		if k.ID == id {
			return l.revoke(ctx, tenant, id, by, now)
		}
	}
	return domain.ErrKeyNotFound
}

func (l *Ledger) revoke(ctx context.Context, tenant string, id uuid.UUID, by domain.Actor, now domain.Instant) error {
	err := l.transact(ctx, func(tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, l.Schema.SQL(revokeKey), args{"tenant": tenant, "id": id, "revoked_at": now.Time})
		if err != nil || tag.RowsAffected() == 0 {
			return err
		}
		return l.administer(ctx, tx, tenant, by, now, domain.KeyRevoked{KeyID: id})
	})
	if err != nil {
		return fmt.Errorf("revoke key: %w", err)
	}
	return nil
}
