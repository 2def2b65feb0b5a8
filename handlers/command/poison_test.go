package command_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"waybill/adapters/postgres"
	"waybill/domain"
	"waybill/handlers/command"
	"waybill/projections"
)

// gathered is a ledger that lets nothing be committed until it is opened, so that what
// waits meanwhile shares a transaction, and that gives fan-outs of t.far ids of a month
// that has no partition.
type gathered struct {
	*postgres.Ledger
	open chan struct{}

	mu   sync.Mutex
	far  bool
	most int // items in a transaction
}

func (g *gathered) SubmitEndpoints(ctx context.Context, ids []uuid.UUID) (map[uuid.UUID]projections.SubmitEndpoint, error) {
	<-g.open
	g.turn(false)
	return g.Ledger.SubmitEndpoints(ctx, ids)
}

func (g *gathered) FanOut(ctx context.Context, tenant, eventType string) ([]projections.SubmitEndpoint, error) {
	g.turn(eventType == "t.far")
	return g.Ledger.FanOut(ctx, tenant, eventType)
}

func (g *gathered) turn(far bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.far = far
}

func (g *gathered) NewIDAt(at domain.Instant) uuid.UUID {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.far {
		at = at.After(400 * 24 * time.Hour)
	}
	return g.Ledger.NewIDAt(at)
}

func (g *gathered) Schedule(ctx context.Context, items []projections.Submission, at domain.Instant) ([]projections.Acceptance, error) {
	g.mu.Lock()
	g.most = max(g.most, len(items))
	g.mu.Unlock()
	return g.Ledger.Schedule(ctx, items, at)
}

// TestPoisonedBatch is rule 12: one item that the database refuses, one whose id has no
// partition, one whose key somebody holds and one with U+0000 in a text stand in one
// transaction with forty good items. Each of the four is answered for itself, and each of
// the good ones is accepted. It fails if a batch that failed is not taken apart.
func TestPoisonedBatch(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	e := d.endpoint("t.a", "t.far")
	if _, err := d.db.Super().Exec(t.Context(), "alter table waybill.messages add constraint poison check (event_type <> 't.poison')"); err != nil {
		t.Fatal(err)
	}
	tx, err := d.db.Super().Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(context.Background()) }()
	if _, err := tx.Exec(t.Context(), `insert into waybill.idempotency_keys (scope, key, tenant, message_id, fingerprint, created_at)
		values ($1, 'held', 'default', gen_random_uuid(), '', now())`, e); err != nil {
		t.Fatal(err)
	}
	g := &gathered{Ledger: d.Ledger, open: make(chan struct{})}
	submit := command.NewSubmitter(g, command.SubmitOptions{Committers: 1, Isolable: postgres.Isolable})
	defer submit.Close()
	var subs []command.Submission
	for i := range 40 {
		subs = append(subs, message(e, fmt.Sprint("good-", i), "x"))
	}
	bad := map[int]func(error) bool{}
	for _, b := range []struct {
		sub command.Submission
		is  func(error) bool
	}{
		{command.Submission{EndpointID: e, EventType: "t.poison", Payload: []byte("x")}, func(err error) bool { return err != nil && !postgres.Transient(err) }},
		{message(e, "held", "x"), postgres.Transient},
		{command.Submission{EndpointID: e, EventType: "t.a", OrderingKey: "a\x00b"}, func(err error) bool { return errors.Is(err, domain.ErrInvalidRequest) }},
		{command.Submission{EventType: "t.far", Payload: []byte("x")}, func(err error) bool { return errors.Is(err, domain.ErrOutsidePartitions) }},
	} {
		bad[len(subs)] = b.is
		subs = append(subs, b.sub)
	}
	first := make(chan error, 1)
	go func() { // occupies the committer until all others wait
		_, err := submit.Submit(t.Context(), by, message(e, "first", "x"))
		first <- err
	}()
	time.AfterFunc(300*time.Millisecond, func() { close(g.open) })
	time.Sleep(50 * time.Millisecond)
	for i, a := range submit.SubmitBatch(t.Context(), by, subs) {
		switch is, wrong := bad[i]; {
		case wrong && !is(a.Err):
			t.Errorf("bad item %d: %v", i, a.Err)
		case !wrong && (a.Err != nil || len(a.Deliveries) != 1):
			t.Errorf("good item %d: %+v", i, a)
		}
	}
	if err := <-first; err != nil || g.most < 42 {
		t.Errorf("first: %v; at most %d items in a transaction", err, g.most)
	}
	d.verify()
}

// TestNobodyWaitsNothingIsCommitted: a submission whose caller has gone before its turn
// came is not committed after all. It fails without the look at who is present.
func TestNobodyWaitsNothingIsCommitted(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	e := d.endpoint()
	g := &gathered{Ledger: d.Ledger, open: make(chan struct{})}
	submit := command.NewSubmitter(g, command.SubmitOptions{Committers: 1})
	defer submit.Close()
	first := make(chan error, 1)
	go func() {
		_, err := submit.Submit(t.Context(), by, message(e, "first", "x"))
		first <- err
	}()
	time.Sleep(50 * time.Millisecond)
	ctx, leave := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer leave()
	if _, err := submit.Submit(ctx, by, message(e, "gone", "x")); !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
	close(g.open)
	if err := <-first; err != nil {
		t.Error(err)
	}
	if a, err := submit.Submit(t.Context(), by, message(e, "gone", "x")); err != nil || a.Duplicate {
		t.Errorf("it was committed: %+v %v", a, err)
	}
}
