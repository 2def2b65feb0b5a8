package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"waybill/domain"
	"waybill/projections"
)

// standing is where all deliveries stand, read in one question.
type standing struct {
	by    map[uuid.UUID][]projections.Delivery // of each endpoint, oldest first
	count map[domain.State]int
}

// look reads where the deliveries stand.
func (d *demo) look(ctx context.Context) (standing, error) {
	list, err := d.front.ledger.Deliveries(ctx, d.by.Tenant, projections.DeliveryFilter{}, uuid.Nil, projections.MaxLimit)
	if err != nil {
		return standing{}, err
	}
	s := standing{by: map[uuid.UUID][]projections.Delivery{}, count: map[domain.State]int{}}
	for _, v := range slices.Backward(list) {
		s.by[v.EndpointID] = append(s.by[v.EndpointID], v)
		s.count[v.State]++
	}
	return s, nil
}

// of is the deliveries of one receiver.
func (s standing) of(p *part) []projections.Delivery { return s.by[p.endpoint] }

// all reports whether a receiver has deliveries and all of them are in one of the
// states.
func (s standing) all(p *part, states ...domain.State) bool {
	list := s.of(p)
	return len(list) == p.count && !slices.ContainsFunc(list, func(v projections.Delivery) bool {
		return !slices.Contains(states, v.State)
	})
}

// settled reports whether nothing more happens by itself at a receiver.
func (s standing) settled(p *part) bool {
	return s.all(p, domain.StateDelivered, domain.StateFailed, domain.StateCancelled)
}

// String counts the deliveries in each state.
func (s standing) String() string {
	var parts []string
	for _, state := range domain.States {
		if n := s.count[state]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, state))
		}
	}
	return strings.Join(parts, ", ")
}

// watch shows the board until something holds; what is for when it never does.
func (d *demo) watch(ctx context.Context, what string, holds func(standing) bool) error {
	for {
		s, err := d.look(ctx)
		if err == nil && d.doomed != nil {
			err = d.doomed.check()
		}
		if err != nil {
			return fmt.Errorf("waiting for %s: %w", what, err)
		}
		done := holds(s)
		d.show(s, done)
		switch {
		case d.screen.failed != nil:
			return d.screen.failed
		case done:
			return nil
		}
		if err := pause(ctx, frameEvery); err != nil {
			return err
		}
	}
}

func pause(ctx context.Context, t time.Duration) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(t):
		return nil
	}
}

// show draws the board: a line for each receiver, a mark for each delivery.
func (d *demo) show(s standing, last bool) {
	now := fmt.Sprintf("%5.1f s", d.screen.elapsed().Seconds())
	board := []string{"", d.screen.paint(dim, fmt.Sprintf("   %-8s%-30s%-28s%s", "WHO", "BEHAVES", "SO WAYBILL SAYS", "DELIVERIES"))}
	for _, p := range d.cast {
		board = append(board, fmt.Sprintf("   %-8s%-30s%-28s%s", p.name, p.does, p.then, d.marks(s.of(p))))
	}
	d.screen.draw(append(board, "   "+d.legend(), d.screen.paint(dim, "  "+now+d.lease(s))), now+"  "+s.String()+d.lease(s), last)
}

// lease is how long the killed worker's claim still lasts; empty when it is over.
func (d *demo) lease(s standing) string {
	list := s.of(d.part(theBank))
	if len(list) == 0 || list[0].Claim.Worker != doomedName {
		return ""
	}
	left := time.Until(list[0].Claim.LeaseUntil.Time)
	if left <= 0 {
		return ", " + doomedName + "'s lease is over"
	}
	return fmt.Sprintf(", %s's lease ends in %.0f s", doomedName, left.Seconds())
}

// marks are the states' signs.
var marks = map[domain.State]struct{ sign, colour string }{
	domain.StatePending:    {"○", dim},
	domain.StateProcessing: {"◐", cyan},
	domain.StateDelivered:  {"●", green},
	domain.StateFailed:     {"✕", red},
	domain.StateHeld:       {"◆", yellow},
	domain.StateCancelled:  {"–", dim},
}

func (d *demo) marks(list []projections.Delivery) string {
	var b strings.Builder
	for _, v := range list {
		m := marks[v.State]
		b.WriteString(d.screen.paint(m.colour, m.sign))
	}
	return b.String()
}

func (d *demo) legend() string {
	var parts []string
	for _, state := range domain.States[:5] {
		m := marks[state]
		parts = append(parts, d.screen.paint(m.colour, m.sign)+" "+d.screen.paint(dim, string(state)))
	}
	return strings.Join(parts, "   ")
}
