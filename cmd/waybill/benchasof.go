package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	"waybill/domain"
	"waybill/projections"
)

type benchAsOfCmd struct{ benchFlags }

// asOfView is what answers about the past take.
type asOfView struct {
	Events    int64   `json:"events"`
	SingleP50 float64 `json:"single_p50_ms"` // one delivery as of a time
	SingleP99 float64 `json:"single_p99_ms"`
	Page      float64 `json:"page_of_50_ms"` // newest first, as of the middle of the log
	Counted   int64   `json:"counted"`       // deliveries, by state as of the middle of the log
	Count     float64 `json:"count_seconds"`
}

// Run measures answers about the past.
func (c *benchAsOfCmd) Run(ctx context.Context, in *invocation) error {
	return c.on(ctx, in, func(b *benchLog) error {
		head, err := b.Head(ctx)
		if err != nil {
			return err
		}
		middle, err := b.Sealed(ctx, head.Last/2, head.Last, 1)
		if err != nil || len(middle) == 0 {
			return fmt.Errorf("find the middle of the log: %w", err)
		}
		v := asOfView{Events: head.Last}
		if err := v.measure(ctx, b, middle[0].RecordedAt); err != nil {
			return err
		}
		b.shown.end()
		return show(in, v,
			[2]string{"log", fmt.Sprintf("%d events", v.Events)},
			[2]string{"one delivery", fmt.Sprintf("p50 %.2f ms, p99 %.2f ms", v.SingleP50, v.SingleP99)},
			[2]string{"a page of 50", fmt.Sprintf("%.1f ms", v.Page)},
			[2]string{"count by state", fmt.Sprintf("%d deliveries in %.2f s", v.Counted, v.Count)})
	})
}

func (v *asOfView) measure(ctx context.Context, b *benchLog, at domain.Instant) error {
	b.shown.phase("count", 0)
	began := time.Now()
	n, err := b.CountAsOf(ctx, domain.DefaultTenant, projections.DeliveryFilter{}, at, b.shown.add)
	if err != nil {
		return err
	}
	v.Counted, v.Count = n.Total, time.Since(began).Seconds()
	began = time.Now()
	if _, _, err = b.DeliveriesAsOf(ctx, domain.DefaultTenant, projections.DeliveryFilter{}, at, uuid.Nil, 50); err != nil {
		return err
	}
	v.Page = milliseconds(time.Since(began))
	list, _, err := b.DeliveriesAsOf(ctx, domain.DefaultTenant, projections.DeliveryFilter{}, at, uuid.Nil, projections.MaxLimit)
	if err != nil || len(list) == 0 {
		return fmt.Errorf("find deliveries: %w", err)
	}
	took := make([]time.Duration, 0, len(list))
	for _, d := range list {
		began := time.Now()
		if _, err := b.DeliveryAsOf(ctx, domain.DefaultTenant, d.ID, projections.Past{At: at}); err != nil {
			return err
		}
		took = append(took, time.Since(began))
	}
	slices.Sort(took)
	v.SingleP50, v.SingleP99 = milliseconds(took[len(took)/2]), milliseconds(took[len(took)*99/100])
	return nil
}

func milliseconds(d time.Duration) float64 { return d.Seconds() * 1000 }
