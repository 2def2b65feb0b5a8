package command

import (
	"context"

	"github.com/google/uuid"

	"waybill/domain"
	"waybill/projections"
)

// OperateLedger is what operators' decisions need of the ledger.
type OperateLedger interface {
	Clock
	Delivery(ctx context.Context, tenant string, id uuid.UUID) (projections.Delivery, error)
	Append(ctx context.Context, changes []projections.DeliveryChange) (stale []uuid.UUID, err error)
}

// Operations are the decisions that people take about single deliveries. Due, if
// given, is told which endpoints have new work after a decision.
type Operations struct {
	Ledger OperateLedger
	Due    func(endpoints []uuid.UUID)
}

// Replay starts a new cycle of attempts; see [domain.Delivery.Replay].
func (o Operations) Replay(ctx context.Context, by Caller, id uuid.UUID, reason string, force bool) (projections.Delivery, error) {
	return o.decide(ctx, by, id, reason, func(d projections.Delivery, at domain.Instant) ([]domain.Event, error) {
		return d.Replay(reason, force, by.OnBehalfOf, at)
	})
}

// Cancel ends a delivery that has not ended; see [domain.Delivery.Cancel].
func (o Operations) Cancel(ctx context.Context, by Caller, id uuid.UUID, reason string) (projections.Delivery, error) {
	return o.decide(ctx, by, id, reason, func(d projections.Delivery, _ domain.Instant) ([]domain.Event, error) {
		return d.Cancel(reason, by.OnBehalfOf)
	})
}

// Resolve ends a hold the way a person says; see [domain.Delivery.Resolve].
func (o Operations) Resolve(ctx context.Context, by Caller, id uuid.UUID, as domain.Resolution, reason string) (projections.Delivery, error) {
	return o.decide(ctx, by, id, reason, func(d projections.Delivery, at domain.Instant) ([]domain.Event, error) {
		return d.Resolve(as, reason, by.OnBehalfOf, at)
	})
}

// decide reads, decides and appends until the decision was taken on the version that
// it was appended to.
func (o Operations) decide(ctx context.Context, by Caller, id uuid.UUID, reason string,
	decision func(projections.Delivery, domain.Instant) ([]domain.Event, error),
) (projections.Delivery, error) {
	if err := checkAll(by.Check(), domain.CheckReason(reason)); err != nil {
		return projections.Delivery{}, err
	}
	for range staleTries {
		d, err := o.Ledger.Delivery(ctx, by.Tenant, id)
		if err != nil {
			return d, err
		}
		at, err := o.Ledger.Now(ctx)
		if err != nil {
			return d, err
		}
		facts, err := decision(d, at)
		if err != nil {
			return d, err
		}
		change, err := d.Advance(by.Actor, at, facts...)
		if err != nil {
			return d, err
		}
		stale, err := o.Ledger.Append(ctx, []projections.DeliveryChange{change})
		if err != nil {
			return d, err
		}
		if len(stale) == 0 {
			if o.Due != nil && change.After.State == domain.StatePending {
				o.Due([]uuid.UUID{change.After.EndpointID})
			}
			return change.After, nil
		}
	}
	return projections.Delivery{}, domain.ErrStale
}

func checkAll(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
