package command

import (
	"context"
	"slices"

	"github.com/google/uuid"

	"waybill/domain"
	"waybill/projections"
)

// commitAll takes whatever waits, at most so many at a time, until Close.
func (s *Submitter) commitAll(from chan *pending, most int) {
	for {
		select {
		case <-s.done:
			return
		case p := <-from:
			s.commit(gather(p, from, most))
		}
	}
}

func gather(first *pending, from chan *pending, most int) []*pending {
	batch, size := []*pending{first}, first.size()
	for len(batch) < most && size < maxBatchBytes {
		select {
		case p := <-from:
			batch, size = append(batch, p), size+p.size()
		default:
			return batch
		}
	}
	return batch
}

// present answers those whose callers have gone while they waited, and returns the
// others. Under a load that the database cannot keep up with, nothing is committed for
// callers who have been told that it was not.
func (s *Submitter) present(batch []*pending) []*pending {
	return slices.DeleteFunc(batch, func(p *pending) bool {
		err := p.ctx.Err()
		if err != nil {
			s.reply(p, projections.Acceptance{Err: err})
		}
		return err != nil
	})
}

// commit accepts a batch in one transaction, big fan-outs each in one of their own.
func (s *Submitter) commit(batch []*pending) {
	if batch = s.present(batch); len(batch) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), commitTimeout)
	defer cancel()
	at, err := s.ledger.Now(ctx)
	if err != nil {
		s.fail(batch, err)
		return
	}
	known, err := s.ledger.SubmitEndpoints(ctx, endpointIDs(batch))
	if err != nil {
		s.fail(batch, err)
		return
	}
	if batch, err = s.withinRates(ctx, batch, known); err != nil {
		s.fail(batch, err)
		return
	}
	var together []*pending
	var drafts []projections.Submission
	for _, p := range batch {
		draft, err := s.draft(ctx, p, known, at)
		switch {
		case err != nil:
			s.reply(p, projections.Acceptance{Err: err})
		case len(draft.Deliveries) > bigFanOut:
			s.schedule(ctx, []*pending{p}, []projections.Submission{draft}, at)
		default:
			together, drafts = append(together, p), append(drafts, draft)
		}
	}
	s.schedule(ctx, together, drafts, at)
}

func (s *Submitter) draft(ctx context.Context, p *pending, known map[uuid.UUID]projections.SubmitEndpoint, at domain.Instant) (projections.Submission, error) {
	endpoints, scope, err := resolve(ctx, s.ledger, p.by, p.sub, known)
	if err != nil {
		return projections.Submission{}, err
	}
	return p.sub.draft(p.by, scope, endpoints, at, func() uuid.UUID { return s.ledger.NewIDAt(at) })
}

// schedule writes a batch and answers its items. Where one of several items may have
// made it fail, each goes on to the lane.
func (s *Submitter) schedule(ctx context.Context, batch []*pending, drafts []projections.Submission, at domain.Instant) {
	if len(batch) == 0 {
		return
	}
	answers, err := s.ledger.Schedule(ctx, drafts, at)
	switch {
	case err == nil:
		s.options.Accepted(newWork(drafts))
		for i, p := range batch {
			s.reply(p, answers[i])
		}
	case len(batch) > 1 && s.options.Isolable(err):
		s.isolate(batch)
	default:
		s.fail(batch, err)
	}
}

func (s *Submitter) isolate(batch []*pending) {
	for _, p := range batch {
		select {
		case s.lane <- p:
		default:
			s.reply(p, projections.Acceptance{Err: domain.ErrStorageUnavailable})
		}
	}
}

func (s *Submitter) fail(batch []*pending, err error) {
	for _, p := range batch {
		s.reply(p, projections.Acceptance{Err: err})
	}
}

func endpointIDs(batch []*pending) []uuid.UUID {
	var ids []uuid.UUID
	for _, p := range batch {
		if p.sub.EndpointID != uuid.Nil {
			ids = append(ids, p.sub.EndpointID)
		}
	}
	return ids
}

func newWork(drafts []projections.Submission) []uuid.UUID {
	var ids []uuid.UUID
	for _, d := range drafts {
		for _, c := range d.Deliveries {
			ids = append(ids, c.After.EndpointID)
		}
	}
	return ids
}
