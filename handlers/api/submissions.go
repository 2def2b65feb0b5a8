package api

import (
	"bytes"
	"context"
	"net/http"
	"regexp"
	"slices"

	"github.com/danielgtaylor/huma/v2"
	"github.com/google/uuid"

	"waybill/domain"
	"waybill/handlers/command"
	"waybill/projections"
)

// SubmitHeaders describes the headers that a message comes with. They are read from
// the request, where an empty one differs from none.
type SubmitHeaders struct {
	IdempotencyKey string `header:"Idempotency-Key" doc:"1 to 255 printable ASCII characters. The same key and content: the original's answer. Put no personal data here."`
	EventType      string `header:"Waybill-Event-Type" doc:"1 to 255 printable ASCII characters without spaces and asterisks"`
	NotBefore      string `header:"Waybill-Not-Before" doc:"RFC 3339; no attempt is made earlier"`
	OrderingKey    string `header:"Waybill-Ordering-Key" doc:"at most 255 bytes"`
	TraceParent    string `header:"traceparent" doc:"W3C Trace Context; anything else is ignored"`
}

type submitInput struct {
	ID string `path:"id" doc:"the endpoint's id"`
	SubmitHeaders
}

type fanOutInput struct{ SubmitHeaders }

type acceptedOutput struct{ Body accepted }

// accepted is the answer to a message for one endpoint.
type accepted struct {
	DeliveryID uuid.UUID    `json:"delivery_id"`
	MessageID  uuid.UUID    `json:"message_id"`
	State      domain.State `json:"state" enum:"pending,processing,delivered,failed,held,cancelled"`
	Duplicate  bool         `json:"duplicate" doc:"the key's original is answered, as it stands now"`
}

type fannedOutOutput struct{ Body fannedOut }

// fannedOut is the answer to a message for whoever wants it.
type fannedOut struct {
	MessageID  uuid.UUID          `json:"message_id"`
	Deliveries []acceptedDelivery `json:"deliveries" doc:"one for each endpoint whose event_types match; none: an empty list"`
}

type acceptedDelivery struct {
	DeliveryID uuid.UUID    `json:"delivery_id"`
	EndpointID uuid.UUID    `json:"endpoint_id"`
	State      domain.State `json:"state" enum:"pending,processing,delivered,failed,held,cancelled"`
	Duplicate  bool         `json:"duplicate"`
}

// The refusals of single messages.
var submitRefusals = []*domain.Error{domain.ErrIdempotencyKey, domain.ErrPayloadTooLarge, domain.ErrIdempotencyConflict, domain.ErrRateLimited}

// submissions registers whatever hands in messages.
func (s *server) submissions(api huma.API) {
	register(s, api, operation{
		id: "submit", tag: "messages", call: "POST /v1/endpoints/{id}/deliveries", scope: domain.ScopeSubmit, status: 202,
		summary: "Hand in a message for one endpoint", about: "The answer comes once the delivery is committed.",
		refuses: append(submitRefusals, domain.ErrEndpointNotFound, domain.ErrEndpointArchived),
		body:    rawBody("The message's bytes, of any content type; they are delivered as they came."),
	}, s.submit)
	register(s, api, operation{
		id: "fan-out", tag: "messages", call: "POST /v1/messages", scope: domain.ScopeSubmit, status: 202,
		summary: "Hand in a message for every endpoint that wants its event type", refuses: submitRefusals,
		body: rawBody("The message's bytes, of any content type; they are delivered as they came."),
	}, s.fanOut)
	s.batches(api)
}

func (s *server) submit(ctx context.Context, in *submitInput) (*acceptedOutput, error) {
	id, err := parseID(in.ID, domain.ErrEndpointNotFound)
	if err != nil {
		return nil, err
	}
	a, err := s.take(ctx, id)
	if err != nil {
		return nil, err
	}
	return &acceptedOutput{acceptedOne(a)}, nil
}

func (s *server) fanOut(ctx context.Context, _ *fanOutInput) (*fannedOutOutput, error) {
	a, err := s.take(ctx, uuid.Nil)
	if err != nil {
		return nil, err
	}
	out := fannedOut{MessageID: a.MessageID, Deliveries: []acceptedDelivery{}}
	for _, d := range a.Deliveries {
		out.Deliveries = append(out.Deliveries, acceptedDelivery{d.DeliveryID, d.EndpointID, d.State, a.Duplicate})
	}
	slices.SortFunc(out.Deliveries, func(a, b acceptedDelivery) int { return bytes.Compare(a.EndpointID[:], b.EndpointID[:]) })
	return &fannedOutOutput{out}, nil
}

// take accepts the message that is the request's body.
func (s *server) take(ctx context.Context, endpoint uuid.UUID) (projections.Acceptance, error) {
	c := callOf(ctx)
	sub, err := submission(c.request)
	if err != nil {
		return projections.Acceptance{}, err
	}
	sub.EndpointID = endpoint
	if endpoint == uuid.Nil && sub.EventType == "" {
		return projections.Acceptance{}, domain.ErrInvalidRequest.With("header Waybill-Event-Type is missing: it says who wants the message")
	}
	if sub.Payload, err = s.readBody(ctx, s.MaxPayload, 1); err != nil {
		return projections.Acceptance{}, err
	}
	a, err := s.Submitter.Submit(ctx, c.by, sub)
	tellBudgets(c.writer.Header(), a.Budgets, err)
	return a, err
}

func acceptedOne(a projections.Acceptance) accepted {
	out := accepted{MessageID: a.MessageID, Duplicate: a.Duplicate}
	if len(a.Deliveries) > 0 {
		out.DeliveryID, out.State = a.Deliveries[0].DeliveryID, a.Deliveries[0].State
	}
	return out
}

// submission reads what a message's headers say.
func submission(r *http.Request) (command.Submission, error) {
	var sub command.Submission
	var notBefore string
	if encoding := r.Header.Get("Content-Encoding"); encoding != "" && encoding != "identity" {
		return sub, domain.ErrInvalidRequest.With("Content-Encoding is not supported: a message is delivered as the bytes that are handed in")
	}
	for _, h := range []struct {
		name string
		into *string
	}{
		{"Content-Type", &sub.ContentType}, {"Waybill-Event-Type", &sub.EventType},
		{"Waybill-Ordering-Key", &sub.OrderingKey}, {"Waybill-Not-Before", &notBefore},
	} {
		value, _, err := header(r, h.name)
		if err != nil {
			return sub, err
		}
		*h.into = value
	}
	if notBefore != "" {
		var err error
		if sub.NotBefore, err = parseInstant("Waybill-Not-Before", notBefore); err != nil {
			return sub, err
		}
	}
	sub.TraceParent = traceParent(r)
	var err error
	if sub.IdempotencyKey, sub.HasKey, err = header(r, "Idempotency-Key"); err != nil {
		return sub, domain.ErrIdempotencyKey.With(err.Error())
	}
	return sub, nil
}

var traceParentForm = regexp.MustCompile(`^00-([0-9a-f]{32})-([0-9a-f]{16})-[0-9a-f]{2}$`)

// traceParent returns the caller's trace parent where it is one (W3C Trace Context,
// section 3.2); all-zero ids are none.
func traceParent(r *http.Request) string {
	values := r.Header.Values("Traceparent")
	if len(values) != 1 {
		return ""
	}
	m := traceParentForm.FindStringSubmatch(values[0])
	if m == nil || m[1] == "00000000000000000000000000000000" || m[2] == "0000000000000000" {
		return ""
	}
	return values[0]
}
