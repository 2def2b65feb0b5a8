package api

import (
	"context"
	"encoding/base64"
	"encoding/binary"

	"github.com/danielgtaylor/huma/v2"

	"waybill/domain"
	"waybill/projections"
)

// AuditInput narrows every audit question.
type AuditInput struct {
	PageInput
	Since      string `query:"since" doc:"recorded at or after: RFC 3339, or a duration ago such as 2h"`
	Until      string `query:"until" doc:"recorded before: RFC 3339, or a duration ago"`
	EndpointID string `query:"endpoint_id" format:"uuid"`
}

type actionsInput struct {
	AuditInput
	Actor string `query:"actor" maxLength:"500" doc:"such as key:ID or operator:NAME@HOST"`
	Type  string `query:"type" maxLength:"100" doc:"an event's name, such as delivery.replayed"`
}

type attemptsInput struct {
	AuditInput
	Actor string `query:"actor" maxLength:"500" doc:"such as worker:NAME"`
	Host  string `query:"host" maxLength:"255" doc:"as the endpoint's URL names it, without a port"`
}

type dossierOutput struct{ Body projections.Dossier }

// audit registers the questions of auditors.
func (s *server) audit(api huma.API) {
	register(s, api, operation{
		id: "list-actions", tag: "audit", call: "GET /v1/audit/actions", scope: domain.ScopeAudit,
		summary: "List who did what, when and why, newest first",
	}, s.listActions)
	register(s, api, operation{
		id: "list-attempts", tag: "audit", call: "GET /v1/audit/attempts", scope: domain.ScopeAudit,
		summary: "List what went to whom, newest first",
	}, s.listAttempts)
	register(s, api, operation{
		id: "list-doubts", tag: "audit", call: "GET /v1/audit/doubts", scope: domain.ScopeAudit,
		summary: "List attempts that may have been received though nobody was told so, newest first",
	}, s.listDoubts)
	register(s, api, operation{
		id: "get-dossier", tag: "audit", call: "GET /v1/deliveries/{id}/dossier", scope: domain.ScopeAudit,
		summary: "Read everything about a delivery but its bytes", refuses: []*domain.Error{domain.ErrDeliveryNotFound},
	}, s.getDossier)
}

func (s *server) listActions(ctx context.Context, in *actionsInput) (*pageOutput[projections.Action], error) {
	return auditPage(ctx, s, in.AuditInput, in.Actor, "", in.Type, s.Ledger.Actions,
		func(v projections.Action) int64 { return v.Position })
}

func (s *server) listAttempts(ctx context.Context, in *attemptsInput) (*pageOutput[projections.AuditAttempt], error) {
	return auditPage(ctx, s, in.AuditInput, in.Actor, in.Host, "", s.Ledger.Attempts,
		func(v projections.AuditAttempt) int64 { return v.Position })
}

func (s *server) listDoubts(ctx context.Context, in *AuditInput) (*pageOutput[projections.Doubt], error) {
	return auditPage(ctx, s, *in, "", "", "", s.Ledger.Doubts, func(v projections.Doubt) int64 { return v.Position })
}

// auditPage reads one page of an audit question.
func auditPage[T any](ctx context.Context, s *server, in AuditInput, actor, host, name string,
	ask func(context.Context, string, projections.AuditFilter, int64, int) ([]T, error), position func(T) int64,
) (*pageOutput[T], error) {
	for field, text := range map[string]string{"actor": actor, "host": host, "type": name} {
		if err := domain.CheckText(field, text, 500); err != nil {
			return nil, err
		}
	}
	period, err := s.filter(ctx, &listInput{Since: in.Since, Until: in.Until, EndpointID: in.EndpointID})
	if err != nil {
		return nil, err
	}
	before, err := beforePosition(in.Cursor)
	if err != nil {
		return nil, err
	}
	f := projections.AuditFilter{Since: period.Since, Until: period.Until, EndpointID: period.EndpointID, Actor: domain.Actor(actor), Host: host}
	if name != "" {
		f.Names = []string{name}
	}
	list, err := ask(ctx, callOf(ctx).by.Tenant, f, before, in.Limit+1)
	if err != nil {
		return nil, err
	}
	return &pageOutput[T]{pageOf(list, in.Limit, func(v T) T { return v }, func(v T) string { return positionCursor(position(v)) })}, nil
}

func positionCursor(p int64) string {
	return base64.RawURLEncoding.EncodeToString(binary.BigEndian.AppendUint64(nil, uint64(p)))
}

// beforePosition reads a cursor of a list that is ordered by position; empty is 0.
func beforePosition(cursor string) (int64, error) {
	if cursor == "" {
		return 0, nil
	}
	b, err := base64.RawURLEncoding.Strict().DecodeString(cursor)
	if err != nil || len(b) != 8 || b[0] > 0x7f {
		return 0, errCursor
	}
	return int64(binary.BigEndian.Uint64(b)), nil
}

func (s *server) getDossier(ctx context.Context, in *deliveryPath) (*dossierOutput, error) {
	id, err := parseID(in.ID, domain.ErrDeliveryNotFound)
	if err != nil {
		return nil, err
	}
	tenant := callOf(ctx).by.Tenant
	d, err := s.Ledger.Dossier(ctx, tenant, id)
	if err != nil {
		return nil, err
	}
	list, err := s.Ledger.Exchanges(ctx, tenant, id)
	if err != nil {
		return nil, err
	}
	d.Keep(list)
	return &dossierOutput{d}, nil
}
