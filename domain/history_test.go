package domain_test

import (
	"fmt"

	"github.com/google/uuid"

	"waybill/domain"
)

// auditor reads a log as somebody would who knows nothing of states: it checks what
// must hold of the sequence of events alone.
type auditor struct {
	open     uuid.UUID // token of the running claim
	claims   map[uuid.UUID]domain.Claimed
	reported map[uuid.UUID]bool
	forced   int  // lifetime numbers up to this prove nothing
	proven   bool // a success counts
	settled  bool // it is delivered, or was cancelled before the proof came
	cycle    int
	spent    int
}

// audit returns the first thing in the log that must not be there.
func audit(log []domain.Event) error {
	a := auditor{claims: map[uuid.UUID]domain.Claimed{}, reported: map[uuid.UUID]bool{}, cycle: 1}
	for i, e := range log {
		if err := a.read(e); err != nil {
			return fmt.Errorf("event %d of %d, %#v: %w", i+1, len(log), e, err)
		}
	}
	if a.proven && !a.settled && a.open == uuid.Nil {
		return fmt.Errorf("proven, no claim running, and not delivered")
	}
	return nil
}

func (a *auditor) read(e domain.Event) error {
	switch e := e.(type) {
	case domain.Claimed:
		return a.claimed(e)
	case domain.Attempted:
		return a.attempted(e)
	case domain.LeaseExtended:
		return a.owner(e.Token)
	case domain.Released:
		a.spent--
		return a.end(e.Token)
	case domain.LeaseExpired:
		if a.claims[e.Token].Attempt != e.Attempt {
			return fmt.Errorf("its claim drew %d", a.claims[e.Token].Attempt)
		}
		return a.end(e.Token)
	case domain.Cancelled:
		a.open, a.settled = uuid.Nil, true
		return a.unproven()
	case domain.Delivered:
		a.settled = true
		if !a.proven {
			return fmt.Errorf("nothing proves it")
		}
	case domain.Replayed:
		return a.replayed(e)
	case domain.Resolved:
		if a.settled = e.Resolution == domain.ResolvedDelivered; e.Resolution == domain.ResolvedRetry {
			return a.newCycle(e.Cycle)
		}
	}
	return nil
}

func (a *auditor) claimed(e domain.Claimed) error {
	_, used := a.claims[e.Token]
	a.spent++
	switch {
	case used || e.Attempt != len(a.claims)+1:
		return fmt.Errorf("the token or lifetime number is used, or one is left out")
	case a.open != uuid.Nil:
		return fmt.Errorf("another claim is running")
	case e.Cycle != a.cycle || e.CycleAttempt != a.spent:
		return fmt.Errorf("it is attempt %d of cycle %d", a.spent, a.cycle)
	}
	a.open, a.claims[e.Token] = e.Token, e
	return a.unproven()
}

func (a *auditor) attempted(e domain.Attempted) error {
	c, known := a.claims[e.Token]
	switch {
	case !known || a.reported[e.Token]:
		return fmt.Errorf("no such claim, or it has reported")
	case e.Attempt != c.Attempt || e.CycleAttempt != c.CycleAttempt:
		return fmt.Errorf("its claim drew %d and %d", c.Attempt, c.CycleAttempt)
	case e.Superseded != (a.open != e.Token):
		return fmt.Errorf("superseded is wrong")
	}
	a.reported[e.Token] = true
	a.proven = a.proven || e.Outcome == domain.Succeeded && e.Attempt > a.forced
	if !e.Superseded {
		a.open = uuid.Nil
	}
	return nil
}

func (a *auditor) replayed(e domain.Replayed) error {
	if e.Force {
		a.forced, a.proven, a.settled = len(a.claims), false, false
	}
	if err := a.unproven(); err != nil {
		return err
	}
	return a.newCycle(e.Cycle)
}

func (a *auditor) newCycle(cycle int) error {
	if a.open != uuid.Nil || cycle != a.cycle+1 {
		return fmt.Errorf("cycle %d follows %d", cycle, a.cycle)
	}
	a.cycle, a.spent = cycle, 0
	return nil
}

func (a *auditor) owner(token uuid.UUID) error {
	if a.open != token {
		return fmt.Errorf("its claim is not the running one")
	}
	return nil
}

func (a *auditor) end(token uuid.UUID) error {
	err := a.owner(token)
	a.open = uuid.Nil
	return err
}

func (a *auditor) unproven() error {
	if a.proven {
		return fmt.Errorf("after a recorded success")
	}
	return nil
}
