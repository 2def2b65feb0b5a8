package main

import (
	"bytes"
	"context"
	_ "embed"
	"html/template"

	"waybill/events"
)

//go:embed dossier.html
var dossierPage string

type auditDossierCmd struct {
	deliveryArg
	Format string `enum:"json,html" default:"json" placeholder:"F" help:"json or html (default ${default})."`
	Out    string `placeholder:"F" help:"Write it to this file instead."`
}

// Run writes the dossier.
func (c *auditDossierCmd) Run(ctx context.Context, in *invocation) error {
	return in.withTenant(ctx, func(s *session) error {
		d, err := s.Dossier(ctx, in.Tenant, c.ID.UUID)
		if err != nil {
			return err
		}
		list, err := s.Exchanges(ctx, in.Tenant, c.ID.UUID)
		if err != nil {
			return err
		}
		d.Keep(list)
		if c.Format == "json" {
			return writeJSON(in, c.Out, d)
		}
		page, err := template.New("dossier").Funcs(template.FuncMap{"gist": func(r events.Record) string { return plain(gist(r)) }}).Parse(dossierPage)
		if err != nil {
			return err
		}
		var out bytes.Buffer
		if err := page.Execute(&out, d); err != nil {
			return err
		}
		return write(in, c.Out, out.Bytes())
	})
}
