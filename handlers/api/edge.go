package api

import (
	"context"
	"log/slog"
	"net/http"
	"runtime/debug"
)

// ServeHTTP bounds a request in time, turns panics and what no route takes into
// problems, and leaves the rest to the routes.
func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	out := &response{ResponseWriter: w}
	defer s.recovered(out, r)
	ctx, cancel := context.WithTimeout(r.Context(), s.Timeout)
	defer cancel()
	r = r.WithContext(ctx)
	out.Header().Set("X-Content-Type-Options", "nosniff")
	out.Header().Set("Cache-Control", "no-store")
	if h, pattern := s.mux.Handler(r); pattern == "" {
		unrouted(out, r, h)
		return
	}
	s.admitted(out, r)
}

// recovered answers for a handler that panicked: with a problem, or, where the
// answer had begun, by breaking it off.
func (s *server) recovered(w *response, r *http.Request) {
	v := recover()
	if v == nil {
		return
	}
	if v == http.ErrAbortHandler {
		panic(v)
	}
	s.Log.ErrorContext(r.Context(), "a handler panicked", slog.String("method", r.Method),
		slog.String("path", r.URL.Path), slog.Any("panic", v), slog.String("stack", string(debug.Stack())))
	if w.begun {
		panic(http.ErrAbortHandler)
	}
	internal().write(w)
}

// unrouted turns what the mux says of a path or method that it does not know into a
// problem.
func unrouted(w http.ResponseWriter, r *http.Request, mux http.Handler) {
	verdict := &discarded{header: http.Header{}, status: http.StatusOK}
	mux.ServeHTTP(verdict, r)
	if verdict.status != http.StatusMethodNotAllowed {
		newProblem(http.StatusNotFound, codeNoRoute, "there is no such path; GET /openapi.json lists them").write(w)
		return
	}
	p := newProblem(http.StatusMethodNotAllowed, codeMethodNotAllowed, "this path takes "+verdict.header.Get("Allow"))
	p.header = http.Header{"Allow": verdict.header.Values("Allow")}
	p.write(w)
}

// response remembers whether an answer has begun.
type response struct {
	http.ResponseWriter
	begun bool
}

// WriteHeader begins the answer; what has begun keeps its status.
func (r *response) WriteHeader(status int) {
	if r.begun {
		return
	}
	r.begun = true
	r.ResponseWriter.WriteHeader(status)
}

// Write begins the answer, or goes on with it.
func (r *response) Write(b []byte) (int, error) {
	r.begun = true
	return r.ResponseWriter.Write(b)
}

// Unwrap lets http.ResponseController reach the connection.
func (r *response) Unwrap() http.ResponseWriter { return r.ResponseWriter }

// discarded takes an answer for its status and headers only.
type discarded struct {
	header http.Header
	status int
}

// Header returns the headers.
func (d *discarded) Header() http.Header { return d.header }

// WriteHeader keeps the status.
func (d *discarded) WriteHeader(status int) { d.status = status }

// Write drops the body.
func (d *discarded) Write(b []byte) (int, error) { return len(b), nil }
