package worker_test

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"go.uber.org/goleak"

	"waybill/adapters/postgres"
	"waybill/adapters/postgres/postgrestest"
	"waybill/adapters/secrets"
	"waybill/adapters/webhook"
	"waybill/domain"
	"waybill/events"
	"waybill/handlers/command"
	"waybill/handlers/worker"
	"waybill/projections"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var loopback = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}

// rig is a ledger in a database of its own, and what is needed to fill and work it.
type rig struct {
	*postgres.Ledger
	t      testing.TB
	db     *postgrestest.DB
	submit *command.Submitter
}

func newRig(t testing.TB) *rig {
	t.Helper()
	db := postgrestest.New(t)
	vault, err := secrets.New()
	if err != nil {
		t.Fatal(err)
	}
	l := postgres.Open(db.App, postgres.Config{Vault: vault})
	r := &rig{Ledger: l, t: t, db: db, submit: command.NewSubmitter(l, command.SubmitOptions{Isolable: postgres.Isolable})}
	t.Cleanup(r.submit.Close)
	return r
}

// quick is a policy whose retries come at once.
func quick(p *domain.Policy) {
	p.Timeout = domain.Duration(2 * time.Second)
	p.Retries = domain.Retries{Delays: []domain.Duration{0, 0, 0}}
	p.Jitter = 0
}

func hold(p *domain.Policy) { p.OnUnknown = domain.HoldUnknown }

func (r *rig) endpoint(url string, change ...func(*domain.Policy)) uuid.UUID {
	r.t.Helper()
	policy := domain.DefaultPolicy()
	for _, c := range change {
		c(&policy)
	}
	now := r.now()
	blank := projections.Endpoint{Endpoint: domain.Endpoint{ID: postgres.NewID(now), Tenant: domain.DefaultTenant}}
	c, err := blank.Advance("operator:test@here", now, domain.EndpointCreated{Config: domain.EndpointConfig{
		URL: url, URLFingerprint: domain.Hex{1}, Mode: domain.ModeHTTP, EventTypes: []string{}, Policy: policy,
	}})
	if err != nil {
		r.t.Fatal(err)
	}
	secret, err := webhook.NewSecret()
	if err != nil {
		r.t.Fatal(err)
	}
	if err := r.CreateEndpoint(r.t.Context(), c, domain.Target{URL: url, Secrets: []domain.SigningSecret{{Secret: secret}}}); err != nil {
		r.t.Fatal(err)
	}
	return c.After.ID
}

func (r *rig) now() domain.Instant {
	r.t.Helper()
	now, err := r.Now(r.t.Context())
	if err != nil {
		r.t.Fatal(err)
	}
	return now
}

// submitN hands in n messages for an endpoint and returns the deliveries' ids.
func (r *rig) submitN(endpoint uuid.UUID, n int) []uuid.UUID {
	r.t.Helper()
	subs := make([]command.Submission, n)
	for i := range subs {
		subs[i] = command.Submission{EndpointID: endpoint, EventType: "t.a", ContentType: "text/plain", Payload: []byte("x")}
	}
	ids := make([]uuid.UUID, n)
	by := command.Caller{Tenant: domain.DefaultTenant, Actor: "key:test"}
	for i, a := range r.submit.SubmitBatch(r.t.Context(), by, subs) {
		if a.Err != nil {
			r.t.Fatal(a.Err)
		}
		ids[i] = a.Deliveries[0].DeliveryID
	}
	return ids
}

// config is a worker's, with a real sender that may reach loopback.
func (r *rig) config(name string) worker.Config {
	sender := webhook.New(webhook.Config{AllowNetworks: loopback})
	r.t.Cleanup(sender.Close)
	return worker.Config{
		Name: name, Ledger: r.Ledger, Sender: sender, Concurrency: 16, Isolable: postgres.Isolable,
		Log: slog.New(slog.NewTextHandler(r.t.Output(), nil)),
	}
}

// start runs a worker until stop is called or the test ends.
func (r *rig) start(c worker.Config) (w *worker.Worker, stop func()) {
	w = worker.New(c)
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := w.Run(ctx); err != nil {
			r.t.Error(err)
		}
	})
	stop = sync.OnceFunc(func() { cancel(); wg.Wait() })
	r.t.Cleanup(stop)
	return w, stop
}

// await polls until every delivery satisfies the condition.
func (r *rig) await(ids []uuid.UUID, what string, ok func(projections.Delivery) bool) []projections.Delivery {
	r.t.Helper()
	var rows []projections.Delivery
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		rows = rows[:0]
		done := true
		for _, id := range ids {
			d, err := r.Delivery(r.t.Context(), domain.DefaultTenant, id)
			if err != nil {
				r.t.Fatal(err)
			}
			rows = append(rows, d)
			done = done && ok(d)
		}
		if done {
			return rows
		}
	}
	for _, d := range rows {
		if !ok(d) {
			r.t.Fatalf("%s did not come about: %s %v", d.ID, what, names(r.stream(d.ID)))
		}
	}
	return nil
}

func in(s domain.State) func(projections.Delivery) bool {
	return func(d projections.Delivery) bool { return d.State == s }
}

func (r *rig) stream(id uuid.UUID) []events.Record {
	r.t.Helper()
	list, err := r.Stream(context.Background(), domain.DefaultTenant, events.DeliveryStream, id, 0, 1000)
	if err != nil {
		r.t.Fatal(err)
	}
	return list
}

func names(records []events.Record) []string {
	list := make([]string, len(records))
	for i, rec := range records {
		list[i] = rec.Name
	}
	return list
}

func (r *rig) verify() {
	r.t.Helper()
	rep, err := r.Verify(context.Background())
	if err != nil {
		r.t.Fatal(err)
	}
	for _, fault := range rep.Faults {
		r.t.Error(fault)
	}
}

// receiver is a real HTTP server; it counts arrivals by delivery.
type receiver struct {
	*httptest.Server
	mu       sync.Mutex
	arrivals map[string][]string // delivery id: attempt numbers
}

func newReceiver(t testing.TB, answer http.HandlerFunc) *receiver {
	rc := &receiver{arrivals: map[string][]string{}}
	rc.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		rc.mu.Lock()
		id := q.Header.Get("waybill-delivery-id")
		rc.arrivals[id] = append(rc.arrivals[id], q.Header.Get("waybill-attempt"))
		rc.mu.Unlock()
		answer(w, q)
	}))
	t.Cleanup(rc.Close)
	return rc
}

func (rc *receiver) of(id uuid.UUID) []string {
	rc.mu.Lock()
	defer rc.mu.Unlock()
	return rc.arrivals[id.String()]
}
