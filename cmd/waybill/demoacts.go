package main

import (
	"context"
	"fmt"
	"time"

	"waybill/adapters/embedded"
	"waybill/domain"
	"waybill/projections"
)

// The workers' names in the log.
const (
	doomedName  = "worker-1"
	helpersName = "worker-2"
)

// breath is how long something is shown before it changes.
const breath = time.Second

const introduction = `
It hands messages to HTTP endpoints, and keeps a history of every claim,
attempt and decision that nobody can rewrite. This takes about 15 seconds.
The database, the requests and the kill -9 are real; nothing stays behind.`

// setUp makes the database, the receivers and the API, and starts the first worker.
func (d *demo) setUp(ctx context.Context) (err error) {
	d.screen.say("%s", d.screen.paint(bold, "Waybill is a delivery ledger."))
	d.screen.say(introduction)
	d.screen.title("1  A database, nine receivers, one worker")
	if d.place, err = openPlace(ctx, placeConfig{Schema: projections.DefaultSchema, Name: "waybill_demo", Server: embedded.Config{}, Own: true}); err != nil {
		return err
	}
	d.later(d.place.Close)
	if err := d.startFront(ctx); err != nil {
		return err
	}
	if d.receivers, err = openReceivers(d.cast); err != nil {
		return err
	}
	if d.doomed, err = startDoomed(doomedName, d.place); err != nil {
		return err
	}
	d.later(d.doomed.kill)
	d.later(d.receivers.Close) // first to go: what hangs there holds up the workers
	d.screen.say("   %s,\n   where the product's role may add to the log and not change it.\n   %s is a process of its own, pid %d.",
		d.place.Source, doomedName, d.doomed.pid)
	return d.createEndpoints(ctx)
}

// startFront starts the API and makes a key for it.
func (d *demo) startFront(ctx context.Context) (err error) {
	c := d.node()
	c.API, c.Listen = true, "127.0.0.1:0"
	if d.front, err = startNode(ctx, c); err != nil {
		return err
	}
	d.later(d.front.Stop)
	key, err := replaceKey(ctx, d.front, d.by)
	if err != nil {
		return err
	}
	d.api = newAPIClient("http://"+d.front.Addr(), key)
	d.later(d.api.Close)
	return nil
}

func (d *demo) createEndpoints(ctx context.Context) error {
	for _, p := range d.cast {
		id, secret, err := d.api.createEndpoint(ctx, d.receivers.url+"/"+p.name, p.does, p.policy)
		if err != nil {
			return err
		}
		p.endpoint = id
		d.receivers.expect(p, secret)
	}
	return nil
}

// send submits a receiver's messages.
func (d *demo) send(ctx context.Context, p *part) error {
	for n := 1; n <= p.count; n++ {
		if err := d.api.submit(ctx, p.endpoint, "order.paid", p.message(n)); err != nil {
			return err
		}
	}
	return nil
}

// submit hands in the first messages and waits until the bank has its request.
func (d *demo) submit(ctx context.Context) error {
	d.screen.title("2  Submit: accepted means committed, and the first event of a history")
	d.screen.say("   POST /v1/endpoints/{id}/deliveries, six times for shop and once for bank.")
	for _, name := range []string{theShop, theBank} {
		if err := d.send(ctx, d.part(name)); err != nil {
			return err
		}
	}
	return d.watch(ctx, "a request at the bank", func(s standing) bool {
		to := s.of(d.part(theBank))
		return s.settled(d.part(theShop)) && len(to) == 1 && d.receivers.arrived(to[0].ID) == 1
	})
}

// kill ends the first worker while the bank has its request.
func (d *demo) kill(ctx context.Context) error {
	d.screen.title("3  kill -9 of %s (pid %d) while bank has its request", doomedName, d.doomed.pid)
	if err := d.pauseWatching(ctx, breath); err != nil {
		return err
	}
	victim := d.doomed
	d.doomed = nil
	if err := victim.kill(); err != nil {
		return fmt.Errorf("kill %s: %w", doomedName, err)
	}
	d.screen.say("   Was it received? Nobody can know, and Waybill does not pretend to: when the\n" +
		"   claim's lease of 10 s is over, the attempt goes on record as in doubt, and\n" +
		"   another worker takes the delivery over.")
	return nil
}

// pauseWatching lets the board be seen for a while.
func (d *demo) pauseWatching(ctx context.Context, t time.Duration) error {
	until := time.Now().Add(t)
	return d.watch(ctx, "time to pass", func(standing) bool { return time.Now().After(until) })
}

// misbehave starts the second worker and sends to everybody else.
func (d *demo) misbehave(ctx context.Context) error {
	d.screen.title("4  %s comes, and meets receivers that misbehave", helpersName)
	d.screen.say("   What is refused is retried, what is in doubt says so, and what must not\n" +
		"   go out twice is held.")
	c := d.node()
	c.Worker, c.WorkerName = true, helpersName
	helper, err := startNode(ctx, c)
	if err != nil {
		return err
	}
	receiver := len(d.undo) - 1 // stays the first to go
	d.undo = append(d.undo[:receiver], helper.Stop, d.undo[receiver])
	for _, p := range d.cast {
		if p.name != theShop && p.name != theBank {
			if err := d.send(ctx, p); err != nil {
				return err
			}
		}
	}
	return d.watch(ctx, "receivers to be done with", func(s standing) bool {
		for _, p := range d.cast {
			if p.name != theBank && !s.settled(p) && !s.all(p, domain.StateHeld) {
				return false
			}
		}
		return true
	})
}

// decide takes the decisions that only a person can take.
func (d *demo) decide(ctx context.Context) error {
	s, err := d.look(ctx)
	if err != nil {
		return err
	}
	d.screen.title("5  A person decides, and the history says who and why")
	operations := d.front.operations()
	failed, held := s.of(d.part(theStrict))[0], s.of(d.part(theVault))[0]
	d.part(theStrict).repaired.Store(true)
	reason := "they have let us in"
	d.screen.say("   strict: waybill deliveries replay ID --reason %q", reason)
	if _, err := operations.Replay(ctx, d.by, failed.ID, reason, false); err != nil {
		return err
	}
	reason = "in their own log"
	d.screen.say("   vault: waybill deliveries resolve ID --outcome delivered --reason %q", reason)
	_, err = operations.Resolve(ctx, d.by, held.ID, domain.ResolvedDelivered, reason)
	return err
}

// settle waits until nothing more happens by itself.
func (d *demo) settle(ctx context.Context) error {
	err := d.watch(ctx, "everything to be settled", func(s standing) bool {
		for _, p := range d.cast {
			if !s.settled(p) {
				return false
			}
		}
		return true
	})
	d.screen.leave()
	return err
}
