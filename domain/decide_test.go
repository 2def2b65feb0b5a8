package domain_test

import (
	"testing"
	"time"

	"waybill/domain"
)

func claim(p domain.Policy, s domain.EndpointStatus, at domain.Instant) func(domain.Delivery, domain.ClaimHistory) ([]domain.Event, error) {
	return func(d domain.Delivery, _ domain.ClaimHistory) ([]domain.Event, error) {
		return d.TakeClaim(domain.ClaimOrder{Token: token(d.Attempts + 1), Worker: "w", LeaseUntil: in(time.Minute)}, s, p, at)
	}
}

func TestSchedule(t *testing.T) {
	for status, refused := range map[domain.EndpointStatus]error{
		domain.StatusActive: nil, domain.StatusPaused: nil, domain.StatusDisabled: nil, domain.StatusArchived: domain.ErrEndpointArchived,
	} {
		events, err := domain.Schedule(domain.Scheduled{DueAt: noon}, status)
		if err != refused || (len(events) == 1) != (refused == nil) {
			t.Errorf("%s: got %v, %v", status, events, err)
		}
	}
}

func TestTakeClaim(t *testing.T) {
	three, one := policy(3, domain.RetryUnknown), policy(1, domain.RetryUnknown)
	active := domain.StatusActive
	first := now(claimed(1, 1, 1))
	tell(t, []story{
		{name: "due", when: claim(three, active, noon), then: first, state: domain.StateProcessing},
		{name: "overdue", when: claim(three, active, in(time.Hour)), then: first},
		{name: "a microsecond early", when: claim(three, active, in(-time.Microsecond)), refused: domain.ErrNotDue},
		{name: "claimed already", given: first, when: claim(three, active, noon), refused: domain.ErrNotDue},
		{name: "after a refusal", given: now(claimed(1, 1, 1), attempted(1, 1, domain.Refused), retryAt(noon)),
			when: claim(three, active, noon), then: now(claimed(2, 1, 2))},
		{name: "after a release the cycle's number comes again, the lifetime number never",
			given: now(claimed(1, 1, 1), released(1)), when: claim(three, active, noon), then: now(claimed(2, 1, 1))},
		{name: "after a lost worker both are spent",
			given: now(claimed(1, 1, 1), expired(1), retryAt(noon)), when: claim(three, active, noon), then: now(claimed(2, 1, 2)),
			state: domain.StateProcessing, doubt: true},
		{name: "after a replay the cycle begins anew", given: now(claimed(1, 1, 1), attempted(1, 1, domain.Refused), failed(domain.Rejected), replayed(2, false)),
			when: claim(three, active, noon), then: now(claimed(2, 2, 1))},
		{name: "the policy shrank below what is spent", given: now(claimed(1, 1, 1), attempted(1, 1, domain.Refused), retryAt(noon)),
			when: claim(one, active, noon), then: now(failed(domain.Exhausted)), state: domain.StateFailed},
		{name: "replayed under a policy that shrank", given: now(claimed(1, 1, 1), attempted(1, 1, domain.Refused), retryAt(noon), claimed(2, 1, 2),
			attempted(2, 2, domain.Refused), failed(domain.Exhausted), replayed(2, false)),
			when: claim(one, active, noon), then: now(claimed(3, 2, 1))},
		{name: "paused", when: claim(three, domain.StatusPaused, noon), refused: domain.ErrEndpointInactive},
		{name: "disabled", when: claim(three, domain.StatusDisabled, noon), refused: domain.ErrEndpointInactive},
		{name: "paused and not due", when: claim(three, domain.StatusPaused, in(-1*time.Second)), refused: domain.ErrNotDue},
		{name: "archived", when: claim(three, domain.StatusArchived, noon), then: now(failed(domain.EndpointGone)), state: domain.StateFailed},
		{name: "archived, and not due yet", when: claim(three, domain.StatusArchived, in(-time.Hour)), then: now(failed(domain.EndpointGone))},
		{name: "archived while processing", given: first, when: claim(three, domain.StatusArchived, noon), refused: domain.ErrNotDue},
		{name: "held", given: now(claimed(1, 1, 1), expired(1), held(1)), when: claim(three, active, noon), refused: domain.ErrNotDue},
		{name: "delivered", given: now(claimed(1, 1, 1), attempted(1, 1, domain.Succeeded), delivered(1)), when: claim(three, active, noon), refused: domain.ErrNotDue},
		{name: "cancelled", given: now(cancelled()), when: claim(three, domain.StatusArchived, noon), refused: domain.ErrNotDue},
		{name: "between an attempt and what follows from it", given: now(claimed(1, 1, 1), attempted(1, 1, domain.Refused)), when: claim(three, active, noon), refused: domain.ErrNotDue},
		{name: "proven, however it came to be pending", given: now(claimed(1, 1, 1), expired(1), retryAt(noon), late(1, 1, domain.Succeeded)),
			when: claim(three, active, noon), refused: domain.ErrNotDue},
		{name: "proven, at an archived endpoint", given: now(claimed(1, 1, 1), expired(1), retryAt(noon), late(1, 1, domain.Succeeded)),
			when: claim(three, domain.StatusArchived, noon), refused: domain.ErrNotDue},
	})
}

