package domain_test

import (
	"testing"

	"waybill/domain"
)

type decision = func(domain.Delivery, domain.ClaimHistory) ([]domain.Event, error)

// lives are deliveries in every state, and some in odd ones.
var lives = map[string][]domain.Event{
	"pending":                     nil,
	"processing":                  now(claimed(1, 1, 1)),
	"processing, and proven":      now(claimed(1, 1, 1), expired(1), retryAt(noon), claimed(2, 1, 2), late(1, 1, domain.Succeeded)),
	"delivered":                   now(claimed(1, 1, 1), attempted(1, 1, domain.Succeeded), delivered(1)),
	"delivered, as a person said": now(claimed(1, 1, 1), expired(1), held(1), resolved(domain.ResolvedDelivered)),
	"failed":                      now(claimed(1, 1, 1), attempted(1, 1, domain.Refused), failed(domain.Exhausted)),
	"held":                        now(claimed(1, 1, 1), expired(1), held(1)),
	"cancelled":                   now(cancelled()),
	"cancelled on the wire":       now(claimed(1, 1, 1), cancelled()),
	"cancelled, and then proven":  now(claimed(1, 1, 1), cancelled(), late(1, 1, domain.Succeeded)),
}

// inEveryLife asks the same in all lives; where allowed names none, it is refused.
func inEveryLife(t *testing.T, when decision, refused error, allowed map[string][]domain.Event) {
	t.Helper()
	var stories []story
	for name, life := range lives {
		s := story{name: name, given: life, when: when, refused: refused}
		if then, ok := allowed[name]; ok {
			s.then, s.refused = then, nil
		}
		stories = append(stories, s)
	}
	for name := range allowed {
		if _, ok := lives[name]; !ok {
			t.Errorf("there is no life %q", name)
		}
	}
	tell(t, stories)
}

func replay(force bool) decision {
	return func(d domain.Delivery, _ domain.ClaimHistory) ([]domain.Event, error) {
		return d.Replay("why", force, "", noon)
	}
}

func TestReplay(t *testing.T) {
	plain, forced := now(replayed(2, false)), now(replayed(2, true))
	t.Run("plain", func(t *testing.T) {
		inEveryLife(t, replay(false), domain.ErrNotReplayable, map[string][]domain.Event{"failed": plain})
	})
	t.Run("with force", func(t *testing.T) {
		inEveryLife(t, replay(true), domain.ErrNotReplayable, map[string][]domain.Event{
			"failed": forced, "delivered": forced, "delivered, as a person said": forced,
			"cancelled": forced, "cancelled on the wire": forced, "cancelled, and then proven": forced,
		})
	})
}

func TestAReplayBeginsACycleAndForgetsNothingElse(t *testing.T) {
	for name, force := range map[string]bool{"failed": false, "delivered": true, "cancelled, and then proven": true} {
		before, _ := given(lives[name]...)
		after := before.Evolve(domain.Replayed{Cycle: before.Cycle + 1, DueAt: noon, Force: force}, noon)
		if after.State != domain.StatePending || after.CycleAttempts != 0 || after.Cycle != 2 || after.DueAt != noon ||
			after.FailureReason != "" || after.Attempts != before.Attempts || after.LastOutcome != before.LastOutcome || after.Proof != 0 {
			t.Errorf("%s: %+v", name, after)
		}
		if forced := after.ForcedAfter == before.Attempts; forced != force {
			t.Errorf("%s: successes up to %d count no more, of %d", name, after.ForcedAfter, before.Attempts)
		}
	}
}

func TestCancel(t *testing.T) {
	yes := now(cancelled())
	inEveryLife(t, func(d domain.Delivery, _ domain.ClaimHistory) ([]domain.Event, error) { return d.Cancel("why", "") },
		domain.ErrNotCancellable, map[string][]domain.Event{"pending": yes, "processing": yes, "held": yes})
}

func TestACancelEndsTheClaimInDoubt(t *testing.T) {
	d, _ := given(claimed(1, 1, 1), cancelled())
	if d.State != domain.StateCancelled || d.Claim != (domain.Claim{}) || !d.DueAt.IsZero() || !d.InDoubt() {
		t.Errorf("%+v", d)
	}
	if d, _ = given(cancelled()); d.InDoubt() || !d.DueAt.IsZero() {
		t.Errorf("nothing was sent: %+v", d)
	}
}

