package projections

import (
	"time"

	"github.com/google/uuid"

	"waybill/domain"
)

// Spending is what a batch asks of one budget.
type Spending struct {
	Subject uuid.UUID // an API key's or an endpoint's id
	Rate    domain.Rate
	Wanted  int
}

// Budget is what was granted, and how the window stands after.
type Budget struct {
	Name      string // "key" or "endpoint"
	Rate      domain.Rate
	Granted   int
	Remaining int
	Reset     time.Duration // until the window ends
}
