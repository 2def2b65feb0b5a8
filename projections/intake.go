package projections

import (
	"github.com/google/uuid"

	"waybill/domain"
)

// Message is bytes handed in once. Payload and Salt are nil once erased, and of what was
// imported.
type Message struct {
	ID          uuid.UUID
	Tenant      string
	EventType   string
	ContentType string
	Payload     []byte
	Salt        []byte
	Commitment  []byte // events.Commitment of the payload
	TraceParent string
}

// SubmitEndpoint is what a submission needs to know of an endpoint.
type SubmitEndpoint struct {
	ID     uuid.UUID
	Tenant string
	Status domain.EndpointStatus
	Rate   domain.Rate     // of submissions; zero: no limit
	Delay  domain.Duration // before the first attempt
}

// Submission is one message ready to be accepted, with a new delivery for each of
// its endpoints. With an idempotency key, Scope says within what it is unique.
type Submission struct {
	Message     Message
	Deliveries  []DeliveryChange
	Key         string // empty: none
	Scope       uuid.UUID
	OrderingKey string
	Fingerprint []byte
}

// Import is a submission of what another system has delivered already, and the change
// that says so.
type Import struct {
	Submission
	Settled DeliveryChange
}

// Acceptance is what became of a submission: its own ids, or those of the original
// that occupies its key.
type Acceptance struct {
	MessageID  uuid.UUID
	Duplicate  bool
	Deliveries []AcceptedDelivery
	Budgets    []Budget // of the rate limits that it was counted against
	Err        error    // this item's refusal; nothing of it was written
}

// AcceptedDelivery is one delivery of an accepted message.
type AcceptedDelivery struct {
	DeliveryID uuid.UUID
	EndpointID uuid.UUID
	State      domain.State
}

// Key is an API key without the key: only its digest is stored.
type Key struct {
	ID        uuid.UUID
	Tenant    string
	Name      string
	Scopes    []domain.Scope
	Rate      domain.Rate // of submissions; zero: no limit
	CreatedAt domain.Instant
	RevokedAt domain.Instant // zero while it opens anything
}

// Tenant is an isolated customer.
type Tenant struct {
	Name      string
	ID        uuid.UUID
	CreatedAt domain.Instant
}
