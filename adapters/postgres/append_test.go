package postgres_test

import (
	"slices"
	"sync"
	"testing"
	"time"

	"waybill/domain"
	"waybill/projections"
)

// TestLifeOfADelivery walks schedule, claim and result through the database.
func TestLifeOfADelivery(t *testing.T) {
	t.Parallel()
	f := open(t)
	e := f.endpoint()
	d := f.schedule(e.ID, 1)[0]
	b := f.claim(e.ID, 10, time.Minute)
	if len(b.Taken) != 1 || string(b.Taken[0].Payload) != `{"n":1}` || b.Taken[0].Endpoint.Target.URL != "https://example.test/hook" {
		t.Fatalf("claim brought %+v", b)
	}
	facts, err := b.Taken[0].Delivery.Record(domain.Report{Token: b.Token, Result: domain.Result{Outcome: domain.Succeeded, Status: 200, StartedAt: b.Now.Time}}, domain.Retry{Policy: domain.DefaultPolicy()})
	if err != nil {
		t.Fatal(err)
	}
	c, err := b.Taken[0].Delivery.Advance("worker:w", f.now(), facts...)
	if err != nil {
		t.Fatal(err)
	}
	stale, err := f.Record(t.Context(), []projections.ResultChange{{DeliveryChange: c, Token: b.Token}})
	if err != nil || len(stale) != 0 {
		t.Fatal(stale, err)
	}
	want := []string{"delivery.scheduled", "delivery.claimed", "delivery.attempted", "delivery.delivered"}
	if got := names(f.stream(d.ID)); !slices.Equal(got, want) {
		t.Errorf("history %v, want %v", got, want)
	}
	f.verify()
}

// TestStaleWriterIsRefused is rule 2 and Case 9: of twenty appends decided on one version,
// one is written and nineteen are refused, and the log shows exactly the one. It fails
// without the version in the append's gate.
func TestStaleWriterIsRefused(t *testing.T) {
	t.Parallel()
	f := open(t)
	d := f.schedule(f.endpoint().ID, 1)[0]
	start := make(chan struct{})
	var wg sync.WaitGroup
	var mu sync.Mutex
	written := 0
	for range 20 {
		wg.Go(func() {
			facts, _ := d.Cancel("race", "")
			c, _ := d.Advance("operator:test@here", f.now(), facts...)
			<-start
			stale, err := f.Append(t.Context(), []projections.DeliveryChange{c})
			if err != nil {
				t.Error(err)
			}
			mu.Lock()
			defer mu.Unlock()
			if len(stale) == 0 {
				written++
			}
		})
	}
	close(start)
	wg.Wait()
	if got := names(f.stream(d.ID)); written != 1 || len(got) != 2 {
		t.Errorf("%d writers were told yes; history %v", written, got)
	}
	f.verify()
}
