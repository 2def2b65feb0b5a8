package api

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"waybill/domain"
)

const (
	// probeTimeout bounds how long a probe waits for the database.
	probeTimeout = 5 * time.Second
	// backlogTime is how long a result may wait to be recorded before the process is
	// not ready: shorter faults pass by themselves.
	backlogTime = 30 * time.Second
)

// errBacklog is what /readyz says while results cannot be recorded. Only a probe gets it.
var errBacklog = &domain.Error{Kind: domain.Unavailable, Code: "results_unrecorded", Message: "results of requests cannot be recorded"}

type probeOutput struct {
	Body probeStatus
}

type probeStatus struct {
	Status string `json:"status" example:"ok"`
}

type readyOutput struct {
	Body readyStatus
}

type readyStatus struct {
	Status            string `json:"status" example:"ready"`
	UnrecordedResults int    `json:"unrecorded_results" doc:"results of this process that wait to be recorded"`
}

// probes registers what a supervisor asks.
func (s *server) probes(api huma.API) {
	register(s, api, operation{
		id: "healthz", tag: "probes", call: "GET /healthz", summary: "Whether the process answers",
	}, func(context.Context, *struct{}) (*probeOutput, error) {
		return &probeOutput{probeStatus{"ok"}}, nil
	})
	register(s, api, operation{
		id: "readyz", tag: "probes", call: "GET /readyz",
		summary: "Whether the database is reachable, its schema is the one this program knows, and results are recorded",
		refuses: []*domain.Error{notReady(domain.ErrSchemaUnknown), errBacklog},
	}, s.readyz)
	register(s, api, operation{
		id: "metrics", tag: "probes", call: "GET /metrics", summary: "Numbers for Prometheus, in its text form",
	}, func(ctx context.Context, _ *struct{}) (*huma.StreamResponse, error) {
		return &huma.StreamResponse{Body: func(huma.Context) {
			c := callOf(ctx)
			s.Metrics.ServeHTTP(c.writer, c.request)
		}}, nil
	})
}

func (s *server) readyz(ctx context.Context, _ *struct{}) (*readyOutput, error) {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	err := s.ready(ctx)
	results, longest := s.Backlog()
	if err == nil && longest > backlogTime {
		err = errBacklog.With(fmt.Sprintf("the oldest of %d results has waited for %s to be recorded", results, longest.Round(time.Second)))
	}
	if err != nil {
		p := s.problem(ctx, err)
		p.UnrecordedResults = &results
		return nil, p
	}
	return &readyOutput{readyStatus{"ready", results}}, nil
}

func (s *server) ready(ctx context.Context) error {
	if err := s.Ready.Ping(ctx); err != nil {
		s.Log.WarnContext(ctx, "the database does not answer", slog.Any("error", err))
		return domain.ErrStorageUnavailable
	}
	err := s.Ready.CheckSchema(ctx)
	var refusal *domain.Error
	if errors.As(err, &refusal) {
		return notReady(refusal)
	}
	return err
}

// notReady is a refusal in a probe's words: whatever it is, it may pass.
func notReady(e *domain.Error) *domain.Error {
	return &domain.Error{Kind: domain.Unavailable, Code: e.Code, Message: e.Message}
}
