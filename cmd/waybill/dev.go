package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"time"

	"waybill/adapters/embedded"
	"waybill/adapters/secrets"
	"waybill/domain"
	"waybill/handlers/command"
	"waybill/handlers/worker"
)

// devDrain is how long requests in flight may take when dev stops: nobody waits long
// for Ctrl-C.
const devDrain = 10 * time.Second

// devKey is the name of dev's API key; there is one at a time.
const devKey = "dev"

// loopbacks are the networks that receivers on a developer's machine are in.
var loopbacks = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")}

// devCmd runs everything on a database of its own.
//
//	place ──▶ node (API and worker, as the product's role) ──▶ admin key ──▶ ready
type devCmd struct {
	DataDir string `placeholder:"D" help:"Keep the database and the keyset here. Without it they end with the command."`
	signing
	Listen string `default:"127.0.0.1:8080" placeholder:"A" help:"Where the API listens (default ${default}); port 0 is any that is free."`
}

// Validate refuses an address that is none.
func (c *devCmd) Validate() error {
	if _, _, err := net.SplitHostPort(c.Listen); err != nil {
		return usagef("--listen: %s", err)
	}
	return c.signing.check()
}

// Run stays up until the first SIGINT or SIGTERM, then stops the node and, last, the
// database.
func (c *devCmd) Run(ctx context.Context, in *invocation) error {
	defer surviveBrokenPipe()()
	if err := in.Schema.Check(); err != nil {
		return usageError(err.Error())
	}
	vault, err := in.givenVault()
	if err != nil {
		return err
	}
	in.noteUnused("dev")
	p, err := openPlace(ctx, placeConfig{
		Schema: in.Schema, Name: "waybill_dev", Vault: vault,
		Server: embedded.Config{DataDir: c.DataDir, Fsync: c.DataDir != ""},
	})
	if err != nil {
		return err
	}
	return errors.Join(c.serve(ctx, in, p), p.Close())
}

func (c *devCmd) serve(ctx context.Context, in *invocation, p *place) error {
	sign, err := c.keyIn(p)
	if err != nil {
		return err
	}
	n, err := startNode(ctx, nodeConfig{
		DatabaseURL: p.URL, Schema: p.Schema, Vault: p.Vault, AllowNetworks: loopbacks,
		Log: slog.New(slog.NewTextHandler(in.err, &slog.HandlerOptions{Level: slog.LevelWarn})),
		API: true, Listen: c.Listen, Worker: true, WorkerName: devKey, Signing: sign, CheckpointFile: c.CheckpointFile,
		Concurrency: worker.DefaultConcurrency, Lease: worker.DefaultLease, Drain: devDrain,
	})
	if err != nil {
		return err
	}
	return errors.Join(c.stay(ctx, in, p, n), n.Stop())
}

// stay says that all is ready, then waits for the end.
func (c *devCmd) stay(ctx context.Context, in *invocation, p *place, n *node) error {
	key, err := replaceKey(ctx, n, command.Caller{Tenant: in.Tenant, Actor: operator()})
	if err != nil {
		return err
	}
	if err := c.announce(in, p, n, key); err != nil {
		return err
	}
	select {
	case <-ctx.Done():
		return nil
	case err := <-n.Failed():
		return err
	}
}

// replaceKey revokes the keys of former runs and makes one with all scopes.
func replaceKey(ctx context.Context, n *node, by command.Caller) (string, error) {
	if _, err := n.ledger.Tenant(ctx, by.Tenant); err != nil {
		return "", err
	}
	keys := command.Keys{Ledger: n.ledger}
	former, err := keys.List(ctx, by)
	if err != nil {
		return "", err
	}
	for _, k := range former {
		if k.Name != devKey || !k.RevokedAt.IsZero() {
			continue
		}
		if err := keys.Revoke(ctx, by, k.ID); err != nil {
			return "", err
		}
	}
	_, token, err := keys.Create(ctx, by, devKey, domain.Scopes, domain.Rate{})
	return token, err
}

// givenVault is the keyset that the command line or the environment gives; nil if
// neither does.
func (g globals) givenVault() (*secrets.Vault, error) {
	if g.KeysetFile == "" && os.Getenv("WAYBILL_KEYSET") == "" {
		return nil, nil
	}
	return g.vault()
}

// noteUnused says that a database which was named is left alone.
func (in *invocation) noteUnused(command string) {
	if in.DatabaseURL != "" {
		_, _ = fmt.Fprintf(in.err, "waybill %s has a database of its own and leaves --database-url alone; %s would name a server for it\n",
			command, placeVariable)
	}
}
