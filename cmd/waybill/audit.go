package main

import (
	"context"

	"waybill/domain"
	"waybill/projections"
)

// auditCmd answers what auditors ask.
type auditCmd struct {
	Actions  auditActionsCmd  `cmd:"" help:"Who replayed, cancelled, resolved, erased, changed, read or exported what, when and why."`
	Attempts auditAttemptsCmd `cmd:"" help:"What went to whom, such as all attempts to a host in a period."`
	Doubts   auditDoubtsCmd   `cmd:"" help:"Attempts that may have been received though nobody was told so."`
	Dossier  auditDossierCmd  `cmd:"" help:"Everything about one delivery in one file, without payload bytes."`
}

// auditPeriod narrows every audit question.
type auditPeriod struct {
	limit
	Since    moment   `placeholder:"T" help:"Recorded at or after T: RFC 3339, or a duration ago (2h)."`
	Until    moment   `placeholder:"T" help:"Recorded before T."`
	Endpoint identity `placeholder:"E" help:"Only of this endpoint."`
}

func (p auditPeriod) filter(ctx context.Context, s *session) (f projections.AuditFilter, err error) {
	f.EndpointID = p.Endpoint.UUID
	f.Since, f.Until, err = span{p.Since, p.Until}.resolve(ctx, s)
	return f, err
}

type auditActionsCmd struct {
	auditPeriod
	Actor string   `placeholder:"A" help:"Only by this actor, such as key:ID or operator:NAME@HOST."`
	Type  []string `placeholder:"T" help:"Only events of this name, or of prefix.*; may be repeated."`
}

// Run lists actions.
func (c *auditActionsCmd) Run(ctx context.Context, in *invocation) error {
	names, err := eventNames(c.Type)
	if err != nil {
		return err
	}
	return in.withTenant(ctx, func(s *session) error {
		f, err := c.filter(ctx, s)
		if err != nil {
			return err
		}
		f.Actor, f.Names = domain.Actor(c.Actor), names
		pages := keyset(c.Limit, 0, func(v projections.Action) int64 { return v.Position },
			func(before int64, n int) ([]projections.Action, error) {
				return s.Actions(ctx, in.Tenant, f, before, n)
			})
		return listing[projections.Action]{
			heads: []string{"POSITION", "TIME", "ACTION", "ACTOR", "OF", "SEQ", "REASON"},
			row: func(v projections.Action) []string {
				return []string{itoa(int(v.Position)), v.RecordedAt.String(), v.Action, claimed(string(v.Actor), v.OnBehalfOf),
					v.StreamID.String(), itoa(v.Seq), dash(v.Reason)}
			},
		}.print(in, pages)
	})
}

type auditAttemptsCmd struct {
	auditPeriod
	Actor string `placeholder:"A" help:"Only by this actor, such as worker:NAME."`
	Host  string `placeholder:"H" help:"Only to this host, as the endpoint's URL names it, without a port."`
}

// Run lists attempts.
func (c *auditAttemptsCmd) Run(ctx context.Context, in *invocation) error {
	return in.withTenant(ctx, func(s *session) error {
		f, err := c.filter(ctx, s)
		if err != nil {
			return err
		}
		f.Actor, f.Host = domain.Actor(c.Actor), c.Host
		pages := keyset(c.Limit, 0, func(v projections.AuditAttempt) int64 { return v.Position },
			func(before int64, n int) ([]projections.AuditAttempt, error) {
				return s.Attempts(ctx, in.Tenant, f, before, n)
			})
		return listing[projections.AuditAttempt]{
			heads: []string{"POSITION", "STARTED", "DELIVERY", "ATTEMPT", "HOST", "OUTCOME", "STATUS", "REASON", "MS"},
			row: func(v projections.AuditAttempt) []string {
				return []string{itoa(int(v.Position)), v.StartedAt.String(), v.DeliveryID.String(), itoa(v.Attempt), dash(v.Host),
					string(v.Outcome), itoa(v.Status), dash(v.Reason), itoa(int(v.DurationMS))}
			},
		}.print(in, pages)
	})
}

type auditDoubtsCmd struct{ auditPeriod }

// Run lists doubts.
func (c *auditDoubtsCmd) Run(ctx context.Context, in *invocation) error {
	return in.withTenant(ctx, func(s *session) error {
		f, err := c.filter(ctx, s)
		if err != nil {
			return err
		}
		pages := keyset(c.Limit, 0, func(v projections.Doubt) int64 { return v.Position },
			func(before int64, n int) ([]projections.Doubt, error) { return s.Doubts(ctx, in.Tenant, f, before, n) })
		return listing[projections.Doubt]{
			heads: []string{"POSITION", "TIME", "DELIVERY", "SEQ", "ATTEMPT", "EVENT", "REASON"},
			row: func(v projections.Doubt) []string {
				return []string{itoa(int(v.Position)), v.RecordedAt.String(), v.DeliveryID.String(), itoa(v.Seq), itoa(v.Attempt), v.Event, v.Reason}
			},
		}.print(in, pages)
	})
}
