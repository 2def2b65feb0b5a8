package command

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"

	"github.com/google/uuid"

	"waybill/domain"
	"waybill/events"
	"waybill/projections"
)

// ImportLedger is what taking over needs of the ledger.
type ImportLedger interface {
	Clock
	NewIDAt(at domain.Instant) uuid.UUID
	SubmitEndpoints(ctx context.Context, ids []uuid.UUID) (map[uuid.UUID]projections.SubmitEndpoint, error)
	Import(ctx context.Context, items []projections.Import, at domain.Instant) ([]projections.Acceptance, error)
}

// Importer takes over what another system has delivered already.
type Importer struct{ Ledger ImportLedger }

// Imported is one delivery that another system has made.
type Imported struct {
	IdempotencyKey string
	EventType      string // may be empty
	DeliveredAt    domain.Instant
	Line           int // where it comes from; refusals name it
}

// ImportCount is what became of imported items.
type ImportCount struct {
	Imported     int `json:"imported"`
	Duplicates   int `json:"duplicates"`    // their keys were taken; nothing of them was written
	NotDelivered int `json:"not_delivered"` // duplicates whose delivery here is not delivered
}

// Add adds up.
func (c *ImportCount) Add(more ImportCount) {
	c.Imported, c.Duplicates, c.NotDelivered = c.Imported+more.Imported, c.Duplicates+more.Duplicates, c.NotDelivered+more.NotDelivered
}

// Check refuses what cannot be kept.
func (i Imported) Check() error {
	err := domain.CheckIdempotencyKey(i.IdempotencyKey)
	if err == nil && i.EventType != "" {
		err = domain.CheckEventType(i.EventType)
	}
	return i.at(err)
}

// at names the line in a refusal.
func (i Imported) at(err error) error {
	var refused *domain.Error
	if errors.As(err, &refused) {
		return refused.With(fmt.Sprintf("line %d: %s", i.Line, refused.Message))
	}
	return err
}

// Import takes over one batch, all of it or nothing. An item whose key is taken, by an
// earlier import, a submission or an earlier item, is a duplicate: the key's owner stays
// as it is, and there is no content to compare.
func (m Importer) Import(ctx context.Context, by Caller, endpoint uuid.UUID, batch []Imported) (ImportCount, error) {
	var count ImportCount
	at, err := m.Ledger.Now(ctx)
	if err != nil {
		return count, err
	}
	known, err := m.Ledger.SubmitEndpoints(ctx, []uuid.UUID{endpoint})
	if err != nil {
		return count, err
	}
	e, ok := known[endpoint]
	if !ok || e.Tenant != by.Tenant {
		return count, domain.ErrEndpointNotFound
	}
	items := make([]projections.Import, len(batch))
	for i, b := range batch {
		if items[i], err = m.draft(by, e, b, at); err != nil {
			return count, b.at(err)
		}
	}
	answers, err := m.Ledger.Import(ctx, items, at)
	for _, a := range answers {
		count.Add(countOf(a))
	}
	return count, err
}

func countOf(a projections.Acceptance) ImportCount {
	if !a.Duplicate {
		return ImportCount{Imported: 1}
	}
	c := ImportCount{Duplicates: 1}
	for _, d := range a.Deliveries {
		if d.State != domain.StateDelivered {
			c.NotDelivered = 1
		}
	}
	return c
}

// draft is a message without content. Its salt is thrown away, as erasure does, so that
// its commitment and fingerprint say nothing and are compared with nothing.
func (m Importer) draft(by Caller, e projections.SubmitEndpoint, b Imported, at domain.Instant) (projections.Import, error) {
	if err := b.Check(); err != nil {
		return projections.Import{}, err
	}
	salt := make([]byte, 32)
	_, _ = rand.Read(salt) // never fails, says its documentation
	message := projections.Message{ID: m.Ledger.NewIDAt(at), Tenant: by.Tenant, EventType: b.EventType,
		Commitment: events.Commitment(salt, nil), TraceParent: newTraceParent()}
	item := projections.Import{Submission: projections.Submission{Message: message, Key: b.IdempotencyKey, Scope: e.ID,
		Fingerprint: events.Fingerprint(salt, "", b.EventType, "", nil)}}
	facts, err := domain.Import(domain.Scheduled{
		EndpointID: e.ID, MessageID: message.ID, EventType: b.EventType, Commitment: message.Commitment,
		IdempotencyKey: b.IdempotencyKey, Fingerprint: item.Fingerprint, DueAt: at, OnBehalfOf: by.OnBehalfOf,
	}, b.DeliveredAt, e.Status, at)
	if err != nil {
		return item, err
	}
	blank := projections.Delivery{Delivery: domain.Delivery{ID: m.Ledger.NewIDAt(at), Tenant: by.Tenant}}
	scheduled, err := blank.AdvanceTraced(by.Actor, message.TraceParent, at, facts[0])
	if err != nil {
		return item, err
	}
	item.Deliveries = []projections.DeliveryChange{scheduled}
	item.Settled, err = scheduled.After.AdvanceTraced(by.Actor, message.TraceParent, at, facts[1:]...)
	return item, err
}
