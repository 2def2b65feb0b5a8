package domain_test

import (
	"testing"
	"time"

	"waybill/domain"
)

func recordLate(attempt int, o domain.Outcome, status int, p domain.Policy) func(domain.Delivery, domain.ClaimHistory) ([]domain.Event, error) {
	return func(d domain.Delivery, h domain.ClaimHistory) ([]domain.Event, error) {
		return d.RecordLate(h, report(attempt, o, status), retry(p))
	}
}

func TestALateSuccess(t *testing.T) {
	p := policy(3, domain.HoldUnknown)
	lost := now(claimed(1, 1, 1), expired(1), retryAt(noon))
	second := more(lost, claimed(2, 1, 2))
	ok := func(attempt, cycleAttempt int) domain.Event { return late(attempt, cycleAttempt, domain.Succeeded) }
	settles := func(name string, history []domain.Event) story {
		return story{name: name, given: history, when: recordLate(1, domain.Succeeded, 0, p), then: now(ok(1, 1), delivered(1)), state: domain.StateDelivered}
	}
	onlyKept := func(name string, history []domain.Event, s domain.State, doubt bool) story {
		return story{name: name, given: history, when: recordLate(1, domain.Succeeded, 0, p), then: now(ok(1, 1)), state: s, doubt: doubt}
	}
	tell(t, []story{
		settles("pending", lost),
		settles("held by its own claim", now(claimed(1, 1, 1), expired(1), held(1))),
		settles("held by another claim", more(second, expired(2), held(2))),
		settles("held by another claim's report", more(second, attempted(2, 2, domain.Unknown), held(2))),
		settles("failed: exhausted", more(second, attempted(2, 2, domain.Refused), failed(domain.Exhausted))),
		settles("failed: rejected by 410", more(second, refusedWith(attempted(2, 2, domain.Refused), 410), failed(domain.Rejected))),
		settles("failed: the endpoint is gone", more(lost, failed(domain.EndpointGone))),
		settles("failed: a person said so", now(claimed(1, 1, 1), expired(1), held(1), resolved(domain.ResolvedFailed))),
		settles("replayed without force", now(claimed(1, 1, 1), expired(1), failed(domain.Exhausted), replayed(2, false))),
		onlyKept("processing under another token", second, domain.StateProcessing, false),
		onlyKept("delivered", more(second, attempted(2, 2, domain.Succeeded), delivered(2)), domain.StateDelivered, false),
		onlyKept("a person had said delivered", now(claimed(1, 1, 1), expired(1), held(1), resolved(domain.ResolvedDelivered)), domain.StateDelivered, false),
		onlyKept("cancelled", now(claimed(1, 1, 1), cancelled()), domain.StateCancelled, false),
		onlyKept("cancelled, with a later attempt in doubt", more(second, cancelled()), domain.StateCancelled, true),
		onlyKept("replayed with force since", now(claimed(1, 1, 1), cancelled(), replayed(2, true)), domain.StatePending, false),
		onlyKept("failed, then replayed with force", now(claimed(1, 1, 1), expired(1), failed(domain.Exhausted), replayed(2, true)), domain.StatePending, false),
		onlyKept("failed again after a forced replay", now(claimed(1, 1, 1), cancelled(), replayed(2, true), claimed(2, 2, 1),
			attempted(2, 1, domain.Refused), failed(domain.Exhausted)), domain.StateFailed, false),
		onlyKept("held after a forced replay", now(claimed(1, 1, 1), cancelled(), replayed(2, true), claimed(2, 2, 1), expired(2), held(2)), domain.StateHeld, true),
		{name: "of the claim after a forced replay", given: now(claimed(1, 1, 1), cancelled(), replayed(2, true), claimed(2, 2, 1), expired(2), held(2)),
			when: recordLate(2, domain.Succeeded, 0, p), then: now(ok(2, 1), delivered(2)), state: domain.StateDelivered},
		{name: "after a plain replay that followed a forced one", given: now(claimed(1, 1, 1), cancelled(), replayed(2, true), claimed(2, 2, 1), expired(2),
			failed(domain.Exhausted), replayed(3, false)), when: recordLate(2, domain.Succeeded, 0, p), then: now(ok(2, 1), delivered(2)), state: domain.StateDelivered},
	})
}

