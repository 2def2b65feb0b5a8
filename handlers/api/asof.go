package api

import (
	"context"

	"github.com/google/uuid"

	"waybill/domain"
	"waybill/projections"
)

// PastInput asks for what was.
type PastInput struct {
	AsOf  string `query:"as_of" doc:"as it was then: RFC 3339, or a duration ago such as 2h"`
	AtSeq int    `query:"at_seq" minimum:"1" maximum:"2147483647" doc:"as the event with this seq left it; not together with as_of"`
}

type deliveryQuery struct {
	ID string `path:"id" doc:"the delivery's id"`
	PastInput
}

type endpointQuery struct {
	ID string `path:"id" doc:"the endpoint's id"`
	PastInput
}

// past resolves what is asked for; the zero Past is the present.
func (s *server) past(ctx context.Context, in PastInput) (projections.Past, error) {
	switch {
	case in.AsOf == "":
		return projections.Past{Seq: in.AtSeq}, nil
	case in.AtSeq != 0:
		return projections.Past{}, domain.ErrInvalidRequest.With("give as_of or at_seq, not both")
	}
	now, err := s.Ledger.Now(ctx)
	if err != nil {
		return projections.Past{}, err
	}
	at, err := parseTime("as_of", in.AsOf, now)
	if err != nil {
		return projections.Past{}, err
	}
	return projections.PastAt(at, now)
}

// listPast answers a list of deliveries as they were. A page may hold fewer than the limit
// and still have a next one.
func (s *server) listPast(ctx context.Context, in *listInput, filter projections.DeliveryFilter, before uuid.UUID) (*pageOutput[projections.View], error) {
	p, err := s.past(ctx, PastInput{AsOf: in.AsOf})
	if err != nil {
		return nil, err
	}
	list, next, err := s.Ledger.DeliveriesAsOf(ctx, callOf(ctx).by.Tenant, filter, p.At, before, in.Limit)
	if err != nil {
		return nil, err
	}
	out := page[projections.View]{Items: make([]projections.View, 0, len(list))}
	for _, d := range list {
		out.Items = append(out.Items, d.View())
	}
	if next != uuid.Nil {
		cursor := idCursor(next)
		out.NextCursor = &cursor
	}
	return &pageOutput[projections.View]{out}, nil
}

func (s *server) getDelivery(ctx context.Context, in *deliveryQuery) (*deliveryOutput, error) {
	p, err := s.past(ctx, in.PastInput)
	if err != nil {
		return nil, err
	}
	if p == (projections.Past{}) {
		return showDelivery(s.delivery(ctx, in.ID))
	}
	id, err := parseID(in.ID, domain.ErrDeliveryNotFound)
	if err != nil {
		return nil, err
	}
	d, err := s.Ledger.DeliveryAsOf(ctx, callOf(ctx).by.Tenant, id, p)
	if err != nil {
		return nil, err
	}
	return &deliveryOutput{ETag: etag(d.Version), Body: d.View()}, nil
}

func (s *server) getEndpoint(ctx context.Context, in *endpointQuery) (*endpointOutput, error) {
	id, err := parseID(in.ID, domain.ErrEndpointNotFound)
	if err != nil {
		return nil, err
	}
	p, err := s.past(ctx, in.PastInput)
	if err != nil {
		return nil, err
	}
	if p == (projections.Past{}) {
		return showEndpoint(s.Ledger.Endpoint(ctx, callOf(ctx).by.Tenant, id))
	}
	then, err := s.Ledger.EndpointAsOf(ctx, callOf(ctx).by.Tenant, id, p)
	if err != nil {
		return nil, err
	}
	return &endpointOutput{ETag: etag(then.Version), Body: then.View()}, nil
}
