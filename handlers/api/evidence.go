package api

import (
	"cmp"
	"context"
	"net"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"waybill/domain"
	"waybill/projections"
)

// payloadOutput is a message's bytes. They come from outside: a browser must neither
// guess their type nor run them.
type payloadOutput struct {
	ContentType string `header:"Content-Type"`
	Disposition string `header:"Content-Disposition"`
	Policy      string `header:"Content-Security-Policy"`
	Body        []byte
}

type exchangesOutput struct{ Body exchanges }

type exchanges struct {
	Items []exchange `json:"items" doc:"in order of attempt; attempts that left nothing to keep are not there"`
}

// exchange is what a receiver answered to one attempt, within a bound.
type exchange struct {
	Attempt  int    `json:"attempt"`
	Excerpt  []byte `json:"excerpt_base64" doc:"the first bytes of the body, as they came"`
	Location string `json:"location,omitempty" doc:"of a redirect, escaped as in a Go string"`
	Detail   string `json:"detail,omitempty" doc:"of a failure, escaped as in a Go string"`
}

// evidence registers what an auditor may see of contents.
func (s *server) evidence(api huma.API) {
	register(s, api, operation{
		id: "get-payload", tag: "deliveries", call: "GET /v1/deliveries/{id}/payload", scope: domain.ScopeAudit,
		summary: "Read the message's bytes, as they came", about: "The reading is recorded in the log before the bytes are given.",
		refuses: []*domain.Error{domain.ErrDeliveryNotFound, domain.ErrPayloadErased},
	}, s.getPayload)
	answer := api.OpenAPI().Paths["/v1/deliveries/{id}/payload"].Get.Responses["200"]
	answer.Content = map[string]*huma.MediaType{"*/*": {Schema: &huma.Schema{Type: "string", Format: "binary"}}}
	register(s, api, operation{
		id: "list-exchanges", tag: "deliveries", call: "GET /v1/deliveries/{id}/exchanges", scope: domain.ScopeAudit,
		summary: "Read what receivers answered, attempt by attempt", refuses: []*domain.Error{domain.ErrDeliveryNotFound},
	}, s.listExchanges)
}

func (s *server) getPayload(ctx context.Context, in *deliveryPath) (*payloadOutput, error) {
	id, err := parseID(in.ID, domain.ErrDeliveryNotFound)
	if err != nil {
		return nil, err
	}
	c := callOf(ctx)
	from, _, err := net.SplitHostPort(c.request.RemoteAddr)
	if err != nil {
		from = c.request.RemoteAddr
	}
	payload, contentType, err := s.Ledger.ReadPayload(ctx, c.by.Tenant, id, c.by.Actor, from, c.by.OnBehalfOf)
	if err != nil {
		return nil, err
	}
	return &payloadOutput{
		ContentType: cmp.Or(contentType, "application/octet-stream"),
		Disposition: "attachment", Policy: "sandbox; default-src 'none'", Body: payload,
	}, nil
}

func (s *server) listExchanges(ctx context.Context, in *deliveryPath) (*exchangesOutput, error) {
	d, err := s.delivery(ctx, in.ID)
	if err != nil {
		return nil, err
	}
	list, err := s.Ledger.Exchanges(ctx, d.Tenant, d.ID)
	if err != nil {
		return nil, err
	}
	out := exchanges{Items: make([]exchange, 0, len(list))}
	for _, x := range list {
		out.Items = append(out.Items, showExchange(x))
	}
	return &exchangesOutput{out}, nil
}

func showExchange(x projections.Exchange) exchange {
	excerpt := x.Excerpt
	if excerpt == nil {
		excerpt = []byte{}
	}
	return exchange{Attempt: x.Attempt, Excerpt: excerpt, Location: escaped(x.Location), Detail: escaped(x.Detail)}
}

// escaped shows bytes from outside as text: what is not printable, or not UTF-8, as a
// Go string would have it, so that they differ where the bytes do.
func escaped(b []byte) string {
	quoted := strconv.Quote(string(b))
	return strings.ReplaceAll(quoted[1:len(quoted)-1], `\"`, `"`)
}
