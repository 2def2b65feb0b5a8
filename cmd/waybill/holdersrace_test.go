package main

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	"waybill/domain"
	"waybill/handlers/command"
)

// outcomes is every way in which a request that went out can end. Two racers whose
// reports go through these lists meet each other with every pair.
var (
	lateOutcomes    = []domain.Outcome{"succeeded", "succeeded", "succeeded", "refused", "refused", "refused", "unknown", "unknown", "unknown"}
	presentOutcomes = []domain.Outcome{"succeeded", "refused", "unknown"}
)

// TestTwoHoldersReport: two processes hold a claim each on the same deliveries, one that
// has run out and the one that took over. They report in both orders and at once, with
// every pair of outcomes, each of them thrice. The owner's result decides; the late one is
// on record under its own claim's number, spends nothing, and counts only if it proves
// the delivery. The guards are the token in record_results.sql and in Delivery.Owns, and
// that RecordLate keeps a token's first report.
func TestTwoHoldersReport(t *testing.T) {
	t.Parallel()
	k := newTrack(t)
	for _, policy := range []string{"retry", "hold"} {
		for _, order := range []string{"late first", "present first", "at once"} {
			t.Run(policy+", "+order, func(t *testing.T) {
				t.Parallel()
				k := k
				k.t = t
				e, ids := k.submit(`{"retries":{"delays":["0s","0s","0s"]},"jitter":0,"on_unknown_outcome":"`+policy+`"}`, 9)
				slices.SortFunc(ids, func(a, b uuid.UUID) int { return slices.Compare(a[:], b[:]) })
				k.twoHolders(e, ids, order)
				for i, id := range ids {
					k.settledByTheOwner(id, policy, lateOutcomes[i], presentOutcomes[i%3])
				}
			})
		}
	}
	t.Cleanup(k.verify)
}

// twoHolders lets both report for the deliveries.
func (k track) twoHolders(endpoint uuid.UUID, ids []uuid.UUID, order string) {
	k.t.Helper()
	job := raceJob{Worker: "late", Endpoint: endpoint, Hold: len(ids), Lease: time.Millisecond, Report: lateOutcomes}
	late := k.lineUp(job)
	k.takeBack(ids)
	job.Worker, job.Lease, job.Report = "present", time.Minute, presentOutcomes
	present := k.lineUp(job)
	switch order {
	case "late first":
		late.run()
		present.run()
	case "present first":
		present.run()
		late.run()
	default:
		late.release()
		present.run()
		late.results()
	}
}

// takeBack ends the claims that have run out, and holds.
func (k track) takeBack(ids []uuid.UUID) {
	k.t.Helper()
	by := command.Caller{Tenant: domain.DefaultTenant, Actor: "key:k"}
	within(k.t, "the late one's claims have ended", func() bool {
		_, _, err := k.Recover(k.t.Context())
		for _, id := range ids {
			d, readErr := k.Delivery(k.t.Context(), domain.DefaultTenant, id)
			switch err = errors.Join(err, readErr); d.State {
			case domain.StateProcessing: // another subtest recovers it just now
				return false
			case domain.StateHeld:
				_, resolveErr := command.Operations{Ledger: k}.Resolve(k.t.Context(), by, id, domain.ResolvedRetry, "again")
				err = errors.Join(err, resolveErr)
			}
		}
		if err != nil {
			k.t.Fatal(err)
		}
		return true
	})
}

// settledByTheOwner compares a delivery with what rules 3 and 4 of the design say.
func (k track) settledByTheOwner(id uuid.UUID, policy string, late, present domain.Outcome) {
	k.t.Helper()
	want, cycle := domain.StatePending, 2
	switch {
	case late == domain.Succeeded || present == domain.Succeeded:
		want = domain.StateDelivered
	case present == domain.Unknown && policy == "hold":
		want = domain.StateHeld
	}
	if policy == "hold" {
		cycle = 1 // the first hold was resolved into a cycle of its own
	}
	d, err := k.Delivery(k.t.Context(), domain.DefaultTenant, id)
	if err != nil || d.State != want || d.Attempts != 2 || d.CycleAttempts != cycle {
		k.t.Errorf("late %s, present %s: %s after %d attempts, %d in its cycle, want %s: %v",
			late, present, d.State, d.Attempts, d.CycleAttempts, want, err)
	}
	attempts := map[string]int{}
	for _, r := range k.events(id) {
		e, err := r.Event()
		if a, ok := e.(domain.Attempted); ok && err == nil {
			attempts[fmt.Sprintf("%d (%d) %s by %s, superseded %v", a.Attempt, a.CycleAttempt, a.Outcome, r.Actor, a.Superseded)]++
		}
	}
	first, second := fmt.Sprintf("1 (1) %s by worker:late, superseded true", late), fmt.Sprintf("2 (%d) %s by worker:present, superseded false", cycle, present)
	if len(attempts) != 2 || attempts[first] != 1 || attempts[second] != 1 {
		k.t.Errorf("late %s, present %s: on record are %v", late, present, attempts)
	}
}
