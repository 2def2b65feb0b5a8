package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"strconv"
	"time"

	"waybill/adapters/embedded"
	"waybill/adapters/postgres"
	"waybill/domain"
	"waybill/handlers/command"
	"waybill/handlers/worker"
	"waybill/projections"
)

// setUp makes the database, the receiver and the processes, and waits for the API.
func (o *ordeal) setUp(ctx context.Context) (err error) {
	p, err := o.openDatabase(ctx)
	if err != nil {
		return err
	}
	if o.receiver, err = openMisbehaver(o.Seed); err != nil {
		return err
	}
	o.later(o.receiver.Close)
	if err := o.makeSubjects(p); err != nil {
		return err
	}
	for _, s := range o.subjects {
		s.start()
		o.later(func() error { return s.stop(10 * time.Second) })
	}
	return o.createEndpoints(ctx)
}

// openDatabase starts a server that syncs as production does, with the roles and the
// keyset that production has.
func (o *ordeal) openDatabase(ctx context.Context) (*place, error) {
	port, err := lastingPort()
	if err != nil {
		return nil, err
	}
	found, err := embedded.Resolve(ctx, embedded.ResolveConfig{Server: embedded.Config{Fsync: true, Port: port}})
	if err != nil {
		return nil, err
	}
	o.later(found.Stop)
	o.later(found.Server.StopImmediate) // it ends for good: nothing of it needs to be written
	o.server = found.Server
	p := &place{placeConfig: placeConfig{Schema: projections.DefaultSchema, Name: "waybill_torture"}, admin: found.URL, home: found.Server.DataDir()}
	owner, app, err := p.makeRoles(ctx)
	if err != nil {
		return nil, err
	}
	if err := postgres.Migrate(ctx, owner, postgres.MigrateOptions{Schema: p.Schema, AppRole: p.Name + "_app"}); err != nil {
		return nil, err
	}
	p.URL = app
	if err := p.takeKeyset(); err != nil {
		return nil, err
	}
	if o.pool, err = postgres.Connect(ctx, app, postgres.ConnectOptions{MaxConns: 4, Name: "torture"}); err != nil {
		return nil, err
	}
	o.later(func() error { o.pool.Close(); return nil })
	o.ledger = postgres.Open(o.pool, postgres.Config{Vault: p.Vault})
	by := command.Caller{Tenant: domain.DefaultTenant, Actor: operator()}
	_, o.key, err = command.Keys{Ledger: o.ledger}.Create(ctx, by, "torture", domain.Scopes, domain.Rate{})
	return p, err
}

// makeSubjects makes the API and the workers, each with a wire of its own.
func (o *ordeal) makeSubjects(p *place) error {
	program, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find this program: %w", err)
	}
	port, err := lastingPort()
	if err != nil {
		return err
	}
	listen := "127.0.0.1:" + strconv.Itoa(port)
	o.api = "http://" + listen
	for n := range o.Workers + 1 {
		w, err := newWire(fmt.Sprint("wire-", n), p.URL)
		if err != nil {
			return err
		}
		o.later(func() error { w.close(); return nil })
		o.wires = append(o.wires, w)
		o.subjects = append(o.subjects, o.newSubject(n, program, listen, w.url, p.KeysetFile))
	}
	return nil
}

// lastingPort is a free one that is likely to be free again after the death of who
// listened there: below those that systems give to whoever asks for any.
func lastingPort() (int, error) {
	for tries := 1; ; tries++ {
		port := 15_000 + rand.IntN(15_000)
		l, err := net.Listen("tcp4", "127.0.0.1:"+strconv.Itoa(port))
		if err == nil {
			return port, l.Close()
		}
		if tries == 20 {
			return 0, fmt.Errorf("find a port: %w", err)
		}
	}
}

func (o *ordeal) newSubject(n int, program, listen, databaseURL, keyset string) *subject {
	s := &subject{name: "the API", program: program, args: []string{"serve", "--worker=false", "--listen", listen}}
	if n != theAPI {
		s.name = "worker-" + strconv.Itoa(n)
		s.args = []string{"serve", "--api=false", "--listen", "127.0.0.1:0", "--worker-name", s.name, "--concurrency", "32", "--lease", worker.MinLease.String()}
	}
	s.args = append(s.args, "--max-conns", "6", "--drain-timeout", "10s", "--allow-networks", loopbacks[0].String())
	s.notice = func(what string) {
		if o.count(what); what != noStart {
			o.say("%s: %s", s.name, what)
		}
	}
	s.fault = func(what string) { o.breach(ruleProcess, "%s %s", s.name, what) }
	s.pause = func() time.Duration { return 200 * time.Millisecond }
	life := 0
	s.env = func() []string {
		env := []string{"WAYBILL_DATABASE_URL=" + databaseURL, "WAYBILL_KEYSET_FILE=" + keyset}
		life++
		if c, ok := planCrashes(o.Seed, n, life); ok && n != theAPI && !o.receiver.calm.Load() {
			env = append(env, crashVariable+"="+c.String())
		}
		return env
	}
	return s
}

// createEndpoints makes them through the API, once that answers.
func (o *ordeal) createEndpoints(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	c := newClient(o.api, o.key)
	defer c.close()
	o.endpoints = tortureTargets()
	for _, t := range o.endpoints {
		policy := map[string]any{"timeout": t.Timeout.String(), "retries": map[string]any{"delays": t.Delays}}
		if t.Hold {
			policy["on_unknown_outcome"] = "hold"
		}
		body, err := json.Marshal(map[string]any{"url": o.receiver.url + t.Path, "policy": policy})
		if err != nil {
			return err
		}
		var made struct {
			ID     string `json:"id"`
			Secret string `json:"secret"`
		}
		status, text := c.call(ctx, "POST", "/v1/endpoints", "", body, &made)
		for ; status == 0 && ctx.Err() == nil; status, text = c.call(ctx, "POST", "/v1/endpoints", "", body, &made) {
			sleep(ctx, 20*time.Millisecond)
		}
		if err := t.ID.UnmarshalText([]byte(made.ID)); err != nil {
			return fmt.Errorf("create an endpoint: %d %s", status, text)
		}
		if err := o.receiver.expect(t.Path, t.ID, made.Secret); err != nil {
			return err
		}
	}
	return nil
}
