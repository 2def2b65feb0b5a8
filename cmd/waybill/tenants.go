package main

import (
	"context"

	"waybill/domain"
	"waybill/projections"
)

// tenantsCmd makes and lists tenants.
type tenantsCmd struct {
	Create tenantCreateCmd `cmd:"" help:"Make a tenant."`
	List   tenantListCmd   `cmd:"" help:"List all tenants."`
}

type tenantCreateCmd struct {
	Name string `arg:"" help:"A slug: a–z, 0–9 and inner hyphens, at most 63."`
}

// tenantView is a tenant as it is shown.
type tenantView struct {
	Name      string         `json:"name"`
	ID        string         `json:"id"`
	CreatedAt domain.Instant `json:"created_at"`
}

func viewTenant(t projections.Tenant) tenantView {
	return tenantView{t.Name, t.ID.String(), t.CreatedAt}
}

// Run makes the tenant.
func (c *tenantCreateCmd) Run(ctx context.Context, in *invocation) error {
	if err := domain.CheckSlug(c.Name); err != nil {
		return err
	}
	return in.withLedger(ctx, func(s *session) error {
		t, err := s.CreateTenant(ctx, c.Name, s.by.Actor)
		if err != nil {
			return err
		}
		return say(in, viewTenant(t), t.Name)
	})
}

type tenantListCmd struct{}

// Run lists the tenants by name.
func (*tenantListCmd) Run(ctx context.Context, in *invocation) error {
	return in.withLedger(ctx, func(s *session) error {
		tenants, err := s.Tenants(ctx)
		var views []tenantView
		for _, t := range tenants {
			views = append(views, viewTenant(t))
		}
		return listing[tenantView]{
			heads: []string{"NAME", "ID", "CREATED"},
			row:   func(t tenantView) []string { return []string{t.Name, t.ID, t.CreatedAt.String()} },
		}.print(in, onePage(views, err))
	})
}
