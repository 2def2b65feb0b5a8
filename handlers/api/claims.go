package api

import (
	"context"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/google/uuid"

	"waybill/domain"
	"waybill/handlers/command"
	"waybill/projections"
)

type claimRequest struct {
	Wait string `query:"wait" doc:"how long to wait for work, 0s to 25s, such as 20s" example:"20s"`
	Body claimInput
}

type claimInput struct {
	Worker       string `json:"worker" doc:"a name, for those who read the history"`
	Limit        int    `json:"limit" doc:"1 to 100"`
	LeaseSeconds int    `json:"lease_seconds" doc:"10 to 3600"`
	EndpointID   string `json:"endpoint_id,omitempty" doc:"only from this endpoint"`
}

type claimsOutput struct{ Body claimedItems }

type claimedItems struct {
	Items []claimedItem `json:"items"`
}

// claimedItem is one delivery to be made by the caller.
type claimedItem struct {
	DeliveryID  uuid.UUID      `json:"delivery_id"`
	MessageID   uuid.UUID      `json:"message_id" doc:"the same on every attempt and replay: what the other side dedupes on"`
	EndpointID  uuid.UUID      `json:"endpoint_id"`
	EventType   string         `json:"event_type"`
	ContentType string         `json:"content_type"`
	Payload     []byte         `json:"payload_base64"`
	Token       uuid.UUID      `json:"claim_token"`
	Attempt     int            `json:"attempt" doc:"lifetime number"`
	LeaseUntil  domain.Instant `json:"lease_until" format:"date-time"`
}

type tokenInput struct {
	Token string `json:"claim_token"`
}

type releaseRequest struct {
	ID   string `path:"delivery_id" doc:"the delivery's id"`
	Body tokenInput
}

type extendRequest struct {
	ID   string `path:"delivery_id" doc:"the delivery's id"`
	Body extendInput
}

type extendInput struct {
	Token        string `json:"claim_token"`
	LeaseSeconds int    `json:"lease_seconds" doc:"10 to 3600, from now"`
}

type extendOutput struct{ Body extended }

type extended struct {
	LeaseUntil domain.Instant `json:"lease_until" format:"date-time"`
}

type resultRequest struct {
	ID   string `path:"delivery_id" doc:"the delivery's id"`
	Body resultInput
}

type resultInput struct {
	Token   string `json:"claim_token"`
	Outcome string `json:"outcome" enum:"succeeded,refused,unreached,unknown"`
	Status  int    `json:"status,omitempty" doc:"HTTP status, 100 to 599, where there was one"`
	Reason  string `json:"reason,omitempty" doc:"one of the reasons of delivery.attempted"`
}

type resultOutput struct{ Body resultAnswer }

type resultAnswer struct {
	Applied    bool         `json:"applied" doc:"it decided where the delivery goes"`
	Superseded bool         `json:"superseded" doc:"the claim had ended; recorded all the same"`
	Attempt    int          `json:"attempt" doc:"the claim's lifetime number"`
	State      domain.State `json:"state" enum:"pending,processing,delivered,failed,held,cancelled"`
}

// claims registers the work of remote workers.
func (s *server) claims(api huma.API) {
	refusals := func(more ...*domain.Error) []*domain.Error {
		return append(more, domain.ErrDeliveryNotFound, domain.ErrClaimNotFound, domain.ErrStale)
	}
	register(s, api, operation{
		id: "claim", tag: "claims", call: "POST /v1/claims", scope: domain.ScopeClaim, status: 200,
		summary: "Take due deliveries of endpoints of mode remote", refuses: []*domain.Error{domain.ErrEndpointNotFound, domain.ErrNotRemote},
		about: "Each comes under a token and a lease of its own. Nothing due, also after waiting: an empty list.",
	}, s.claim)
	register(s, api, operation{
		id: "release-claim", tag: "claims", call: "POST /v1/claims/{delivery_id}/release", scope: domain.ScopeClaim, status: 200,
		summary: "Give a claim back that was never sent", refuses: refusals(domain.ErrSuperseded),
	}, s.releaseClaim)
	register(s, api, operation{
		id: "extend-claim", tag: "claims", call: "POST /v1/claims/{delivery_id}/extend", scope: domain.ScopeClaim, status: 200,
		summary: "Ask for more time", refuses: refusals(domain.ErrSuperseded),
	}, s.extendClaim)
	register(s, api, operation{
		id: "report-claim", tag: "claims", call: "POST /v1/claims/{delivery_id}/result", scope: domain.ScopeClaim, status: 200,
		summary: "Report what came of a claim", refuses: refusals(),
		about: "The same token again gets the first answer.",
	}, s.reportClaim)
}

