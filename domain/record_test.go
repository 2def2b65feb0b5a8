package domain_test

import (
	"reflect"
	"testing"
	"time"

	"github.com/google/uuid"

	"waybill/domain"
)

func record(attempt int, o domain.Outcome, status int, p domain.Policy) func(domain.Delivery, domain.ClaimHistory) ([]domain.Event, error) {
	return func(d domain.Delivery, _ domain.ClaimHistory) ([]domain.Event, error) {
		return d.Record(report(attempt, o, status), retry(p))
	}
}

func TestRecord(t *testing.T) {
	two, hold, one := policy(2, domain.RetryUnknown), policy(2, domain.HoldUnknown), policy(1, domain.RetryUnknown)
	first := now(claimed(1, 1, 1))
	second := now(claimed(1, 1, 1), attempted(1, 1, domain.Refused), retryAt(noon), claimed(2, 1, 2))
	try := retryAt(in(time.Second))
	unsure := domain.RetryScheduled{DueAt: in(time.Second), Why: domain.WhyUnknownSent}
	ask := domain.Held{Why: domain.WhyUnknownSent, Token: token(1)}
	refusal := func(attempt, cycleAttempt, status int) domain.Event {
		return refusedWith(attempted(attempt, cycleAttempt, domain.Refused), status)
	}
	tell(t, []story{
		{name: "succeeded", given: first, when: record(1, domain.Succeeded, 0, two), then: now(attempted(1, 1, domain.Succeeded), delivered(1)), state: domain.StateDelivered},
		{name: "refused", given: first, when: record(1, domain.Refused, 500, two), then: now(refusal(1, 1, 500), try), state: domain.StatePending},
		{name: "unreached", given: first, when: record(1, domain.Unreached, 0, hold), then: now(attempted(1, 1, domain.Unreached), try), state: domain.StatePending},
		{name: "unknown, retry", given: first, when: record(1, domain.Unknown, 0, two), then: now(attempted(1, 1, domain.Unknown), unsure), state: domain.StatePending, doubt: true},
		{name: "unknown, hold", given: first, when: record(1, domain.Unknown, 0, hold), then: now(attempted(1, 1, domain.Unknown), ask), state: domain.StateHeld, doubt: true},
		{name: "410", given: first, when: record(1, domain.Refused, 410, two), then: now(refusal(1, 1, 410), failed(domain.Rejected)), state: domain.StateFailed},
		{name: "410 of an attempt that succeeded is no refusal", given: first, when: record(1, domain.Succeeded, 410, two),
			then: now(refusedWith(attempted(1, 1, domain.Succeeded), 410), delivered(1)), state: domain.StateDelivered},
		{name: "the last try", given: second, when: record(2, domain.Refused, 500, two), then: now(refusal(2, 2, 500), failed(domain.Exhausted)), state: domain.StateFailed},
		{name: "the last try, unknown", given: second, when: record(2, domain.Unknown, 0, two), then: now(attempted(2, 2, domain.Unknown), failed(domain.Exhausted)),
			state: domain.StateFailed, doubt: true},
		{name: "beyond a policy that shrank", given: second, when: record(2, domain.Unreached, 0, one), then: now(attempted(2, 2, domain.Unreached), failed(domain.Exhausted))},
		{name: "another token", given: second, when: record(1, domain.Succeeded, 200, two), refused: domain.ErrSuperseded},
		{name: "no claim", when: record(0, domain.Succeeded, 200, two), refused: domain.ErrSuperseded},
		{name: "cancelled", given: now(claimed(1, 1, 1), cancelled()), when: record(1, domain.Succeeded, 200, two), refused: domain.ErrSuperseded},
	})
}

func TestWhateverEndsAClaimLetsALateSuccessSettle(t *testing.T) {
	waiting := now(claimed(1, 1, 1), expired(1), retryAt(noon), claimed(2, 1, 2), late(1, 1, domain.Succeeded))
	hold := policy(2, domain.HoldUnknown)
	tell(t, []story{
		{name: "refused", given: waiting, when: record(2, domain.Refused, 500, hold), then: now(refusedWith(attempted(2, 2, domain.Refused), 500), delivered(1)), state: domain.StateDelivered},
		{name: "410", given: waiting, when: record(2, domain.Refused, 410, hold), then: now(refusedWith(attempted(2, 2, domain.Refused), 410), delivered(1)), state: domain.StateDelivered},
		{name: "unknown", given: waiting, when: record(2, domain.Unknown, 0, hold), then: now(attempted(2, 2, domain.Unknown), delivered(1)), state: domain.StateDelivered},
		{name: "succeeded too: the first proof stays", given: waiting, when: record(2, domain.Succeeded, 200, hold),
			then: now(refusedWith(attempted(2, 2, domain.Succeeded), 200), delivered(1)), state: domain.StateDelivered},
	})
}

func TestAnAttemptCarriesAllThatTheResultSays(t *testing.T) {
	after := 90*time.Second + 900*time.Millisecond
	d, _ := given(claimed(1, 1, 1))
	events, err := d.Record(domain.Report{
		Token: token(1), EndpointVersion: 7, ResponseCommitment: []byte{9},
		Result: domain.Result{Outcome: domain.Refused, Reason: domain.ReasonHTTPStatus, Status: 503, URL: "https://a.example/hook",
			StartedAt: noon.Add(1500 * time.Nanosecond), Duration: 1999 * time.Microsecond, RetryAfter: &after, ResponseBytes: 5,
			Excerpt: []byte("secret"), Location: []byte("secret"), Detail: []byte("secret")},
	}, retry(policy(2, domain.RetryUnknown)))
	seconds := int64(90)
	want := domain.Attempted{
		Attempt: 1, CycleAttempt: 1, Token: token(1), Outcome: domain.Refused, Reason: domain.ReasonHTTPStatus, Status: 503,
		URL: "https://a.example/hook", EndpointVersion: 7, StartedAt: in(time.Microsecond), DurationMS: 1,
		ResponseBytes: 5, ResponseCommitment: domain.Hex{9}, RetryAfterS: &seconds,
	}
	if err != nil || len(events) != 2 || !reflect.DeepEqual(events[0], want) {
		t.Errorf("got %+v, %v, want %+v", events, err, want)
	}
}

func TestOwns(t *testing.T) {
	running, _ := given(claimed(1, 1, 1))
	idle, _ := given()
	if !running.Owns(token(1)) || running.Owns(token(2)) || running.Owns(uuid.Nil) || idle.Owns(uuid.Nil) {
		t.Error("a token owns exactly what is being processed under it")
	}
}
