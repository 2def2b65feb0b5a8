package api

import (
	"context"

	"github.com/danielgtaylor/huma/v2"

	"waybill/domain"
	"waybill/projections"
)

type replayRequest struct {
	ID   string `path:"id" doc:"the delivery's id"`
	Body replayInput
}

type replayInput struct {
	Reason string `json:"reason" doc:"for those who read the history; no personal data"`
	Force  bool   `json:"force,omitempty" doc:"also where it is delivered or cancelled"`
}

type cancelRequest struct {
	ID   string `path:"id" doc:"the delivery's id"`
	Body cancelInput
}

type cancelInput struct {
	Reason string `json:"reason" doc:"for those who read the history; no personal data"`
}

type resolveRequest struct {
	ID   string `path:"id" doc:"the delivery's id"`
	Body resolveInput
}

type resolveInput struct {
	Outcome string `json:"outcome" enum:"delivered,failed,retry"`
	Reason  string `json:"reason" doc:"for those who read the history; no personal data"`
}

type eraseRequest struct {
	ID   string `path:"id" doc:"the delivery's id"`
	Body eraseInput
}

type eraseInput struct {
	Reason     string `json:"reason" doc:"for those who read the history; no personal data"`
	LegalBasis string `json:"legal_basis,omitempty" doc:"such as GDPR art. 17; at most 500 bytes"`
}

// operations registers the decisions of operators.
func (s *server) operations(api huma.API) {
	refusals := func(more ...*domain.Error) []*domain.Error {
		return append(more, domain.ErrDeliveryNotFound, domain.ErrStale)
	}
	register(s, api, operation{
		id: "replay-delivery", tag: "operations", call: "POST /v1/deliveries/{id}/replay", scope: domain.ScopeOperate, status: 202,
		summary: "Start a new cycle of attempts", refuses: refusals(domain.ErrNotReplayable, domain.ErrPayloadErased),
	}, s.replay)
	register(s, api, operation{
		id: "cancel-delivery", tag: "operations", call: "POST /v1/deliveries/{id}/cancel", scope: domain.ScopeOperate, status: 202,
		summary: "End a delivery that has not ended", refuses: refusals(domain.ErrNotCancellable),
	}, s.cancel)
	register(s, api, operation{
		id: "resolve-delivery", tag: "operations", call: "POST /v1/deliveries/{id}/resolve", scope: domain.ScopeOperate, status: 202,
		summary: "Say what became of a held delivery", refuses: refusals(domain.ErrNotHeld, domain.ErrPayloadErased),
	}, s.resolve)
	register(s, api, operation{
		id: "erase-payload", tag: "operations", call: "DELETE /v1/deliveries/{id}/payload", scope: domain.ScopeAudit, status: 202,
		summary: "Erase the message's bytes and what receivers answered",
		about:   "Acts on the message: every delivery of it loses them, and none of them may be unsettled. The history stays, with commitments that say nothing about the bytes.",
		refuses: refusals(domain.ErrNotSettled, domain.ErrPayloadErased),
	}, s.erase)
}

func (s *server) erase(ctx context.Context, in *eraseRequest) (*deliveryOutput, error) {
	id, err := parseID(in.ID, domain.ErrDeliveryNotFound)
	if err != nil {
		return nil, err
	}
	why := domain.PayloadErased{Reason: in.Body.Reason, LegalBasis: in.Body.LegalBasis}
	return showDelivery(s.Eraser.Delivery(ctx, callOf(ctx).by, id, why))
}

func (s *server) replay(ctx context.Context, in *replayRequest) (*deliveryOutput, error) {
	id, err := parseID(in.ID, domain.ErrDeliveryNotFound)
	if err != nil {
		return nil, err
	}
	return showDelivery(s.Operations.Replay(ctx, callOf(ctx).by, id, in.Body.Reason, in.Body.Force))
}

func (s *server) cancel(ctx context.Context, in *cancelRequest) (*deliveryOutput, error) {
	id, err := parseID(in.ID, domain.ErrDeliveryNotFound)
	if err != nil {
		return nil, err
	}
	return showDelivery(s.Operations.Cancel(ctx, callOf(ctx).by, id, in.Body.Reason))
}

func (s *server) resolve(ctx context.Context, in *resolveRequest) (*deliveryOutput, error) {
	id, err := parseID(in.ID, domain.ErrDeliveryNotFound)
	if err != nil {
		return nil, err
	}
	return showDelivery(s.Operations.Resolve(ctx, callOf(ctx).by, id, domain.Resolution(in.Body.Outcome), in.Body.Reason))
}

func showDelivery(d projections.Delivery, err error) (*deliveryOutput, error) {
	if err != nil {
		return nil, err
	}
	return &deliveryOutput{ETag: etag(d.Version), Body: d.View()}, nil
}
