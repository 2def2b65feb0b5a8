package main

import (
	"context"

	"github.com/google/uuid"

	"waybill/domain"
	"waybill/handlers/command"
	"waybill/projections"
)

// past is how a command is asked for what was.
type past struct {
	AsOf  moment `xor:"past" placeholder:"T" help:"As it was at T: RFC 3339, or a duration ago (2h)."`
	AtSeq int    `xor:"past" placeholder:"N" help:"As its event with seq N left it."`
}

// resolve returns the point asked for, the zero Past if none is.
func (p past) resolve(ctx context.Context, clock command.Clock) (projections.Past, error) {
	switch {
	case p.AtSeq < 0:
		return projections.Past{}, usageError("--at-seq counts from 1")
	case !p.AsOf.set:
		return projections.Past{Seq: p.AtSeq}, nil
	}
	return pastOf(ctx, clock, p.AsOf)
}

func pastOf(ctx context.Context, clock command.Clock, m moment) (projections.Past, error) {
	at, err := m.instant(ctx, clock)
	if err != nil {
		return projections.Past{}, err
	}
	now, err := clock.Now(ctx)
	if err != nil {
		return projections.Past{}, err
	}
	return projections.PastAt(at, now)
}

// basisOf is what an answer about the past rests on, for people.
func basisOf(b projections.Basis) [][2]string {
	if b.AsOfSeq == nil {
		return nil
	}
	return [][2]string{{"as of seq", itoa(*b.AsOfSeq)}, {"horizon", itoa(int(*b.Horizon))}, {"final", finality(*b.Final)}}
}

func finality(final bool) string {
	if final {
		return "yes"
	}
	return "not yet: an event may still come that was recorded by then"
}

// past lists or counts deliveries as they were.
func (c *deliveryListCmd) past(ctx context.Context, in *invocation, s *session, f projections.DeliveryFilter) error {
	p, err := pastOf(ctx, s, moment{ago: c.AsOf.ago, at: c.AsOf.at, set: true})
	if err != nil {
		return err
	}
	if c.Count {
		return c.count(ctx, in, s, f, p.At)
	}
	pages := func(yield func([]projections.View, error) bool) {
		var before uuid.UUID
		for left := c.Limit; ; {
			size := maxPage
			if c.Limit > 0 {
				size = min(left, maxPage)
			}
			list, next, err := s.DeliveriesAsOf(ctx, in.Tenant, f, p.At, before, size)
			left -= len(list)
			if !yield(viewsOf(list, projections.DeliveryThen.View), err) || err != nil || next == uuid.Nil || c.Limit > 0 && left <= 0 {
				return
			}
			before = next
		}
	}
	l := deliveryListing
	row := l.row
	l.heads = append(append([]string{}, l.heads...), "AS OF SEQ", "FINAL")
	l.row = func(v projections.View) []string {
		return append(row(v), itoa(*v.AsOfSeq), map[bool]string{true: "yes", false: "no"}[*v.Final])
	}
	return l.print(in, pages)
}

func (c *deliveryListCmd) count(ctx context.Context, in *invocation, s *session, f projections.DeliveryFilter, at domain.Instant) error {
	bar := in.progress("deliveries")
	defer bar.end()
	bar.phase("count", 0)
	n, err := s.CountAsOf(ctx, in.Tenant, f, at, func(seen int64) { bar.add(seen) })
	if err != nil {
		return err
	}
	fields := [][2]string{{"as of", n.AsOf.String()}, {"total", itoa(int(n.Total))}}
	for _, state := range []domain.State{domain.StatePending, domain.StateProcessing, domain.StateHeld, domain.StateDelivered, domain.StateFailed, domain.StateCancelled} {
		fields = append(fields, [2]string{string(state), itoa(int(n.States[state]))})
	}
	return show(in, n, append(fields, [2]string{"horizon", itoa(int(n.Horizon))}, [2]string{"final", finality(n.Final)})...)
}
