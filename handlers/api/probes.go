package api

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"waybill/domain"
)

// probeTimeout bounds how long a probe waits for the database.
const probeTimeout = 5 * time.Second

type probeOutput struct {
	Body probeStatus
}

type probeStatus struct {
	Status string `json:"status" example:"ok"`
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
		summary: "Whether the database is reachable and its schema is the one this program knows",
		refuses: []*domain.Error{notReady(domain.ErrSchemaUnknown)},
	}, func(ctx context.Context, _ *struct{}) (*probeOutput, error) {
		ctx, cancel := context.WithTimeout(ctx, probeTimeout)
		defer cancel()
		if err := s.ready(ctx); err != nil {
			return nil, err
		}
		return &probeOutput{probeStatus{"ready"}}, nil
	})
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
