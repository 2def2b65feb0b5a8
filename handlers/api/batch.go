package api

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"

	"github.com/danielgtaylor/huma/v2"
	"github.com/google/uuid"

	"waybill/domain"
	"waybill/handlers/command"
	"waybill/projections"
)

// batchInput describes a batch. It is read item by item, that one may be wrong alone.
type batchInput struct {
	Items []batchItemInput `json:"items" maxItems:"1000"`
}

// batchItemInput is one message of a batch.
type batchItemInput struct {
	EndpointID     string          `json:"endpoint_id" format:"uuid"`
	EventType      string          `json:"event_type,omitempty"`
	IdempotencyKey *string         `json:"idempotency_key,omitempty" nullable:"true"`
	Payload        json.RawMessage `json:"payload,omitempty" doc:"any JSON value; its exact bytes are delivered. Either this or payload_base64."`
	PayloadBase64  *string         `json:"payload_base64,omitempty" nullable:"true" doc:"any bytes"`
	ContentType    *string         `json:"content_type,omitempty" nullable:"true" doc:"default application/json for payload, application/octet-stream for payload_base64"`
	NotBefore      *string         `json:"not_before,omitempty" nullable:"true" format:"date-time"`
	OrderingKey    string          `json:"ordering_key,omitempty"`
}

type batchOutput struct{ Body batchResults }

type batchResults struct {
	Items []batchResult `json:"items" doc:"one for each item, in order"`
}

// batchResult is what became of one item: accepted, or refused with a problem.
type batchResult struct {
	DeliveryID *uuid.UUID   `json:"delivery_id,omitempty"`
	MessageID  *uuid.UUID   `json:"message_id,omitempty"`
	State      domain.State `json:"state,omitempty"`
	Duplicate  *bool        `json:"duplicate,omitempty"`
	Error      *Problem     `json:"error,omitempty"`
}

// batches registers the hand-in of many messages.
func (s *server) batches(api huma.API) {
	schema := api.OpenAPI().Components.Schemas.Schema(reflect.TypeFor[batchInput](), true, "")
	register(s, api, operation{
		id: "submit-batch", tag: "messages", call: "POST /v1/deliveries/batch", scope: domain.ScopeSubmit,
		summary: "Hand in up to 1,000 messages; one bad item harms no other", refuses: []*domain.Error{domain.ErrPayloadTooLarge},
		body: &huma.RequestBody{Required: true, Description: "At most 1,000 items and 16 MiB.",
			Content: map[string]*huma.MediaType{"*/*": {Schema: &huma.Schema{Type: "string", Format: "binary"}}}},
	}, s.batch)
	api.OpenAPI().Paths["/v1/deliveries/batch"].Post.RequestBody.Content = map[string]*huma.MediaType{"application/json": {Schema: schema}}
}

func (s *server) batch(ctx context.Context, _ *struct{}) (*batchOutput, error) {
	raw, err := s.readBody(ctx, maxBatchBytes, batchWeight)
	if err != nil {
		return nil, err
	}
	items, err := batchItems(raw)
	if err != nil {
		return nil, err
	}
	results := make([]batchResult, len(items))
	var subs []command.Submission
	var places []int
	for i, raw := range items {
		item, err := readItem(raw)
		var sub command.Submission
		if err == nil {
			sub, err = item.submission(s.MaxPayload)
		}
		if err != nil {
			results[i].Error = s.problem(ctx, err)
			continue
		}
		subs, places = append(subs, sub), append(places, i)
	}
	answers := s.Submitter.SubmitBatch(ctx, callOf(ctx).by, subs)
	if n := len(answers); n > 0 {
		tellBudgets(callOf(ctx).writer.Header(), answers[n-1].Budgets, answers[n-1].Err)
	}
	for i, a := range answers {
		results[places[i]] = s.batchResult(ctx, a)
	}
	return &batchOutput{batchResults{results}}, nil
}

