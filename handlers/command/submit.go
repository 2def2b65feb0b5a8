package command

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"waybill/domain"
	"waybill/projections"
)

// SubmitLedger is what accepting messages needs of the ledger.
type SubmitLedger interface {
	Clock
	NewIDAt(at domain.Instant) uuid.UUID
	Tenant(ctx context.Context, name string) (projections.Tenant, error)
	SubmitEndpoints(ctx context.Context, ids []uuid.UUID) (map[uuid.UUID]projections.SubmitEndpoint, error)
	FanOut(ctx context.Context, tenant, eventType string) ([]projections.SubmitEndpoint, error)
	SpendRates(ctx context.Context, list []projections.Spending) (map[uuid.UUID]projections.Budget, error)
	Schedule(ctx context.Context, items []projections.Submission, at domain.Instant) ([]projections.Acceptance, error)
}

// SubmitOptions is how submissions are committed. Every member may be left out.
type SubmitOptions struct {
	Committers int                         // transactions at a time; default 2
	Isolable   func(error) bool            // whether one item may have caused a batch's fault
	Accepted   func(endpoints []uuid.UUID) // called after a commit, with who has new work
}

// Bounds of what waits and of what one transaction takes.
const (
	maxWaiting      = 4096
	maxAhead        = 256 // of one batch
	maxWaitingBytes = 64 << 20
	maxBatchItems   = 1000
	maxBatchBytes   = 16 << 20
	bigFanOut       = 100 // more endpoints than this have a transaction of their own
	commitTimeout   = 30 * time.Second
)

// Submitter accepts messages. Concurrent submissions share transactions: a few
// committers each take whatever waits, without a timer, and each caller gets its own
// answer only after the commit. A submission that makes a batch fail is tried on a
// lane of its own, so that it harms no other.
type Submitter struct {
	ledger  SubmitLedger
	options SubmitOptions
	waiting chan *pending
	lane    chan *pending
	bytes   atomic.Int64
	done    chan struct{}
	owned   sync.WaitGroup
	close   sync.Once
}

// pending is a submission whose caller waits, for as long as ctx lasts.
type pending struct {
	ctx     context.Context
	by      Caller
	sub     Submission
	budgets []projections.Budget
	answer  chan projections.Acceptance // buffered: a caller may have gone
}

// NewSubmitter starts the committers; Close ends them.
func NewSubmitter(ledger SubmitLedger, o SubmitOptions) *Submitter {
	if o.Committers == 0 {
		o.Committers = 2
	}
	if o.Isolable == nil {
		o.Isolable = func(error) bool { return true }
	}
	if o.Accepted == nil {
		o.Accepted = func([]uuid.UUID) {}
	}
	s := &Submitter{
		ledger: ledger, options: o, done: make(chan struct{}),
		waiting: make(chan *pending, maxWaiting), lane: make(chan *pending, maxWaiting),
	}
	for range o.Committers {
		s.owned.Go(func() { s.commitAll(s.waiting, maxBatchItems) })
	}
	s.owned.Go(func() { s.commitAll(s.lane, 1) })
	return s
}

// Close lets the committers finish what they have taken and answers what still waits
// with ErrStorageUnavailable.
func (s *Submitter) Close() {
	s.close.Do(func() { close(s.done) })
	s.owned.Wait()
}

// Submit accepts one message; it returns after the commit.
func (s *Submitter) Submit(ctx context.Context, by Caller, sub Submission) (projections.Acceptance, error) {
	a := s.await(ctx, s.enqueue(ctx, by, sub))
	return a, a.Err
}

// SubmitBatch accepts many messages, each for itself; the answers are in order, and
// each has its own Err. A batch has only so many waiting at a time, so that a few of
// them leave room for everybody else.
func (s *Submitter) SubmitBatch(ctx context.Context, by Caller, subs []Submission) []projections.Acceptance {
	waiting := make([]*pending, len(subs))
	answers := make([]projections.Acceptance, len(subs))
	for i := range len(subs) + maxAhead {
		if i < len(subs) {
			waiting[i] = s.enqueue(ctx, by, subs[i])
		}
		if done := i - maxAhead; done >= 0 {
			answers[done] = s.await(ctx, waiting[done])
		}
	}
	return answers
}

// enqueue checks a submission and puts it where a committer takes it, or answers it
// at once: with its refusal, or with ErrStorageUnavailable when too much waits.
func (s *Submitter) enqueue(ctx context.Context, by Caller, sub Submission) *pending {
	p := &pending{ctx: ctx, by: by, sub: sub, answer: make(chan projections.Acceptance, 1)}
	if err := checkAll(by.Check(), sub.Check()); err != nil {
		p.answer <- projections.Acceptance{Err: err}
		return p
	}
	if s.bytes.Add(p.size()) > maxWaitingBytes {
		s.reply(p, projections.Acceptance{Err: domain.ErrStorageUnavailable})
		return p
	}
	select {
	case s.waiting <- p:
	default:
		s.reply(p, projections.Acceptance{Err: domain.ErrStorageUnavailable})
	}
	return p
}

func (s *Submitter) await(ctx context.Context, p *pending) projections.Acceptance {
	select {
	case a := <-p.answer:
		return a
	case <-ctx.Done():
		return projections.Acceptance{Err: ctx.Err()}
	case <-s.done:
	}
	s.owned.Wait()
	select {
	case a := <-p.answer:
		return a
	default:
		return projections.Acceptance{Err: domain.ErrStorageUnavailable}
	}
}

func (s *Submitter) reply(p *pending, a projections.Acceptance) {
	s.bytes.Add(-p.size())
	a.Budgets = p.budgets
	p.answer <- a
}

func (p *pending) size() int64 { return int64(len(p.sub.Payload)) + 512 }
