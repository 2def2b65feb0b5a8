package api

import (
	"context"

	"github.com/danielgtaylor/huma/v2"

	"waybill/domain"
	"waybill/events"
	"waybill/projections"
)

type deliveryPath struct {
	ID string `path:"id" doc:"the delivery's id"`
}

type deliveryOutput struct {
	ETag string `header:"ETag" doc:"\"version\""`
	Body projections.View
}

type historyInput struct {
	ID string `path:"id" doc:"the delivery's id"`
	PageInput
}

// listInput narrows a list of deliveries.
type listInput struct {
	PageInput
	State          string `query:"state" enum:"pending,processing,delivered,failed,held,cancelled"`
	EndpointID     string `query:"endpoint_id" format:"uuid"`
	EventType      string `query:"event_type"`
	Since          string `query:"since" doc:"created at or after: RFC 3339, or a duration ago such as 2h"`
	Until          string `query:"until" doc:"created before: RFC 3339, or a duration ago"`
	IdempotencyKey string `query:"idempotency_key"`
	InDoubt        string `query:"in_doubt" enum:"true,false"`
	EverUnknown    string `query:"ever_unknown" enum:"true,false" doc:"unknown_attempts above zero"`
	PayloadErased  string `query:"payload_erased" enum:"true,false"`
	AsOf           string `query:"as_of" doc:"as they were then: RFC 3339, or a duration ago such as 2h; a page may hold fewer than the limit and still have a next one"`
}

// deliveries registers the questions about deliveries.
func (s *server) deliveries(api huma.API) {
	register(s, api, operation{
		id: "list-deliveries", tag: "deliveries", call: "GET /v1/deliveries", scope: domain.ScopeRead, summary: "List deliveries, newest first",
		refuses: []*domain.Error{domain.ErrAsOfInFuture},
	}, s.listDeliveries)
	register(s, api, operation{
		id: "get-delivery", tag: "deliveries", call: "GET /v1/deliveries/{id}", scope: domain.ScopeRead,
		summary: "Read a delivery, as it is or as it was",
		refuses: []*domain.Error{domain.ErrDeliveryNotFound, domain.ErrDeliveryNotYet, domain.ErrAsOfInFuture},
	}, s.getDelivery)
	register(s, api, operation{
		id: "list-delivery-events", tag: "deliveries", call: "GET /v1/deliveries/{id}/events", scope: domain.ScopeRead,
		summary: "Read a delivery's whole history, in order of seq", refuses: []*domain.Error{domain.ErrDeliveryNotFound},
	}, s.listEvents)
}

func (s *server) listDeliveries(ctx context.Context, in *listInput) (*pageOutput[projections.View], error) {
	filter, err := s.filter(ctx, in)
	if err != nil {
		return nil, err
	}
	before, err := beforeID(in.Cursor)
	if err != nil {
		return nil, err
	}
	if in.AsOf != "" {
		return s.listPast(ctx, in, filter, before)
	}
	list, err := s.Ledger.Deliveries(ctx, callOf(ctx).by.Tenant, filter, before, in.Limit+1)
	if err != nil {
		return nil, err
	}
	return &pageOutput[projections.View]{pageOf(list, in.Limit, projections.Delivery.View,
		func(d projections.Delivery) string { return idCursor(d.ID) })}, nil
}

func (s *server) filter(ctx context.Context, in *listInput) (projections.DeliveryFilter, error) {
	f := projections.DeliveryFilter{
		State: domain.State(in.State), EventType: in.EventType, IdempotencyKey: in.IdempotencyKey,
		InDoubt: optional(in.InDoubt), EverUnknown: optional(in.EverUnknown), PayloadErased: optional(in.PayloadErased),
	}
	for name, text := range map[string]string{"event_type": in.EventType, "idempotency_key": in.IdempotencyKey} {
		if err := domain.CheckText(name, text, domain.MaxEventType); err != nil {
			return f, err
		}
	}
	var err error
	if in.EndpointID != "" {
		if f.EndpointID, err = parseID(in.EndpointID, domain.ErrInvalidRequest.With("endpoint_id is not an id")); err != nil {
			return f, err
		}
	}
	if in.Since == "" && in.Until == "" {
		return f, nil
	}
	now, err := s.Ledger.Now(ctx)
	if err != nil {
		return f, err
	}
	if f.Since, err = parseTime("since", in.Since, now); err != nil {
		return f, err
	}
	f.Until, err = parseTime("until", in.Until, now)
	return f, err
}

func optional(text string) *bool {
	if text == "" {
		return nil
	}
	v := text == "true"
	return &v
}

func (s *server) listEvents(ctx context.Context, in *historyInput) (*pageOutput[events.Record], error) {
	after, err := afterSeq(in.Cursor)
	if err != nil {
		return nil, err
	}
	d, err := s.delivery(ctx, in.ID)
	if err != nil {
		return nil, err
	}
	list, err := s.Ledger.Stream(ctx, d.Tenant, events.DeliveryStream, d.ID, after, in.Limit+1)
	if err != nil {
		return nil, err
	}
	return &pageOutput[events.Record]{pageOf(list, in.Limit, func(r events.Record) events.Record { return r },
		func(r events.Record) string { return seqCursor(r.Seq) })}, nil
}

// delivery reads the delivery that a path names, of the caller's tenant.
func (s *server) delivery(ctx context.Context, text string) (projections.Delivery, error) {
	id, err := parseID(text, domain.ErrDeliveryNotFound)
	if err != nil {
		return projections.Delivery{}, err
	}
	return s.Ledger.Delivery(ctx, callOf(ctx).by.Tenant, id)
}
