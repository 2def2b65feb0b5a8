package projections

import (
	"fmt"

	"github.com/google/uuid"

	"waybill/domain"
	"waybill/events"
)

// Delivery is a row of the inline projection: the state of a delivery and the hash
// of its stream's last record.
type Delivery struct {
	domain.Delivery
	Head events.Hash
}

// DeliveryChange is one decision about one delivery, ready to be appended: its
// records go in, and its row changes, only if the stream is still at
// Before.Version.
type DeliveryChange struct {
	Before  Delivery
	Records []events.Record
	After   Delivery
}

// Advance turns decided events into a change. The records' time is at, but never
// earlier than the stream's last.
func (d Delivery) Advance(by domain.Actor, at domain.Instant, facts ...domain.Event) (DeliveryChange, error) {
	return d.AdvanceTraced(by, "", at, facts...)
}

// AdvanceTraced is Advance with a W3C trace parent on the records.
func (d Delivery) AdvanceTraced(by domain.Actor, traceParent string, at domain.Instant, facts ...domain.Event) (DeliveryChange, error) {
	at = at.Later(d.UpdatedAt)
	env := events.Envelope{
		Tenant: d.Tenant, Stream: events.DeliveryStream, StreamID: d.ID,
		RecordedAt: at, Actor: by, EndpointID: d.EndpointID, TraceParent: traceParent,
	}
	if s, ok := facts[0].(domain.Scheduled); ok {
		env.EndpointID = s.EndpointID
	}
	records, err := events.Chain(env, d.Version, d.Head, facts)
	if err != nil {
		return DeliveryChange{}, err
	}
	after := d
	for _, f := range facts {
		after.Delivery = after.Evolve(f, at)
	}
	after.Head = records[len(records)-1].Hash
	return DeliveryChange{Before: d, Records: records, After: after}, nil
}

// FoldDelivery computes a delivery's row, and the history of its claims, from its
// records in order of seq, from 1.
func FoldDelivery(records []events.Record) (Delivery, domain.ClaimHistory, error) {
	var d Delivery
	var claims domain.ClaimHistory
	for _, r := range records {
		e, err := r.Event()
		if err != nil {
			return d, claims, fmt.Errorf("fold delivery %s at seq %d: %w", r.StreamID, r.Seq, err)
		}
		d.ID = r.StreamID
		d.take(&r, e)
		claims = claims.Evolve(e)
	}
	return d, claims, nil
}

// take folds the stream's next record, whose event is e.
func (d *Delivery) take(r *events.Record, e domain.Event) {
	d.Tenant, d.Head = r.Tenant, r.Hash
	d.Delivery = d.Evolve(e, r.RecordedAt)
}

// View is a delivery as the contract shows it.
type View struct {
	ID              uuid.UUID            `json:"id"`
	Tenant          string               `json:"tenant"`
	EndpointID      uuid.UUID            `json:"endpoint_id"`
	MessageID       uuid.UUID            `json:"message_id"`
	EventType       string               `json:"event_type"`
	State           domain.State         `json:"state" enum:"pending,processing,delivered,failed,held,cancelled"`
	Version         int                  `json:"version" doc:"seq of the last event"`
	Attempts        int                  `json:"attempts" doc:"lifetime attempt numbers drawn"`
	Cycle           int                  `json:"cycle"`
	CycleAttempts   int                  `json:"cycle_attempts"`
	DueAt           *domain.Instant      `json:"due_at,omitempty" format:"date-time"`
	Claim           *ClaimView           `json:"claim,omitempty"`
	LastOutcome     domain.Outcome       `json:"last_outcome,omitempty" enum:"succeeded,refused,unreached,unknown"`
	FailureReason   domain.FailureReason `json:"failure_reason,omitempty"`
	InDoubt         bool                 `json:"in_doubt" doc:"the last attempt is unknown and the delivery is not delivered"`
	UnknownAttempts int                  `json:"unknown_attempts" doc:"how many attempts were ever in doubt"`
	PayloadErased   bool                 `json:"payload_erased"`
	CreatedAt       domain.Instant       `json:"created_at" format:"date-time"`
	UpdatedAt       domain.Instant       `json:"updated_at" format:"date-time"`
	IdempotencyKey  string               `json:"idempotency_key,omitempty"`
	OrderingKey     string               `json:"ordering_key,omitempty"`
	Basis
}

// ClaimView is the present claim as the contract shows it.
type ClaimView struct {
	Token      uuid.UUID      `json:"claim_token"`
	Worker     string         `json:"worker"`
	LeaseUntil domain.Instant `json:"lease_until" format:"date-time"`
}

// View returns the row as the contract shows it.
func (d Delivery) View() View {
	v := View{
		ID: d.ID, Tenant: d.Tenant, EndpointID: d.EndpointID, MessageID: d.MessageID,
		EventType: d.EventType, State: d.State, Version: d.Version, Attempts: d.Attempts,
		Cycle: d.Cycle, CycleAttempts: d.CycleAttempts, LastOutcome: d.LastOutcome,
		FailureReason: d.FailureReason, InDoubt: d.InDoubt(), UnknownAttempts: d.UnknownAttempts,
		PayloadErased: d.PayloadErased, CreatedAt: d.CreatedAt, UpdatedAt: d.UpdatedAt,
		IdempotencyKey: d.IdempotencyKey, OrderingKey: d.OrderingKey,
	}
	if !d.DueAt.IsZero() {
		v.DueAt = &d.DueAt
	}
	if d.Claim.Token != uuid.Nil {
		v.Claim = &ClaimView{d.Claim.Token, d.Claim.Worker, d.Claim.LeaseUntil}
	}
	return v
}
