package main

import (
	"context"
	"encoding/json"
	"time"

	"github.com/google/uuid"

	"waybill/domain"
	"waybill/handlers/command"
	"waybill/projections"
)

// endpointsCmd configures where deliveries go.
type endpointsCmd struct {
	List         endpointListCmd    `cmd:"" help:"List the endpoints of --tenant, newest first."`
	Show         endpointShowCmd    `cmd:"" help:"Show one endpoint."`
	Create       endpointCreateCmd  `cmd:"" help:"Make an endpoint; prints its signing secret this once."`
	Update       endpointUpdateCmd  `cmd:"" help:"Change an endpoint; what is not given stays. A new URL gets a new secret."`
	Pause        endpointPauseCmd   `cmd:"" help:"Make deliveries wait."`
	Resume       endpointResumeCmd  `cmd:"" help:"Let deliveries flow again, after a pause or a 410."`
	Archive      endpointArchiveCmd `cmd:"" help:"End an endpoint for ever; what waits there fails as endpoint_gone."`
	RotateSecret endpointRotateCmd  `cmd:"" help:"Mint a new signing secret; prints it this once."`
}

// endpoints are the use cases, with the URL rules of this command line.
func (s *session) endpoints(n networks) command.Endpoints {
	return command.Endpoints{Ledger: s, Rules: rules{n.AllowNetworks}}
}

type endpointListCmd struct{ limit }

// Run lists endpoints.
func (c *endpointListCmd) Run(ctx context.Context, in *invocation) error {
	return in.withTenant(ctx, func(s *session) error {
		pages := keyset(c.Limit, uuid.Nil, func(v projections.EndpointView) uuid.UUID { return v.ID },
			func(before uuid.UUID, n int) ([]projections.EndpointView, error) {
				list, err := s.Endpoints(ctx, in.Tenant, before, n)
				return viewsOf(list, projections.Endpoint.View), err
			})
		return listing[projections.EndpointView]{
			heads: []string{"ID", "STATUS", "URL", "EVENT TYPES", "DESCRIPTION"},
			row: func(v projections.EndpointView) []string {
				return []string{v.ID.String(), string(v.Status), v.URL, typesOf(v), v.Description}
			},
		}.print(in, pages)
	})
}

type endpointShowCmd struct {
	endpointArg
	past
}

// Run shows one endpoint.
func (c *endpointShowCmd) Run(ctx context.Context, in *invocation) error {
	return in.withTenant(ctx, func(s *session) error {
		at, err := c.resolve(ctx, s)
		if err != nil {
			return err
		}
		if at == (projections.Past{}) {
			p, err := s.Endpoint(ctx, in.Tenant, c.ID.UUID)
			if err != nil {
				return err
			}
			return showEndpoint(in, p.View(), "")
		}
		p, err := s.EndpointAsOf(ctx, in.Tenant, c.ID.UUID, at)
		if err != nil {
			return err
		}
		return showEndpoint(in, p.View(), "")
	})
}

type endpointCreateCmd struct {
	URL  string      `placeholder:"U" help:"https, unless its address is in --allow-networks. Mode remote has none."`
	Mode domain.Mode `default:"http" enum:"http,remote" placeholder:"M" help:"http: Waybill sends. remote: only remote workers claim from it, over the API."`
	endpointFlags
	networks
}

// Run makes the endpoint.
func (c *endpointCreateCmd) Run(ctx context.Context, in *invocation) error {
	policy, err := c.policy(in.in)
	if err != nil {
		return err
	}
	input := command.EndpointInput{URL: c.URL, Mode: c.Mode, EventTypes: c.EventType, Policy: policy}
	if c.Description != nil {
		input.Description = *c.Description
	}
	return in.withSecrets(ctx, func(s *session) error {
		p, secret, err := s.endpoints(c.networks).Create(ctx, s.by, input)
		if err != nil {
			return err
		}
		return showEndpoint(in, p.View(), secret)
	})
}

