package domain

import (
	"github.com/google/uuid"
)

// Schedule accepts a message for delivery to an endpoint. Paused and disabled
// endpoints accept too: what they get waits.
func Schedule(s Scheduled, status EndpointStatus) ([]Event, error) {
	if status == StatusArchived {
		return nil, ErrEndpointArchived
	}
	return []Event{s}, nil
}

// ClaimOrder is what a worker asks for when it claims.
type ClaimOrder struct {
	Token      uuid.UUID
	Worker     string
	LeaseUntil Instant
}

// TakeClaim gives a due delivery to a worker and draws the attempt's numbers. A
// delivery whose endpoint is archived, or whose cycle is already spent under the
// present policy, fails instead; one whose endpoint is paused or disabled is
// refused with [ErrEndpointInactive] and stays as it is.
func (d Delivery) TakeClaim(o ClaimOrder, status EndpointStatus, p Policy, at Instant) ([]Event, error) {
	if d.State != StatePending || d.DueAt.IsZero() || d.Proof != 0 {
		return nil, ErrNotDue
	}
	if status == StatusArchived {
		return []Event{Failed{Why: EndpointGone}}, nil
	}
	if d.DueAt.Time.After(at.Time) {
		return nil, ErrNotDue
	}
	if status != StatusActive {
		return nil, ErrEndpointInactive
	}
	if d.CycleAttempts >= p.MaxAttempts() {
		return []Event{Failed{Why: Exhausted}}, nil
	}
	return []Event{Claimed{
		Token: o.Token, Worker: o.Worker, LeaseUntil: o.LeaseUntil,
		Cycle: d.Cycle, Attempt: d.Attempts + 1, CycleAttempt: d.CycleAttempts + 1,
	}}, nil
}

// Owns reports whether the token is the present claim's.
func (d Delivery) Owns(token uuid.UUID) bool {
	return d.State == StateProcessing && d.Claim.Token == token
}

// Extend moves the end of the present claim's lease.
func (d Delivery) Extend(token uuid.UUID, until Instant) ([]Event, error) {
	if !d.Owns(token) {
		return nil, ErrSuperseded
	}
	return []Event{LeaseExtended{Token: token, LeaseUntil: until}}, nil
}

// Release gives back a claim that provably never sent: its cycle attempt is
// unspent, its lifetime number stays used.
func (d Delivery) Release(token uuid.UUID, why string, due Instant) ([]Event, error) {
	if !d.Owns(token) {
		return nil, ErrSuperseded
	}
	released := Released{Token: token, Why: why, DueAt: due}
	if d.Proof != 0 {
		return []Event{released, Delivered{Attempt: d.Proof}}, nil
	}
	return []Event{released}, nil
}

// Expire ends a claim whose lease ran out unreported: the attempt is in doubt and
// spent, and the endpoint's policy says whether to try again or ask a person.
func (d Delivery) Expire(token uuid.UUID, r Retry) ([]Event, error) {
	if !d.Owns(token) {
		return nil, ErrSuperseded
	}
	expired := LeaseExpired{Token: token, Attempt: d.Attempts}
	next := d.next(verdict{outcome: Unknown, why: WhyWorkerLost, token: token}, r)
	return []Event{expired, next}, nil
}

// Report is a result and what its maker knew when it made the request.
type Report struct {
	Token              uuid.UUID
	Result             Result
	EndpointVersion    int
	ResponseCommitment []byte
}

// Record takes the result of the present claim: the attempt, and what follows
// from it. Under any other token it refuses with [ErrSuperseded]; RecordLate is
// for those.
func (d Delivery) Record(rep Report, r Retry) ([]Event, error) {
	if !d.Owns(rep.Token) {
		return nil, ErrSuperseded
	}
	attempted := rep.attempted(d.Attempts, d.CycleAttempts)
	after := d.Evolve(attempted, d.UpdatedAt)
	return []Event{attempted, after.next(rep.verdict(), r)}, nil
}

// RecordLate takes the result of a claim that no longer owns the delivery. It is
// kept as an attempt of its own claim. A success settles the delivery where no
// claim is running; a failure ends the hold that this very claim caused, and
// changes nothing else. The first report of a token is its only one: a repetition
// returns no events, and h says what was recorded. If the token owns the delivery
// after all, its result is not late, and goes the way of Record.
func (d Delivery) RecordLate(h ClaimHistory, rep Report, r Retry) ([]Event, error) {
	if d.Owns(rep.Token) {
		return d.Record(rep, r)
	}
	c, known := h.Find(rep.Token)
	if !known {
		return nil, ErrClaimNotFound
	}
	if c.Report != nil {
		return nil, nil
	}
	late := rep.attempted(c.Attempt, c.CycleAttempt)
	late.Superseded, late.AfterRelease = true, c.Released
	after := d.Evolve(late, d.UpdatedAt)
	switch {
	case late.Outcome == Succeeded && after.Proof == c.Attempt && d.openToProof():
		return []Event{late, Delivered{Attempt: c.Attempt}}, nil
	case d.State == StateHeld && d.HeldBy == rep.Token && late.Outcome != Unknown && late.Outcome != Succeeded:
		return []Event{late, after.next(rep.verdict(), r)}, nil
	}
	return []Event{late}, nil
}

