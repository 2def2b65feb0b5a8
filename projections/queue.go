package projections

import (
	"time"

	"github.com/google/uuid"

	"waybill/domain"
)

// ClaimRequest is what a worker asks the queue for.
type ClaimRequest struct {
	Worker string       // as the log will name it
	By     domain.Actor // who claims; empty: the worker of that name
	Tenant string       // only this tenant's; empty: any
	Mode   domain.Mode  // of the endpoints; empty: http
	Lease  time.Duration
	Batch  int // deliveries in all
	From   []ClaimQuota
	// Caps on deliveries in flight are divided among Workers, of which this one has
	// the given Rank (from 0).
	Workers, Rank int
	TokenEach     bool // a claim of its own for each delivery, instead of one for all
}

// ClaimQuota is how much of one endpoint's due work a claim may take. Deliveries
// due before Since are left to a later sweep; zero means no bound.
type ClaimQuota struct {
	EndpointID uuid.UUID
	Since      domain.Instant
	Limit      int
	Busy       int // deliveries of it that this worker has in flight
}

// Batch is what a claim brought. Each delivery carries its token.
type Batch struct {
	Token      uuid.UUID      // of all of it; zero if each has its own
	LeaseUntil domain.Instant // by the database's clock
	Now        domain.Instant // the database's clock at the claim
	Taken      []Assignment
	Ended      []Delivery // not claimed, but given up at the claim
	Faults     []error    // of endpoints whose deliveries had to stay where they are
}

// Assignment is one claimed delivery and all that is needed to send it.
type Assignment struct {
	Delivery    Delivery
	WasDue      domain.Instant // the due time that the claim answered
	ContentType string
	Payload     []byte
	TraceParent string
	Endpoint    *Route
}

// Route is how one version of an endpoint is sent to. It is shared and never
// changed.
type Route struct {
	ID      uuid.UUID
	Version int
	Policy  domain.Policy
	Target  domain.Target
}

// ResultChange is the recorded end of a claim, and what the receiver answered.
type ResultChange struct {
	DeliveryChange
	Token    uuid.UUID
	Exchange *Exchange // nil where there is nothing to keep
}

// Exchange is a bounded excerpt of what a receiver answered: bytes from outside, as
// they came, kept beside the log and erasable.
type Exchange struct {
	DeliveryID uuid.UUID
	Attempt    int
	Salt       []byte
	Excerpt    []byte // of the body
	Location   []byte // of a redirect
	Detail     []byte // an error's text
}

// DueEndpoint is an endpoint with waiting work.
type DueEndpoint struct {
	ID  uuid.UUID
	Due domain.Instant // its earliest
}
