package domain

import "github.com/google/uuid"

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

// Evolve returns the history after one more event.
func (h ClaimHistory) Evolve(e Event) ClaimHistory {
	switch e := e.(type) {
	case Claimed:
		return append(h, ClaimRecord{Token: e.Token, Worker: e.Worker, Attempt: e.Attempt, CycleAttempt: e.CycleAttempt})
	case Released:
		if c := h.find(e.Token); c != nil {
			c.Released = true
		}
	case Attempted:
		if c := h.find(e.Token); c != nil {
			c.Report = &e
		}
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
