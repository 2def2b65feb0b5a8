package command

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"time"

	"github.com/google/uuid"

	"waybill/domain"
	"waybill/events"
	"waybill/projections"
)

// RecordLedger is what recording results needs of the ledger.
type RecordLedger interface {
	Clock
	Record(ctx context.Context, results []projections.ResultChange) (stale []uuid.UUID, err error)
	Append(ctx context.Context, changes []projections.DeliveryChange) (stale []uuid.UUID, err error)
	AppendLate(ctx context.Context, results []projections.ResultChange) (stale []uuid.UUID, err error)
	Streams(ctx context.Context, kind events.Stream, ids []uuid.UUID) (map[uuid.UUID][]events.Record, error)
}

// Recorder writes down what became of claims.
type Recorder struct{ Ledger RecordLedger }

// Finished is a claim's result, ready to be recorded.
type Finished struct {
	Delivery        projections.Delivery // as the claim left it
	Token           uuid.UUID
	Policy          domain.Policy
	EndpointVersion int
	TraceParent     string // of the message
	Result          domain.Result
	Why             string // of a release, instead of a result
}

// Recorded is what the ledger made of a result.
type Recorded struct {
	Attempt  domain.Attempted     // as recorded, now or by an earlier report of the same token
	Delivery projections.Delivery // as it stands after
	Applied  bool                 // it decided where the delivery goes, and did not only add to its history
	Repeated bool                 // the token had reported before; nothing was written, this is the first answer
	Err      error                // this result's refusal: nothing of it was written
}

// Record appends the results of claims, answered in the order given. It decides on
// the state that each claim left and does not read first; only what comes back
// stale is read and decided again, as a late result if its claim has ended. An
// error means that some of it may not be recorded: reporting all of it again is
// safe, since one token has one attempt.
func (r Recorder) Record(ctx context.Context, by domain.Actor, list []Finished) ([]Recorded, error) {
	at, err := r.Ledger.Now(ctx)
	if err != nil {
		return nil, err
	}
	answers := make(map[uuid.UUID]Recorded, len(list))
	changes := make([]projections.ResultChange, 0, len(list))
	for _, f := range list {
		report, exchange := f.report()
		facts, err := f.Delivery.Record(report, f.retry(at))
		if err != nil {
			return nil, fmt.Errorf("record %s: %w", f.Delivery.ID, err)
		}
		change, err := f.Delivery.AdvanceTraced(by, f.TraceParent, at, facts...)
		if err != nil {
			return nil, err
		}
		changes = append(changes, projections.ResultChange{DeliveryChange: change, Token: f.Token, Exchange: exchange})
		answers[f.Delivery.ID] = Recorded{Attempt: facts[0].(domain.Attempted), Delivery: change.After, Applied: true}
	}
	stale, err := r.Ledger.Record(ctx, changes)
	if err != nil {
		return nil, err
	}
	if err := r.late(ctx, by, pick(list, stale), answers); err != nil {
		return nil, err
	}
	return inOrder(list, answers), nil
}

// RecordClaimed records one result of which it is not known whether its claim still
// owns the delivery. The refusal of an unknown token is the error.
func (r Recorder) RecordClaimed(ctx context.Context, by domain.Actor, f Finished) (Recorded, error) {
	answers := map[uuid.UUID]Recorded{}
	if err := r.late(ctx, by, []Finished{f}, answers); err != nil {
		return Recorded{}, err
	}
	answer := answers[f.Delivery.ID]
	return answer, answer.Err
}

// late reads the streams of stale results, decides each anew and appends, until none
// is stale any more.
func (r Recorder) late(ctx context.Context, by domain.Actor, list []Finished, answers map[uuid.UUID]Recorded) error {
	for range staleTries {
		if len(list) == 0 {
			return nil
		}
		streams, err := r.Ledger.Streams(ctx, events.DeliveryStream, idsOf(list))
		if err != nil {
			return err
		}
		at, err := r.Ledger.Now(ctx)
		if err != nil {
			return err
		}
		var changes []projections.ResultChange
		for _, f := range list {
			change, answer, err := f.decideAgain(by, streams[f.Delivery.ID], at)
			if err != nil {
				answer.Err = fmt.Errorf("record %s late: %w", f.Delivery.ID, err)
			}
			if answers[f.Delivery.ID] = answer; answer.Err == nil && !answer.Repeated {
				changes = append(changes, change)
			}
		}
		stale, err := r.Ledger.AppendLate(ctx, changes)
		if errors.Is(err, domain.ErrDeliveryArchived) {
			return r.apart(ctx, by, list, answers, err)
		}
		if err != nil {
			return err
		}
		list = pick(list, stale)
	}
	return domain.ErrStale
}

// apart records results one by one, of which one came after its month was archived: that is
// its refusal, and no other's.
func (r Recorder) apart(ctx context.Context, by domain.Actor, list []Finished, answers map[uuid.UUID]Recorded, archived error) error {
	if len(list) == 1 {
		answers[list[0].Delivery.ID] = Recorded{Err: archived}
		return nil
	}
	for _, f := range list {
		if err := r.late(ctx, by, []Finished{f}, answers); err != nil {
			return err
		}
	}
	return nil
}