func (s *server) claim(ctx context.Context, in *claimRequest) (*claimsOutput, error) {
	c := command.RemoteClaim{Worker: in.Body.Worker, Limit: in.Body.Limit, Lease: time.Duration(in.Body.LeaseSeconds) * time.Second}
	var err error
	if in.Wait != "" {
		if c.Wait, err = time.ParseDuration(in.Wait); err != nil {
			return nil, domain.ErrInvalidRequest.With("wait is a duration such as 20s")
		}
	}
	if in.Body.EndpointID != "" {
		if c.EndpointID, err = parseID(in.Body.EndpointID, domain.ErrEndpointNotFound); err != nil {
			return nil, err
		}
	}
	taken, err := s.Remote.Claim(ctx, callOf(ctx).by, c)
	if err != nil {
		return nil, err
	}
	out := claimedItems{Items: make([]claimedItem, len(taken))}
	for i, a := range taken {
		out.Items[i] = claimedOf(a)
	}
	return &claimsOutput{out}, nil
}

func claimedOf(a projections.Assignment) claimedItem {
	d := a.Delivery
	payload := a.Payload
	if payload == nil {
		payload = []byte{}
	}
	return claimedItem{
		DeliveryID: d.ID, MessageID: d.MessageID, EndpointID: d.EndpointID, EventType: d.EventType, ContentType: a.ContentType,
		Payload: payload, Token: d.Claim.Token, Attempt: d.Attempts, LeaseUntil: d.Claim.LeaseUntil,
	}
}

func (s *server) releaseClaim(ctx context.Context, in *releaseRequest) (*deliveryOutput, error) {
	id, token, err := claimIDs(in.ID, in.Body.Token)
	if err != nil {
		return nil, err
	}
	return showDelivery(s.Remote.Release(ctx, callOf(ctx).by, id, token))
}

func (s *server) extendClaim(ctx context.Context, in *extendRequest) (*extendOutput, error) {
	id, token, err := claimIDs(in.ID, in.Body.Token)
	if err != nil {
		return nil, err
	}
	until, err := s.Remote.Extend(ctx, callOf(ctx).by, id, token, time.Duration(in.Body.LeaseSeconds)*time.Second)
	if err != nil {
		return nil, err
	}
	return &extendOutput{extended{until}}, nil
}

func (s *server) reportClaim(ctx context.Context, in *resultRequest) (*resultOutput, error) {
	id, token, err := claimIDs(in.ID, in.Body.Token)
	if err != nil {
		return nil, err
	}
	r, err := s.Remote.Report(ctx, callOf(ctx).by, id, command.RemoteResult{
		Token: token, Outcome: domain.Outcome(in.Body.Outcome), Status: in.Body.Status, Reason: domain.Reason(in.Body.Reason),
	})
	if err != nil {
		return nil, err
	}
	return &resultOutput{resultAnswer{r.Applied, r.Attempt.Superseded, r.Attempt.Attempt, r.Delivery.State}}, nil
}

// claimIDs reads a delivery's id and a token. A token of another form was never issued.
func claimIDs(delivery, token string) (id, parsed uuid.UUID, err error) {
	if id, err = parseID(delivery, domain.ErrDeliveryNotFound); err == nil {
		parsed, err = parseID(token, domain.ErrClaimNotFound)
	}
	return id, parsed, err
}
