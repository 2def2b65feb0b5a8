package domain

import (
	"time"

	"github.com/google/uuid"
)

// Outcome is what an attempt came to.
type Outcome string

// The four outcomes. Only Unknown leaves a delivery in doubt.
const (
	Succeeded Outcome = "succeeded" // the receiver answered 2xx
	Refused   Outcome = "refused"   // the receiver answered something else
	Unreached Outcome = "unreached" // the request was never written to the wire
	Unknown   Outcome = "unknown"   // the request was, at least in part, written and no answer came
)

// Valid reports whether o is one of the four outcomes.
func (o Outcome) Valid() bool {
	switch o {
	case Succeeded, Refused, Unreached, Unknown:
		return true
	}
	return false
}

// Reason is a stable code that says why an attempt did not succeed.
type Reason string

// The reasons of attempts.
const (
	ReasonHTTPStatus     Reason = "http_status"     // an answer other than 2xx
	ReasonRedirect       Reason = "redirect"        // 3xx; redirects are not followed
	ReasonTimeout        Reason = "timeout"         // the policy's timeout ran out
	ReasonDNS            Reason = "dns"             // the name did not resolve
	ReasonConnect        Reason = "connect"         // no connection
	ReasonTLS            Reason = "tls"             // no trusted TLS session
	ReasonBlockedAddress Reason = "blocked_address" // the address rules forbid it
	ReasonReset          Reason = "reset"           // the connection broke after the request was written
	ReasonTooLarge       Reason = "too_large"       // headers beyond the bound
	ReasonCancelled      Reason = "cancelled"       // ended by a draining worker
	ReasonWorkerLost     Reason = "worker_lost"     // the claim ran out unreported
	ReasonInternal       Reason = "internal"        // a fault of ours, before anything was written
)

// Valid reports whether r is one of the reasons.
func (r Reason) Valid() bool {
	switch r {
	case ReasonHTTPStatus, ReasonRedirect, ReasonTimeout, ReasonDNS, ReasonConnect, ReasonTLS, ReasonBlockedAddress,
		ReasonReset, ReasonTooLarge, ReasonCancelled, ReasonWorkerLost, ReasonInternal:
		return true
	}
	return false
}

// StatusGone is the HTTP status by which a receiver says that it wants no more
// (RFC 9110, section 15.5.11).
const StatusGone = 410

// Request is one attempt about to be made: all that the sender needs and
// nothing that decides.
type Request struct {
	DeliveryID  uuid.UUID
	MessageID   uuid.UUID
	Attempt     int // lifetime number, from 1
	EventType   string
	ContentType string
	Payload     []byte
	TraceParent string
	Timeout     time.Duration // whole request, response body included

	URL               string
	Headers           map[string]string // the endpoint's own; may not override Waybill's
	Secrets           []string          // each "whsec_…"; one signature per secret, in order
	IdempotencyHeader string            // empty: none; its value is the message id
	CA                string            // PEM certificates to trust instead of the system's; empty: the system's
	At                time.Time         // the attempt's time, for webhook-timestamp
}

// Result is what one attempt came to, as its maker saw it.
type Result struct {
	Outcome       Outcome
	Reason        Reason // empty when it succeeded
	Status        int    // HTTP status; 0 when no status line was read
	URL           string // as requested, without userinfo and query values
	StartedAt     time.Time
	Duration      time.Duration
	RetryAfter    *time.Duration // as the receiver asked, from the end of the attempt; not yet bounded
	ResponseBytes int64          // body bytes read, after decompression, within the bound

	// What follows comes from outside and never enters an event.
	Excerpt  []byte // the first bytes of the body, as they came
	Location []byte // of a redirect
	Detail   []byte // an error's text
}
