package postgres_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"waybill/domain"
	"waybill/projections"
)

// poison takes the next seq of a delivery's stream, as a projection that fell behind
// its log would find it: whoever appends to it fails.
func (f fixture) poison(d projections.Delivery, seq int) {
	f.t.Helper()
	_, err := f.db.App.Exec(f.t.Context(), `insert into waybill.events (tenant, stream, stream_id, seq, name, version, recorded_at,
		actor, data, hash) values ('default', 'delivery', $1, $2, 'delivery.cancelled', 1, now(), 'x', '{"reason":"r"}', '\x00')`, d.ID, seq)
	if err != nil {
		f.t.Fatal(err)
	}
}

// TestPoisonedDeliveryStopsNoClaim is rule 12 for claims: one delivery that makes every
// claim fail is named and set aside, and all others are claimed. It fails without
// claimApart.
func TestPoisonedDeliveryStopsNoClaim(t *testing.T) {
	t.Parallel()
	f := open(t)
	bad, good := f.endpoint(), f.endpoint()
	list := append(f.schedule(bad.ID, 5), f.schedule(good.ID, 5)...)
	f.poison(list[2], 2)
	claimed, faults := map[uuid.UUID]bool{}, ""
	for range 20 {
		b, err := f.Claim(t.Context(), projections.ClaimRequest{Worker: "w", Lease: time.Minute, Batch: 20,
			From: []projections.ClaimQuota{{EndpointID: bad.ID, Limit: 10}, {EndpointID: good.ID, Limit: 10}}})
		if err != nil {
			t.Fatal(err)
		}
		for _, a := range b.Taken {
			claimed[a.Delivery.ID] = true
		}
		for _, fault := range b.Faults {
			faults += fault.Error() + "\n"
		}
	}
	if len(claimed) != 9 || claimed[list[2].ID] {
		t.Errorf("%d of the 9 others are claimed", len(claimed))
	}
	if strings.Count(faults, "\n") != 1 || !strings.Contains(faults, list[2].ID.String()) {
		t.Errorf("faults: %s", faults)
	}
}

// TestPoisonedDeliveryStopsNoRecovery is the same for claims that ran out: the others
// of its claim, and all other claims, are recovered. It fails without recoverOne.
func TestPoisonedDeliveryStopsNoRecovery(t *testing.T) {
	t.Parallel()
	f := open(t)
	e := f.endpoint()
	list := f.schedule(e.ID, 6)
	for range 2 {
		if b := f.claim(e.ID, 3, time.Millisecond); len(b.Taken) != 3 {
			t.Fatalf("claimed %d", len(b.Taken))
		}
	}
	f.poison(list[0], 3)
	time.Sleep(10 * time.Millisecond)
	named := false
	for range 5 {
		_, _, err := f.Recover(t.Context())
		named = named || err != nil && strings.Contains(err.Error(), list[0].ID.String())
	}
	for i, d := range list {
		row, err := f.Delivery(t.Context(), domain.DefaultTenant, d.ID)
		if err != nil || (row.State == domain.StatePending) != (i != 0) {
			t.Errorf("delivery %d is %s: %v", i, row.State, err)
		}
	}
	if !named {
		t.Error("the one that stays is not named")
	}
}

// TestPoisonedDeliveryStopsNoEnd is the same for what waits at archived endpoints.
func TestPoisonedDeliveryStopsNoEnd(t *testing.T) {
	t.Parallel()
	f := open(t)
	e := f.endpoint()
	list := f.schedule(e.ID, 4)
	f.poison(list[1], 2)
	if _, err := f.ChangeEndpointStatus(t.Context(), domain.DefaultTenant, e.ID, func(p projections.Endpoint) (projections.EndpointDecision, error) {
		c, err := p.Advance("operator:test@here", f.now(), domain.EndpointArchived{})
		return projections.EndpointDecision{Change: c}, err
	}); err != nil {
		t.Fatal(err)
	}
	n, err := f.EndGone(t.Context())
	if n != 3 || err == nil || !strings.Contains(err.Error(), list[1].ID.String()) {
		t.Errorf("ended %d: %v", n, err)
	}
	if n, err := f.EndGone(t.Context()); n != 0 || err != nil {
		t.Errorf("again: %d, %v", n, err)
	}
}
