package command_test

import (
	"bytes"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"waybill/adapters/postgres"
	"waybill/adapters/postgres/postgrestest"
	"waybill/adapters/secrets"
	"waybill/domain"
	"waybill/handlers/command"
	"waybill/projections"
)

var by = command.Caller{Tenant: domain.DefaultTenant, Actor: "key:test"}

// desk is a ledger in a database of its own, with a submitter before it.
type desk struct {
	*postgres.Ledger
	t      testing.TB
	db     *postgrestest.DB
	submit *command.Submitter
}

func newDesk(t testing.TB) desk {
	t.Helper()
	db := postgrestest.New(t)
	vault, err := secrets.New()
	if err != nil {
		t.Fatal(err)
	}
	l := postgres.Open(db.App, postgres.Config{Vault: vault})
	d := desk{l, t, db, command.NewSubmitter(l, command.SubmitOptions{Isolable: postgres.Isolable})}
	t.Cleanup(d.submit.Close)
	return d
}

func (d desk) endpoint(eventTypes ...string) uuid.UUID {
	d.t.Helper()
	now, err := d.Now(d.t.Context())
	if err != nil {
		d.t.Fatal(err)
	}
	blank := projections.Endpoint{Endpoint: domain.Endpoint{ID: postgres.NewID(now), Tenant: domain.DefaultTenant}}
	c, err := blank.Advance(by.Actor, now, domain.EndpointCreated{Config: domain.EndpointConfig{
		URL: "https://example.test/", URLFingerprint: domain.Hex{1}, Mode: domain.ModeHTTP,
		EventTypes: append([]string{}, eventTypes...), Policy: domain.DefaultPolicy(),
	}})
	if err != nil {
		d.t.Fatal(err)
	}
	if err := d.CreateEndpoint(d.t.Context(), c, domain.Target{URL: "https://example.test/"}); err != nil {
		d.t.Fatal(err)
	}
	return c.After.ID
}

func (d desk) verify() {
	d.t.Helper()
	rep, err := d.Verify(d.t.Context())
	if err != nil || len(rep.Faults) > 0 {
		d.t.Errorf("%+v %v", rep, err)
	}
}

func message(endpoint uuid.UUID, key string, payload string) command.Submission {
	return command.Submission{EndpointID: endpoint, EventType: "t.a", ContentType: "text/plain",
		IdempotencyKey: key, HasKey: key != "", Payload: []byte(payload)}
}

// TestOneKeyOneDelivery: one idempotency key from several submitters at once is one
// message and one delivery; all get its ids, and another content is refused. It
// fails without the unique constraint on keys.
func TestOneKeyOneDelivery(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	e := d.endpoint()
	start := make(chan struct{})
	answers := make(chan projections.Acceptance, 40)
	for range 4 {
		other := command.NewSubmitter(d.Ledger, command.SubmitOptions{Isolable: postgres.Isolable})
		t.Cleanup(other.Close)
		for range 10 {
			go func() {
				<-start
				a, err := other.Submit(t.Context(), by, message(e, "k", "same"))
				if err != nil {
					t.Error(err)
				}
				answers <- a
			}()
		}
	}
	close(start)
	ids, originals := map[string]bool{}, 0
	for range cap(answers) {
		a := <-answers
		ids[fmt.Sprint(a.MessageID, a.Deliveries)] = true
		if !a.Duplicate {
			originals++
		}
	}
	if len(ids) != 1 || originals != 1 {
		t.Errorf("%d answers, %d of them originals: %v", len(ids), originals, ids)
	}
	for name, other := range map[string]command.Submission{
		"payload":      message(e, "k", "other"),
		"content type": {EndpointID: e, EventType: "t.a", ContentType: "text/html", IdempotencyKey: "k", HasKey: true, Payload: []byte("same")},
		"event type":   {EndpointID: e, EventType: "t.b", ContentType: "text/plain", IdempotencyKey: "k", HasKey: true, Payload: []byte("same")},
	} {
		if _, err := d.submit.Submit(t.Context(), by, other); !errors.Is(err, domain.ErrIdempotencyConflict) {
			t.Errorf("another %s: %v", name, err)
		}
	}
	d.verify()
}

