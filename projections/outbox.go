package projections

import (
	"github.com/google/uuid"

	"waybill/domain"
)

// OutboxRow is a message that somebody handed in by an insert of their own.
type OutboxRow struct {
	ID             int64
	Tenant         string
	EndpointID     uuid.UUID // zero: to whoever wants the event type
	EventType      string
	ContentType    string
	Payload        []byte
	IdempotencyKey *string
	OrderingKey    string
	NotBefore      domain.Instant
}

// OutboxDraft is what an outbox row becomes: a submission, or the refusal that it
// stays with.
type OutboxDraft struct {
	Submission Submission
	Refused    *domain.Error
}

// OutboxMove is what one transaction did with rows of the outbox.
type OutboxMove struct {
	Moved, Refused int
	Last           int64       // the last row looked at, also where the transaction failed
	Endpoints      []uuid.UUID // that have new work
}