// decideAgain judges a result by the stream as it is now. If the token still owns
// the delivery (a superseded attempt had moved the version) it is no late result.
func (f Finished) decideAgain(by domain.Actor, stream []events.Record, at domain.Instant) (projections.ResultChange, Recorded, error) {
	if len(stream) == 0 { // it was claimed, so it was there
		return projections.ResultChange{}, Recorded{}, domain.ErrDeliveryArchived
	}
	d, claims, err := projections.FoldDelivery(stream)
	if err != nil {
		return projections.ResultChange{}, Recorded{}, err
	}
	if f.Result.StartedAt.IsZero() {
		f.Result.StartedAt, f.Result.Duration = claimedAt(f.Token, stream, at)
	}
	report, exchange := f.report()
	var facts []domain.Event
	if d.Owns(f.Token) {
		facts, err = d.Record(report, f.retry(at))
	} else {
		facts, err = d.RecordLate(claims, report, f.retry(at))
	}
	if err != nil {
		return projections.ResultChange{}, Recorded{}, err
	}
	if len(facts) == 0 {
		first, err := firstAnswer(f.Token, stream)
		return projections.ResultChange{}, first, err
	}
	change, err := d.AdvanceTraced(by, f.TraceParent, at, facts...)
	attempt := facts[0].(domain.Attempted)
	if d.PayloadErased {
		exchange = nil // what receivers answered went with the payload, and nothing of it comes back
	}
	if exchange != nil {
		exchange.Attempt = attempt.Attempt
	}
	return projections.ResultChange{DeliveryChange: change, Token: f.Token, Exchange: exchange},
		Recorded{Attempt: attempt, Delivery: change.After, Applied: len(facts) > 1}, err
}

// claimedAt is when a token's claim was made and how long ago that is: what is known
// of a request whose maker does not say when it began.
func claimedAt(token uuid.UUID, stream []events.Record, now domain.Instant) (time.Time, time.Duration) {
	for _, r := range stream {
		if e, err := r.Event(); err == nil {
			if c, ok := e.(domain.Claimed); ok && c.Token == token {
				return r.RecordedAt.Time, now.Sub(r.RecordedAt.Time)
			}
		}
	}
	return time.Time{}, 0
}

// firstAnswer is what a token's first report was answered: the attempt, and the
// delivery as what was appended with it had left it.
func firstAnswer(token uuid.UUID, stream []events.Record) (Recorded, error) {
	for i, r := range stream {
		e, err := r.Event()
		if err != nil {
			return Recorded{}, err
		}
		a, ok := e.(domain.Attempted)
		if !ok || a.Token != token {
			continue
		}
		applied := i+1 < len(stream) && follows(stream[i+1], r)
		if applied {
			i++
		}
		d, _, err := projections.FoldDelivery(stream[:i+1])
		return Recorded{Attempt: a, Delivery: d, Applied: applied, Repeated: true}, err
	}
	return Recorded{}, domain.ErrClaimNotFound
}

// follows reports whether a record is the consequence that was appended together with
// an attempt.
func follows(r, attempt events.Record) bool {
	switch r.Name {
	case "delivery.delivered", "delivery.retry_scheduled", "delivery.failed", "delivery.held":
		return r.RecordedAt == attempt.RecordedAt && r.Actor == attempt.Actor
	}
	return false
}

// report is the result as the domain takes it, with what is kept beside the log.
func (f Finished) report() (domain.Report, *projections.Exchange) {
	rep := domain.Report{Token: f.Token, Result: f.Result, EndpointVersion: f.EndpointVersion}
	res := f.Result
	if len(res.Excerpt)+len(res.Location)+len(res.Detail) == 0 {
		return rep, nil
	}
	salt := make([]byte, 32)
	_, _ = rand.Read(salt) // never fails, says its documentation
	rep.ResponseCommitment = events.Commitment(salt, res.Excerpt)
	return rep, &projections.Exchange{
		DeliveryID: f.Delivery.ID, Attempt: f.Delivery.Attempts, Salt: salt,
		Excerpt: res.Excerpt, Location: res.Location, Detail: res.Detail,
	}
}

func (f Finished) retry(at domain.Instant) domain.Retry {
	return domain.Retry{Policy: f.Policy, From: at, Random: mathrand.Float64()}
}

func pick(list []Finished, ids []uuid.UUID) []Finished {
	if len(ids) == 0 {
		return nil
	}
	wanted := make(map[uuid.UUID]bool, len(ids))
	for _, id := range ids {
		wanted[id] = true
	}
	var picked []Finished
	for _, f := range list {
		if wanted[f.Delivery.ID] {
			picked = append(picked, f)
		}
	}
	return picked
}

func idsOf(list []Finished) []uuid.UUID {
	ids := make([]uuid.UUID, len(list))
	for i, f := range list {
		ids[i] = f.Delivery.ID
	}
	return ids
}

func inOrder(list []Finished, answers map[uuid.UUID]Recorded) []Recorded {
	out := make([]Recorded, len(list))
	for i, f := range list {
		out[i] = answers[f.Delivery.ID]
	}
	return out
}
