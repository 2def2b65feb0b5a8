package command

import (
	"context"

	"github.com/google/uuid"

	"waybill/domain"
	"waybill/projections"
)

// Disable stops an endpoint's deliveries because its receiver answered one of them
// that it wants no more. An endpoint that is archived or disabled stays as it is.
func (e Endpoints) Disable(ctx context.Context, by Caller, endpoint uuid.UUID, why string, delivery uuid.UUID) (projections.Endpoint, error) {
	return e.changeStatus(ctx, by, endpoint, 0, func(p projections.Endpoint) ([]domain.Event, error) { return p.Disable(why, delivery) })
}
