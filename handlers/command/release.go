package command

import (
	"context"

	"waybill/domain"
	"waybill/events"
	"waybill/projections"
)

// Release gives back claims that provably never sent. Those that have ended
// meanwhile are left as they are.
func (r Recorder) Release(ctx context.Context, by domain.Actor, list []Finished) error {
	at, err := r.Ledger.Now(ctx)
	if err != nil {
		return err
	}
	for range staleTries {
		var changes []projections.DeliveryChange
		for _, f := range list {
			facts, err := f.Delivery.Release(f.Token, f.Why, at)
			if err != nil {
				continue
			}
			change, err := f.Delivery.Advance(by, at, facts...)
			if err != nil {
				return err
			}
			changes = append(changes, change)
		}
		stale, err := r.Ledger.Append(ctx, changes)
		if err != nil || len(stale) == 0 {
			return err
		}
		if list, err = r.reread(ctx, pick(list, stale)); err != nil {
			return err
		}
	}
	return domain.ErrStale
}

func (r Recorder) reread(ctx context.Context, list []Finished) ([]Finished, error) {
	streams, err := r.Ledger.Streams(ctx, events.DeliveryStream, idsOf(list))
	if err != nil {
		return nil, err
	}
	for i := range list {
		if list[i].Delivery, _, err = projections.FoldDelivery(streams[list[i].Delivery.ID]); err != nil {
			return nil, err
		}
	}
	return list, nil
}
