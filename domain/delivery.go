package domain

import "github.com/google/uuid"

// State is where a delivery stands.
type State string

// The states. Delivered, failed and cancelled are terminal.
const (
	StatePending    State = "pending"    // waits for its due time
	StateProcessing State = "processing" // a claim owns it
	StateDelivered  State = "delivered"  // proven, or a person said so
	StateFailed     State = "failed"     // given up
	StateHeld       State = "held"       // waits for a person
	StateCancelled  State = "cancelled"  // an operator ended it
)

// States lists every state, in the order of a delivery's life.
var States = []State{StatePending, StateProcessing, StateDelivered, StateFailed, StateHeld, StateCancelled}

// Terminal reports whether nothing more happens by itself.
func (s State) Terminal() bool {
	return s == StateDelivered || s == StateFailed || s == StateCancelled
}

// Valid reports whether s is one of the states.
func (s State) Valid() bool {
	for _, v := range States {
		if s == v {
			return true
		}
	}
	return false
}

// Claim is present ownership of a delivery. The claim's attempt numbers are the
// delivery's Attempts and CycleAttempts.
type Claim struct {
	Token      uuid.UUID
	Worker     string
	LeaseUntil Instant
}

// Delivery is the state that the events of one stream add up to.
type Delivery struct {
	ID             uuid.UUID
	Tenant         string
	EndpointID     uuid.UUID
	MessageID      uuid.UUID
	EventType      string
	IdempotencyKey string
	OrderingKey    string
	CreatedAt      Instant
	UpdatedAt      Instant

	State           State
	Version         int // seq of the last event
	Attempts        int // lifetime attempt numbers drawn
	Cycle           int
	CycleAttempts   int     // spent in this cycle, the running claim's included
	DueAt           Instant // zero unless pending
	Claim           Claim   // zero unless processing
	FailureReason   FailureReason
	LastOutcome     Outcome // of attempt LastAttempt; empty before any
	LastAttempt     int
	UnknownAttempts int       // how many attempts were ever in doubt
	Proof           int       // attempt of a recorded success that counts; 0: none
	ForcedAfter     int       // successes of attempts up to this prove nothing any more
	HeldBy          uuid.UUID // claim that caused the hold
	PayloadErased   bool
}

// InDoubt reports that the last attempt may have been received and nothing
// settles it: its outcome is unknown and the delivery is not delivered.
func (d Delivery) InDoubt() bool {
	return d.LastOutcome == Unknown && d.State != StateDelivered
}

// Evolve returns the state after one more event, recorded at the given time. It
// cannot fail: whatever is in the log has happened.
func (d Delivery) Evolve(e Event, at Instant) Delivery {
	d.Version++
	d.UpdatedAt = at
	switch e := e.(type) {
	case Scheduled:
		d.schedule(e, at)
	case Claimed:
		d.State, d.DueAt = StateProcessing, Instant{}
		d.Attempts, d.CycleAttempts = e.Attempt, e.CycleAttempt
		d.Claim = Claim{Token: e.Token, Worker: e.Worker, LeaseUntil: e.LeaseUntil}
	case LeaseExtended:
		d.Claim.LeaseUntil = e.LeaseUntil
	case Released:
		d.CycleAttempts--
		d.enqueue(e.DueAt)
	case Attempted:
		d.attempted(e)
	case LeaseExpired:
		d.doubt(e.Attempt)
		d.enqueue(Instant{})
	default:
		d.settled(e)
	}
	return d
}

// settled folds the events that say where a delivery goes from here.
func (d *Delivery) settled(e Event) {
	switch e := e.(type) {
	case Delivered:
		d.end(StateDelivered, "")
	case RetryScheduled:
		d.enqueue(e.DueAt)
	case Failed:
		d.end(StateFailed, e.Why)
	case Held:
		d.end(StateHeld, "")
		d.HeldBy = e.Token
	case Resolved:
		d.resolved(e)
	case Replayed:
		d.newCycle(e.Cycle, e.DueAt)
		if e.Force {
			d.ForcedAfter, d.Proof = d.Attempts, 0
		}
	case Cancelled:
		if d.State == StateProcessing {
			d.doubt(d.Attempts)
		}
		d.end(StateCancelled, "")
	case PayloadErased:
		d.PayloadErased = true
	}
}

func (d *Delivery) schedule(e Scheduled, at Instant) {
	d.EndpointID, d.MessageID, d.EventType = e.EndpointID, e.MessageID, e.EventType
	d.IdempotencyKey, d.OrderingKey = e.IdempotencyKey, e.OrderingKey
	d.CreatedAt = at
	d.newCycle(1, e.DueAt)
}

func (d *Delivery) attempted(e Attempted) {
	if e.Attempt >= d.LastAttempt {
		d.LastOutcome, d.LastAttempt = e.Outcome, e.Attempt
	}
	if e.Outcome == Succeeded && e.Attempt > d.ForcedAfter && d.Proof == 0 {
		d.Proof = e.Attempt
	}
	if e.Outcome == Unknown && (!e.Superseded || e.AfterRelease) {
		d.UnknownAttempts++
	}
	if !e.Superseded {
		d.enqueue(Instant{})
	}
}

func (d *Delivery) resolved(e Resolved) {
	switch e.Resolution {
	case ResolvedDelivered:
		d.end(StateDelivered, "")
		d.PayloadErased = d.PayloadErased || !e.DeliveredAt.IsZero()
	case ResolvedFailed:
		d.end(StateFailed, ByPerson)
	case ResolvedRetry:
		d.newCycle(e.Cycle, e.DueAt)
	}
}

// doubt marks an attempt that may have been received and never reported.
func (d *Delivery) doubt(attempt int) {
	d.UnknownAttempts++
	if attempt >= d.LastAttempt {
		d.LastOutcome, d.LastAttempt = Unknown, attempt
	}
}

func (d *Delivery) newCycle(cycle int, due Instant) {
	d.Cycle, d.CycleAttempts = cycle, 0
	d.enqueue(due)
}

func (d *Delivery) enqueue(due Instant) {
	d.end(StatePending, "")
	d.DueAt = due
}

func (d *Delivery) end(s State, why FailureReason) {
	d.State, d.FailureReason = s, why
	d.DueAt, d.Claim, d.HeldBy = Instant{}, Claim{}, uuid.UUID{}
}