func TestALateFailure(t *testing.T) {
	p := policy(2, domain.HoldUnknown)
	lost := now(claimed(1, 1, 1), expired(1), retryAt(noon))
	heldBy1 := now(claimed(1, 1, 1), expired(1), held(1))
	heldBy2 := more(lost, claimed(2, 1, 2), expired(2), held(2))
	no := refusedWith(late(1, 1, domain.Refused), 500)
	gone := refusedWith(late(1, 1, domain.Refused), 410)
	tell(t, []story{
		{name: "pending", given: lost, when: recordLate(1, domain.Refused, 500, p), then: now(no), state: domain.StatePending},
		{name: "410, pending", given: lost, when: recordLate(1, domain.Refused, 410, p), then: now(gone), state: domain.StatePending},
		{name: "processing", given: more(lost, claimed(2, 1, 2)), when: recordLate(1, domain.Refused, 500, p), then: now(no), state: domain.StateProcessing},
		{name: "cancelled", given: now(claimed(1, 1, 1), cancelled()), when: recordLate(1, domain.Refused, 500, p), then: now(no), state: domain.StateCancelled},
		{name: "it held the delivery", given: heldBy1, when: recordLate(1, domain.Refused, 500, p), then: now(no, retryAt(in(time.Second))), state: domain.StatePending},
		{name: "it held the delivery, unreached", given: heldBy1, when: recordLate(1, domain.Unreached, 0, p),
			then: now(late(1, 1, domain.Unreached), retryAt(in(time.Second))), state: domain.StatePending},
		{name: "it held the delivery, 410", given: heldBy1, when: recordLate(1, domain.Refused, 410, p), then: now(gone, failed(domain.Rejected)), state: domain.StateFailed},
		{name: "it held the delivery, unknown", given: heldBy1, when: recordLate(1, domain.Unknown, 0, p), then: now(late(1, 1, domain.Unknown)), state: domain.StateHeld, doubt: true},
		{name: "it held the delivery at its last try", given: heldBy2, when: recordLate(2, domain.Refused, 500, p),
			then: now(refusedWith(late(2, 2, domain.Refused), 500), failed(domain.Exhausted)), state: domain.StateFailed},
		{name: "it held the delivery, and the policy shrank", given: heldBy1, when: recordLate(1, domain.Refused, 500, policy(1, domain.HoldUnknown)),
			then: now(no, failed(domain.Exhausted)), state: domain.StateFailed},
		{name: "another claim held the delivery", given: heldBy2, when: recordLate(1, domain.Refused, 500, p), then: now(no), state: domain.StateHeld, doubt: true},
		{name: "it had held the delivery once", given: now(claimed(1, 1, 1), expired(1), held(1), resolved(domain.ResolvedFailed)),
			when: recordLate(1, domain.Refused, 500, p), then: now(no), state: domain.StateFailed},
		{name: "cancelled while it held", given: now(claimed(1, 1, 1), expired(1), held(1), cancelled()),
			when: recordLate(1, domain.Refused, 410, p), then: now(gone), state: domain.StateCancelled},
	})
}

func TestOneTokenHasOneAttempt(t *testing.T) {
	p := policy(2, domain.RetryUnknown)
	reported := now(claimed(1, 1, 1), attempted(1, 1, domain.Refused), retryAt(noon))
	tell(t, []story{
		{name: "never issued", when: recordLate(9, domain.Succeeded, 200, p), refused: domain.ErrClaimNotFound, state: domain.StatePending},
		{name: "reported in time", given: reported, when: recordLate(1, domain.Refused, 500, p), state: domain.StatePending},
		{name: "reported in time, now a success", given: reported, when: recordLate(1, domain.Succeeded, 200, p), state: domain.StatePending},
		{name: "reported late", given: now(claimed(1, 1, 1), expired(1), held(1), late(1, 1, domain.Unknown)),
			when: recordLate(1, domain.Succeeded, 200, p), state: domain.StateHeld, doubt: true},
		{name: "its own report held the delivery", given: now(claimed(1, 1, 1), attempted(1, 1, domain.Unknown), held(1)),
			when: recordLate(1, domain.Refused, 500, p), state: domain.StateHeld, doubt: true},
		{name: "it owns the delivery after all", given: now(claimed(1, 1, 1)), when: recordLate(1, domain.Refused, 500, p),
			then: now(refusedWith(attempted(1, 1, domain.Refused), 500), retryAt(in(time.Second))), state: domain.StatePending},
	})
}

