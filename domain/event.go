package domain

import "github.com/google/uuid"

// Event is a fact of a delivery's, an endpoint's or an administrative stream. The
// set is closed: only this package declares events. JSON members are part of the
// log's format; a change of meaning needs a new version in the codec.
type Event interface{ fact() }

// Scheduled: a delivery was accepted.
type Scheduled struct {
	EndpointID     uuid.UUID `json:"endpoint_id"`
	MessageID      uuid.UUID `json:"message_id"`
	EventType      string    `json:"event_type,omitempty"`
	ContentType    string    `json:"content_type,omitempty"`
	PayloadSize    int       `json:"payload_size"`
	Commitment     Hex       `json:"payload_commitment"` // HMAC-SHA256 of the payload under the message's salt
	IdempotencyKey string    `json:"idempotency_key,omitempty"`
	Fingerprint    Hex       `json:"fingerprint,omitempty"` // with an idempotency key: HMAC-SHA256 of the content
	OrderingKey    string    `json:"ordering_key,omitempty"`
	DueAt          Instant   `json:"due_at"`
	OnBehalfOf     string    `json:"on_behalf_of,omitempty"`
}

// Claimed: a worker took the delivery and drew its attempt numbers.
type Claimed struct {
	Token        uuid.UUID `json:"claim_token"`
	Worker       string    `json:"worker"`
	LeaseUntil   Instant   `json:"lease_until"`
	Cycle        int       `json:"cycle"`
	Attempt      int       `json:"attempt"`       // lifetime number, never reused
	CycleAttempt int       `json:"cycle_attempt"` // number within the cycle
}

// LeaseExtended: a remote worker asked for more time and got it.
type LeaseExtended struct {
	Token      uuid.UUID `json:"claim_token"`
	LeaseUntil Instant   `json:"lease_until"`
}

// Released: a claim was given back that provably never sent.
type Released struct {
	Token uuid.UUID `json:"claim_token"`
	Why   string    `json:"why"`
	DueAt Instant   `json:"due_at"`
}

// Attempted: a claim's request went out, or could not.
type Attempted struct {
	Attempt            int       `json:"attempt"`
	CycleAttempt       int       `json:"cycle_attempt"`
	Token              uuid.UUID `json:"claim_token"`
	Outcome            Outcome   `json:"outcome"`
	Reason             Reason    `json:"reason,omitempty"`
	Status             int       `json:"status,omitempty"`
	URL                string    `json:"url,omitempty"`
	EndpointVersion    int       `json:"endpoint_version"`
	StartedAt          Instant   `json:"started_at"`
	DurationMS         int64     `json:"duration_ms"`
	ResponseBytes      int64     `json:"response_bytes,omitempty"`
	ResponseCommitment Hex       `json:"response_commitment,omitempty"` // HMAC-SHA256 of the kept excerpt under its salt
	RetryAfterS        *int64    `json:"retry_after_s,omitempty"`
	Superseded         bool      `json:"superseded"`
	AfterRelease       bool      `json:"after_release,omitempty"` // its claim had been given back as never sent
}

// Delivered: done. Attempt is the one that proves it.
type Delivered struct {
	Attempt int `json:"attempt"`
}

// RetryScheduled: another attempt will follow.
type RetryScheduled struct {
	DueAt Instant `json:"due_at"`
	Why   string  `json:"why"`
}

// Failed: gave up.
type Failed struct {
	Why FailureReason `json:"why"`
}

// LeaseExpired: a claim ran out unreported. Its attempt is in doubt and spent.
type LeaseExpired struct {
	Token   uuid.UUID `json:"claim_token"`
	Attempt int       `json:"attempt"`
}

// Held: only a person can say. Token names the claim that caused it.
type Held struct {
	Why   string    `json:"why"`
	Token uuid.UUID `json:"claim_token"`
}

// Resolved: a person said. DeliveredAt is set by an import alone: when another system
// says that it delivered. Of such a message there is no payload here.
type Resolved struct {
	Resolution  Resolution `json:"resolution"`
	Reason      string     `json:"reason"`
	Cycle       int        `json:"cycle,omitempty"`
	DueAt       Instant    `json:"due_at,omitzero"`
	OnBehalfOf  string     `json:"on_behalf_of,omitempty"`
	DeliveredAt Instant    `json:"delivered_at,omitzero"`
}

// Replayed: an operator started a new cycle of attempts.
type Replayed struct {
	Reason     string  `json:"reason"`
	Cycle      int     `json:"cycle"`
	DueAt      Instant `json:"due_at"`
	Force      bool    `json:"force"`
	OnBehalfOf string  `json:"on_behalf_of,omitempty"`
}

// Cancelled: an operator ended it; a running claim ends with it.
type Cancelled struct {
	Reason     string `json:"reason"`
	OnBehalfOf string `json:"on_behalf_of,omitempty"`
}

func (Scheduled) fact()      {}
func (Claimed) fact()        {}
func (LeaseExtended) fact()  {}
func (Released) fact()       {}
func (Attempted) fact()      {}
func (Delivered) fact()      {}
func (RetryScheduled) fact() {}
func (Failed) fact()         {}
func (LeaseExpired) fact()   {}
func (Held) fact()           {}
func (Resolved) fact()       {}
func (Replayed) fact()       {}
func (Cancelled) fact()      {}

// Resolution is what a person says of a held delivery.
type Resolution string

// The resolutions.
const (
	ResolvedDelivered Resolution = "delivered"
	ResolvedFailed    Resolution = "failed"
	ResolvedRetry     Resolution = "retry"
)

// FailureReason says why a delivery was given up.
type FailureReason string

// The reasons of failure.
const (
	Exhausted    FailureReason = "exhausted"     // the cycle's attempts are spent
	Rejected     FailureReason = "rejected"      // the receiver answered 410
	EndpointGone FailureReason = "endpoint_gone" // the endpoint was archived
	ByPerson     FailureReason = "resolved"      // a person resolved it as failed
)

// Why a claim is given back, an attempt follows, or a delivery is held.
const (
	WhyDrain       = "drain"       // the worker is shutting down
	WhyTooLate     = "too_late"    // too little of the lease was left to start
	WhyGivenBack   = "given_back"  // a remote worker has not sent it
	WhyPaused      = "paused"      // the endpoint stopped before the request did
	WhyWorkerLost  = "worker_lost" // the lease ran out unreported
	WhyFailedTry   = "attempt_failed"
	WhyUnknownSent = "outcome_unknown"
)
