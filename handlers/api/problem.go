package api

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"

	"waybill/domain"
)

// Problem is an error as the API answers it (RFC 9457).
type Problem struct {
	Type   string       `json:"type" doc:"always about:blank: the code says what it is"`
	Title  string       `json:"title" doc:"the status in words"`
	Status int          `json:"status"`
	Detail string       `json:"detail,omitempty" doc:"what to do, for people"`
	Code   string       `json:"code" doc:"stable, for programs" example:"delivery_not_found"`
	Errors []FieldError `json:"errors,omitempty" doc:"where the request is malformed"`

	UnrecordedResults *int `json:"unrecorded_results,omitempty" doc:"of /readyz alone: results of this process that wait to be recorded"`

	header http.Header
}

// FieldError says what is wrong with one part of a request. It never repeats it.
type FieldError struct {
	Location string `json:"location" doc:"such as body.reason or query.limit"`
	Message  string `json:"message"`
}

// Error returns the detail.
func (p *Problem) Error() string { return p.Detail }

// GetStatus returns the HTTP status.
func (p *Problem) GetStatus() int { return p.Status }

// GetHeaders returns the headers that go with the problem.
func (p *Problem) GetHeaders() http.Header { return p.header }

// ContentType returns the media type of problems in place of the given one.
func (*Problem) ContentType(string) string { return problemType }

const problemType = "application/problem+json"

// statuses says how each kind of refusal is answered.
var statuses = map[domain.Kind]int{
	domain.Invalid:       http.StatusBadRequest,
	domain.Unauthorized:  http.StatusUnauthorized,
	domain.Forbidden:     http.StatusForbidden,
	domain.NotFound:      http.StatusNotFound,
	domain.Conflict:      http.StatusConflict,
	domain.Gone:          http.StatusGone,
	domain.Precondition:  http.StatusPreconditionFailed,
	domain.TooLarge:      http.StatusRequestEntityTooLarge,
	domain.Unprocessable: http.StatusUnprocessableEntity,
	domain.RateLimited:   http.StatusTooManyRequests,
	domain.Unavailable:   http.StatusServiceUnavailable,
}

// What only HTTP has.
const (
	codeInternal         = "internal"
	codeNoRoute          = "route_not_found"
	codeMethodNotAllowed = "method_not_allowed"
)

func newProblem(status int, code, detail string) *Problem {
	return &Problem{Type: "about:blank", Title: http.StatusText(status), Status: status, Code: code, Detail: detail}
}

// refused is the problem that a refusal is answered with.
func refused(e *domain.Error) *Problem {
	status, ok := statuses[e.Kind]
	if !ok {
		status = http.StatusInternalServerError
	}
	p := newProblem(status, e.Code, e.Message)
	switch e.Kind {
	case domain.Unavailable:
		p.header = http.Header{"Retry-After": {"1"}}
	case domain.Unauthorized:
		p.header = http.Header{"Www-Authenticate": {"Bearer"}}
	}
	return p
}

func internal() *Problem {
	return newProblem(http.StatusInternalServerError, codeInternal, "the server failed; its log says why")
}

// problem turns whatever ended a call into what its caller may know. Faults are
// logged; their text goes nowhere else.
func (s *server) problem(ctx context.Context, err error) *Problem {
	var p *Problem
	var refusal *domain.Error
	switch {
	case errors.As(err, &p):
		return p
	case errors.As(err, &refusal):
		return refused(refusal)
	case errors.Is(err, context.Canceled) && ctx.Err() != nil:
		s.Log.DebugContext(ctx, "the caller went away", about(ctx, err)...)
		return refused(domain.ErrStorageUnavailable)
	case errors.Is(err, context.DeadlineExceeded) || s.Transient(err):
		s.Log.WarnContext(ctx, "storage is away or busy", about(ctx, err)...)
		return refused(domain.ErrStorageUnavailable)
	}
	s.Log.ErrorContext(ctx, "a call failed", about(ctx, err)...)
	return internal()
}

// about says what a fault belongs to; a query may hold more than a log should.
func about(ctx context.Context, err error) []any {
	c := callOf(ctx)
	return []any{slog.String("method", c.request.Method), slog.String("path", c.request.URL.Path),
		slog.String("actor", string(c.by.Actor)), slog.Any("error", err)}
}

// write answers with a problem where huma has no part in it.
func (p *Problem) write(w http.ResponseWriter) {
	for name, values := range p.header {
		w.Header()[name] = values
	}
	w.Header().Set("Content-Type", problemType)
	w.WriteHeader(p.Status)
	_ = json.NewEncoder(w).Encode(p) // a caller that is gone is nobody's fault
}