type endpointUpdateCmd struct {
	endpointArg
	URL *string `placeholder:"U" help:"Another URL; mints a new secret, and the old one signs no more."`
	endpointFlags
	AllEventTypes bool `help:"Take messages of every event type again."`
	ifVersion
	networks
}

// Run changes the endpoint.
func (c *endpointUpdateCmd) Run(ctx context.Context, in *invocation) error {
	patch, err := c.patch(in.in)
	if err != nil {
		return err
	}
	return in.withSecrets(ctx, func(s *session) error {
		p, secret, err := s.endpoints(c.networks).Update(ctx, s.by, c.ID.UUID, patch, c.IfVersion)
		if err != nil {
			return err
		}
		return showEndpoint(in, p.View(), secret)
	})
}

type endpointPauseCmd struct {
	endpointArg
	ifVersion
}

// Run pauses the endpoint.
func (c *endpointPauseCmd) Run(ctx context.Context, in *invocation) error {
	return in.turnEndpoint(ctx, c.ID, c.IfVersion, command.Endpoints.Pause)
}

type endpointResumeCmd struct {
	endpointArg
	ifVersion
}

// Run resumes the endpoint.
func (c *endpointResumeCmd) Run(ctx context.Context, in *invocation) error {
	return in.turnEndpoint(ctx, c.ID, c.IfVersion, command.Endpoints.Resume)
}

type endpointArchiveCmd struct {
	endpointArg
	ifVersion
}

// Run archives the endpoint.
func (c *endpointArchiveCmd) Run(ctx context.Context, in *invocation) error {
	return in.turnEndpoint(ctx, c.ID, c.IfVersion, command.Endpoints.Archive)
}

type endpointRotateCmd struct {
	endpointArg
	Overlap time.Duration `default:"24h" placeholder:"D" help:"How long the old secret signs too (default ${default}, at most 168h)."`
	ifVersion
}

// Run rotates the secret.
func (c *endpointRotateCmd) Run(ctx context.Context, in *invocation) error {
	return in.withSecrets(ctx, func(s *session) error {
		p, secret, err := s.endpoints(networks{}).RotateSecret(ctx, s.by, c.ID.UUID, c.Overlap, c.IfVersion)
		if err != nil {
			return err
		}
		return showEndpoint(in, p.View(), secret)
	})
}

// turnEndpoint takes one of the decisions that need nothing but the endpoint: whoever
// must stop deliveries at once need not have the keyset at hand.
func (in *invocation) turnEndpoint(ctx context.Context, id identity, version int,
	decide func(command.Endpoints, context.Context, command.Caller, uuid.UUID, int) (projections.Endpoint, error),
) error {
	return in.withTenant(ctx, func(s *session) error {
		p, err := decide(s.endpoints(networks{}), ctx, s.by, id.UUID, version)
		if err != nil {
			return err
		}
		return say(in, p.View(), p.ID.String(), string(p.Status))
	})
}

// endpointShown is an endpoint with its secret, when it has just been made.
type endpointShown struct {
	projections.EndpointView
	Secret string `json:"secret,omitempty"`
}

func showEndpoint(in *invocation, v projections.EndpointView, secret string) error {
	policy, err := json.Marshal(v.Policy)
	if err != nil {
		return err
	}
	fields := [][2]string{
		{"id", v.ID.String()}, {"tenant", v.Tenant}, {"url", v.URL}, {"status", string(v.Status)},
		{"description", v.Description}, {"mode", string(v.Mode)}, {"event types", typesOf(v)}, {"policy", string(policy)},
		{"version", itoa(v.Version)}, {"created", v.CreatedAt.String()}, {"updated", v.UpdatedAt.String()}, {"secret", secret},
	}
	if secret != "" {
		fields = append(fields, [2]string{" ", "Keep the secret: it cannot be shown again."})
	}
	return show(in, endpointShown{v, secret}, append(fields, basisOf(v.Basis)...)...)
}
