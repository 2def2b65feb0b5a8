package main

import (
	"context"
	"errors"
	"log/slog"
	"net/netip"
	"runtime"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"

	"waybill/adapters/postgres"
	"waybill/adapters/secrets"
	"waybill/adapters/webhook"
	"waybill/domain"
	"waybill/handlers/command"
	"waybill/handlers/sealer"
	"waybill/handlers/worker"
	"waybill/projections"
)

// minConns is the fewest connections that a node makes do with.
const minConns = 4

// nodeConfig is what a node is made of. DatabaseURL, Vault and Log are required.
type nodeConfig struct {
	DatabaseURL   string
	Schema        projections.Schema
	Vault         *secrets.Vault
	MaxConns      int32 // 0: four a processor, at least 16
	AllowNetworks []netip.Prefix
	Log           *slog.Logger

	API        bool
	Listen     string // for the API or, without it, for probes and metrics; port 0: any, empty: nowhere
	MaxPayload int64

	Signing        *secrets.SigningKey // of checkpoints; nil: none are signed
	CheckpointFile string              // where the last one is kept outside the database; empty: nowhere
	AcceptRestore  string              // why an older state is taken as it is; empty: it is refused

	Worker      bool
	WorkerName  string
	Concurrency int
	Lease       time.Duration
	Drain       time.Duration // for what is in flight when stopping
	At          func(string)  // see worker.Config; for torture alone
}

// node is a running part of the product: the API, a worker, or both, on one pool of
// connections.
//
//	        ┌─ API ─▶ submitter ─┐ hint
//	pool ◀──┤                    ▼
//	        ├─ worker ◀──────────┘
//	        └─ partitions, outbox, sealer, projector
//
// Everything in it that runs by itself is owned by it: [node.Stop] returns when all
// of it has ended.
type node struct {
	config    nodeConfig
	pool      *pgxpool.Pool
	ledger    *postgres.Ledger
	sender    *webhook.Sender
	worker    *worker.Worker // nil if there is none
	submitter *command.Submitter
	api       *apiServer // nil if it listens nowhere
	metrics   *metrics
	kept      *sealer.Witness // nil if no checkpoint is kept outside the database

	end    context.CancelFunc // of what runs by itself
	owned  sync.WaitGroup
	failed chan error // one from each part that may end by itself
	drain  error      // the worker's last word; read after owned has been waited for
}

// startNode starts a node, which is ready when it returns. It refuses a database
// whose schema is not the one this program knows. The context bounds the start; a
// node ends with Stop.
func startNode(ctx context.Context, c nodeConfig) (*node, error) {
	pool, err := postgres.Connect(ctx, c.DatabaseURL, postgres.ConnectOptions{MaxConns: c.conns(), Name: "waybill"})
	if err != nil {
		return nil, err
	}
	n := &node{config: c, pool: pool, failed: make(chan error, 3), metrics: newMetrics()}
	n.ledger = postgres.Open(pool, postgres.Config{Schema: c.Schema, Vault: c.Vault})
	if err := n.inspect(ctx); err != nil {
		pool.Close()
		return nil, err
	}
	if err := n.witness(ctx); err != nil {
		pool.Close()
		return nil, err
	}
	n.assemble()
	running, end := context.WithCancel(context.WithoutCancel(ctx))
	n.end = end
	if c.API || c.Listen != "" {
		if n.api, err = listen(c, n.handler()); err != nil {
			return nil, errors.Join(err, n.Stop())
		}
		n.owned.Go(func() { n.api.serve(n.failed) })
	}
	n.owned.Go(func() { n.makePartitions(running) })
	n.owned.Go(func() { n.outbox().Run(running) })
	n.owned.Go(func() { n.sealer().Run(running) })
	n.owned.Go(func() { n.projector().Run(running) })
	if n.kept != nil {
		n.owned.Go(func() { n.keepCheckpoint(running) })
	}
	if n.worker == nil { // remote workers' claims run out here too
		tender := worker.New(worker.Config{Name: "tender", Ledger: n.ledger, Sender: n.sender, Log: c.Log})
		n.owned.Go(func() { tender.Tend(running) })
	}
	if n.worker != nil {
		n.owned.Go(func() { n.drain = n.worker.Run(running) })
	}
	return n, nil
}

