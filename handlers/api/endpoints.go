package api

import (
	"context"
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/google/uuid"

	"waybill/domain"
	"waybill/handlers/command"
	"waybill/projections"
)

// endpointSecret is an endpoint and the signing secret that was minted for it.
type endpointSecret struct {
	projections.EndpointView
	Secret string `json:"secret,omitempty" doc:"whsec_…, shown this once: when it was minted"`
}

type endpointOutput struct {
	ETag string `header:"ETag" doc:"\"version\""`
	Body projections.EndpointView
}

type endpointSecretOutput struct {
	ETag string `header:"ETag" doc:"\"version\""`
	Body endpointSecret
}

type createEndpointInput struct {
	Body document[endpointInput]
}

// ChangeInput names an endpoint, and the version that a change of it is meant for.
type ChangeInput struct {
	ID      string `path:"id" doc:"the endpoint's id"`
	IfMatch string `header:"If-Match" doc:"the ETag of the version that the change is meant for; none: any"`
}

type patchEndpointInput struct {
	ChangeInput
	Body document[endpointInput]
}

type rotateInput struct {
	ChangeInput
	Body *rotationInput
}

type rotationInput struct {
	Overlap string `json:"overlap,omitempty" doc:"how long the old secret signs too, 0s to 168h" default:"24h"`
}

type pageOutput[T any] struct {
	Body page[T]
}

// The refusals of changes of an endpoint.
var (
	changeRefusals = []*domain.Error{domain.ErrEndpointNotFound, domain.ErrEndpointArchived, domain.ErrVersionMismatch}
	configRefusals = []*domain.Error{domain.ErrURLNotAllowed, domain.ErrHeaderNotAllowed, domain.ErrUnsupportedPolicy}
)

// endpoints registers the configuration of endpoints.
func (s *server) endpoints(api huma.API) {
	register(s, api, operation{
		id: "create-endpoint", tag: "endpoints", call: "POST /v1/endpoints", scope: domain.ScopeAdmin, status: 201,
		summary: "Make an endpoint", refuses: configRefusals,
	}, s.createEndpoint)
	register(s, api, operation{
		id: "list-endpoints", tag: "endpoints", call: "GET /v1/endpoints", scope: domain.ScopeRead, summary: "List endpoints, newest first",
	}, s.listEndpoints)
	register(s, api, operation{
		id: "get-endpoint", tag: "endpoints", call: "GET /v1/endpoints/{id}", scope: domain.ScopeRead,
		summary: "Read an endpoint, as it is or as it was",
		refuses: []*domain.Error{domain.ErrEndpointNotFound, domain.ErrEndpointNotYet, domain.ErrAsOfInFuture},
	}, s.getEndpoint)
	register(s, api, operation{
		id: "update-endpoint", tag: "endpoints", call: "PATCH /v1/endpoints/{id}", scope: domain.ScopeAdmin,
		summary: "Merge into an endpoint's configuration (RFC 7396)", refuses: append(configRefusals, changeRefusals...),
		about: "Changes follow one another, and the last one wins. Another URL mints a new secret, which replaces the old one at " +
			"once. The URL and the header fingerprints that a reading shows may be sent back and change nothing.",
	}, s.updateEndpoint)
	register(s, api, operation{
		id: "rotate-secret", tag: "endpoints", call: "POST /v1/endpoints/{id}/secret/rotate", scope: domain.ScopeAdmin,
		summary: "Mint a new signing secret; the old one signs too for the overlap", refuses: changeRefusals,
	}, s.rotateSecret)
	s.switches(api)
}

