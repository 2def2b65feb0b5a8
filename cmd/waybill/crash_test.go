package main

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/uuid"

	"waybill/adapters/postgres"
	"waybill/adapters/postgres/postgrestest"
	"waybill/adapters/secrets"
	"waybill/domain"
	"waybill/events"
	"waybill/handlers/command"
	"waybill/projections"
)

// slowly is a receiver that takes its time and remembers every arrival.
type slowly struct {
	*httptest.Server
	mu       sync.Mutex
	arrivals map[string]int // delivery id and attempt number: how often
	total    int
}

func newSlowly(t *testing.T) *slowly {
	s := &slowly{arrivals: map[string]int{}}
	s.Server = httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, q *http.Request) {
		s.mu.Lock()
		s.arrivals[q.Header.Get("waybill-delivery-id")+"/"+q.Header.Get("waybill-attempt")]++
		s.total++
		s.mu.Unlock()
		time.Sleep(30 * time.Millisecond)
	}))
	t.Cleanup(s.Close)
	return s
}

// TestKilledProcess runs two worker processes on one database and kills one with -9
// in the middle of 1,000 deliveries to a slow receiver. Every delivery ends; no claim
// is made while another holds the delivery; every arrival is an attempt on record or
// one in doubt; the log has no hole.
func TestKilledProcess(t *testing.T) {
	t.Parallel()
	const n = 1000
	db := postgrestest.New(t)
	keyset := filepath.Join(t.TempDir(), "keyset.json")
	vault, err := secrets.LoadOrCreate(keyset)
	if err != nil {
		t.Fatal(err)
	}
	l := postgres.Open(db.App, postgres.Config{Vault: vault})
	rc := newSlowly(t)
	first, second := startWorker(t, db.URL, keyset, "first"), startWorker(t, db.URL, keyset, "second")
	ids := submitTo(t, l, rc.URL, n)
	awaitClaim(t, db, "first")
	if err := first.Process.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	_ = first.Wait()
	awaitDelivered(t, l, ids)
	if err := second.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := second.Wait(); err != nil {
		t.Errorf("the other one ended with %v", err)
	}
	check(t, l, rc, ids)
}

func startWorker(t *testing.T, url, keyset, name string) *exec.Cmd {
	t.Helper()
	c := exec.Command("waybill", "serve", "--api=false", "--lease", "10s", "--concurrency", "24",
		"--allow-networks", "127.0.0.0/8", "--keyset-file", keyset, "--worker-name", name)
	c.Env = append(c.Environ(), "WAYBILL_DATABASE_URL="+url)
	c.Stderr = t.Output()
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Process.Kill() })
	return c
}

// awaitClaim waits until a worker has requests on the wire.
func awaitClaim(t *testing.T, db *postgrestest.DB, worker string) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		var held int
		err := db.App.QueryRow(t.Context(), `select count(*) from waybill.claims c join waybill.deliveries d on d.claim_token = c.token
			where c.worker = $1`, worker).Scan(&held)
		if err != nil {
			t.Fatal(err)
		}
		if held >= 5 {
			return
		}
	}
	t.Fatalf("%s claims nothing", worker)
}

func submitTo(t *testing.T, l *postgres.Ledger, url string, n int) []uuid.UUID {
	t.Helper()
	return submitWith(t, l, url, `{"timeout":"4s","retries":{"delays":["0s","100ms","100ms","100ms"]}}`, n)
}

// submitWith makes an endpoint with a policy and hands in n messages for it.
func submitWith(t *testing.T, l *postgres.Ledger, url, policy string, n int) []uuid.UUID {
	t.Helper()
	by := command.Caller{Tenant: domain.DefaultTenant, Actor: domain.KeyActor(uuid.New())}
	endpoints := command.Endpoints{Ledger: l, Rules: rules{[]netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}}
	e, _, err := endpoints.Create(t.Context(), by, command.EndpointInput{URL: url, Policy: []byte(policy)})
	if err != nil {
		t.Fatal(err)
	}
	return submitMore(t, l, e.ID, n)
}

