package main

import (
	"context"

	"waybill/adapters/postgres"
)

// migrateCmd brings the schema up to date.
type migrateCmd struct {
	AppRole        string `placeholder:"R" help:"The role that serve connects as; it is granted what it needs and no more."`
	OutboxRole     string `placeholder:"R" help:"A role that may insert into the table outbox, and do nothing else."`
	AuditorRole    string `placeholder:"R" help:"A role that may read the views audit_… and nothing else."`
	ProjectionRole string `placeholder:"R" help:"A role that owns the projections and may rebuild them, and that only reads the log. The migrating role must be a member of it."`
}

// Run migrates as the role that the URL names, which then owns the schema.
func (c *migrateCmd) Run(ctx context.Context, in *invocation) error {
	if err := in.check(); err != nil {
		return err
	}
	err := postgres.Migrate(ctx, in.DatabaseURL, postgres.MigrateOptions{Schema: in.Schema, AppRole: c.AppRole, OutboxRole: c.OutboxRole,
		AuditorRole: c.AuditorRole, ProjectionRole: c.ProjectionRole})
	if err != nil {
		return err
	}
	return say(in, map[string]string{"schema": string(in.Schema), "app_role": c.AppRole, "outbox_role": c.OutboxRole,
		"auditor_role": c.AuditorRole, "projection_role": c.ProjectionRole}, string(in.Schema), "is up to date")
}
