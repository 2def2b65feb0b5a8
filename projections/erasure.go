package projections

import (
	"github.com/google/uuid"

	"waybill/domain"
)

// Erasure asks to erase messages of one tenant, each with whatever receivers answered to
// its deliveries.
type Erasure struct {
	Tenant   string
	Messages []uuid.UUID
	By       domain.Actor
	Fact     domain.PayloadErased
	DryRun   bool // only say what would become of each
}

// ErasedMessage is what became of one message.
type ErasedMessage struct {
	ID         uuid.UUID
	Deliveries []Delivery  // as they are after
	Unsettled  []uuid.UUID // that keep it from being erased
	Err        error       // its refusal: nothing of it was erased
}

// ErasablePage is one step through what may be erased.
type ErasablePage struct {
	Messages []uuid.UUID
	Last     uuid.UUID // where the page ended
	Seen     int       // rows looked at; less than asked for: there are no more
}