// submitMore hands in n messages for an endpoint.
func submitMore(t *testing.T, l *postgres.Ledger, endpoint uuid.UUID, n int) []uuid.UUID {
	t.Helper()
	by := command.Caller{Tenant: domain.DefaultTenant, Actor: domain.KeyActor(uuid.New())}
	submitter := command.NewSubmitter(l, command.SubmitOptions{})
	defer submitter.Close()
	subs := make([]command.Submission, n)
	for i := range subs {
		subs[i] = command.Submission{EndpointID: endpoint, EventType: "t", Payload: fmt.Append(nil, i)}
	}
	ids := make([]uuid.UUID, n)
	for i, a := range submitter.SubmitBatch(t.Context(), by, subs) {
		if a.Err != nil {
			t.Fatal(a.Err)
		}
		ids[i] = a.Deliveries[0].DeliveryID
	}
	return ids
}

func awaitDelivered(t *testing.T, l *postgres.Ledger, ids []uuid.UUID) {
	t.Helper()
	deadline := time.Now().Add(90 * time.Second)
	for _, id := range ids {
		for {
			d, err := l.Delivery(t.Context(), domain.DefaultTenant, id)
			if err != nil {
				t.Fatal(err)
			}
			if d.State == domain.StateDelivered {
				break
			}
			if time.Now().After(deadline) {
				t.Fatalf("%s is %s", id, d.State)
			}
			time.Sleep(20 * time.Millisecond)
		}
	}
}

// check reads only the log and the receiver's own record.
func check(t *testing.T, l *postgres.Ledger, rc *slowly, ids []uuid.UUID) {
	t.Helper()
	rep, err := l.Verify(context.Background())
	if err != nil || len(rep.Faults) > 0 || rep.Deliveries != len(ids) {
		t.Errorf("verify: %+v %v", rep, err)
	}
	streams, err := l.Streams(t.Context(), events.DeliveryStream, ids)
	if err != nil {
		t.Fatal(err)
	}
	known, doubts := map[string]bool{}, 0
	for id, records := range streams {
		doubts += checkClaims(t, id, records, known)
	}
	if doubts == 0 {
		t.Error("the killed worker left nothing in doubt: it was killed too late to prove anything")
	}
	rc.mu.Lock()
	defer rc.mu.Unlock()
	for attempt, times := range rc.arrivals {
		if times != 1 || !known[attempt] {
			t.Errorf("attempt %s arrived %d times; on record: %v", attempt, times, known[attempt])
		}
	}
	t.Logf("%d arrivals for %d deliveries, %d claims in doubt", rc.total, len(ids), doubts)
}

// checkClaims walks one history: a claim begins only where none is open, and ends
// once. It notes the attempts that are on record and counts those in doubt.
func checkClaims(t *testing.T, id uuid.UUID, records []events.Record, known map[string]bool) (doubts int) {
	t.Helper()
	var d projections.Delivery
	for _, r := range records {
		e, err := r.Event()
		if err != nil {
			t.Fatal(err)
		}
		if c, ok := e.(domain.Claimed); ok {
			if d.State != domain.StatePending || d.Proof != 0 {
				t.Errorf("%s seq %d: claimed while %s", id, r.Seq, d.State)
			}
			if c.Attempt != d.Attempts+1 {
				t.Errorf("%s seq %d: attempt %d follows %d", id, r.Seq, c.Attempt, d.Attempts)
			}
		}
		switch e := e.(type) {
		case domain.Attempted:
			known[fmt.Sprint(id, "/", e.Attempt)] = true
		case domain.LeaseExpired:
			known[fmt.Sprint(id, "/", e.Attempt)] = true
			doubts++
		}
		d.Delivery = d.Evolve(e, r.RecordedAt)
	}
	return doubts
}
