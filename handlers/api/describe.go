package api

import (
	"context"
	"encoding/json"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"waybill/domain"
)

// adoptHuma sets what huma keeps for a whole program: problems are ours, names of
// JSON members are what they are, and lists are never null.
var adoptHuma = sync.OnceFunc(func() {
	huma.NewError = malformed
	huma.NewErrorWithContext = func(_ huma.Context, status int, msg string, errs ...error) huma.StatusError {
		return malformed(status, msg, errs...)
	}
	huma.ValidateStrictCasing = true
	huma.DefaultArrayNullable = false
})

// malformed is the problem for what huma finds wrong with a request before any
// handler sees it. What was found is named, and not repeated.
func malformed(status int, msg string, errs ...error) huma.StatusError {
	if status == http.StatusRequestEntityTooLarge {
		return refused(domain.ErrPayloadTooLarge.With("the request's body is larger than " + strconv.Itoa(maxJSONBytes) + " bytes"))
	}
	p := refused(domain.ErrInvalidRequest.With(msg))
	for _, err := range errs {
		found := FieldError{Message: err.Error()}
		if d, ok := err.(huma.ErrorDetailer); ok {
			found = FieldError{Location: d.ErrorDetail().Location, Message: d.ErrorDetail().Message}
		}
		p.Errors = append(p.Errors, found)
	}
	if status >= http.StatusInternalServerError || status == http.StatusRequestTimeout {
		p.Errors, p.Detail = nil, "the request's body could not be read to its end"
	}
	if len(p.Errors) > 0 {
		p.Detail = strings.TrimPrefix(p.Errors[0].Location+": "+p.Errors[0].Message, ": ")
	}
	return p
}

// describe registers every operation and returns the description of all of them.
func (s *server) describe() *huma.OpenAPI {
	api := s.adopt()
	s.probes(api)
	s.endpoints(api)
	s.submissions(api)
	s.deliveries(api)
	s.evidence(api)
	s.proofs(api)
	s.audit(api)
	s.operations(api)
	s.claims(api)
	finish(api.OpenAPI().Components.Schemas)
	return api.OpenAPI()
}

// adopt returns the API as huma has it, with no operation yet.
func (s *server) adopt() huma.API {
	adoptHuma()
	format := huma.Format{Marshal: huma.DefaultJSONFormat.Marshal, Unmarshal: unmarshalStrictly}
	api := humago.New(s.mux, huma.Config{
		OpenAPI: &huma.OpenAPI{
			OpenAPI: "3.1.0",
			Info: &huma.Info{Title: "Waybill", Version: s.Version, Description: "An event-sourced delivery ledger. " +
				"Every error is an RFC 9457 problem with a stable code."},
			Components: &huma.Components{
				Schemas: newRegistry(),
				SecuritySchemes: map[string]*huma.SecurityScheme{keyScheme: {Type: "http", Scheme: "bearer", BearerFormat: "wbk_…",
					Description: "An API key of one tenant. Each operation needs one scope, named with it."}},
			},
		},
		Formats:                      map[string]huma.Format{"application/json": format, "json": format}, // the latter for …+json
		DefaultFormat:                "application/json",
		RejectUnknownQueryParameters: true,
	})
	api.UseMiddleware(s.admit)
	return api
}

// operation is what an operation says of itself beside its input and output.
type operation struct {
	id, tag string
	call    string // method and path
	summary string
	about   string
	scope   domain.Scope // empty: no key is needed
	status  int          // 0: 200
	refuses []*domain.Error
	body    *huma.RequestBody // of operations that read their body by hand
}

// register adds an operation. Whatever its handler returns as error is answered as a
// problem.
func register[I, O any](s *server, api huma.API, o operation, handle func(context.Context, *I) (*O, error)) {
	method, path, _ := strings.Cut(o.call, " ")
	op := huma.Operation{
		OperationID: o.id, Method: method, Path: path, Summary: o.summary, Description: o.about, Tags: []string{o.tag},
		DefaultStatus: o.status, Responses: problems(api, o), RequestBody: o.body,
		MaxBodyBytes: maxJSONBytes, BodyReadTimeout: s.Timeout,
	}
	if o.scope != "" {
		op.Security = []map[string][]string{{keyScheme: {string(o.scope)}}}
		op.Parameters = []*huma.Param{{Name: "Waybill-Actor", In: "header", Schema: &huma.Schema{Type: "string"},
			Description: "Whom the caller acts for, at most 200 characters: recorded as claimed, beside the key."}}
	}
	huma.Register(api, op, func(ctx context.Context, in *I) (*O, error) {
		out, err := handle(ctx, in)
		if err != nil {
			return nil, s.problem(ctx, err)
		}
		return out, nil
	})
}

// problems describes the refusals of an operation, by status.
func problems(api huma.API, o operation) map[string]*huma.Response {
	list := slices.Concat(o.refuses, []*domain.Error{domain.ErrInvalidRequest, domain.ErrStorageUnavailable})
	if o.scope != "" {
		list = append(list, domain.ErrUnauthorized, domain.ErrScopeMissing)
	}
	all := map[string]*huma.Response{}
	add := func(status int, code, message string) {
		r := all[strconv.Itoa(status)]
		if r == nil {
			schema := api.OpenAPI().Components.Schemas.Schema(reflect.TypeFor[Problem](), true, "")
			r = &huma.Response{Content: map[string]*huma.MediaType{problemType: {Schema: schema}}}
			all[strconv.Itoa(status)] = r
		}
		r.Description = strings.TrimPrefix(r.Description+"\n`"+code+"`: "+message, "\n")
	}
	for _, e := range list {
		add(statuses[e.Kind], e.Code, e.Message)
		if e == domain.ErrDeliveryNotFound { // what was there may have left
			add(statuses[domain.Gone], domain.ErrDeliveryArchived.Code, domain.ErrDeliveryArchived.Message)
		}
		if e == domain.ErrRateLimited {
			all[strconv.Itoa(o.status)] = &huma.Response{Description: http.StatusText(o.status), Headers: budgetHeaders()}
			all[strconv.Itoa(http.StatusTooManyRequests)].Headers = budgetHeaders("Retry-After")
		}
	}
	all[strconv.Itoa(http.StatusServiceUnavailable)].Headers = map[string]*huma.Param{"Retry-After": retryAfter()}
	add(http.StatusInternalServerError, codeInternal, "the server failed; its log says why")
	return all
}

// unmarshalStrictly reads JSON that the ledger can keep as it came.
func unmarshalStrictly(data []byte, into any) error {
	if err := checkJSON(data); err != nil {
		return err
	}
	return json.Unmarshal(data, into)
}
