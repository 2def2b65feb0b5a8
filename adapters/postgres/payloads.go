package postgres

import (
	"context"
	_ "embed"
	"errors"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"waybill/domain"
	"waybill/projections"
)

var (
	//go:embed sql/get_payload.sql
	getPayload string
	//go:embed sql/list_exchanges.sql
	listExchanges string
)

// ReadPayload returns the bytes of a delivery's message and their content type, once
// the reading is committed to the log. ErrPayloadErased if they are gone.
func (l *Ledger) ReadPayload(ctx context.Context, tenant string, id uuid.UUID, by domain.Actor, from, onBehalfOf string) (payload []byte, contentType string, err error) {
	now, err := l.clock.Now(ctx)
	if err != nil {
		return nil, "", err
	}
	err = l.transact(ctx, func(tx pgx.Tx) error {
		var message uuid.UUID
		err := tx.QueryRow(ctx, l.Schema.SQL(getPayload), args{"tenant": tenant, "id": id}).Scan(&message, &contentType, &payload)
		switch {
		case errors.Is(err, pgx.ErrNoRows):
			return projections.Reader{DB: tx, Schema: l.Schema}.Absent(ctx, id)
		case err != nil:
			return err
		case payload == nil:
			return domain.ErrPayloadErased
		}
		return l.administer(ctx, tx, tenant, by, now, domain.PayloadRead{DeliveryID: id, MessageID: message, From: from, OnBehalfOf: onBehalfOf})
	})
	if err != nil {
		return nil, "", fmt.Errorf("read payload: %w", err)
	}
	return payload, contentType, nil
}

// Exchanges returns what receivers answered to a delivery's attempts, in order of
// attempt: bytes from outside.
func (l *Ledger) Exchanges(ctx context.Context, tenant string, id uuid.UUID) ([]projections.Exchange, error) {
	rows, err := l.pool.Query(ctx, l.Schema.SQL(listExchanges), args{"tenant": tenant, "id": id})
	if err != nil {
		return nil, fmt.Errorf("list exchanges: %w", err)
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (x projections.Exchange, err error) {
		return x, row.Scan(&x.DeliveryID, &x.Attempt, &x.Salt, &x.Excerpt, &x.Location, &x.Detail)
	})
}