func (c nodeConfig) conns() int32 {
	if c.MaxConns > 0 {
		return c.MaxConns
	}
	return int32(max(16, 4*runtime.NumCPU()))
}

// assemble makes the parts; none of them serves anybody yet.
func (n *node) assemble() {
	c := n.config
	n.sender = webhook.New(webhook.Config{AllowNetworks: c.AllowNetworks, UserAgentVersion: thisBuild().Version})
	accepted := func([]uuid.UUID) {}
	if c.Worker {
		n.worker = worker.New(worker.Config{
			Name: c.WorkerName, Ledger: meteredLedger{n.ledger, n.metrics}, Sender: meteredSender{n.sender, n.metrics},
			Concurrency: c.Concurrency,
			Lease:       c.Lease, DrainTimeout: c.Drain, Log: c.Log, Isolable: postgres.Isolable, Disable: n.disable,
			At: c.At,
		})
		accepted = n.worker.Hint
		if longest := c.Lease - worker.LeaseMargin; longest < domain.MaxTimeout {
			c.Log.Warn("requests are cut short: a request never lasts longer than the lease less 5 s",
				"lease", c.Lease.String(), "longest_request", longest.String(), "longest_policy_timeout", domain.MaxTimeout.String())
		}
	}
	n.metrics.observe(n.backlog, n.pool)
	n.submitter = command.NewSubmitter(n.ledger, command.SubmitOptions{Isolable: postgres.Isolable, Accepted: accepted})
}

func (n *node) endpoints() command.Endpoints {
	return command.Endpoints{Ledger: n.ledger, Rules: rules{n.config.AllowNetworks}}
}

// outbox moves what others insert; every node does.
func (n *node) outbox() command.Outbox {
	o := command.Outbox{Ledger: n.ledger, MaxPayload: n.config.MaxPayload, Log: n.config.Log, Counted: n.metrics.outboxRows}
	if n.worker != nil {
		o.Accepted = n.worker.Hint
	}
	return o
}

// operations tell this node's worker what they make due, so that it need not be found.
func (n *node) operations() command.Operations {
	o := command.Operations{Ledger: n.ledger}
	if n.worker != nil {
		o.Due = n.worker.Hint
	}
	return o
}

// disable is what follows a 410.
func (n *node) disable(ctx context.Context, tenant string, endpoint, delivery uuid.UUID) error {
	by := command.Caller{Tenant: tenant, Actor: domain.SystemActor("worker")}
	_, err := n.endpoints().Disable(ctx, by, endpoint, string(domain.Rejected), delivery)
	return err
}

// backlog is how many results wait to be recorded, and for how long the oldest has.
func (n *node) backlog() (results int, longest time.Duration) {
	if n.worker == nil {
		return 0, 0
	}
	return n.worker.Waiting()
}

// Addr is where the API or the probes listen; empty if nothing does.
func (n *node) Addr() string {
	if n.api == nil {
		return ""
	}
	return n.api.listener.Addr().String()
}

// WorkerName is the worker's name; empty if there is none.
func (n *node) WorkerName() string {
	if n.worker == nil {
		return ""
	}
	return n.config.WorkerName
}

// Failed receives why a part has ended although nobody stopped it.
func (n *node) Failed() <-chan error { return n.failed }

// Stop ends the node: no new requests and claims, then what is in flight for as long
// as Drain allows, then the rest. The error says what was left undone.
func (n *node) Stop() error {
	n.end()
	var err error
	if n.api != nil {
		err = n.api.stop(n.config.Drain)
	}
	n.submitter.Close()
	n.owned.Wait()
	n.sender.Close()
	n.pool.Close()
	return errors.Join(err, n.drain)
}