func TestResolve(t *testing.T) {
	resolve := func(as domain.Resolution) decision {
		return func(d domain.Delivery, _ domain.ClaimHistory) ([]domain.Event, error) {
			return d.Resolve(as, "why", "", noon)
		}
	}
	for as, then := range map[domain.Resolution]domain.Event{
		domain.ResolvedDelivered: resolved(domain.ResolvedDelivered),
		domain.ResolvedFailed:    resolved(domain.ResolvedFailed),
		domain.ResolvedRetry:     domain.Resolved{Resolution: domain.ResolvedRetry, Reason: "why", Cycle: 2, DueAt: noon},
	} {
		t.Run(string(as), func(t *testing.T) {
			inEveryLife(t, resolve(as), domain.ErrNotHeld, map[string][]domain.Event{"held": now(then)})
		})
	}
	tell(t, []story{{name: "otherwise", given: lives["held"], when: resolve("maybe"), refused: domain.ErrInvalidRequest}})
}

func TestWhatAResolutionLeaves(t *testing.T) {
	retry := domain.Resolved{Resolution: domain.ResolvedRetry, Cycle: 2, DueAt: noon}
	for name, c := range map[string]struct {
		event domain.Event
		state domain.State
		why   domain.FailureReason
		doubt bool
		cycle int
	}{
		"delivered": {resolved(domain.ResolvedDelivered), domain.StateDelivered, "", false, 1},
		"failed":    {resolved(domain.ResolvedFailed), domain.StateFailed, domain.ByPerson, true, 1},
		"retry":     {retry, domain.StatePending, "", true, 2},
	} {
		d, _ := given(more(lives["held"], c.event)...)
		if d.State != c.state || d.FailureReason != c.why || d.InDoubt() != c.doubt || d.Cycle != c.cycle || d.HeldBy != (domain.Delivery{}).HeldBy {
			t.Errorf("%s: %+v", name, d)
		}
	}
}

func TestWhatIsErasedIsNotSentAgain(t *testing.T) {
	again := func(d domain.Delivery, _ domain.ClaimHistory) ([]domain.Event, error) {
		return d.Resolve(domain.ResolvedRetry, "why", "", noon)
	}
	for name, when := range map[string]decision{"failed": replay(false), "delivered": replay(true), "pending": replay(true), "held": again} {
		d, h := given(lives[name]...)
		d.PayloadErased = true
		if events, err := when(d, h); err != domain.ErrPayloadErased || events != nil {
			t.Errorf("%s: got %v, %v", name, events, err)
		}
	}
}

// TestCallersNamesAreKept: what a caller says of itself enters the event.
func TestCallersNamesAreKept(t *testing.T) {
	failedOne, _ := given(lives["failed"]...)
	pending, _ := given()
	heldOne, _ := given(lives["held"]...)
	r, _ := failedOne.Replay("why", false, "jo", noon)
	c, _ := pending.Cancel("why", "jo")
	v, _ := heldOne.Resolve(domain.ResolvedFailed, "why", "jo", noon)
	if r[0].(domain.Replayed).OnBehalfOf != "jo" || c[0].(domain.Cancelled).OnBehalfOf != "jo" || v[0].(domain.Resolved).OnBehalfOf != "jo" {
		t.Error(r, c, v)
	}
}

func TestStates(t *testing.T) {
	terminal := map[domain.State]bool{domain.StateDelivered: true, domain.StateFailed: true, domain.StateCancelled: true}
	for _, s := range domain.States {
		if !s.Valid() || s.Terminal() != terminal[s] {
			t.Errorf("%s: valid %v, terminal %v", s, s.Valid(), s.Terminal())
		}
	}
	if len(domain.States) != 6 || domain.State("").Valid() || domain.State("Pending").Valid() {
		t.Error("there are six states, in lower case")
	}
	for _, o := range []domain.Outcome{domain.Succeeded, domain.Refused, domain.Unreached, domain.Unknown} {
		if !o.Valid() {
			t.Error(o)
		}
	}
	if domain.Outcome("").Valid() || domain.Outcome("failed").Valid() {
		t.Error("there are four outcomes")
	}
}
