package command

import (
	"context"

	"github.com/google/uuid"

	"waybill/domain"
	"waybill/projections"
)

// limit is what one submission counts against: a budget by its subject.
type limit struct {
	name    string
	subject uuid.UUID
	rate    domain.Rate
}

// withinRates counts a batch against its API keys' budgets and then, what is left of
// it, against its endpoints'; a fan-out counts against its key's alone. Who came first
// in the batch is granted first; the others are answered with ErrRateLimited, and what
// goes on comes back. A repeated idempotency key counts too: what it is cannot be
// known before it is looked up. If the counters cannot be reached nobody goes on.
func (s *Submitter) withinRates(ctx context.Context, batch []*pending, known map[uuid.UUID]projections.SubmitEndpoint) ([]*pending, error) {
	batch, err := s.spend(ctx, batch, func(p *pending) limit { return limit{"key", p.by.KeyID, p.by.Rate} })
	if err != nil {
		return batch, err
	}
	return s.spend(ctx, batch, func(p *pending) limit {
		e := known[p.sub.EndpointID]
		if e.Tenant != p.by.Tenant {
			return limit{}
		}
		return limit{"endpoint", e.ID, e.Rate}
	})
}

func (s *Submitter) spend(ctx context.Context, batch []*pending, of func(*pending) limit) ([]*pending, error) {
	at := map[uuid.UUID]int{}
	var list []projections.Spending
	for _, p := range batch {
		l := of(p)
		if l.rate.IsZero() || p.counted(l.name) {
			continue
		}
		if _, ok := at[l.subject]; !ok {
			at[l.subject] = len(list)
			list = append(list, projections.Spending{Subject: l.subject, Rate: l.rate})
		}
		list[at[l.subject]].Wanted++
	}
	if len(list) == 0 {
		return batch, nil
	}
	budgets, err := s.ledger.SpendRates(ctx, list)
	if err != nil {
		return batch, err
	}
	return s.grant(batch, of, budgets), nil
}

// grant hands the budgets out in the batch's order and answers those that got none.
func (s *Submitter) grant(batch []*pending, of func(*pending) limit, budgets map[uuid.UUID]projections.Budget) []*pending {
	var granted []*pending
	for _, p := range batch {
		l := of(p)
		if l.rate.IsZero() || p.counted(l.name) {
			granted = append(granted, p)
			continue
		}
		b := budgets[l.subject]
		b.Name = l.name
		p.budgets = append(p.budgets, b)
		if b.Granted == 0 {
			s.reply(p, projections.Acceptance{Err: domain.ErrRateLimited})
			continue
		}
		b.Granted--
		budgets[l.subject] = b
		granted = append(granted, p)
	}
	return granted
}

// counted reports whether the submission has been counted before: one that goes to the
// lane after its batch failed is not counted again.
func (p *pending) counted(name string) bool {
	for _, b := range p.budgets {
		if b.Name == name {
			return true
		}
	}
	return false
}
