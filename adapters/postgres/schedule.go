package postgres

import (
	"cmp"
	"context"
	"crypto/hmac"
	_ "embed"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"waybill/domain"
	"waybill/events"
	"waybill/projections"
)

var (
	//go:embed sql/claim_keys.sql
	claimKeys string
	//go:embed sql/get_keys.sql
	getKeys string
	//go:embed sql/insert_messages.sql
	insertMessages string
	//go:embed sql/insert_deliveries.sql
	insertDeliveries string
)

// keyTimeout is how long a batch waits for a key or a row that another transaction
// holds; then its items are to be tried one by one.
const keyTimeout = "250ms"

// Schedule accepts submissions in one transaction and answers each, in order. An
// item whose key is taken gets the original's ids, or ErrIdempotencyConflict in its
// Err if its content differs. An error means that nothing of any item was written,
// unless it is [Unsure]: then the answer was lost and the database does not answer.
func (l *Ledger) Schedule(ctx context.Context, items []projections.Submission, at domain.Instant) ([]projections.Acceptance, error) {
	var answers []projections.Acceptance
	err := l.transact(ctx, func(tx pgx.Tx) (err error) {
		answers, err = l.scheduleIn(ctx, tx, items, at)
		return err
	})
	if err = l.settle(ctx, err, messageExists, anyFresh(answers)); err != nil {
		return nil, fmt.Errorf("schedule: %w", refusal(err))
	}
	return answers, nil
}

func (l *Ledger) scheduleIn(ctx context.Context, tx pgx.Tx, items []projections.Submission, at domain.Instant) ([]projections.Acceptance, error) {
	answers := make([]projections.Acceptance, len(items))
	losers, err := l.claimKeys(ctx, tx, items, at)
	if err != nil {
		return nil, err
	}
	var fresh []projections.Submission
	for i, s := range items {
		if !losers[s.Message.ID] {
			fresh, answers[i] = append(fresh, s), accepted(s)
		}
	}
	if err := l.insertFresh(ctx, tx, fresh, at); err != nil || len(losers) == 0 {
		return answers, err
	}
	return answers, l.answerLosers(ctx, tx, items, losers, answers)
}

// anyFresh is a message that the transaction wrote, if it wrote any.
func anyFresh(answers []projections.Acceptance) uuid.UUID {
	for _, a := range answers {
		if !a.Duplicate && a.Err == nil {
			return a.MessageID
		}
	}
	return uuid.Nil
}

// claimKeys occupies the items' keys and returns the messages that lost theirs.
func (l *Ledger) claimKeys(ctx context.Context, tx pgx.Tx, items []projections.Submission, at domain.Instant) (map[uuid.UUID]bool, error) {
	var scopes, messages []uuid.UUID
	var keys, tenants []string
	var fingerprints [][]byte
	losers := map[uuid.UUID]bool{}
	for _, s := range items {
		if s.Key != "" {
			scopes, keys, tenants = append(scopes, s.Scope), append(keys, s.Key), append(tenants, s.Message.Tenant)
			messages, fingerprints = append(messages, s.Message.ID), append(fingerprints, s.Fingerprint)
			losers[s.Message.ID] = true
		}
	}
	if len(keys) == 0 {
		return nil, nil
	}
	batch := &pgx.Batch{}
	batch.Queue("set local lock_timeout = '" + keyTimeout + "'")
	batch.Queue(l.Schema.SQL(claimKeys), args{
		"scopes": uuids(scopes), "keys": keys, "tenants": tenants, "message_ids": uuids(messages), "fingerprints": fingerprints, "now": at.Time,
	}).Query(func(rows pgx.Rows) error {
		won, err := pgx.CollectRows(rows, pgx.RowTo[uuid.UUID])
		for _, id := range won {
			delete(losers, id)
		}
		return err
	})
	return losers, tx.SendBatch(ctx, batch).Close()
}

func (l *Ledger) insertFresh(ctx context.Context, tx pgx.Tx, fresh []projections.Submission, at domain.Instant) error {
	if len(fresh) == 0 {
		return nil
	}
	var changes []projections.DeliveryChange
	for _, s := range fresh {
		changes = append(changes, s.Deliveries...)
	}
	slices.SortFunc(changes, func(a, b projections.DeliveryChange) int { return compareIDs(a.After.ID, b.After.ID) })
	batch := &pgx.Batch{}
	batch.Queue(l.Schema.SQL(insertMessages), messageArgs(fresh, changes).with(args{"now": at.Time}))
	if len(changes) > 0 {
		batch.Queue(l.Schema.SQL(insertDeliveries), newDeliveryArgs(changes))
		batch.Queue(l.Schema.SQL(insertEvents), eventArgs(recordsOf(changes)))
	}
	return tx.SendBatch(ctx, batch).Close()
}

