package postgres_test

import (
	"errors"
	"reflect"
	"testing"
	"time"

	"github.com/google/uuid"
	"pgregory.net/rapid"

	"waybill/adapters/postgres"
	"waybill/domain"
	"waybill/events"
	"waybill/projections"
)

// TestAsOfIsTheFoldOfThePrefix walks random lives and asks for them at every seq, and at,
// just before and just after every instant: what comes is the fold of the prefix, alone and
// in lists and counts of all.
func TestAsOfIsTheFoldOfThePrefix(t *testing.T) {
	t.Parallel()
	f := open(t)
	endpoint := f.endpoint().ID
	began := f.now().After(-time.Hour)
	var lives [][]events.Record
	rapid.Check(t, func(r *rapid.T) {
		if len(lives) >= 12 { // so many are enough for the lists, and each costs a hundred questions
			return
		}
		lives = append(lives, f.live(r, endpoint, began))
	})
	if drawn, err := f.Drawn(t.Context()); err != nil {
		t.Fatal(err)
	} else if _, _, err := f.Seal(t.Context(), drawn); err != nil {
		t.Fatal(err)
	}
	instants := map[domain.Instant]bool{began.After(-time.Microsecond): true}
	for _, life := range lives {
		for i, e := range life {
			f.asOf(projections.Past{Seq: i + 1}, life, life[:i+1])
			for _, d := range []time.Duration{-time.Microsecond, 0, time.Microsecond} {
				instants[e.RecordedAt.After(d)] = true
			}
		}
		f.asOf(projections.Past{Seq: len(life) + 1}, life, nil)
	}
	for at := range instants {
		f.allAsOf(at, lives)
	}
}

// live makes up a delivery's life, half of whose events share their instants.
func (f fixture) live(r *rapid.T, endpoint uuid.UUID, at domain.Instant) []events.Record {
	s := f.draft(endpoint, at, "")
	if _, err := f.Schedule(f.t.Context(), []projections.Submission{s}, at); err != nil {
		r.Fatal(err)
	}
	d, token := s.Deliveries[0].After, uuid.Nil
	for range rapid.IntRange(0, 14).Draw(r, "steps") {
		at = at.After(time.Duration(rapid.IntRange(0, 3).Draw(r, "s")) * time.Second)
		var facts []domain.Event
		var err error
		retry := domain.Retry{Policy: domain.DefaultPolicy(), From: at}
		switch rapid.SampledFrom([]string{"claim", "claim", "claim", "report", "report", "expire", "cancel", "replay"}).Draw(r, "verb") {
		case "claim":
			token = uuid.New()
			facts, err = d.TakeClaim(domain.ClaimOrder{Token: token, Worker: "w", LeaseUntil: at.After(time.Minute)},
				domain.StatusActive, domain.DefaultPolicy(), at.After(30*24*time.Hour))
		case "report":
			if !d.Owns(token) {
				continue
			}
			outcome := rapid.SampledFrom([]domain.Outcome{domain.Succeeded, domain.Refused, domain.Unknown}).Draw(r, "outcome")
			facts, err = d.Record(domain.Report{Token: token, Result: domain.Result{Outcome: outcome, StartedAt: at.Time}}, retry)
		case "expire":
			facts, err = d.Expire(token, retry)
		case "cancel":
			facts, err = d.Cancel("why", "")
		case "replay":
			facts, err = d.Replay("why", true, "", at)
		}
		if err != nil {
			continue
		}
		c, err := d.Advance("key:test", at, facts...)
		if err != nil {
			r.Fatal(err)
		}
		if stale, err := f.Append(f.t.Context(), []projections.DeliveryChange{c}); err != nil || len(stale) > 0 {
			r.Fatal(stale, err)
		}
		d = c.After
	}
	return f.stream(d.ID)
}