func (s *server) batchResult(ctx context.Context, a projections.Acceptance) batchResult {
	if a.Err != nil {
		return batchResult{Error: s.problem(ctx, a.Err)}
	}
	one := acceptedOne(a)
	return batchResult{DeliveryID: &one.DeliveryID, MessageID: &one.MessageID, State: one.State, Duplicate: &one.Duplicate}
}

// batchItems parts a batch into its items, each as it is written.
func batchItems(raw json.RawMessage) ([]json.RawMessage, error) {
	if err := syntax(raw); err != nil {
		return nil, domain.ErrInvalidRequest.With(err.Error())
	}
	batch, err := members(raw)
	if err != nil {
		return nil, domain.ErrInvalidRequest.With("the batch: " + err.Error())
	}
	var items []json.RawMessage
	if err := json.Unmarshal(batch["items"], &items); err != nil || items == nil || len(batch) != 1 {
		return nil, domain.ErrInvalidRequest.With(`a batch is {"items": […]} and nothing else`)
	}
	if len(items) > maxBatchItems {
		return nil, domain.ErrInvalidRequest.With(fmt.Sprintf("a batch has at most %d items, not %d", maxBatchItems, len(items)))
	}
	return items, nil
}

var itemMembers = []string{
	"endpoint_id", "event_type", "idempotency_key", "payload", "payload_base64", "content_type", "not_before", "ordering_key",
}

// readItem reads one item. Its payload stays as it is written; everything else is held
// to what the ledger can keep.
func readItem(raw json.RawMessage) (batchItemInput, error) {
	var item batchItemInput
	given, err := members(raw)
	if err != nil {
		return item, domain.ErrInvalidRequest.With(err.Error())
	}
	for name, value := range given {
		if !slices.Contains(itemMembers, name) {
			return item, domain.ErrInvalidRequest.With(fmt.Sprintf("%.100q is not a member of an item", name))
		}
		if err := checkText(value); name != "payload" && err != nil {
			return item, domain.ErrInvalidRequest.With(name + ": " + err.Error())
		}
	}
	err = json.Unmarshal(raw, &item)
	var wrong *json.UnmarshalTypeError
	if errors.As(err, &wrong) {
		return item, domain.ErrInvalidRequest.With(wrong.Field + " is a string")
	}
	return item, err
}

// submission is what an item hands in.
func (item batchItemInput) submission(maxPayload int64) (command.Submission, error) {
	sub := command.Submission{EventType: item.EventType, OrderingKey: item.OrderingKey, ContentType: "application/json"}
	var err error
	if sub.EndpointID, err = parseID(item.EndpointID, domain.ErrInvalidRequest.With("endpoint_id is missing or not an id")); err != nil {
		return sub, err
	}
	if item.IdempotencyKey != nil {
		sub.IdempotencyKey, sub.HasKey = *item.IdempotencyKey, true
	}
	if item.NotBefore != nil {
		if sub.NotBefore, err = parseInstant("not_before", *item.NotBefore); err != nil {
			return sub, err
		}
	}
	if item.PayloadBase64 != nil {
		sub.ContentType = "application/octet-stream"
	}
	if item.ContentType != nil {
		sub.ContentType = *item.ContentType
	}
	sub.Payload, err = item.payload(maxPayload)
	return sub, err
}

// payload is the item's bytes: a JSON value as it is written, or what base64 stands for.
func (item batchItemInput) payload(most int64) ([]byte, error) {
	payload := []byte(item.Payload)
	if (payload == nil) == (item.PayloadBase64 == nil) {
		return nil, domain.ErrInvalidRequest.With("an item has either payload or payload_base64")
	}
	if item.PayloadBase64 != nil {
		var err error
		if payload, err = base64.StdEncoding.Strict().DecodeString(*item.PayloadBase64); err != nil {
			return nil, domain.ErrInvalidRequest.With("payload_base64 is not base64 (RFC 4648, section 4)")
		}
	}
	if int64(len(payload)) > most {
		return nil, tooLarge(most)
	}
	return payload, nil
}