// TestOnlyWhatIsPendingIsClaimed: a due time alone does not make it so.
func TestOnlyWhatIsPendingIsClaimed(t *testing.T) {
	for _, s := range domain.States {
		d, h := given()
		d.State = s
		if events, err := claim(policy(1, domain.RetryUnknown), domain.StatusActive, noon)(d, h); (len(events) == 1) != (s == domain.StatePending) {
			t.Errorf("%s: got %v, %v", s, events, err)
		}
	}
}

func TestExtend(t *testing.T) {
	extend := func(attempt int) func(domain.Delivery, domain.ClaimHistory) ([]domain.Event, error) {
		return func(d domain.Delivery, _ domain.ClaimHistory) ([]domain.Event, error) {
			return d.Extend(token(attempt), in(time.Hour))
		}
	}
	longer := domain.LeaseExtended{Token: token(1), LeaseUntil: in(time.Hour)}
	tell(t, []story{
		{name: "the present claim", given: now(claimed(1, 1, 1)), when: extend(1), then: now(longer), state: domain.StateProcessing},
		{name: "again", given: now(claimed(1, 1, 1), longer), when: extend(1), then: now(longer)},
		{name: "another", given: now(claimed(1, 1, 1)), when: extend(2), refused: domain.ErrSuperseded},
		{name: "one that has ended", given: now(claimed(1, 1, 1), expired(1), retryAt(noon), claimed(2, 1, 2)), when: extend(1), refused: domain.ErrSuperseded},
		{name: "none", when: extend(0), refused: domain.ErrSuperseded},
	})
	d, _ := given(claimed(1, 1, 1), longer)
	if d.Claim.LeaseUntil != in(time.Hour) || d.Claim.Token != token(1) || d.Attempts != 1 || d.CycleAttempts != 1 {
		t.Errorf("extending changed more or less than the lease: %+v", d)
	}
}

