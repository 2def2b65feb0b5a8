package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"waybill/domain"
	"waybill/handlers/command"
	"waybill/handlers/worker"
	"waybill/projections"
)

// demoPatience bounds the whole demo, whatever the machine; it takes about 20 s.
const demoPatience = 2 * time.Minute

var errDemoLong = fmt.Errorf("the demo has not come to its end within %s", demoPatience)

// demoCmd shows the whole life of deliveries and proves at the end that the record of
// it is right.
//
//	receivers that misbehave ◀── worker-1, a process: killed with -9
//	           ▲          ◀── worker-2, in this process: takes over
//	           │                 │
//	           └── arrivals = ── ledger ◀── API ◀── we submit, replay, resolve
//
// Exit codes: 0 all is as it must be, 1 interrupted or failed, 4 the verification
// found a fault. Whichever it is, no process and no file stays behind.
type demoCmd struct{}

// Run plays the demo. Its text is for people; there is no other form of it.
func (c *demoCmd) Run(ctx context.Context, in *invocation) error {
	defer surviveBrokenPipe()()
	in.noteUnused("demo")
	ctx, cancel := context.WithTimeoutCause(ctx, demoPatience, errDemoLong)
	defer cancel()
	d := &demo{screen: newScreen(in.out), by: command.Caller{Tenant: domain.DefaultTenant, Actor: operator()}}
	err := d.play(ctx)
	switch {
	case ctx.Err() != nil: // whatever failed, that is why
		err = context.Cause(ctx)
	case err != nil && d.said.String() != "":
		err = fmt.Errorf("%w; the log says: %s", err, d.said.String())
	}
	return errors.Join(err, d.clear())
}

// demo is a running demo. What it has started is in undo.
type demo struct {
	screen    *screen
	by        command.Caller // the operator, on the ledger's one tenant
	place     *place
	api       *apiClient
	front     *node // answers the API
	receivers *receivers
	doomed    *doomed // worker-1
	cast      []*part
	said      lastWords // of the nodes in this process, should something fail
	undo      []func() error
}

// play goes through the acts.
func (d *demo) play(ctx context.Context) error {
	d.cast = newCast()
	for _, act := range []func(context.Context) error{
		d.setUp, d.submit, d.kill, d.misbehave, d.decide, d.settle, d.tell, d.prove,
	} {
		if err := act(ctx); err != nil {
			d.screen.leave()
			return err
		}
		if d.screen.failed != nil {
			return d.screen.failed
		}
	}
	return nil
}

// clear ends what was started, the last first.
func (d *demo) clear() error {
	var errs []error
	for len(d.undo) > 0 {
		last := len(d.undo) - 1
		errs = append(errs, d.undo[last]())
		d.undo = d.undo[:last]
	}
	return errors.Join(errs...)
}

func (d *demo) later(undo func() error) { d.undo = append(d.undo, undo) }

// log takes the errors of parts whose story the demo tells itself.
func (d *demo) log() *slog.Logger {
	return slog.New(slog.NewTextHandler(&d.said, &slog.HandlerOptions{Level: slog.LevelError}))
}

// node is what the demo's nodes have in common, on the place's database.
func (d *demo) node() nodeConfig {
	return nodeConfig{
		DatabaseURL: d.place.URL, Schema: projections.DefaultSchema, Vault: d.place.Vault, MaxConns: 8,
		AllowNetworks: loopbacks, Log: d.log(),
		Concurrency: 16, Lease: worker.MinLease, Drain: 5 * time.Second,
	}
}
