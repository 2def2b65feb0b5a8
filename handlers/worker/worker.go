package worker

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"waybill/domain"
	"waybill/handlers/command"
	"waybill/projections"
)

// Ledger is what a worker needs of the ledger.
type Ledger interface {
	command.RecordLedger
	NewIDAt(at domain.Instant) uuid.UUID
	Claim(ctx context.Context, r projections.ClaimRequest) (projections.Batch, error)
	EndClaims(ctx context.Context, tokens []uuid.UUID) error
	Recover(ctx context.Context) (claims int, ended []projections.Delivery, err error)
	AdoptOrphans(ctx context.Context) (claims int, err error)
	EndGone(ctx context.Context) (int, error)
	RecentlyDue(ctx context.Context, since domain.Instant) ([]uuid.UUID, error)
	AllDue(ctx context.Context) ([]projections.DueEndpoint, domain.Instant, error)
	Beat(ctx context.Context, id uuid.UUID, name string, alive time.Duration) ([]uuid.UUID, error)
	Leave(ctx context.Context, id uuid.UUID) error
}

// Sender makes one attempt. It never fails: a fault is a result.
type Sender interface {
	Send(ctx context.Context, r domain.Request) domain.Result
}

// Config is how a worker works. Name, Ledger and Sender are required.
type Config struct {
	Name         string // as the log will name it
	Ledger       Ledger
	Sender       Sender
	Concurrency  int           // requests at a time; default 64
	Lease        time.Duration // of a claim; default 60 s, at least 10 s
	DrainTimeout time.Duration // for what is on the wire when stopping; default 45 s
	Log          *slog.Logger  // default: discards
	// Isolable says whether one result may have caused a batch's fault; default: any.
	Isolable func(error) bool
	// Disable is called after a receiver answered 410 (Gone).
	Disable func(ctx context.Context, tenant string, endpoint, delivery uuid.UUID) error
	// At is called at the points named below, by whichever goroutine is there, so that
	// a test can end the process at a place of its choice; default: nothing.
	At func(point string)
}

// The points of a delivery's way at which Config.At is called.
const (
	AtClaimed   = "claimed"   // a claim is committed, none of its requests has begun
	AtSending   = "sending"   // a request is about to begin
	AtAnswered  = "answered"  // it has ended, and nothing of that is recorded
	AtRecording = "recording" // results are about to be sent to the ledger
)

// Defaults and bounds of a Config.
const (
	DefaultConcurrency = 64
	DefaultLease       = 60 * time.Second
	MinLease           = 10 * time.Second
	DefaultDrain       = 45 * time.Second
	// LeaseMargin is how long a lease must outlast a request's timeout.
	LeaseMargin = 5 * time.Second
)

// recordGrace is how much longer a stopping worker tries to record what it has.
const recordGrace = 15 * time.Second

// Worker delivers until its context ends.
type Worker struct {
	Config
	actor    domain.Actor
	recorder command.Recorder
	roster   *roster
	slots    *slots
	results  chan finished
	gaveUp   chan struct{} // closed when results are recorded no more
	leases   *leases
	crew     atomic.Pointer[crew]
	backlog  *backlog
	owned    sync.WaitGroup // the loops
	senders  sync.WaitGroup // requests and what precedes them
}

// New returns a worker that does nothing until Run.
func New(c Config) *Worker {
	if c.Concurrency <= 0 {
		c.Concurrency = DefaultConcurrency
	}
	if c.Lease == 0 {
		c.Lease = DefaultLease
	}
	c.Lease = max(c.Lease, MinLease)
	if c.DrainTimeout == 0 {
		c.DrainTimeout = DefaultDrain
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.Isolable == nil {
		c.Isolable = func(error) bool { return true }
	}
	if c.At == nil {
		c.At = func(string) {}
	}
	c.Ledger = bounded{c.Ledger, callLimit}
	w := &Worker{
		Config: c, actor: domain.WorkerActor(c.Name), recorder: command.Recorder{Ledger: c.Ledger},
		roster: newRoster(c.Concurrency), slots: newSlots(c.Concurrency),
		results: make(chan finished, c.Concurrency), gaveUp: make(chan struct{}), leases: newLeases(), backlog: newBacklog(),
	}
	w.crew.Store(&crew{size: 1})
	return w
}

// Hint says that the endpoints have new work, so that it need not be found.
func (w *Worker) Hint(endpoints []uuid.UUID) { w.roster.hint(endpoints) }

// Unrecorded is how many results wait to be recorded.
func (w *Worker) Unrecorded() int {
	n, _ := w.backlog.waiting()
	return n
}

// Waiting is Unrecorded with how long the oldest of them has waited.
func (w *Worker) Waiting() (results int, longest time.Duration) { return w.backlog.waiting() }

// InFlight is how many deliveries are claimed and not yet handed on to be recorded.
func (w *Worker) InFlight() int { return w.slots.busy() }

// Run works until ctx ends, drains, and returns. The error, if any, says how many
// results could not be recorded; their claims will run out, in doubt.
func (w *Worker) Run(ctx context.Context) error {
	sending, abort := context.WithCancel(context.WithoutCancel(ctx))
	defer abort()
	w.owned.Go(func() { w.beatLoop(ctx) })
	w.owned.Go(func() { w.Tend(ctx) })
	w.owned.Go(func() { w.findRecent(ctx) })
	w.owned.Go(func() { w.findAll(ctx) })
	w.owned.Go(func() { w.claimLoop(ctx, sending) })
	recording, giveUp := context.WithCancel(context.WithoutCancel(ctx))
	defer giveUp()
	go func() {
		defer close(w.gaveUp)
		w.recordLoop(recording)
	}()
	<-ctx.Done()
	return w.drain(abort, giveUp)
}

// drain waits for the loops, then for what is on the wire, then for the results.
func (w *Worker) drain(abort, giveUp context.CancelFunc) error {
	w.Log.Info("draining", "worker", w.Name, "in_flight", w.slots.busy())
	defer time.AfterFunc(w.DrainTimeout, abort).Stop()
	defer time.AfterFunc(w.DrainTimeout+recordGrace, giveUp).Stop()
	w.owned.Wait()
	w.senders.Wait()
	close(w.results)
	<-w.gaveUp
	if n := w.Unrecorded(); n > 0 {
		return fmt.Errorf("worker %s: %d results could not be recorded; their claims will run out, in doubt", w.Name, n)
	}
	return nil
}
