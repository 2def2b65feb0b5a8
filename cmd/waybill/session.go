package main

import (
	"context"
	"os"
	"os/user"
	"strings"

	"github.com/jackc/pgx/v5/pgxpool"

	"waybill/adapters/postgres"
	"waybill/adapters/secrets"
	"waybill/domain"
	"waybill/handlers/command"
)

// sessionConns is how many connections a command of the command line may use.
const sessionConns = 4

// session is an operator's access to a ledger.
type session struct {
	*postgres.Ledger
	by command.Caller
}

// withLedger runs something on the ledger, whose schema is one that this program
// knows.
func (in *invocation) withLedger(ctx context.Context, do func(*session) error) error {
	return in.open(ctx, nil, do)
}

// withTenant is withLedger for what concerns --tenant, which must exist.
func (in *invocation) withTenant(ctx context.Context, do func(*session) error) error {
	return in.open(ctx, nil, in.onTenant(ctx, do))
}

// withSecrets is withTenant for what seals or opens secrets.
func (in *invocation) withSecrets(ctx context.Context, do func(*session) error) error {
	vault, err := in.vault()
	if err != nil {
		return err
	}
	return in.open(ctx, vault, in.onTenant(ctx, do))
}

func (in *invocation) onTenant(ctx context.Context, do func(*session) error) func(*session) error {
	return func(s *session) error {
		if _, err := s.Tenant(ctx, in.Tenant); err != nil {
			return err
		}
		return do(s)
	}
}

func (in *invocation) open(ctx context.Context, vault *secrets.Vault, do func(*session) error) error {
	pool, err := in.connect(ctx, sessionConns, "waybill-cli")
	if err != nil {
		return err
	}
	defer pool.Close()
	s := &session{by: command.Caller{Tenant: in.Tenant, Actor: operator()}}
	s.Ledger = postgres.Open(pool, ledgerConfig(in.globals, vault))
	if err := s.CheckSchema(ctx); err != nil {
		return err
	}
	if vault != nil {
		if err := checkKeyset(ctx, pool, in.Schema, vault); err != nil {
			return err
		}
	}
	return do(s)
}

// connect opens a pool on --database-url.
func (g globals) connect(ctx context.Context, conns int32, name string) (*pgxpool.Pool, error) {
	if err := g.check(); err != nil {
		return nil, err
	}
	return postgres.Connect(ctx, g.DatabaseURL, postgres.ConnectOptions{MaxConns: conns, Name: name})
}

func (g globals) check() error {
	if g.DatabaseURL == "" {
		return usageError("name the ledger's database: --database-url or WAYBILL_DATABASE_URL")
	}
	if err := g.Schema.Check(); err != nil {
		return usageError(err.Error())
	}
	return nil
}

// ledgerConfig leaves the vault out where there is none: a nil pointer in an
// interface would look like one.
func ledgerConfig(g globals, vault *secrets.Vault) postgres.Config {
	c := postgres.Config{Schema: g.Schema}
	if vault != nil {
		c.Vault = vault
	}
	return c
}

// vault reads the keyset that the command line or the environment gives.
func (g globals) vault() (*secrets.Vault, error) {
	text := os.Getenv("WAYBILL_KEYSET")
	switch {
	case text != "" && g.KeysetFile != "":
		return nil, usageError("a keyset is given twice, as WAYBILL_KEYSET and as a file; leave one out")
	case text != "":
		return secrets.Parse(text)
	case g.KeysetFile != "":
		return secrets.FromFile(g.KeysetFile)
	}
	return nil, usageError("this needs the keyset that seals secrets: --keyset-file or WAYBILL_KEYSET; " +
		"waybill keyset create makes one")
}

// operator is who holds the database's URL.
func operator() domain.Actor {
	name := "unknown"
	if u, err := user.Current(); err == nil && u.Username != "" {
		name = u.Username
	}
	return domain.OperatorActor(printable(name), hostname())
}

func hostname() string {
	host, err := os.Hostname()
	if err != nil || host == "" {
		return "unknown"
	}
	return printable(host)
}

// printable is s with what a text column cannot hold left out.
func printable(s string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "")
}
