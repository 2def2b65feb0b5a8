package domain_test

import (
	"errors"
	"reflect"
	"slices"
	"testing"
	"time"

	"waybill/domain"
)

// What has happened, in short: the events of streams whose claims have the tokens
// token(1), token(2), …

func claimed(attempt, cycle, cycleAttempt int) domain.Event {
	return domain.Claimed{Token: token(attempt), Worker: "w", LeaseUntil: in(time.Minute), Cycle: cycle, Attempt: attempt, CycleAttempt: cycleAttempt}
}

func attempted(attempt, cycleAttempt int, o domain.Outcome) domain.Attempted {
	return domain.Attempted{Attempt: attempt, CycleAttempt: cycleAttempt, Token: token(attempt), Outcome: o, StartedAt: noon}
}

func late(attempt, cycleAttempt int, o domain.Outcome) domain.Attempted {
	a := attempted(attempt, cycleAttempt, o)
	a.Superseded = true
	return a
}

func refusedWith(a domain.Attempted, status int) domain.Attempted {
	a.Status = status
	return a
}

func expired(attempt int) domain.Event {
	return domain.LeaseExpired{Token: token(attempt), Attempt: attempt}
}

func released(attempt int) domain.Event {
	return domain.Released{Token: token(attempt), Why: domain.WhyDrain, DueAt: noon}
}

func held(attempt int) domain.Event {
	return domain.Held{Why: domain.WhyWorkerLost, Token: token(attempt)}
}

func retryAt(at domain.Instant) domain.Event {
	return domain.RetryScheduled{DueAt: at, Why: domain.WhyFailedTry}
}

func delivered(attempt int) domain.Event           { return domain.Delivered{Attempt: attempt} }
func failed(why domain.FailureReason) domain.Event { return domain.Failed{Why: why} }
func cancelled() domain.Event                      { return domain.Cancelled{Reason: "why"} }

func replayed(cycle int, force bool) domain.Event {
	return domain.Replayed{Reason: "why", Cycle: cycle, DueAt: noon, Force: force}
}

func resolved(as domain.Resolution) domain.Event {
	return domain.Resolved{Resolution: as, Reason: "why"}
}

// in is so long after noon.
func in(d time.Duration) domain.Instant { return noon.After(d) }

// now are the events of a history, or of a decision.
func now(events ...domain.Event) []domain.Event { return events }

// more is a history that went on.
func more(history []domain.Event, events ...domain.Event) []domain.Event {
	return slices.Concat(history, events)
}

// given folds a history that begins with a delivery due at noon.
func given(events ...domain.Event) (domain.Delivery, domain.ClaimHistory) {
	d := domain.Delivery{}.Evolve(domain.Scheduled{DueAt: noon}, noon)
	var h domain.ClaimHistory
	for _, e := range events {
		d, h = d.Evolve(e, noon), h.Evolve(e)
	}
	return d, h
}

// policy has so many attempts, a second apart, without jitter.
func policy(attempts int, unknown domain.OnUnknown) domain.Policy {
	p := domain.DefaultPolicy()
	p.Jitter, p.OnUnknown = 0, unknown
	p.Retries = domain.Retries{Delays: make([]domain.Duration, attempts)}
	for i := 1; i < attempts; i++ {
		p.Retries.Delays[i] = domain.Duration(time.Second)
	}
	return p
}

func retry(p domain.Policy) domain.Retry { return domain.Retry{Policy: p, From: noon} }

func report(attempt int, o domain.Outcome, status int) domain.Report {
	return domain.Report{Token: token(attempt), Result: domain.Result{Outcome: o, Status: status, StartedAt: noon.Time}}
}

// story is one row of a table: what has happened, what is asked, what follows.
type story struct {
	name    string
	given   []domain.Event
	when    func(domain.Delivery, domain.ClaimHistory) ([]domain.Event, error)
	then    []domain.Event
	refused error
	state   domain.State // after it; empty: not looked at
	doubt   bool         // whether it is in doubt then; looked at with the state
}

func tell(t *testing.T, stories []story) {
	t.Helper()
	for _, s := range stories {
		t.Run(s.name, func(t *testing.T) {
			d, h := given(s.given...)
			got, err := s.when(d, h)
			if !errors.Is(err, s.refused) || (err != nil) != (s.refused != nil) {
				t.Fatalf("refused with %v, want %v", err, s.refused)
			}
			if len(got)+len(s.then) > 0 && !reflect.DeepEqual(got, s.then) {
				t.Fatalf("got\n  %+v, want\n  %+v", got, s.then)
			}
			for _, e := range got {
				d = d.Evolve(e, noon)
			}
			if s.state != "" && (d.State != s.state || d.InDoubt() != s.doubt) {
				t.Errorf("then %s, in doubt %v; want %s, %v", d.State, d.InDoubt(), s.state, s.doubt)
			}
		})
	}
}
