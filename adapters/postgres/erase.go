package postgres

import (
	"context"
	_ "embed"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"waybill/domain"
	"waybill/projections"
)

var (
	//go:embed sql/lock_messages.sql
	lockMessages string
	//go:embed sql/lock_deliveries.sql
	lockDeliveries string
	//go:embed sql/erase.sql
	erase string
	//go:embed sql/page_erasable.sql
	pageErasable string
	//go:embed sql/page_erasable_of.sql
	pageErasableOf string
)

// Erase erases messages in one transaction and answers each in order of id; those that
// are not the tenant's have no answer. Message and deliveries are locked before they are
// decided on, so whatever else would happen to them happens before or after: of two
// erasers one is told that it is done, a replay comes too late or comes first, and a late
// result finds that its excerpt is not wanted.
func (l *Ledger) Erase(ctx context.Context, e projections.Erasure) (answers []projections.ErasedMessage, err error) {
	now, err := l.clock.Now(ctx)
	if err != nil {
		return nil, err
	}
	err = l.transact(ctx, func(tx pgx.Tx) error {
		answers, err = l.eraseIn(ctx, tx, e, now)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("erase: %w", refusal(err))
	}
	return answers, nil
}

// heldMessage is a locked message.
type heldMessage struct {
	id         uuid.UUID
	deliveries []uuid.UUID
	erased     bool
}

func (l *Ledger) eraseIn(ctx context.Context, tx pgx.Tx, e projections.Erasure, now domain.Instant) ([]projections.ErasedMessage, error) {
	rows, err := tx.Query(ctx, l.Schema.SQL(lockMessages), args{"tenant": e.Tenant, "ids": uuids(e.Messages)})
	if err != nil {
		return nil, err
	}
	held, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (m heldMessage, err error) {
		return m, row.Scan(&m.id, &m.deliveries, &m.erased)
	})
	if err != nil {
		return nil, err
	}
	of, err := l.lockDeliveries(ctx, tx, held)
	if err != nil {
		return nil, err
	}
	answers := make([]projections.ErasedMessage, len(held))
	var w erasing
	for i, m := range held {
		if answers[i], err = w.decide(e, m, of[m.id], now); err != nil {
			return nil, err
		}
	}
	if e.DryRun || len(w.messages) == 0 {
		return answers, nil
	}
	return answers, l.writeErasure(ctx, tx, e, &w, now)
}

func (l *Ledger) lockDeliveries(ctx context.Context, tx pgx.Tx, held []heldMessage) (map[uuid.UUID][]projections.Delivery, error) {
	var ids []uuid.UUID
	for _, m := range held {
		ids = append(ids, m.deliveries...)
	}
	rows, err := tx.Query(ctx, l.Schema.SQL(lockDeliveries), args{"ids": uuids(ids)})
	if err != nil {
		return nil, err
	}
	of := map[uuid.UUID][]projections.Delivery{}
	_, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (d projections.Delivery, err error) {
		targets, finish := projections.DeliveryTargets(&d)
		err = row.Scan(targets...)
		finish()
		of[d.MessageID] = append(of[d.MessageID], d)
		return d, err
	})
	return of, err
}

// erasing is what one transaction has decided.
type erasing struct {
	messages, deliveries []uuid.UUID
	changes              []projections.DeliveryChange
	alone                []uuid.UUID // messages without a delivery
}

// decide takes all of a message or nothing of it.
func (w *erasing) decide(e projections.Erasure, m heldMessage, list []projections.Delivery, now domain.Instant) (projections.ErasedMessage, error) {
	answer := projections.ErasedMessage{ID: m.id, Deliveries: list}
	if m.erased {
		answer.Err = domain.ErrPayloadErased
		return answer, nil
	}
	var changes []projections.DeliveryChange
	for _, d := range list {
		facts, err := d.Erase(e.Fact)
		if err != nil {
			answer.Err, answer.Unsettled = err, append(answer.Unsettled, d.ID)
			continue
		}
		c, err := d.Advance(e.By, now, facts...)
		if err != nil {
			return answer, err
		}
		changes = append(changes, c)
	}
	if answer.Err != nil {
		return answer, nil
	}
	if len(list) == 0 {
		w.alone = append(w.alone, m.id)
	}
	answer.Deliveries = after(changes)
	w.messages, w.changes = append(w.messages, m.id), append(w.changes, changes...)
	for _, c := range changes {
		w.deliveries = append(w.deliveries, c.After.ID)
	}
	return answer, nil
}

func (l *Ledger) writeErasure(ctx context.Context, tx pgx.Tx, e projections.Erasure, w *erasing, now domain.Instant) error {
	stale, err := l.appendIn(ctx, tx, w.changes)
	if err == nil {
		err = staleUnderLock(stale)
	}
	if err != nil {
		return err
	}
	a := args{"messages": uuids(w.messages), "deliveries": uuids(w.deliveries), "now": now.Time}
	if _, err := tx.Exec(ctx, l.Schema.SQL(erase), a); err != nil {
		return err
	}
	var facts []domain.Event
	for _, id := range w.alone {
		facts = append(facts, domain.MessageErased{MessageID: id, Reason: e.Fact.Reason, LegalBasis: e.Fact.LegalBasis, OnBehalfOf: e.Fact.OnBehalfOf})
	}
	if len(facts) == 0 {
		return nil
	}
	return l.administer(ctx, tx, e.Tenant, e.By, now, facts...)
}

// Erasable steps through a tenant's messages made before a moment, those of one endpoint
// or (zero) all, from above the cursor: delivery ids are the cursor where an endpoint is
// named, message ids where none is.
func (l *Ledger) Erasable(ctx context.Context, tenant string, endpoint uuid.UUID, before domain.Instant, after uuid.UUID, limit int) (p projections.ErasablePage, err error) {
	sql, a := pageErasable, args{"tenant": tenant, "before": before.Time, "after": after, "limit": limit}
	if endpoint != uuid.Nil {
		sql, a["endpoint"] = pageErasableOf, endpoint
	}
	var last *uuid.UUID
	if err = l.pool.QueryRow(ctx, l.Schema.SQL(sql), a).Scan(&p.Messages, &last, &p.Seen); err != nil {
		return p, fmt.Errorf("look for what may be erased: %w", err)
	}
	if last != nil {
		p.Last = *last
	}
	return p, nil
}
