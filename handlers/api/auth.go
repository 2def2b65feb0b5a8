package api

import (
	"context"
	"net/http"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"waybill/domain"
	"waybill/handlers/command"
)

// keyScheme names the API key in the description's security requirements.
const keyScheme = "key"

// call is what a handler may need of the request beside its input.
type call struct {
	request *http.Request
	writer  http.ResponseWriter
	by      command.Caller // zero where no key is needed
	leave   func()         // gives back what the body took; nil: it took nothing
}

func (c *call) end() {
	if c.leave != nil {
		c.leave()
	}
}

type callKey struct{}

// callOf returns the call that a context belongs to.
func callOf(ctx context.Context) *call { return ctx.Value(callKey{}).(*call) }

// admit lets an operation be reached by those only who hold a key with its scope,
// and binds the call to the key's tenant.
func (s *server) admit(ctx huma.Context, next func(huma.Context)) {
	r, w := humago.Unwrap(ctx)
	c := &call{request: r, writer: w}
	defer c.end()
	ctx = huma.WithValue(ctx, callKey{}, c)
	if scope := scopeOf(ctx.Operation()); scope != "" {
		var err error
		if c.by, err = s.caller(ctx.Context(), r, scope); err != nil {
			s.problem(ctx.Context(), err).write(w)
			return
		}
	}
	next(jsonOnly{ctx})
}

func scopeOf(op *huma.Operation) domain.Scope {
	for _, requirement := range op.Security {
		for _, scope := range requirement[keyScheme] {
			return domain.Scope(scope)
		}
	}
	return ""
}

func (s *server) caller(ctx context.Context, r *http.Request, scope domain.Scope) (command.Caller, error) {
	key, err := s.Keys.Authenticate(ctx, bearer(r))
	if err != nil {
		return command.Caller{}, err
	}
	if !slices.Contains(key.Scopes, scope) {
		return command.Caller{}, domain.ErrScopeMissing.With("this call needs a key with the scope " + string(scope))
	}
	actor, _, err := header(r, "Waybill-Actor")
	by := command.Caller{Tenant: key.Tenant, Actor: domain.KeyActor(key.ID), OnBehalfOf: actor, KeyID: key.ID, Rate: key.Rate}
	if err != nil {
		return by, err
	}
	return by, by.Check()
}

// bearer returns the request's one bearer token, or nothing (RFC 6750, section 2.1).
func bearer(r *http.Request) string {
	values := r.Header.Values("Authorization")
	if len(values) != 1 {
		return ""
	}
	scheme, token, _ := strings.Cut(values[0], " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return ""
	}
	return strings.TrimSpace(token)
}

// header returns a header that may be given once.
func header(r *http.Request, name string) (value string, given bool, err error) {
	values := r.Header.Values(name)
	switch len(values) {
	case 0:
		return "", false, nil
	case 1:
		return values[0], true, nil
	}
	return "", true, domain.ErrInvalidRequest.With("header " + name + " is given more than once")
}

// jsonOnly takes every body that an operation wants as JSON for JSON, whatever a
// caller's HTTP client calls it, and answers in JSON.
type jsonOnly struct{ humaContext }

// humaContext is a huma.Context whose name, embedded, hides no method.
type humaContext huma.Context

// Header returns a header of the request.
func (c jsonOnly) Header(name string) string {
	switch name {
	case "Content-Type", "Accept":
		return "application/json"
	}
	return c.humaContext.Header(name)
}

// Unwrap returns the context within.
func (c jsonOnly) Unwrap() huma.Context { return c.humaContext }
