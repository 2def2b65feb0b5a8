package main

import (
	"context"
	"strings"

	"github.com/google/uuid"

	"waybill/domain"
	"waybill/handlers/command"
	"waybill/projections"
)

// keysCmd makes, lists and revokes API keys.
type keysCmd struct {
	Create keyCreateCmd `cmd:"" help:"Make an API key for --tenant; prints it this once."`
	List   keyListCmd   `cmd:"" help:"List the API keys of --tenant, newest first."`
	Revoke keyRevokeCmd `cmd:"" help:"Make an API key open nothing any more."`

	SigningCreate signingCreateCmd `cmd:"" help:"Make the key that signs checkpoints; prints its public half, the verifier key."`
	SigningShow   signingShowCmd   `cmd:"" help:"Print the verifier key of a signing key."`
}

type keyCreateCmd struct {
	Name  string         `required:"" placeholder:"N" help:"What it is for; shown in lists and kept in the log."`
	Scope []domain.Scope `required:"" placeholder:"S" help:"What it may do: submit, read, operate, admin, audit, claim. Give several, or separate them by commas."`
	Rate  domain.Rate    `placeholder:"R" help:"How many messages it may hand in, such as 1000/1m; none: no limit."`
}

// keyView is an API key as it is shown; Key only when it is made.
type keyView struct {
	ID        uuid.UUID       `json:"id"`
	Tenant    string          `json:"tenant"`
	Name      string          `json:"name"`
	Scopes    []domain.Scope  `json:"scopes"`
	Rate      domain.Rate     `json:"rate,omitzero"`
	CreatedAt domain.Instant  `json:"created_at"`
	RevokedAt *domain.Instant `json:"revoked_at,omitempty"`
	Key       string          `json:"key,omitempty"`
}

func viewKey(k projections.Key) keyView {
	v := keyView{ID: k.ID, Tenant: k.Tenant, Name: k.Name, Scopes: k.Scopes, Rate: k.Rate, CreatedAt: k.CreatedAt}
	if !k.RevokedAt.IsZero() {
		v.RevokedAt = &k.RevokedAt
	}
	return v
}

func (v keyView) scopes() string {
	list := make([]string, len(v.Scopes))
	for i, s := range v.Scopes {
		list[i] = string(s)
	}
	return strings.Join(list, ",")
}

// Run makes the key and prints it, this once.
func (c *keyCreateCmd) Run(ctx context.Context, in *invocation) error {
	return in.withTenant(ctx, func(s *session) error {
		k, token, err := command.Keys{Ledger: s}.Create(ctx, s.by, c.Name, c.Scope, c.Rate)
		if err != nil {
			return err
		}
		v := viewKey(k)
		v.Key = token
		return show(in, v, [2]string{"id", v.ID.String()}, [2]string{"tenant", v.Tenant}, [2]string{"name", v.Name},
			[2]string{"scopes", v.scopes()}, [2]string{"key", token}, [2]string{"", "Keep the key: it is not stored and cannot be shown again."})
	})
}

type keyListCmd struct{}

// Run lists the keys of the tenant.
func (*keyListCmd) Run(ctx context.Context, in *invocation) error {
	return in.withTenant(ctx, func(s *session) error {
		keys, err := command.Keys{Ledger: s}.List(ctx, s.by)
		var views []keyView
		for _, k := range keys {
			views = append(views, viewKey(k))
		}
		return listing[keyView]{
			heads: []string{"ID", "NAME", "SCOPES", "CREATED", "REVOKED"},
			row: func(v keyView) []string {
				revoked := "-"
				if v.RevokedAt != nil {
					revoked = v.RevokedAt.String()
				}
				return []string{v.ID.String(), v.Name, v.scopes(), v.CreatedAt.String(), revoked}
			},
		}.print(in, onePage(views, err))
	})
}

type keyRevokeCmd struct {
	ID identity `arg:"" help:"The key's id."`
}

// Run revokes the key; revoking it twice is no fault.
func (c *keyRevokeCmd) Run(ctx context.Context, in *invocation) error {
	return in.withTenant(ctx, func(s *session) error {
		if err := (command.Keys{Ledger: s}).Revoke(ctx, s.by, c.ID.UUID); err != nil {
			return err
		}
		return say(in, map[string]any{"id": c.ID, "revoked": true}, c.ID.String(), "revoked")
	})
}
