package projections

import (
	"context"

	"github.com/google/uuid"

	"waybill/domain"
	"waybill/events"
)

// dossierMost bounds the events of one dossier, in memory and on the page.
const dossierMost = 10_000

// Dossier is everything that the ledger knows of one delivery, without a byte of payload
// or of what receivers answered.
type Dossier struct {
	Format   string          `json:"format" doc:"waybill.dossier.v1"`
	Delivery View            `json:"delivery" doc:"the fold of the events below"`
	Chain    Chain           `json:"chain"`
	Events   []events.Record `json:"events"`
	Endpoint []events.Record `json:"endpoint_events" doc:"of the endpoint, up to the delivery's last event"`
	Answers  []AnswerKept    `json:"exchanges" doc:"what is kept of answers, by attempt; not their bytes"`
	Horizon  int64           `json:"horizon" doc:"events up to this position are sealed and can be proven"`
}

// AnswerKept says that something was kept of an answer, and not what.
type AnswerKept struct {
	Attempt      int  `json:"attempt"`
	ExcerptBytes int  `json:"excerpt_bytes"`
	Erased       bool `json:"erased"`
}

// Keep notes what is kept of the answers to the delivery's attempts.
func (d *Dossier) Keep(list []Exchange) {
	d.Answers = make([]AnswerKept, 0, len(list))
	for _, x := range list {
		d.Answers = append(d.Answers, AnswerKept{x.Attempt, len(x.Excerpt), x.Salt == nil})
	}
}

// Chain says whether the hashes of a history are those of what it says.
type Chain struct {
	Intact bool `json:"intact"`
	Broken int  `json:"broken_at_seq,omitempty" doc:"the first event that is not what its hash says"`
}

// Dossier returns everything about one delivery of a tenant.
func (r Reader) Dossier(ctx context.Context, tenant string, id uuid.UUID) (Dossier, error) {
	d := Dossier{Format: "waybill.dossier.v1"}
	head, err := r.Head(ctx)
	if err != nil {
		return d, err
	}
	d.Horizon = head.Last
	if d.Events, err = r.whole(ctx, tenant, events.DeliveryStream, id); err != nil {
		return d, err
	}
	if len(d.Events) == 0 {
		_, err := r.Delivery(ctx, tenant, id)
		if err == nil {
			err = domain.ErrDeliveryNotFound
		}
		return d, err
	}
	row, _, err := FoldDelivery(d.Events)
	if err != nil {
		return d, err
	}
	d.Delivery, d.Chain = row.View(), chainOf(d.Events)
	all, err := r.whole(ctx, tenant, events.EndpointStream, row.EndpointID)
	d.Endpoint = make([]events.Record, 0, len(all))
	for _, e := range all {
		if !e.RecordedAt.Time.After(row.UpdatedAt.Time) {
			d.Endpoint = append(d.Endpoint, e)
		}
	}
	return d, err
}

func (r Reader) whole(ctx context.Context, tenant string, kind events.Stream, id uuid.UUID) (all []events.Record, err error) {
	for {
		page, err := r.Stream(ctx, tenant, kind, id, len(all), MaxLimit)
		if err != nil {
			return nil, err
		}
		all = append(all, page...)
		if len(page) < MaxLimit {
			return all, nil
		}
		if len(all) >= dossierMost {
			return nil, domain.ErrInvalidRequest.With("the history has more than 10000 events; export it instead")
		}
	}
}

func chainOf(list []events.Record) Chain {
	var previous events.Hash
	for i, e := range list {
		if e.Seq != i+1 || e.Hash != e.Sum(previous) {
			return Chain{Broken: i + 1}
		}
		previous = e.Hash
	}
	return Chain{Intact: true}
}
