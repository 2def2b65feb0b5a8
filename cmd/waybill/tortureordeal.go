package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"waybill/adapters/embedded"
	"waybill/adapters/postgres"
)

// ordealConfig says how bad a run is to be.
type ordealConfig struct {
	Seed    uint64
	Length  time.Duration // of the faults
	Workers int
	Settle  time.Duration               // for everything to end, once the faults have
	Say     func(time.Duration, string) // of what happens, and when
}

// ordeal is one run: the product in processes of its own, everything around it that
// can go wrong, and those who write down what they see.
//
//	submitters ──▶ API ────┐
//	operator ─────▲        ├─ proxies ─▶ PostgreSQL
//	receiver ◀── workers ──┘
//	                │ kill, stop, cut, restart ◀── plan ◀── seed
type ordeal struct {
	ordealConfig
	server    *embedded.Server
	pool      *pgxpool.Pool // the checker's own, past the proxies
	ledger    *postgres.Ledger
	key       string // of the API
	api       string // its URL
	receiver  *misbehaver
	endpoints []*tortureTarget
	subjects  []*subject
	wires     []*wire
	undo      []func() error
	began     time.Time

	busy         []atomic.Bool // by subject: with what lasts longer than a lease
	databaseBusy sync.Mutex    // while it is down

	mu       sync.Mutex
	counts   map[string]int
	breaches []breach
}

// tortureReport is what a run has shown.
type tortureReport struct {
	Seed      uint64         `json:"seed"`
	Seconds   float64        `json:"seconds"`
	Submitted int            `json:"submitted"`
	Repeated  int            `json:"submissions_repeated"`
	Faults    map[string]int `json:"faults"` // and what else was done, by kind
	Checked   tally          `json:"checked"`
	Breaches  []breach       `json:"breaches"`
	Stories   [][]string     `json:"stories,omitempty"` // histories of the first few deliveries concerned
}

// runOrdeal makes the run and judges it. The error says why there is no judgement.
func runOrdeal(ctx context.Context, c ordealConfig) (rep tortureReport, err error) {
	o := &ordeal{ordealConfig: c, counts: map[string]int{}, busy: make([]atomic.Bool, c.Workers+1), began: time.Now()}
	defer func() { err = errors.Join(err, o.clear()) }()
	if err := o.setUp(ctx); err != nil {
		return rep, fmt.Errorf("set up: %w", err)
	}
	l := newLoad(o)
	o.endure(ctx, l)
	if ctx.Err() != nil {
		return rep, context.Cause(ctx)
	}
	e, err := o.collect(ctx, l)
	if err != nil {
		return rep, err
	}
	rep = tortureReport{Seed: c.Seed, Submitted: len(e.Accepted), Repeated: int(l.repeats.Load())}
	var found []breach
	rep.Checked, found = e.check()
	if err := o.verify(ctx); err != nil {
		return rep, err
	}
	rep.Breaches, rep.Faults = append(o.breaches, found...), maps.Clone(o.counts)
	rep.Seconds = time.Since(o.began).Seconds()
	rep.Stories = e.stories(rep.Breaches)
	return rep, nil
}

// endure goes through the bad time and the time after it.
func (o *ordeal) endure(ctx context.Context, l *load) {
	patience, cancel := context.WithTimeout(ctx, o.Length+o.Settle)
	defer cancel()
	bad, calm := context.WithTimeout(ctx, o.Length)
	defer calm()
	var group sync.WaitGroup
	o.began = time.Now()
	operator := newPerson(o, l)
	defer operator.c.close()
	group.Go(func() { l.run(patience, bad) })
	group.Go(func() { operator.meddle(bad) })
	group.Go(func() { o.inflict(ctx, bad) })
	<-bad.Done()
	group.Wait()
	o.receiver.calm.Store(true)
	o.say("the faults are over; %d deliveries accepted", len(l.accepted))
	operator.settle(patience)
	for _, s := range o.subjects {
		if err := s.stop(30 * time.Second); err != nil {
			o.breach(ruleProcess, "%s", err)
		}
	}
}

func (o *ordeal) say(format string, args ...any) {
	o.Say(time.Since(o.began), fmt.Sprintf(format, args...))
}

// count notes that something was done.
func (o *ordeal) count(what string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.counts[what]++
}

// breach notes what no process may do, log or no log.
func (o *ordeal) breach(rule, format string, args ...any) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.breaches = append(o.breaches, breach{Rule: rule, What: fmt.Sprintf(format, args...)})
}

// clear ends what was started, the last first.
func (o *ordeal) clear() error {
	var errs []error
	for i := len(o.undo) - 1; i >= 0; i-- {
		errs = append(errs, o.undo[i]())
	}
	return errors.Join(errs...)
}

func (o *ordeal) later(undo func() error) { o.undo = append(o.undo, undo) }
