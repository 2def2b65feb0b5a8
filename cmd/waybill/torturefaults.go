package main

import (
	"context"
	_ "embed"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
)

//go:embed sql/holds_claim.sql
var holdsClaim string

// inflict goes through the plan, and returns once the last fault is undone.
// Faults begin until bad ends; ctx breaks them off.
func (o *ordeal) inflict(ctx, bad context.Context) {
	var group sync.WaitGroup
	defer group.Wait()
	for _, m := range planMishaps(o.Seed, o.Length, o.Workers) {
		sleep(bad, m.At-time.Since(o.began))
		if bad.Err() != nil {
			return
		}
		group.Go(func() { o.befall(ctx, bad, m) })
	}
}

// befall carries out one mishap. What it breaks it mends, if only at the end.
func (o *ordeal) befall(ctx, bad context.Context, m mishap) {
	switch {
	case m.Kind == mishapDatabase:
		o.crashDatabase(bad, m)
	case m.Kind == mishapStop || m.Kind == mishapCutOff:
		o.befallLong(ctx, bad, m)
	case m.Toxic != nil:
		o.cutWires(bad, m)
	case m.Kind == mishapEnd:
		o.signal(m, syscall.SIGTERM)
	default:
		o.signal(m, syscall.SIGKILL)
	}
}

// befallLong keeps a worker busy for longer than a lease; not one that is.
func (o *ordeal) befallLong(ctx, bad context.Context, m mishap) {
	for range o.Workers {
		n := m.Whom[0]
		if o.busy[n].CompareAndSwap(false, true) {
			defer o.busy[n].Store(false)
			o.catch(ctx, bad, m)
			return
		}
		m.Whom = []int{n%o.Workers + 1}
	}
}

// catch befalls a worker in the middle of its work, as what befalls an idle one shows
// nothing: until it owns a delivery, what was broken is mended and broken again.
func (o *ordeal) catch(ctx, bad context.Context, m mishap) {
	strike := o.stopProcess
	if m.Kind == mishapCutOff {
		strike = o.cutWire
	}
	for {
		mend, struck := strike(m)
		sleep(bad, struckFor)
		if struck && (o.holdsClaim(ctx, m.Whom[0]) || bad.Err() != nil) {
			o.note(m, o.subjects[m.Whom[0]].name)
			sleep(ctx, m.Length)
			mend()
			return
		}
		mend()
		if sleep(bad, struckFor); bad.Err() != nil {
			return
		}
	}
}

// struckFor is how long what is underway in the database has to end.
const struckFor = 100 * time.Millisecond

// holdsClaim says whether a worker owns a delivery; not while the database is away.
func (o *ordeal) holdsClaim(ctx context.Context, n int) (holds bool) {
	args := pgx.StrictNamedArgs{"worker": o.subjects[n].name}
	err := o.pool.QueryRow(ctx, o.ledger.Schema.SQL(holdsClaim), args).Scan(&holds)
	return err == nil && holds
}

// signal ends a process; not one that a longer mishap has befallen, which has its own
// part to play, but another.
func (o *ordeal) signal(m mishap, sig syscall.Signal) {
	n := m.Whom[0]
	for range o.Workers {
		if n != theAPI && o.busy[n].Load() {
			n = n%o.Workers + 1
		}
	}
	if !o.busy[n].Load() && o.subjects[n].signal(sig) {
		o.note(m, o.subjects[n].name)
	}
}

func (o *ordeal) note(m mishap, whom string) {
	o.count(m.Kind)
	if m.Length > 0 {
		o.say("%s: %s for %s", whom, m.Kind, m.Length.Round(time.Millisecond))
		return
	}
	o.say("%s: %s", whom, m.Kind)
}

// crashDatabase ends the server as a crash would and starts it again on its port.
func (o *ordeal) crashDatabase(ctx context.Context, m mishap) {
	o.databaseBusy.Lock() // one crash at a time
	defer o.databaseBusy.Unlock()
	o.note(m, "PostgreSQL")
	if err := o.server.StopImmediate(); err != nil {
		o.breach(ruleProcess, "PostgreSQL does not stop: %s", err)
	}
	sleep(ctx, m.Length)
	if err := o.server.Restart(context.Background()); err != nil {
		o.breach(ruleProcess, "PostgreSQL does not start: %s", err)
	}
}

// stopProcess stops a process until it is mended.
func (o *ordeal) stopProcess(m mishap) (mend func(), struck bool) {
	s := o.subjects[m.Whom[0]]
	struck = s.signal(syscall.SIGSTOP)
	return func() { s.signal(syscall.SIGCONT) }, struck
}

// cutWire makes one wire bad until it is mended.
func (o *ordeal) cutWire(m mishap) (mend func(), struck bool) {
	cure, err := o.wires[m.Whom[0]].poison(*m.Toxic)
	if err != nil {
		o.breach(ruleProcess, "%s", err)
		return func() {}, false
	}
	return cure, true
}

// cutWires makes the wires of some bad for a time.
func (o *ordeal) cutWires(ctx context.Context, m mishap) {
	var names []string
	var cures []func()
	for _, n := range m.Whom {
		cure, err := o.wires[n].poison(*m.Toxic)
		if err != nil {
			o.breach(ruleProcess, "%s", err)
			continue
		}
		names, cures = append(names, o.subjects[n].name), append(cures, cure)
	}
	o.note(m, strings.Join(names, ", "))
	sleep(ctx, m.Length)
	for _, cure := range cures {
		cure()
	}
}