// switches registers the changes that need no body.
func (s *server) switches(api huma.API) {
	type change = func(context.Context, command.Caller, uuid.UUID, int) (projections.Endpoint, error)
	for _, o := range []struct {
		operation
		do change
	}{
		{operation{id: "pause-endpoint", call: "POST /v1/endpoints/{id}/pause", summary: "Let an endpoint's deliveries wait"}, s.Endpoints.Pause},
		{operation{id: "resume-endpoint", call: "POST /v1/endpoints/{id}/resume", summary: "Let an endpoint's deliveries flow again"}, s.Endpoints.Resume},
		{operation{id: "archive-endpoint", call: "DELETE /v1/endpoints/{id}", summary: "End an endpoint; its history stays"}, s.Endpoints.Archive},
	} {
		o.tag, o.scope, o.refuses = "endpoints", domain.ScopeAdmin, changeRefusals
		register(s, api, o.operation, func(ctx context.Context, in *ChangeInput) (*endpointOutput, error) {
			id, version, err := in.parse()
			if err != nil {
				return nil, err
			}
			return showEndpoint(o.do(ctx, callOf(ctx).by, id, version))
		})
	}
}

func (s *server) createEndpoint(ctx context.Context, in *createEndpointInput) (*endpointSecretOutput, error) {
	var input command.EndpointInput
	if err := json.Unmarshal(in.Body.raw, &input); err != nil { // it has been checked against its schema
		return nil, domain.ErrInvalidRequest
	}
	return showSecret(s.Endpoints.Create(ctx, callOf(ctx).by, input))
}

func (s *server) updateEndpoint(ctx context.Context, in *patchEndpointInput) (*endpointSecretOutput, error) {
	id, version, err := in.parse()
	if err != nil {
		return nil, err
	}
	return showSecret(s.Endpoints.Update(ctx, callOf(ctx).by, id, in.Body.raw, version))
}

func (s *server) rotateSecret(ctx context.Context, in *rotateInput) (*endpointSecretOutput, error) {
	id, version, err := in.parse()
	if err != nil {
		return nil, err
	}
	overlap := domain.Duration(command.DefaultOverlap)
	if in.Body != nil && in.Body.Overlap != "" {
		if err := overlap.UnmarshalText([]byte(in.Body.Overlap)); err != nil {
			return nil, domain.ErrInvalidRequest.With("overlap is a duration such as 24h")
		}
	}
	return showSecret(s.Endpoints.RotateSecret(ctx, callOf(ctx).by, id, time.Duration(overlap), version))
}

func (s *server) listEndpoints(ctx context.Context, in *PageInput) (*pageOutput[projections.EndpointView], error) {
	before, err := beforeID(in.Cursor)
	if err != nil {
		return nil, err
	}
	list, err := s.Ledger.Endpoints(ctx, callOf(ctx).by.Tenant, before, in.Limit+1)
	if err != nil {
		return nil, err
	}
	return &pageOutput[projections.EndpointView]{pageOf(list, in.Limit, projections.Endpoint.View,
		func(p projections.Endpoint) string { return idCursor(p.ID) })}, nil
}

// parse returns the endpoint's id and the version that If-Match names: 0 for any, and
// one that no endpoint has where the ETag is none of ours.
func (in ChangeInput) parse() (uuid.UUID, int, error) {
	id, err := parseID(in.ID, domain.ErrEndpointNotFound)
	if err != nil || in.IfMatch == "" || in.IfMatch == "*" {
		return id, 0, err
	}
	tag, quoted := strings.CutPrefix(in.IfMatch, `"`)
	tag, closed := strings.CutSuffix(tag, `"`)
	if !quoted || !closed {
		return id, 0, domain.ErrInvalidRequest.With(`If-Match is an ETag as it was given, such as "3"`)
	}
	version, err := strconv.Atoi(tag)
	if err != nil || version < 1 || etag(version) != in.IfMatch {
		return id, -1, nil
	}
	return id, version, nil
}

func etag(version int) string { return `"` + strconv.Itoa(version) + `"` }

func showEndpoint(p projections.Endpoint, err error) (*endpointOutput, error) {
	if err != nil {
		return nil, err
	}
	return &endpointOutput{ETag: etag(p.Version), Body: p.View()}, nil
}

func showSecret(p projections.Endpoint, secret string, err error) (*endpointSecretOutput, error) {
	if err != nil {
		return nil, err
	}
	return &endpointSecretOutput{ETag: etag(p.Version), Body: endpointSecret{p.View(), secret}}, nil
}
