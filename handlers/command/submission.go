package command

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"strings"
	"time"

	"github.com/google/uuid"

	"waybill/domain"
	"waybill/events"
	"waybill/projections"
)

// Submission is a message to be delivered to one endpoint or, where none is named,
// to every endpoint of the tenant that wants its event type.
type Submission struct {
	EndpointID     uuid.UUID // zero: fan out by event type
	EventType      string
	ContentType    string
	IdempotencyKey string
	HasKey         bool // a key was given, even if it is empty
	OrderingKey    string
	NotBefore      domain.Instant // zero: at once
	Payload        []byte
	TraceParent    string // W3C Trace Context; empty: one is made
}

// Check refuses what cannot be kept or sent as it came.
func (s Submission) Check() error {
	if s.HasKey {
		if err := domain.CheckIdempotencyKey(s.IdempotencyKey); err != nil {
			return err
		}
	}
	if s.EventType != "" || s.EndpointID == uuid.Nil {
		if err := domain.CheckEventType(s.EventType); err != nil {
			return err
		}
	}
	if strings.ContainsFunc(s.ContentType, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }) {
		return domain.ErrInvalidRequest.With("the content type contains a control character")
	}
	return checkAll(domain.CheckText("content type", s.ContentType, domain.MaxContentType),
		domain.CheckText("ordering key", s.OrderingKey, domain.MaxOrderingKey))
}

// draft turns a checked submission into one that the ledger can accept: ids, salt,
// commitments, and one new delivery for each endpoint.
func (s Submission) draft(by Caller, scope uuid.UUID, endpoints []projections.SubmitEndpoint, at domain.Instant, newID func() uuid.UUID) (projections.Submission, error) {
	salt := make([]byte, 32)
	_, _ = rand.Read(salt) // never fails, says its documentation
	m := projections.Message{
		ID: newID(), Tenant: by.Tenant, EventType: s.EventType, ContentType: s.ContentType, Payload: s.Payload,
		Salt: salt, Commitment: events.Commitment(salt, s.Payload), TraceParent: s.TraceParent,
	}
	if m.TraceParent == "" {
		m.TraceParent = newTraceParent()
	}
	d := projections.Submission{Message: m, Key: s.IdempotencyKey, Scope: scope, OrderingKey: s.OrderingKey}
	if s.HasKey {
		d.Fingerprint = events.Fingerprint(salt, s.ContentType, s.EventType, s.OrderingKey, s.Payload)
	}
	for _, e := range endpoints {
		facts, err := domain.Schedule(domain.Scheduled{
			EndpointID: e.ID, MessageID: m.ID, EventType: s.EventType, ContentType: s.ContentType,
			PayloadSize: len(s.Payload), Commitment: m.Commitment, IdempotencyKey: s.IdempotencyKey,
			Fingerprint: d.Fingerprint, OrderingKey: s.OrderingKey, DueAt: at.After(time.Duration(e.Delay)).Later(s.NotBefore), OnBehalfOf: by.OnBehalfOf,
		}, e.Status)
		if err != nil {
			return d, err
		}
		blank := projections.Delivery{Delivery: domain.Delivery{ID: newID(), Tenant: by.Tenant}}
		change, err := blank.AdvanceTraced(by.Actor, m.TraceParent, at, facts...)
		if err != nil {
			return d, err
		}
		d.Deliveries = append(d.Deliveries, change)
	}
	return d, nil
}

// newTraceParent starts a trace that is not sampled (W3C Trace Context, section 3.2).
func newTraceParent() string {
	var b [24]byte
	_, _ = rand.Read(b[:])
	return "00-" + hex.EncodeToString(b[:16]) + "-" + hex.EncodeToString(b[16:]) + "-00"
}

// resolver finds the endpoints of submissions.
type resolver interface {
	Tenant(ctx context.Context, name string) (projections.Tenant, error)
	FanOut(ctx context.Context, tenant, eventType string) ([]projections.SubmitEndpoint, error)
}

// resolve turns a submission's destination into endpoints and into what its idempotency
// key is unique within: the endpoint, or the tenant for a fan-out.
func resolve(ctx context.Context, r resolver, by Caller, s Submission, known map[uuid.UUID]projections.SubmitEndpoint) ([]projections.SubmitEndpoint, uuid.UUID, error) {
	if id := s.EndpointID; id != uuid.Nil {
		e, ok := known[id]
		if !ok || e.Tenant != by.Tenant {
			return nil, id, domain.ErrEndpointNotFound
		}
		return []projections.SubmitEndpoint{e}, id, nil
	}
	tenant, err := r.Tenant(ctx, by.Tenant)
	if err != nil {
		return nil, uuid.Nil, err
	}
	list, err := r.FanOut(ctx, by.Tenant, s.EventType)
	return list, tenant.ID, err
}
