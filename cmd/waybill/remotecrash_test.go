package main

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/google/uuid"

	"waybill/adapters/postgres"
	"waybill/domain"
	"waybill/events"
	"waybill/handlers/command"
	"waybill/projections"
)

// provider is somebody's API that remote workers call; it remembers every arrival.
type provider struct {
	*httptest.Server
	mu       sync.Mutex
	arrivals map[string]int  // delivery id and attempt number: how often
	messages map[string]bool // idempotency keys
	open     atomic.Int64    // requests being answered
}

func newProvider(t *testing.T, answer func(ctx context.Context, body string) int) *provider {
	t.Helper()
	p := &provider{arrivals: map[string]int{}, messages: map[string]bool{}}
	p.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		body, err := io.ReadAll(q.Body)
		if err != nil {
			return
		}
		p.mu.Lock()
		p.arrivals[q.Header.Get("waybill-delivery-id")+"/"+q.Header.Get("waybill-attempt")]++
		p.messages[q.Header.Get("Idempotency-Key")] = true
		p.mu.Unlock()
		p.open.Add(1)
		defer p.open.Add(-1)
		w.WriteHeader(answer(q.Context(), string(body)))
	}))
	t.Cleanup(p.Close)
	return p
}

func (p *provider) total() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.arrivals)
}

// TestPythonWorkersKilled runs two remote workers over 300 deliveries. They are killed
// with -9 at random and restarted, and one is stopped in the middle of its calls until
// its leases are over and others have its deliveries. Nothing is lost, every arrival is
// on record or in doubt, and no result of a claim that had ended decided anything.
func TestPythonWorkersKilled(t *testing.T) {
	t.Parallel()
	const n = 300
	o := newOperator(t)
	var calls, limit atomic.Int64 // calls beyond the limit get no answer until it is raised
	limit.Store(25)
	p := newProvider(t, func(ctx context.Context, _ string) int {
		for call := calls.Add(1); call > limit.Load() && ctx.Err() == nil; {
			time.Sleep(5 * time.Millisecond)
		}
		time.Sleep(20 * time.Millisecond)
		return http.StatusOK
	})
	l, s := postgres.Open(o.db.App, postgres.Config{}), o.serve("--allow-networks", loopback)
	e := o.get("id", "endpoints", "create", "--mode", "remote",
		"--policy", `{"jitter":0,"retries":{"base":"50ms","factor":1,"cap":"50ms","attempts":20}}`)
	ids := submitMany(t, l, uuid.MustParse(e), n)
	key, born := o.claimKey(), 0
	start := func() *program {
		born++
		return o.worker(s, key, fmt.Sprint("py", born), p.URL, "TIMEOUT=4")
	}
	workers := []*program{start(), start()}
	busy := func() bool { return calls.Load() > limit.Load() && p.open.Load() > 0 }
	for range 5 {
		within(t, "calls are under way", busy)
		time.Sleep(rand.N(50 * time.Millisecond))
		victim := rand.N(len(workers))
		workers[victim].kill()
		workers[victim] = start()
		limit.Add(25)
	}
	workers[1].kill()
	time.Sleep(300 * time.Millisecond) // the provider notices that the caller is gone
	name := workers[0].after("claiming as ")
	within(t, "the other one's calls are under way", func() bool { return busy() && o.held(name) > 0 })
	stopAndGo(t, o, workers[0], name, func() {
		limit.Store(1 << 40)
		workers[1] = start()
	})
	awaitDelivered(t, l, ids)
	within(t, "the stopped one reports", func() bool { return o.superseded() > 0 })
	for _, w := range workers {
		w.kill()
	}
	checkRemote(t, l, p, ids)
}

// stopAndGo stops a process, and lets it go on when none of its claims is left.
func stopAndGo(t *testing.T, o operatorOf, w *program, worker string, meanwhile func()) {
	t.Helper()
	if err := w.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	meanwhile()
	within(t, "its leases run out", func() bool { return o.held(worker) == 0 })
	if err := w.cmd.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
}

// held is how many claims a worker has.
func (o operatorOf) held(worker string) (n int) {
	o.t.Helper()
	if err := o.db.App.QueryRow(o.t.Context(), "select count(*) from waybill.claims where worker = $1", worker).Scan(&n); err != nil {
		o.t.Fatal(err)
	}
	return n
}

func (o operatorOf) superseded() (n int) {
	o.t.Helper()
	err := o.db.App.QueryRow(o.t.Context(), `select count(*) from waybill.events
		where name = 'delivery.attempted' and (data ->> 'superseded')::boolean`).Scan(&n)
	if err != nil {
		o.t.Fatal(err)
	}
	return n
}

// submitMany hands in n messages for one endpoint and returns the deliveries.
func submitMany(t *testing.T, l *postgres.Ledger, endpoint uuid.UUID, n int) []uuid.UUID {
	t.Helper()
	submitter := command.NewSubmitter(l, command.SubmitOptions{})
	defer submitter.Close()
	subs, ids := make([]command.Submission, n), make([]uuid.UUID, n)
	for i := range subs {
		subs[i] = command.Submission{EndpointID: endpoint, EventType: "t", ContentType: "text/plain", Payload: fmt.Append(nil, i)}
	}
	by := command.Caller{Tenant: domain.DefaultTenant, Actor: domain.KeyActor(uuid.New())}
	for i, a := range submitter.SubmitBatch(t.Context(), by, subs) {
		if a.Err != nil {
			t.Fatal(a.Err)
		}
		ids[i] = a.Deliveries[0].DeliveryID
	}
	return ids
}

// checkRemote reads only the log and the provider's own record.
func checkRemote(t *testing.T, l *postgres.Ledger, p *provider, ids []uuid.UUID) {
	t.Helper()
	rep, err := l.Verify(context.Background())
	if err != nil || len(rep.Faults) > 0 || rep.Deliveries != len(ids) {
		t.Errorf("verify: %+v %v", rep, err)
	}
	streams, err := l.Streams(t.Context(), events.DeliveryStream, ids)
	if err != nil {
		t.Fatal(err)
	}
	known, doubts, late := map[string]bool{}, 0, 0
	for id, records := range streams {
		doubts += checkClaims(t, id, records, known)
		late += checkResults(t, id, records)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for attempt, times := range p.arrivals {
		if times != 1 || !known[attempt] {
			t.Errorf("attempt %s arrived %d times; on record: %v", attempt, times, known[attempt])
		}
	}
	if len(p.messages) != len(ids) || doubts == 0 || late == 0 {
		t.Errorf("%d of %d messages arrived, %d claims in doubt, %d results late: one of each is needed to prove anything",
			len(p.messages), len(ids), doubts, late)
	}
	t.Logf("%d arrivals of %d messages, %d claims in doubt, %d results late", len(p.arrivals), len(ids), doubts, late)
}

// checkResults walks one history: a result decides only under the claim that owns the
// delivery; it counts the others, which only a proof may follow.
func checkResults(t *testing.T, id uuid.UUID, records []events.Record) (late int) {
	t.Helper()
	var d projections.Delivery
	for _, r := range records {
		e, err := r.Event()
		if err != nil {
			t.Fatal(err)
		}
		if a, ok := e.(domain.Attempted); ok {
			if a.Superseded == d.Owns(a.Token) {
				t.Errorf("%s seq %d: superseded is %v, the delivery is %s under %s, the result is of %s",
					id, r.Seq, a.Superseded, d.State, d.Claim.Token, a.Token)
			}
			if a.Superseded {
				late++
			}
		}
		d.Delivery = d.Evolve(e, r.RecordedAt)
	}
	return late
}
