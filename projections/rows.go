package projections

import (
	"encoding/json"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"waybill/domain"
	"waybill/events"
)

// deliveryScan holds what database columns need beside the row's own fields.
type deliveryScan struct {
	key, order, reason, outcome *string
	due                         *time.Time
	lease                       *time.Time
	token, heldBy               *uuid.UUID
	worker                      *string
	created, updated            time.Time
	head                        []byte
}

// DeliveryTargets returns where to scan the columns
//
//	id, tenant, endpoint_id, message_id, event_type, idempotency_key, ordering_key, state, version,
//	attempts, cycle, cycle_attempts, due_at, claim_token, failure_reason, last_outcome, last_attempt,
//	unknown_attempts, proof, forced_after, held_by, payload_erased, created_at, updated_at, head_hash
//
// of a delivery, followed by worker and lease_until of its claim; call finish
// after the scan.
func DeliveryTargets(d *Delivery) (targets []any, finish func()) {
	s := &deliveryScan{}
	// As bytes: a uuid.UUID would be read by its own Scan, which takes text.
	targets = []any{(*[16]byte)(&d.ID), &d.Tenant, (*[16]byte)(&d.EndpointID), (*[16]byte)(&d.MessageID), &d.EventType, &s.key, &s.order, &d.State, &d.Version,
		&d.Attempts, &d.Cycle, &d.CycleAttempts, &s.due, &s.token, &s.reason, &s.outcome, &d.LastAttempt,
		&d.UnknownAttempts, &d.Proof, &d.ForcedAfter, &s.heldBy, &d.PayloadErased, &s.created, &s.updated, &s.head,
		&s.worker, &s.lease}
	return targets, func() { s.finish(d) }
}

func (s *deliveryScan) finish(d *Delivery) {
	d.IdempotencyKey, d.OrderingKey = text(s.key), text(s.order)
	d.FailureReason, d.LastOutcome = domain.FailureReason(text(s.reason)), domain.Outcome(text(s.outcome))
	d.DueAt = instant(s.due)
	d.CreatedAt, d.UpdatedAt = domain.At(s.created), domain.At(s.updated)
	copy(d.Head[:], s.head)
	if s.heldBy != nil {
		d.HeldBy = *s.heldBy
	}
	if s.token != nil {
		d.Claim = domain.Claim{Token: *s.token, Worker: text(s.worker), LeaseUntil: instant(s.lease)}
	}
}

func scanDelivery(row pgx.CollectableRow) (Delivery, error) {
	var d Delivery
	targets, finish := DeliveryTargets(&d)
	if err := row.Scan(targets...); err != nil {
		return d, err
	}
	finish()
	return d, nil
}

// ScanEndpoint reads the columns
//
//	id, tenant, url, url_fingerprint, description, mode, event_types, policy, status, version, head_hash,
//	created_at, updated_at
//
// of an endpoint, and whatever the caller asks for after them.
func ScanEndpoint(row pgx.CollectableRow, more ...any) (Endpoint, error) {
	var p Endpoint
	var fingerprint, policy, head []byte
	var created, updated time.Time
	err := row.Scan(append([]any{&p.ID, &p.Tenant, &p.Config.URL, &fingerprint, &p.Config.Description, &p.Config.Mode,
		&p.Config.EventTypes, &policy, &p.Status, &p.Version, &head, &created, &updated}, more...)...)
	if err != nil {
		return p, err
	}
	p.Config.URLFingerprint = fingerprint
	copy(p.Head[:], head)
	p.CreatedAt, p.UpdatedAt = domain.At(created), domain.At(updated)
	return p, json.Unmarshal(policy, &p.Config.Policy)
}

// ScanRecord reads the columns
//
//	tenant, stream, stream_id, seq, position, name, version, recorded_at, actor, endpoint_id,
//	trace_parent, data, hash
//
// of the log.
func ScanRecord(row pgx.CollectableRow) (events.Record, error) {
	var kind events.Stream
	r, err := scanRecord(row, &kind)
	r.Stream = kind
	return r, err
}

// scanRecord is ScanRecord where kind is the second column; nil: it is none.
func scanRecord(row pgx.CollectableRow, kind *events.Stream) (events.Record, error) {
	var r events.Record
	var at time.Time
	var endpoint *uuid.UUID
	var trace *string
	var hash []byte
	targets := []any{&r.Tenant, kind, (*[16]byte)(&r.StreamID), &r.Seq, &r.Position, &r.Name, &r.Version, &at, &r.Actor,
		&endpoint, &trace, (*[]byte)(&r.Data), &hash}
	if kind == nil {
		targets = slices.Delete(targets, 1, 2)
	}
	if err := row.Scan(targets...); err != nil {
		return r, err
	}
	r.RecordedAt, r.TraceParent = domain.At(at), text(trace)
	if endpoint != nil {
		r.EndpointID = *endpoint
	}
	copy(r.Hash[:], hash)
	return r, nil
}

func text(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

func instant(t *time.Time) domain.Instant {
	if t == nil {
		return domain.Instant{}
	}
	return domain.At(*t)
}