func TestRelease(t *testing.T) {
	release := func(attempt int) func(domain.Delivery, domain.ClaimHistory) ([]domain.Event, error) {
		return func(d domain.Delivery, _ domain.ClaimHistory) ([]domain.Event, error) {
			return d.Release(token(attempt), domain.WhyDrain, noon)
		}
	}
	extended := domain.LeaseExtended{Token: token(1), LeaseUntil: in(time.Hour)}
	tell(t, []story{
		{name: "the present claim", given: now(claimed(1, 1, 1)), when: release(1), then: now(released(1)), state: domain.StatePending},
		{name: "after an extension", given: now(claimed(1, 1, 1), extended), when: release(1), then: now(released(1)), state: domain.StatePending},
		{name: "twice", given: now(claimed(1, 1, 1), released(1)), when: release(1), refused: domain.ErrSuperseded},
		{name: "after a report", given: now(claimed(1, 1, 1), attempted(1, 1, domain.Refused), retryAt(noon)), when: release(1), refused: domain.ErrSuperseded},
		{name: "after a cancel", given: now(claimed(1, 1, 1), cancelled()), when: release(1), refused: domain.ErrSuperseded, state: domain.StateCancelled, doubt: true},
		{name: "of the older claim", given: now(claimed(1, 1, 1), expired(1), retryAt(noon), claimed(2, 1, 2)), when: release(1), refused: domain.ErrSuperseded},
		{name: "while a late success waits", given: now(claimed(1, 1, 1), expired(1), retryAt(noon), claimed(2, 1, 2), late(1, 1, domain.Succeeded)),
			when: release(2), then: now(released(2), delivered(1)), state: domain.StateDelivered},
	})
	running, _ := given(claimed(1, 1, 1))
	if events, err := running.Release(token(1), domain.WhyPaused, in(time.Hour)); err != nil ||
		events[0] != domain.Event(domain.Released{Token: token(1), Why: domain.WhyPaused, DueAt: in(time.Hour)}) {
		t.Errorf("got %+v, %v", events, err)
	}
	d, _ := given(claimed(1, 1, 1), attempted(1, 1, domain.Refused), retryAt(noon), claimed(2, 1, 2), released(2))
	if d.Attempts != 2 || d.CycleAttempts != 1 || d.DueAt != noon || d.UnknownAttempts != 0 {
		t.Errorf("a release gives back the cycle attempt and nothing else: %+v", d)
	}
}

func TestExpire(t *testing.T) {
	expire := func(attempt int, p domain.Policy) func(domain.Delivery, domain.ClaimHistory) ([]domain.Event, error) {
		return func(d domain.Delivery, _ domain.ClaimHistory) ([]domain.Event, error) {
			return d.Expire(token(attempt), retry(p))
		}
	}
	again, hold := policy(2, domain.RetryUnknown), policy(2, domain.HoldUnknown)
	lost := domain.RetryScheduled{DueAt: in(time.Second), Why: domain.WhyWorkerLost}
	second := now(claimed(1, 1, 1), expired(1), lost, claimed(2, 1, 2))
	tell(t, []story{
		{name: "retry", given: now(claimed(1, 1, 1)), when: expire(1, again), then: now(expired(1), lost), state: domain.StatePending, doubt: true},
		{name: "hold", given: now(claimed(1, 1, 1)), when: expire(1, hold), then: now(expired(1), held(1)), state: domain.StateHeld, doubt: true},
		{name: "the last try ends it, so that a payload that kills its worker ends", given: second, when: expire(2, again),
			then: now(expired(2), failed(domain.Exhausted)), state: domain.StateFailed, doubt: true},
		{name: "the last try is held all the same", given: second, when: expire(2, hold), then: now(expired(2), held(2)), state: domain.StateHeld, doubt: true},
		{name: "while a late success waits", given: more(second, late(1, 1, domain.Succeeded)), when: expire(2, hold),
			then: now(expired(2), delivered(1)), state: domain.StateDelivered},
		{name: "the older claim", given: second, when: expire(1, again), refused: domain.ErrSuperseded},
		{name: "reported already", given: now(claimed(1, 1, 1), attempted(1, 1, domain.Unreached), retryAt(noon)), when: expire(1, again), refused: domain.ErrSuperseded},
		{name: "twice", given: now(claimed(1, 1, 1), expired(1), lost), when: expire(1, again), refused: domain.ErrSuperseded},
		{name: "cancelled", given: now(claimed(1, 1, 1), cancelled()), when: expire(1, again), refused: domain.ErrSuperseded},
	})
}
