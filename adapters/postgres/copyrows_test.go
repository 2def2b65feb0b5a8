package postgres_test

import (
	"context"
	"testing"
	"time"

	"github.com/google/uuid"
	"pgregory.net/rapid"

	"waybill/adapters/postgres"
	"waybill/domain"
	"waybill/projections"
)

// TestRebuiltIsTheFold writes rows as every event in turn leaves them, of random histories
// and configurations, and demands that a rebuild finds none that differs.
func TestRebuiltIsTheFold(t *testing.T) {
	t.Parallel()
	f := open(t)
	word := rapid.OneOf(rapid.Just(""), rapid.StringMatching(`[a-zé"\\{},' ]{1,12}`))
	rapid.Check(t, func(r *rapid.T) {
		policy := domain.DefaultPolicy()
		policy.Headers = rapid.MapOfN(rapid.StringMatching(`X-[A-Za-z]{1,8}`), word, 0, 3).Draw(r, "headers")
		policy.Jitter = rapid.Float64Range(0, 1).Draw(r, "jitter")
		policy.Retries.Delays = rapid.SliceOfN(rapid.Custom(func(r *rapid.T) domain.Duration {
			return domain.Duration(rapid.IntRange(0, 1_000_000).Draw(r, "ms")) * domain.Duration(time.Millisecond)
		}), 1, 5).Draw(r, "delays")
		at := f.now()
		blank := projections.Endpoint{Endpoint: domain.Endpoint{ID: postgres.NewID(at), Tenant: domain.DefaultTenant}}
		c, err := blank.Advance("operator:test@here", at, domain.EndpointCreated{Config: domain.EndpointConfig{
			URL: "https://example.test/" + word.Draw(r, "path"), URLFingerprint: rapid.SliceOfN(rapid.Byte(), 1, 32).Draw(r, "print"),
			Description: word.Draw(r, "description"), Mode: domain.ModeHTTP, Policy: policy,
			EventTypes: append([]string{}, rapid.SliceOfN(word, 0, 3).Draw(r, "types")...),
		}})
		if err != nil {
			r.Fatal(err)
		}
		if err := f.CreateEndpoint(context.Background(), c, domain.Target{URL: "https://example.test/"}); err != nil {
			r.Fatal(err)
		}
		f.life(r, c.After.ID, word)
	})
	for _, name := range []string{"deliveries", "endpoints"} {
		if got := f.rebuild(name, postgres.RebuildOptions{}); got.Differing != 0 || got.Rows == 0 {
			t.Errorf("%+v", got)
		}
		if got := f.rebuild(name, postgres.RebuildOptions{DryRun: true}); got.Differing != 0 {
			t.Errorf("%+v", got)
		}
	}
}

// life appends a random history to a delivery: whatever is in the log has happened, so that
// its fold is defined whether or not a decision could have led there.
func (f fixture) life(r *rapid.T, endpoint uuid.UUID, word *rapid.Generator[string]) {
	ctx := context.Background()
	s := f.draft(endpoint, f.now(), rapid.StringMatching(`[a-z]{0,8}`).Draw(r, "key"))
	if _, err := f.Schedule(ctx, []projections.Submission{s}, f.now()); err != nil {
		r.Fatal(err)
	}
	d := s.Deliveries[0].After
	for range rapid.IntRange(0, 8).Draw(r, "events") {
		token, due := uuid.New(), f.now().After(time.Duration(rapid.IntRange(0, 1e6).Draw(r, "due"))*time.Microsecond)
		n := d.Attempts
		fact := rapid.SampledFrom([]domain.Event{
			domain.Claimed{Token: token, Worker: "w", LeaseUntil: due, Cycle: d.Cycle, Attempt: n + 1, CycleAttempt: d.CycleAttempts + 1},
			domain.Attempted{Attempt: n, Outcome: domain.Succeeded}, domain.Attempted{Attempt: n, Outcome: domain.Unknown, Superseded: true},
			domain.RetryScheduled{DueAt: due}, domain.Delivered{Attempt: n}, domain.Failed{Why: domain.Exhausted},
			domain.LeaseExpired{Attempt: n}, domain.Held{Why: "outcome_unknown", Token: token}, domain.Cancelled{Reason: word.Draw(r, "reason")},
			domain.Replayed{Cycle: d.Cycle + 1, DueAt: due, Force: true}, domain.Resolved{Resolution: domain.ResolvedDelivered, DeliveredAt: due},
			domain.Resolved{Resolution: domain.ResolvedFailed},
		}).Draw(r, "fact")
		c, err := d.Advance("worker:w", f.now(), fact)
		if err != nil {
			r.Fatal(err)
		}
		if stale, err := f.Append(ctx, []projections.DeliveryChange{c}); err != nil || len(stale) > 0 {
			r.Fatal(stale, err)
		}
		d = c.After
	}
}
