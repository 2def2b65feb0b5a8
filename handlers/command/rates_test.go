package command_test

import (
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"waybill/adapters/postgres"
	"waybill/domain"
	"waybill/handlers/command"
	"waybill/projections"
)

// TestBudgetIsSharedExactly: several submitters, each on a pool of its own as in
// another process, hand in more than one key's budget at once. Exactly the budget is
// accepted, every answer says what remains, and none is granted afterwards. It fails
// if the counter is read and written in two statements.
func TestBudgetIsSharedExactly(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	e := d.endpoint()
	limited := command.Caller{Tenant: domain.DefaultTenant, Actor: "key:k", KeyID: uuid.New(), Rate: domain.Rate{Count: 100, Per: 24 * time.Hour}}
	var accepted, refused atomic.Int64
	done := make(chan struct{}, 4)
	for range cap(done) {
		pool, err := postgres.Connect(t.Context(), d.db.URL, postgres.ConnectOptions{MaxConns: 4})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(pool.Close)
		s := command.NewSubmitter(postgres.Open(pool, postgres.Config{}), command.SubmitOptions{Isolable: postgres.Isolable})
		t.Cleanup(s.Close)
		go func() {
			defer func() { done <- struct{}{} }()
			for range 10 {
				subs := make([]command.Submission, 7)
				for i := range subs {
					subs[i] = message(e, "", "x")
				}
				for _, a := range s.SubmitBatch(t.Context(), limited, subs) {
					count(t, a, &accepted, &refused)
				}
			}
		}()
	}
	for range cap(done) {
		<-done
	}
	if accepted.Load() != 100 || refused.Load() != 180 {
		t.Errorf("%d accepted, %d refused", accepted.Load(), refused.Load())
	}
	var rows int
	if err := d.db.App.QueryRow(t.Context(), "select count(*) from waybill.deliveries").Scan(&rows); err != nil || rows != 100 {
		t.Errorf("%d deliveries: %v", rows, err)
	}
}

func count(t *testing.T, a projections.Acceptance, accepted, refused *atomic.Int64) {
	t.Helper()
	switch {
	case a.Err == nil:
		accepted.Add(1)
	case errors.Is(a.Err, domain.ErrRateLimited):
		refused.Add(1)
	default:
		t.Error(a.Err)
	}
	if len(a.Budgets) != 1 || a.Budgets[0].Name != "key" || a.Budgets[0].Reset <= 0 || a.Budgets[0].Remaining < 0 {
		t.Errorf("budgets %+v", a.Budgets)
	}
}

// TestEndpointsBudget: an endpoint's submit_rate bounds what is handed in to it, a
// repeated idempotency key counts, and a new window begins with the whole budget.
func TestEndpointsBudget(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	e := d.endpoint()
	if _, _, err := (command.Endpoints{Ledger: d.Ledger, Rules: rules{}}).Update(t.Context(), by, e, []byte(`{"policy":{"submit_rate":"2/2s"}}`), 0); err != nil {
		t.Fatal(err)
	}
	other := d.endpoint()
	for time.Now().UnixMilli()%2000 > 500 { // so that what follows falls into one window
		time.Sleep(10 * time.Millisecond)
	}
	for i, want := range []error{nil, nil, domain.ErrRateLimited} {
		if _, err := d.submit.Submit(t.Context(), by, message(e, "same", "x")); !errors.Is(err, want) {
			t.Errorf("submission %d: %v, want %v", i, err, want)
		}
	}
	if _, err := d.submit.Submit(t.Context(), by, message(other, "", "x")); err != nil {
		t.Errorf("another endpoint: %v", err)
	}
	time.Sleep(2 * time.Second)
	if _, err := d.submit.Submit(t.Context(), by, message(e, "next", "x")); err != nil {
		t.Errorf("the next window: %v", err)
	}
	d.verify()
}

// TestCountersThatAreAwayLetNothingPass: rates fail closed.
func TestCountersThatAreAwayLetNothingPass(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	e := d.endpoint()
	if _, err := d.db.Owner().Exec(t.Context(), "revoke update, insert on waybill.rate_limit_counters from waybill_test_app"); err != nil {
		t.Fatal(err)
	}
	limited := command.Caller{Tenant: domain.DefaultTenant, Actor: "key:k", KeyID: uuid.New(), Rate: domain.Rate{Count: 100, Per: time.Hour}}
	if _, err := d.submit.Submit(t.Context(), limited, message(e, "", "x")); err == nil {
		t.Error("accepted without being counted")
	}
	if _, err := d.submit.Submit(t.Context(), by, message(e, "", "x")); err != nil {
		t.Errorf("without a rate: %v", err)
	}
}