// asOf asks for one delivery and compares it with the fold of what it had become.
func (f fixture) asOf(p projections.Past, life, prefix []events.Record) {
	f.t.Helper()
	got, err := f.DeliveryAsOf(f.t.Context(), domain.DefaultTenant, life[0].StreamID, p)
	if len(prefix) == 0 {
		if !errors.Is(err, domain.ErrDeliveryNotYet) {
			f.t.Errorf("%+v: %v", p, err)
		}
		return
	}
	want, _, foldErr := projections.FoldDelivery(prefix)
	if err != nil || foldErr != nil {
		f.t.Fatalf("%+v: %v, %v", p, err, foldErr)
	}
	if got.Delivery != want || *got.Basis.AsOfSeq != len(prefix) || !*got.Basis.Final {
		f.t.Errorf("%+v:\n%+v\nwant\n%+v", p, got, want)
	}
}

// allAsOf compares the list and the count of a time with the folds.
func (f fixture) allAsOf(at domain.Instant, lives [][]events.Record) {
	f.t.Helper()
	want, states := map[uuid.UUID]projections.Delivery{}, map[domain.State]int64{}
	for _, life := range lives {
		n := 0
		for n < len(life) && !life[n].RecordedAt.Time.After(at.Time) {
			n++
		}
		f.asOf(projections.Past{At: at}, life, life[:n])
		if n > 0 {
			d, _, err := projections.FoldDelivery(life[:n])
			if err != nil {
				f.t.Fatal(err)
			}
			want[d.ID] = d
			states[d.State]++
		}
	}
	seen := map[domain.State]int64{}
	for _, state := range []domain.State{domain.StatePending, domain.StateProcessing, domain.StateDelivered, domain.StateFailed, domain.StateCancelled} {
		filter := projections.DeliveryFilter{State: state}
		for before := uuid.Nil; ; {
			list, next, err := f.DeliveriesAsOf(f.t.Context(), domain.DefaultTenant, filter, at, before, 3)
			if err != nil {
				f.t.Fatal(err)
			}
			for _, d := range list {
				w := want[d.ID]
				if d.Delivery.Claim.Worker == "" { // these lives have no rows of claims
					w.Claim.Worker, w.Claim.LeaseUntil = "", domain.Instant{}
				}
				if d.State != state || d.Delivery != w || *d.Basis.AsOfSeq != w.Version {
					f.t.Errorf("at %s:\n%+v\nwant\n%+v", at, d, w)
				}
				seen[d.State]++
			}
			if next == uuid.Nil {
				break
			}
			before = next
		}
	}
	n, err := f.CountAsOf(f.t.Context(), domain.DefaultTenant, projections.DeliveryFilter{}, at, func(int64) {})
	if err != nil || !reflect.DeepEqual(n.States, states) || !reflect.DeepEqual(seen, states) {
		f.t.Errorf("at %s: counted %v, listed %v, want %v: %v", at, n.States, seen, states, err)
	}
}

// TestAsOfIsFinalOnceNothingCanCome: what was just recorded may have neighbours under way;
// a seq is final once it is sealed.
func TestAsOfIsFinalOnceNothingCanCome(t *testing.T) {
	t.Parallel()
	f := open(t)
	d := f.schedule(f.endpoint().ID, 1)[0]
	then := func(p projections.Past) projections.DeliveryThen {
		t.Helper()
		got, err := f.DeliveryAsOf(t.Context(), domain.DefaultTenant, d.ID, p)
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	if got := then(projections.Past{Seq: 1}); *got.Basis.Final || *got.Basis.Horizon != 0 {
		t.Error("final before anything is sealed")
	}
	drawn, err := f.Drawn(t.Context())
	if err == nil {
		_, _, err = f.Seal(t.Context(), drawn)
	}
	if err != nil {
		t.Fatal(err)
	}
	if got := then(projections.Past{Seq: 1}); !*got.Basis.Final || *got.Basis.Horizon != drawn {
		t.Error("not final though it is sealed")
	}
	if *then(projections.Past{At: f.now()}).Basis.Final {
		t.Error("final though an event of that time may be under way")
	}
	if _, err := f.DeliveryAsOf(t.Context(), "other", d.ID, projections.Past{Seq: 1}); !errors.Is(err, domain.ErrDeliveryNotFound) {
		t.Error(err)
	}
	if _, err := f.EndpointAsOf(t.Context(), domain.DefaultTenant, postgres.NewID(f.now()), projections.Past{Seq: 1}); !errors.Is(err, domain.ErrEndpointNotFound) {
		t.Error(err)
	}
}
