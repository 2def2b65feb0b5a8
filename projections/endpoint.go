package projections

import (
	"fmt"

	"github.com/google/uuid"

	"waybill/domain"
	"waybill/events"
)

// Endpoint is a row of the inline projection of endpoint streams.
type Endpoint struct {
	domain.Endpoint
	Head events.Hash
}

// EndpointChange is one decision about one endpoint, ready to be appended.
type EndpointChange struct {
	Before  Endpoint
	Records []events.Record
	After   Endpoint
}

// EndpointDecision is what follows from an endpoint's present state: a change (none
// if it has no records) and, where that changes, the new target.
type EndpointDecision struct {
	Change EndpointChange
	Target *domain.Target
}

// Advance turns decided events into a change; see [Delivery.Advance].
func (p Endpoint) Advance(by domain.Actor, at domain.Instant, facts ...domain.Event) (EndpointChange, error) {
	at = at.Later(p.UpdatedAt)
	env := events.Envelope{
		Tenant: p.Tenant, Stream: events.EndpointStream, StreamID: p.ID,
		RecordedAt: at, Actor: by, EndpointID: p.ID,
	}
	records, err := events.Chain(env, p.Version, p.Head, facts)
	if err != nil {
		return EndpointChange{}, err
	}
	after := p
	for _, f := range facts {
		after.Endpoint = after.Evolve(f, at)
	}
	if len(records) > 0 {
		after.Head = records[len(records)-1].Hash
	}
	return EndpointChange{Before: p, Records: records, After: after}, nil
}

// FoldEndpoint computes an endpoint's row from its records in order of seq, from 1.
func FoldEndpoint(records []events.Record) (Endpoint, error) {
	var p Endpoint
	for _, r := range records {
		e, err := r.Event()
		if err != nil {
			return p, fmt.Errorf("fold endpoint %s at seq %d: %w", r.StreamID, r.Seq, err)
		}
		p.ID = r.StreamID
		p.take(&r, e)
	}
	return p, nil
}

// take folds the stream's next record, whose event is e.
func (p *Endpoint) take(r *events.Record, e domain.Event) {
	p.Tenant, p.Head = r.Tenant, r.Hash
	p.Endpoint = p.Evolve(e, r.RecordedAt)
}

// EndpointView is an endpoint as the contract shows it. Query values of the URL and
// values of headers are never shown.
type EndpointView struct {
	ID          uuid.UUID             `json:"id"`
	Tenant      string                `json:"tenant"`
	URL         string                `json:"url" doc:"without query values"`
	Description string                `json:"description"`
	Mode        domain.Mode           `json:"mode" enum:"http,remote"`
	EventTypes  []string              `json:"event_types"`
	Policy      domain.Policy         `json:"policy" doc:"header values are shown as keyed fingerprints"`
	Status      domain.EndpointStatus `json:"status" enum:"active,paused,disabled,archived"`
	Version     int                   `json:"version"`
	CreatedAt   domain.Instant        `json:"created_at" format:"date-time"`
	UpdatedAt   domain.Instant        `json:"updated_at" format:"date-time"`
	Basis
}

// View returns the row as the contract shows it.
func (p Endpoint) View() EndpointView {
	return EndpointView{
		ID: p.ID, Tenant: p.Tenant, URL: p.Config.URL, Description: p.Config.Description,
		Mode: p.Config.Mode, EventTypes: p.Config.EventTypes, Policy: p.Config.Policy,
		Status: p.Status, Version: p.Version, CreatedAt: p.CreatedAt, UpdatedAt: p.UpdatedAt,
	}
}
