package postgres_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/uuid"

	"waybill/adapters/postgres"
	"waybill/domain"
	"waybill/projections"
)

// rebuild rebuilds as the schema's owner.
func (f fixture) rebuild(name string, o postgres.RebuildOptions) projections.Rebuilt {
	f.t.Helper()
	p, err := projections.FindProjection(name)
	if err != nil {
		f.t.Fatal(err)
	}
	r, err := postgres.Rebuild(f.t.Context(), f.db.OwnerURL, f.Schema, p, o)
	if err != nil {
		f.t.Fatal(err)
	}
	return r
}

// deliver claims up to n deliveries and ends each with an outcome; it returns how many.
func (f fixture) deliver(endpoint uuid.UUID, n int, as domain.Outcome) int {
	f.t.Helper()
	b := f.claim(endpoint, n, time.Minute)
	var results []projections.ResultChange
	for _, c := range b.Taken {
		d := c.Delivery
		rep := domain.Report{Token: d.Claim.Token, Result: domain.Result{Outcome: as, Status: 200, StartedAt: b.Now.Time}}
		facts, err := d.Record(rep, domain.Retry{Policy: domain.DefaultPolicy(), From: b.Now})
		if err != nil {
			f.t.Error(err)
			return 0
		}
		change, err := d.Advance("worker:w", b.Now, facts...)
		if err != nil {
			f.t.Error(err)
			return 0
		}
		results = append(results, projections.ResultChange{DeliveryChange: change, Token: d.Claim.Token})
	}
	if len(results) == 0 {
		return 0
	}
	if stale, err := f.Record(context.Background(), results); err != nil || len(stale) > 0 {
		f.t.Error("stale", stale, err)
	}
	return len(results)
}

func TestRebuildFindsWhatWasEdited(t *testing.T) {
	t.Parallel()
	f := open(t)
	e := f.endpoint()
	rows := f.schedule(e.ID, 300)
	f.deliver(e.ID, 100, domain.Succeeded)
	if r := f.rebuild("deliveries", postgres.RebuildOptions{}); r.Differing != 0 || r.Rows != 300 || r.Events != 600 {
		t.Fatalf("%+v", r)
	}
	f.verify()
	for _, sql := range []string{
		"update waybill.deliveries set attempts = 7, event_type = 'x' where id = $1",
		"delete from waybill.deliveries where id = $1",
		"update waybill.deliveries set id = gen_random_uuid() where id = $1",
	} {
		if _, err := f.db.Super().Exec(t.Context(), sql, rows[0].ID); err != nil {
			t.Fatal(err)
		}
		rows = rows[1:]
	}
	for _, dry := range []bool{true, false} {
		r := f.rebuild("deliveries", postgres.RebuildOptions{DryRun: dry})
		if r.Differing != 4 || r.Kinds["changed"] != 1 || r.Kinds["missing"] != 2 || r.Kinds["extra"] != 1 ||
			r.Columns["attempts"] != 1 || r.Columns["event_type"] != 1 || len(r.Columns) != 2 || len(r.First) != 4 {
			t.Fatalf("%+v", r)
		}
	}
	f.verify()
	if r := f.rebuild("endpoints", postgres.RebuildOptions{}); r.Differing != 0 || r.Rows != 1 {
		t.Fatalf("%+v", r)
	}
	f.verify()
}

func TestRebuildIsForTheOwner(t *testing.T) {
	t.Parallel()
	f := open(t)
	p, _ := projections.FindProjection("deliveries")
	if _, err := postgres.Rebuild(t.Context(), f.db.URL, f.Schema, p, postgres.RebuildOptions{}); !errors.Is(err, domain.ErrProjectionNotOwned) {
		t.Fatal(err)
	}
}