func messageArgs(list []projections.Submission, changes []projections.DeliveryChange) args {
	var ids, deliveries, of []uuid.UUID
	var tenants, types, contents []string
	var payloads, salts, commitments [][]byte
	var traces []*string
	for _, s := range list {
		m := s.Message
		ids, tenants, types, contents = append(ids, m.ID), append(tenants, m.Tenant), append(types, m.EventType), append(contents, m.ContentType)
		payload := orEmpty(m.Payload)
		if m.Salt == nil { // there is no content
			payload = nil
		}
		payloads, salts, commitments = append(payloads, payload), append(salts, m.Salt), append(commitments, m.Commitment)
		traces = append(traces, orNil(m.TraceParent))
	}
	for _, c := range changes {
		deliveries, of = append(deliveries, c.After.ID), append(of, c.After.MessageID)
	}
	return args{
		"m_ids": uuids(ids), "m_tenants": tenants, "m_event_types": types, "m_content_types": contents, "m_payloads": payloads,
		"m_salts": salts, "m_commitments": commitments, "m_traces": traces, "d_ids": uuids(deliveries), "d_messages": uuids(of),
	}
}

func newDeliveryArgs(changes []projections.DeliveryChange) args {
	var ids, endpoints, messages []uuid.UUID
	var tenants, types []string
	var keys, ordering []*string
	var dues, created []time.Time
	var heads [][]byte
	for i := range changes {
		d := &changes[i].After
		ids, endpoints, messages = append(ids, d.ID), append(endpoints, d.EndpointID), append(messages, d.MessageID)
		tenants, types = append(tenants, d.Tenant), append(types, d.EventType)
		keys, ordering = append(keys, orNil(d.IdempotencyKey)), append(ordering, orNil(d.OrderingKey))
		dues, created, heads = append(dues, d.DueAt.Time), append(created, d.CreatedAt.Time), append(heads, d.Head[:])
	}
	return args{
		"ids": uuids(ids), "tenants": tenants, "endpoints": uuids(endpoints), "messages": uuids(messages), "event_types": types, "keys": keys,
		"ordering": ordering, "dues": dues, "created": created, "heads": heads,
	}
}

// original is the present owner of an idempotency key.
type original struct {
	scope       uuid.UUID
	key         string
	message     uuid.UUID
	fingerprint []byte
	salt        []byte // nil once erased
	ids         []uuid.UUID
	endpoints   []uuid.UUID
	states      []string
}

func (l *Ledger) answerLosers(ctx context.Context, tx pgx.Tx, items []projections.Submission, losers map[uuid.UUID]bool, answers []projections.Acceptance) error {
	lost := slices.DeleteFunc(slices.Clone(items), func(s projections.Submission) bool { return !losers[s.Message.ID] })
	owners, err := l.originals(ctx, tx, lost)
	if err != nil {
		return err
	}
	for i, s := range items {
		if !losers[s.Message.ID] {
			continue
		}
		o, ok := owners[s.Scope.String()+s.Key]
		if !ok {
			return fmt.Errorf("the owner of an idempotency key is not to be seen")
		}
		answers[i] = o.answer(s)
	}
	return nil
}

func (l *Ledger) originals(ctx context.Context, tx pgx.Tx, lost []projections.Submission) (map[string]original, error) {
	var scopes []uuid.UUID
	var keys []string
	slices.SortFunc(lost, func(a, b projections.Submission) int { return cmp.Compare(a.Key, b.Key) })
	for _, s := range slices.CompactFunc(lost, func(a, b projections.Submission) bool { return a.Key == b.Key && a.Scope == b.Scope }) {
		scopes, keys = append(scopes, s.Scope), append(keys, s.Key)
	}
	rows, err := tx.Query(ctx, l.Schema.SQL(getKeys), args{"scopes": uuids(scopes), "keys": keys})
	if err != nil {
		return nil, err
	}
	owners := map[string]original{}
	_, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (o original, err error) {
		err = row.Scan(&o.scope, &o.key, &o.message, &o.fingerprint, &o.salt, &o.ids, &o.endpoints, &o.states)
		owners[o.scope.String()+o.key] = o
		return o, err
	})
	return owners, err
}

// answer is what a repeated key gets: the original's ids, or a refusal that says
// nothing about it. Where either has no content, as after erasure and on import,
// nothing can be compared.
func (o original) answer(s projections.Submission) projections.Acceptance {
	if o.salt != nil && s.Message.Salt != nil {
		m := s.Message
		again := events.Fingerprint(o.salt, m.ContentType, m.EventType, s.OrderingKey, m.Payload)
		if !hmac.Equal(again, o.fingerprint) {
			return projections.Acceptance{Err: domain.ErrIdempotencyConflict}
		}
	}
	a := projections.Acceptance{MessageID: o.message, Duplicate: true}
	for i, id := range o.ids {
		a.Deliveries = append(a.Deliveries, projections.AcceptedDelivery{
			DeliveryID: id, EndpointID: o.endpoints[i], State: domain.State(o.states[i]),
		})
	}
	return a
}

func accepted(s projections.Submission) projections.Acceptance {
	a := projections.Acceptance{MessageID: s.Message.ID}
	for _, c := range s.Deliveries {
		a.Deliveries = append(a.Deliveries, projections.AcceptedDelivery{
			DeliveryID: c.After.ID, EndpointID: c.After.EndpointID, State: c.After.State,
		})
	}
	return a
}
