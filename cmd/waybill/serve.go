package main

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"os"
	"time"

	"waybill/adapters/secrets"
	"waybill/domain"
	"waybill/handlers/worker"
)

// serveCmd runs a node until it is told to stop.
type serveCmd struct {
	networks
	Listen      string        `placeholder:"A" help:"Where the API listens (default 127.0.0.1:8080); port 0 is any that is free. TLS is for a proxy in front. Without the API: where probes and metrics are, by default nowhere."`
	API         bool          `default:"true" negatable:"" help:"Answer the API."`
	Worker      bool          `default:"true" negatable:"" help:"Deliver."`
	WorkerName  string        `placeholder:"N" help:"The worker's name in the log (default HOST/PID)."`
	Concurrency int           `default:"64" placeholder:"N" help:"Requests at a time (default ${default})."`
	Lease       time.Duration `default:"60s" placeholder:"D" help:"How long a claim lasts (default ${default}, at least 10s); a request lasts at most 5s less."`
	MaxPayload  payloadLimit  `default:"1MiB" placeholder:"N" help:"The largest message (default ${default}, at most 32MiB)."`
	MaxConns    int32         `default:"0" placeholder:"N" help:"Connections to the database at most; 0 is four a processor, at least 16."`
	signing
	AcceptRestore string        `placeholder:"REASON" help:"Take a database that was restored to an older state as it is: a new epoch begins, and the log says why. Needs --checkpoint-file."`
	DrainTimeout  time.Duration `default:"45s" placeholder:"D" help:"How long requests in flight may take when stopping (default ${default})."`
}

// Validate refuses what makes no sense together.
func (c *serveCmd) Validate() error {
	_, _, err := net.SplitHostPort(c.address())
	switch {
	case !c.API && !c.Worker:
		return usageError("nothing to do: both --no-api and --no-worker")
	case c.address() != "" && err != nil:
		return usagef("--listen: %s", err)
	case c.Lease < worker.MinLease:
		return usagef("--lease is at least %s", worker.MinLease)
	case c.Concurrency < 1 || c.Concurrency > 10_000:
		return usageError("--concurrency is 1 to 10000")
	case c.MaxConns != 0 && c.MaxConns < minConns || c.MaxConns > 10_000:
		return usagef("--max-conns is %d to 10000, or 0", minConns)
	case c.AcceptRestore != "" && c.CheckpointFile == "":
		return usageError("--accept-restore needs the --checkpoint-file that tells of the newer state")
	case c.DrainTimeout <= 0:
		return usageError("--drain-timeout is more than 0s")
	}
	if err := c.signing.check(); err != nil {
		return err
	}
	return domain.CheckText("worker name", c.WorkerName, domain.MaxName)
}

// Run serves until the first SIGINT or SIGTERM, then finishes what it has begun.
func (c *serveCmd) Run(ctx context.Context, in *invocation) error {
	if err := in.check(); err != nil {
		return err
	}
	vault, err := in.vault()
	if err != nil {
		return err
	}
	log := slog.New(slog.NewJSONHandler(in.err, nil))
	config := c.node(in, vault, log)
	if config.Signing, err = c.key(); err != nil {
		return err
	}
	if config.At, err = crashHook(in.err); err != nil {
		return err
	}
	n, err := startNode(ctx, config)
	if err != nil {
		return err
	}
	log.Info("ready", "listen", n.Addr(), "worker", n.WorkerName(), "version", thisBuild().Version)
	select {
	case <-ctx.Done():
		log.Info("stopping", "cause", "signal")
	case err = <-n.Failed():
		log.Error("stopping", "cause", err)
	}
	if stopErr := n.Stop(); err == nil {
		err = stopErr
	}
	log.Info("stopped")
	return err
}

// address is where the node listens. A worker by itself listens where it is told to only,
// so that many of them find room on one machine.
func (c *serveCmd) address() string {
	if c.API && c.Listen == "" {
		return "127.0.0.1:8080"
	}
	return c.Listen
}

// workerName is unique among the living.
func (c *serveCmd) workerName() string {
	if c.WorkerName != "" {
		return c.WorkerName
	}
	return fmt.Sprintf("%.80s/%d", hostname(), os.Getpid())
}

func (c *serveCmd) node(in *invocation, vault *secrets.Vault, log *slog.Logger) nodeConfig {
	return nodeConfig{
		DatabaseURL: in.DatabaseURL, Schema: in.Schema, Vault: vault, MaxConns: c.MaxConns,
		AllowNetworks: c.AllowNetworks, Log: log, CheckpointFile: c.CheckpointFile, AcceptRestore: c.AcceptRestore,
		API: c.API, Listen: c.address(), MaxPayload: int64(c.MaxPayload),
		Worker: c.Worker, WorkerName: c.workerName(), Concurrency: c.Concurrency, Lease: c.Lease, Drain: c.DrainTimeout,
	}
}