// openToProof reports whether a late success settles the delivery at once.
func (d Delivery) openToProof() bool {
	return d.State == StatePending || d.State == StateHeld || d.State == StateFailed
}

// Replay starts a new cycle of attempts for a delivery that failed; with force
// also for one that is delivered or cancelled, and then nothing recorded before
// counts as proof any more.
func (d Delivery) Replay(reason string, force bool, onBehalfOf string, at Instant) ([]Event, error) {
	if d.PayloadErased {
		return nil, ErrPayloadErased
	}
	forced := force && (d.State == StateDelivered || d.State == StateCancelled)
	if d.State != StateFailed && !forced {
		return nil, ErrNotReplayable
	}
	return []Event{Replayed{Reason: reason, Cycle: d.Cycle + 1, DueAt: at, Force: force, OnBehalfOf: onBehalfOf}}, nil
}

// Cancel ends a delivery that has not ended; a running claim ends with it. It is
// refused once a success is on record.
func (d Delivery) Cancel(reason, onBehalfOf string) ([]Event, error) {
	if d.State.Terminal() || d.Proof != 0 {
		return nil, ErrNotCancellable
	}
	return []Event{Cancelled{Reason: reason, OnBehalfOf: onBehalfOf}}, nil
}

// Resolve ends a hold the way a person says.
func (d Delivery) Resolve(as Resolution, reason, onBehalfOf string, at Instant) ([]Event, error) {
	if d.State != StateHeld {
		return nil, ErrNotHeld
	}
	e := Resolved{Resolution: as, Reason: reason, OnBehalfOf: onBehalfOf}
	switch as {
	case ResolvedDelivered, ResolvedFailed:
	case ResolvedRetry:
		if d.PayloadErased {
			return nil, ErrPayloadErased
		}
		e.Cycle, e.DueAt = d.Cycle+1, at
	default:
		return nil, ErrInvalidRequest.With("outcome is one of delivered, failed, retry")
	}
	return []Event{e}, nil
}

// verdict is the part of a report that decides what comes next.
type verdict struct {
	outcome Outcome
	status  int
	why     string
	token   uuid.UUID
	result  Result
}

// next decides what follows the end of a claim. A recorded success outweighs
// whatever ended it.
func (d Delivery) next(v verdict, r Retry) Event {
	switch {
	case d.Proof != 0:
		return Delivered{Attempt: d.Proof}
	case v.outcome == Refused && v.status == StatusGone:
		return Failed{Why: Rejected}
	case v.outcome == Unknown && r.Policy.OnUnknown == HoldUnknown:
		return Held{Why: v.why, Token: v.token}
	}
	return d.again(v, r)
}

func (d Delivery) again(v verdict, r Retry) Event {
	if d.CycleAttempts >= r.Policy.MaxAttempts() {
		return Failed{Why: Exhausted}
	}
	return RetryScheduled{DueAt: r.due(d.CycleAttempts+1, v.result.RetryAfter), Why: v.why}
}

func (rep Report) verdict() verdict {
	v := verdict{outcome: rep.Result.Outcome, status: rep.Result.Status, token: rep.Token, result: rep.Result, why: WhyFailedTry}
	if v.outcome == Unknown {
		v.why = WhyUnknownSent
	}
	return v
}

func (rep Report) attempted(attempt, cycleAttempt int) Attempted {
	res := rep.Result
	a := Attempted{
		Attempt: attempt, CycleAttempt: cycleAttempt, Token: rep.Token,
		Outcome: res.Outcome, Reason: res.Reason, Status: res.Status, URL: res.URL,
		EndpointVersion: rep.EndpointVersion,
		StartedAt:       At(res.StartedAt), DurationMS: res.Duration.Milliseconds(),
		ResponseBytes: res.ResponseBytes, ResponseCommitment: rep.ResponseCommitment,
	}
	if res.RetryAfter != nil {
		s := int64((*res.RetryAfter).Seconds())
		a.RetryAfterS = &s
	}
	return a
}
