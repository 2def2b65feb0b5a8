package projections

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"math"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"waybill/domain"
)

var (
	//go:embed sql/audit_actions.sql
	auditActions string
	//go:embed sql/audit_attempts.sql
	auditAttempts string
	//go:embed sql/audit_doubts.sql
	auditDoubts string
)

// AuditFilter narrows what an auditor asks; zero members do not.
type AuditFilter struct {
	Since, Until domain.Instant // half-open, of recorded_at
	Actor        domain.Actor   // not of doubts, which nobody did
	EndpointID   uuid.UUID
	Host         string   // of attempts
	Names        []string // of actions
}

func (f AuditFilter) args(tenant string, before int64, limit int) pgx.StrictNamedArgs {
	if before == 0 {
		before = math.MaxInt64
	}
	return pgx.StrictNamedArgs{
		"tenant": tenant, "before": before, "limit": limit, "since": orNull(f.Since.Time), "until": orNull(f.Until.Time),
		"endpoint": orNull(f.EndpointID),
	}
}

// Action is something that a person, or a program on somebody's behalf, decided.
type Action struct {
	Position   int64           `json:"position"`
	Tenant     string          `json:"tenant"`
	RecordedAt domain.Instant  `json:"recorded_at"`
	Actor      domain.Actor    `json:"actor"`
	OnBehalfOf string          `json:"on_behalf_of,omitempty" doc:"as the actor claimed"`
	Action     string          `json:"action" doc:"the event's name" example:"delivery.replayed"`
	Stream     string          `json:"stream" enum:"delivery,endpoint,admin"`
	StreamID   uuid.UUID       `json:"stream_id"`
	Seq        int             `json:"seq"`
	EndpointID uuid.UUID       `json:"endpoint_id,omitzero"`
	Reason     string          `json:"reason,omitempty"`
	Data       json.RawMessage `json:"data"`
}

// AuditAttempt is an attempt as an auditor sees it.
type AuditAttempt struct {
	Position   int64          `json:"position"`
	Tenant     string         `json:"tenant"`
	RecordedAt domain.Instant `json:"recorded_at"`
	Actor      domain.Actor   `json:"actor"`
	DeliveryID uuid.UUID      `json:"delivery_id"`
	Seq        int            `json:"seq"`
	EndpointID uuid.UUID      `json:"endpoint_id,omitzero"`
	Attempt    int            `json:"attempt"`
	StartedAt  domain.Instant `json:"started_at"`
	Host       string         `json:"host,omitempty"`
	Outcome    domain.Outcome `json:"outcome" enum:"succeeded,refused,unreached,unknown"`
	Reason     string         `json:"reason,omitempty"`
	Status     int            `json:"status,omitempty"`
	DurationMS int64          `json:"duration_ms"`
	Superseded bool           `json:"superseded"`
}

// Doubt is an attempt that may have been received though nobody was told so.
type Doubt struct {
	Position   int64          `json:"position"`
	Tenant     string         `json:"tenant"`
	RecordedAt domain.Instant `json:"recorded_at"`
	DeliveryID uuid.UUID      `json:"delivery_id"`
	Seq        int            `json:"seq"`
	EndpointID uuid.UUID      `json:"endpoint_id,omitzero"`
	Event      string         `json:"event" doc:"that left it in doubt"`
	Attempt    int            `json:"attempt"`
	Reason     string         `json:"reason"`
}

// Actions returns what people did, newest first, from below the position before (0: from
// the newest), at most limit.
func (r Reader) Actions(ctx context.Context, tenant string, f AuditFilter, before int64, limit int) ([]Action, error) {
	a := f.args(tenant, before, limit)
	a["actor"], a["names"] = orNull(string(f.Actor)), f.Names
	rows, err := r.DB.Query(ctx, r.Schema.SQL(auditActions), a)
	if err != nil {
		return nil, fmt.Errorf("list actions: %w", err)
	}
	return collect(rows, func(row pgx.CollectableRow) (v Action, err error) {
		var at time.Time
		var behalf, reason *string
		var endpoint *uuid.UUID
		err = row.Scan(&v.Position, &v.Tenant, &at, &v.Actor, &behalf, &v.Action, &v.Stream, &v.StreamID, &v.Seq, &endpoint,
			&reason, (*[]byte)(&v.Data))
		v.RecordedAt, v.OnBehalfOf, v.Reason, v.EndpointID = domain.At(at), text(behalf), text(reason), orZero(endpoint)
		return v, err
	}, "list actions")
}

// Attempts returns what went to whom, newest first, as Actions does.
func (r Reader) Attempts(ctx context.Context, tenant string, f AuditFilter, before int64, limit int) ([]AuditAttempt, error) {
	a := f.args(tenant, before, limit)
	a["actor"], a["host"] = orNull(string(f.Actor)), orNull(f.Host)
	rows, err := r.DB.Query(ctx, r.Schema.SQL(auditAttempts), a)
	if err != nil {
		return nil, fmt.Errorf("list attempts: %w", err)
	}
	return collect(rows, func(row pgx.CollectableRow) (v AuditAttempt, err error) {
		var at, started time.Time
		var host, reason *string
		var status *int
		var endpoint *uuid.UUID
		err = row.Scan(&v.Position, &v.Tenant, &at, &v.Actor, &v.DeliveryID, &v.Seq, &endpoint, &v.Attempt, &started, &host,
			&v.Outcome, &reason, &status, &v.DurationMS, &v.Superseded)
		v.RecordedAt, v.StartedAt, v.Host, v.Reason = domain.At(at), domain.At(started), text(host), text(reason)
		v.Status, v.EndpointID = orZero(status), orZero(endpoint)
		return v, err
	}, "list attempts")
}

// Doubts returns attempts that may have been received, newest first, as Actions does.
func (r Reader) Doubts(ctx context.Context, tenant string, f AuditFilter, before int64, limit int) ([]Doubt, error) {
	rows, err := r.DB.Query(ctx, r.Schema.SQL(auditDoubts), f.args(tenant, before, limit))
	if err != nil {
		return nil, fmt.Errorf("list doubts: %w", err)
	}
	return collect(rows, func(row pgx.CollectableRow) (v Doubt, err error) {
		var at time.Time
		var endpoint *uuid.UUID
		err = row.Scan(&v.Position, &v.Tenant, &at, &v.DeliveryID, &v.Seq, &endpoint, &v.Event, &v.Attempt, &v.Reason)
		v.RecordedAt, v.EndpointID = domain.At(at), orZero(endpoint)
		return v, err
	}, "list doubts")
}

func orZero[T any](v *T) (zero T) {
	if v == nil {
		return zero
	}
	return *v
}