// TestHeldKeyDelaysNobodyElse is rule 12: a key that somebody's open transaction
// holds costs that item its turn, and not its neighbours in the batch.
func TestHeldKeyDelaysNobodyElse(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	e := d.endpoint()
	tx, err := d.db.Super().Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), `insert into waybill.idempotency_keys (scope, key, tenant, message_id, fingerprint, created_at)
		values ($1, 'held', 'default', gen_random_uuid(), '', now())`, e); err != nil {
		t.Fatal(err)
	}
	held := make(chan error, 1)
	go func() {
		_, err := d.submit.Submit(t.Context(), by, message(e, "held", "x"))
		held <- err
	}()
	var wg sync.WaitGroup
	for i := range 50 {
		wg.Go(func() {
			if _, err := d.submit.Submit(t.Context(), by, message(e, fmt.Sprint("free-", i), "x")); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if err := <-held; err == nil || !postgres.Transient(err) {
		t.Errorf("the held one: %v", err)
	}
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := d.submit.Submit(t.Context(), by, message(e, "held", "x")); err != nil {
		t.Errorf("after the rollback: %v", err)
	}
	d.verify()
}

// TestBadItemHarmsNoNeighbour: each refusal in a batch is its own item's.
func TestBadItemHarmsNoNeighbour(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	e := d.endpoint()
	bad := []struct {
		sub  command.Submission
		want *domain.Error
	}{
		{message(uuid.New(), "", "x"), domain.ErrEndpointNotFound},
		{command.Submission{EndpointID: e, HasKey: true}, domain.ErrIdempotencyKey},
		{message(e, "ключ", "x"), domain.ErrIdempotencyKey},
		{command.Submission{EndpointID: e, EventType: "a b"}, domain.ErrInvalidRequest},
		{command.Submission{EndpointID: e, OrderingKey: "\x00"}, domain.ErrInvalidRequest},
		{command.Submission{EndpointID: e, OrderingKey: "\xff"}, domain.ErrInvalidRequest},
		{command.Submission{EndpointID: e, ContentType: "a\r\nb: c"}, domain.ErrInvalidRequest},
	}
	var subs []command.Submission
	for _, b := range bad {
		subs = append(subs, b.sub, message(e, "", "good"))
	}
	for i, a := range d.submit.SubmitBatch(t.Context(), by, subs) {
		if i%2 == 1 && a.Err != nil {
			t.Errorf("a good neighbour: %v", a.Err)
		}
		if want := bad[i/2].want; i%2 == 0 && !errors.Is(a.Err, want) {
			t.Errorf("item %d: %v, want %s", i, a.Err, want.Code)
		}
	}
	d.verify()
}

// TestFirstDelayPrecedesTheFirstAttempt: delays[0] is no ornament, and a not-before
// beyond it outweighs it.
func TestFirstDelayPrecedesTheFirstAttempt(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	e := d.endpoint("late")
	if _, _, err := (command.Endpoints{Ledger: d.Ledger, Rules: rules{}}).Update(t.Context(), by, e, []byte(`{"policy":{"retries":{"delays":["1h","2h"]}}}`), 0); err != nil {
		t.Fatal(err)
	}
	now, err := d.Now(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	later := message(e, "", "x")
	later.NotBefore = now.After(5 * time.Hour)
	for want, sub := range map[time.Duration]command.Submission{
		time.Hour: message(e, "", "x"), 5 * time.Hour: later,
	} {
		a, err := d.submit.Submit(t.Context(), by, sub)
		if err != nil {
			t.Fatal(err)
		}
		row, err := d.Delivery(t.Context(), domain.DefaultTenant, a.Deliveries[0].DeliveryID)
		if err != nil || row.DueAt.Sub(now.Add(want)).Abs() > time.Minute {
			t.Errorf("due at %s, want %s from %s: %v", row.DueAt, want, now, err)
		}
	}
	a, err := d.submit.Submit(t.Context(), by, command.Submission{EventType: "late", Payload: []byte("x")})
	if err != nil || len(a.Deliveries) != 1 {
		t.Fatal(a, err)
	}
	row, err := d.Delivery(t.Context(), domain.DefaultTenant, a.Deliveries[0].DeliveryID)
	if err != nil || row.DueAt.Sub(now.Add(time.Hour)).Abs() > time.Minute {
		t.Errorf("fanned out: due at %s: %v", row.DueAt, err)
	}
}

// TestFanOut reaches the endpoints that want the event type, big ones too, and a
// repeated key finds the same deliveries.
func TestFanOut(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	all, exact, prefix := d.endpoint(), d.endpoint("order.paid"), d.endpoint("order.*")
	d.endpoint("orders.*")
	d.endpoint("order")
	sub := command.Submission{EventType: "order.paid", IdempotencyKey: "k", HasKey: true, Payload: []byte("{}")}
	first, err := d.submit.Submit(t.Context(), by, sub)
	if err != nil || len(first.Deliveries) != 3 {
		t.Fatalf("%+v %v", first, err)
	}
	for i, want := range []uuid.UUID{all, exact, prefix} {
		if first.Deliveries[i].EndpointID != want {
			t.Errorf("delivery %d goes to %s", i, first.Deliveries[i].EndpointID)
		}
	}
	again, err := d.submit.Submit(t.Context(), by, sub)
	if err != nil || !again.Duplicate || again.MessageID != first.MessageID || len(again.Deliveries) != 3 {
		t.Errorf("again: %+v %v", again, err)
	}
	nobody, err := d.submit.Submit(t.Context(), command.Caller{Tenant: domain.SystemTenant, Actor: "key:test"}, sub)
	if err != nil || len(nobody.Deliveries) != 0 {
		t.Errorf("another tenant: %+v %v", nobody, err)
	}
	for range 110 {
		d.endpoint("wide")
	}
	wide, err := d.submit.Submit(t.Context(), by, command.Submission{EventType: "wide", Payload: bytes.Repeat([]byte("x"), 1000)})
	if err != nil || len(wide.Deliveries) != 111 {
		t.Errorf("wide: %d %v", len(wide.Deliveries), err)
	}
	d.verify()
}

// TestFiftyReplaysAtOnce: one wins, forty-nine are refused, one new cycle. It fails
// if a stale replay is appended without being decided again.
func TestFiftyReplaysAtOnce(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	a, err := d.submit.Submit(t.Context(), by, message(d.endpoint(), "", "x"))
	if err != nil {
		t.Fatal(err)
	}
	id := a.Deliveries[0].DeliveryID
	op := command.Operations{Ledger: d.Ledger}
	if _, err := op.Cancel(t.Context(), by, id, "to be replayed"); err != nil {
		t.Fatal(err)
	}
	start := make(chan struct{})
	got := make(chan error, 50)
	for range cap(got) {
		go func() {
			<-start
			_, err := op.Replay(t.Context(), by, id, "race", true)
			got <- err
		}()
	}
	close(start)
	won := 0
	for range cap(got) {
		switch err := <-got; {
		case err == nil:
			won++
		case !errors.Is(err, domain.ErrNotReplayable):
			t.Error(err)
		}
	}
	row, err := d.Delivery(t.Context(), domain.DefaultTenant, id)
	if err != nil || won != 1 || row.Cycle != 2 || row.State != domain.StatePending {
		t.Errorf("%d won; %+v %v", won, row, err)
	}
	d.verify()
}