func TestAReportAfterARelease(t *testing.T) {
	p := policy(2, domain.HoldUnknown)
	back := now(claimed(1, 1, 1), released(1))
	after := func(o domain.Outcome) domain.Attempted {
		a := late(1, 1, o)
		a.AfterRelease = true
		return a
	}
	tell(t, []story{
		{name: "succeeded", given: back, when: recordLate(1, domain.Succeeded, 0, p), then: now(after(domain.Succeeded), delivered(1)), state: domain.StateDelivered},
		{name: "unknown", given: back, when: recordLate(1, domain.Unknown, 0, p), then: now(after(domain.Unknown)), state: domain.StatePending, doubt: true},
		{name: "refused", given: back, when: recordLate(1, domain.Refused, 0, p), then: now(after(domain.Refused)), state: domain.StatePending},
		{name: "unknown, then cancelled", given: now(claimed(1, 1, 1), released(1), cancelled()), when: recordLate(1, domain.Unknown, 0, p),
			then: now(after(domain.Unknown)), state: domain.StateCancelled, doubt: true},
		{name: "succeeded, while another claim runs", given: now(claimed(1, 1, 1), released(1), claimed(2, 1, 1)), when: recordLate(1, domain.Succeeded, 0, p),
			then: now(after(domain.Succeeded)), state: domain.StateProcessing},
	})
}

// TestHowManyWereEverInDoubt counts each attempt once, whatever is learnt later.
func TestHowManyWereEverInDoubt(t *testing.T) {
	afterRelease := late(1, 1, domain.Unknown)
	afterRelease.AfterRelease = true
	for name, c := range map[string]struct {
		given []domain.Event
		want  int
		doubt bool
	}{
		"none":                              {now(claimed(1, 1, 1)), 0, false},
		"reported unknown":                  {now(claimed(1, 1, 1), attempted(1, 1, domain.Unknown), retryAt(noon)), 1, true},
		"lost":                              {now(claimed(1, 1, 1), expired(1), retryAt(noon)), 1, true},
		"lost, then reported unknown late":  {now(claimed(1, 1, 1), expired(1), retryAt(noon), late(1, 1, domain.Unknown)), 1, true},
		"lost, then reported refused late":  {now(claimed(1, 1, 1), expired(1), retryAt(noon), late(1, 1, domain.Refused)), 1, false},
		"cancelled on the wire":             {now(claimed(1, 1, 1), cancelled()), 1, true},
		"cancelled, then unknown late":      {now(claimed(1, 1, 1), cancelled(), late(1, 1, domain.Unknown)), 1, true},
		"cancelled, then refused late":      {now(claimed(1, 1, 1), cancelled(), late(1, 1, domain.Refused)), 1, false},
		"cancelled, then success, replayed": {now(claimed(1, 1, 1), cancelled(), late(1, 1, domain.Succeeded), replayed(2, true)), 1, false},
		"cancelled, replayed, then unknown": {now(claimed(1, 1, 1), cancelled(), replayed(2, true), late(1, 1, domain.Unknown)), 1, true},
		"cancelled before any claim":        {now(cancelled()), 0, false},
		"released":                          {now(claimed(1, 1, 1), released(1)), 0, false},
		"released, then unknown":            {now(claimed(1, 1, 1), released(1), afterRelease), 1, true},
		"two lost":                          {now(claimed(1, 1, 1), expired(1), retryAt(noon), claimed(2, 1, 2), expired(2), retryAt(noon)), 2, true},
		"lost, then a later one refused": {now(claimed(1, 1, 1), expired(1), retryAt(noon), claimed(2, 1, 2),
			attempted(2, 2, domain.Refused), retryAt(noon)), 1, false},
		"a later one refused, then the lost one unknown": {now(claimed(1, 1, 1), expired(1), retryAt(noon), claimed(2, 1, 2),
			attempted(2, 2, domain.Refused), retryAt(noon), late(1, 1, domain.Unknown)), 1, false},
	} {
		if d, _ := given(c.given...); d.UnknownAttempts != c.want || d.InDoubt() != c.doubt {
			t.Errorf("%s: %d unknown, in doubt %v; want %d, %v", name, d.UnknownAttempts, d.InDoubt(), c.want, c.doubt)
		}
	}
}
