package domain

import (
	"slices"

	"github.com/google/uuid"
)

// ClaimRecord is what a stream says of one claim of its past or present.
type ClaimRecord struct {
	Token        uuid.UUID
	Worker       string
	Attempt      int
	CycleAttempt int
	Released     bool       // given back as never sent
	Report       *Attempted // the attempt reported under it, if any
}

// ClaimHistory is every claim of a stream, oldest first: what is needed to judge
// a result that arrives late. It is folded beside the state, from the same events.
type ClaimHistory []ClaimRecord

// Evolve returns the history after one more event. The one before stays as it was:
// it may still be judged by.
func (h ClaimHistory) Evolve(e Event) ClaimHistory {
	switch e := e.(type) {
	case Claimed:
		return append(slices.Clip(h), ClaimRecord{Token: e.Token, Worker: e.Worker, Attempt: e.Attempt, CycleAttempt: e.CycleAttempt})
	case Released:
		return h.with(e.Token, func(c *ClaimRecord) { c.Released = true })
	case Attempted:
		return h.with(e.Token, func(c *ClaimRecord) { c.Report = &e })
	}
	return h
}

// with returns a copy in which the token's claim is changed.
func (h ClaimHistory) with(token uuid.UUID, change func(*ClaimRecord)) ClaimHistory {
	h = slices.Clone(h)
	if c := h.find(token); c != nil {
		change(c)
	}
	return h
}

// Find returns the claim that the token names.
func (h ClaimHistory) Find(token uuid.UUID) (ClaimRecord, bool) {
	if c := h.find(token); c != nil {
		return *c, true
	}
	return ClaimRecord{}, false
}

func (h ClaimHistory) find(token uuid.UUID) *ClaimRecord {
	for i := range h {
		if h[i].Token == token {
			return &h[i]
		}
	}
	return nil
}
