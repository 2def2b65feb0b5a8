package main

import (
	"bytes"
	"context"
	_ "embed"
	"html/template"

	"waybill/events"
	"waybill/projections"
)

//go:embed dossier.html
var dossierPage string

type auditDossierCmd struct {
	deliveryArg
	Format string `enum:"json,html" default:"json" placeholder:"F" help:"json or html (default ${default})."`
	Out    string `placeholder:"F" help:"Write it to this file instead."`
}

// dossier is a dossier with what its attempts left behind.
type dossier struct {
	projections.Dossier
	Exchanges []exchangeNote `json:"exchanges"`
}

// exchangeNote says that something was kept of an answer, and not what.
type exchangeNote struct {
	Attempt      int  `json:"attempt"`
	ExcerptBytes int  `json:"excerpt_bytes"`
	Erased       bool `json:"erased"`
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
		all := dossier{d, []exchangeNote{}}
		for _, x := range list {
			all.Exchanges = append(all.Exchanges, exchangeNote{x.Attempt, len(x.Excerpt), x.Salt == nil})
		}
		if c.Format == "json" {
			return writeJSON(in, c.Out, all)
		}
		page, err := template.New("dossier").Funcs(template.FuncMap{"gist": func(r events.Record) string { return plain(gist(r)) }}).Parse(dossierPage)
		if err != nil {
			return err
		}
		var out bytes.Buffer
		if err := page.Execute(&out, all); err != nil {
			return err
		}
		return write(in, c.Out, out.Bytes())
	})
}
