package postgres_test

import (
	"context"
	"testing"
	"time"

	"github.com/google/uuid"

	"waybill/adapters/postgres"
	"waybill/adapters/postgres/postgrestest"
	"waybill/adapters/secrets"
	"waybill/domain"
	"waybill/events"
	"waybill/projections"
)

// fixture is a ledger in a database of the test's own, under the application's role.
type fixture struct {
	*postgres.Ledger
	t  testing.TB
	db *postgrestest.DB
}

func open(t testing.TB) fixture {
	t.Helper()
	db := postgrestest.New(t)
	vault, err := secrets.New()
	if err != nil {
		t.Fatal(err)
	}
	return fixture{postgres.Open(db.App, postgres.Config{Vault: vault}), t, db}
}

func (f fixture) now() domain.Instant {
	f.t.Helper()
	now, err := f.Now(f.t.Context())
	if err != nil {
		f.t.Fatal(err)
	}
	return now
}

// endpoint makes an endpoint with the default policy, changed as asked.
func (f fixture) endpoint(change ...func(*domain.Policy)) projections.Endpoint {
	f.t.Helper()
	policy := domain.DefaultPolicy()
	for _, c := range change {
		c(&policy)
	}
	now := f.now()
	blank := projections.Endpoint{Endpoint: domain.Endpoint{ID: postgres.NewID(now), Tenant: domain.DefaultTenant}}
	c, err := blank.Advance("operator:test@here", now, domain.EndpointCreated{Config: domain.EndpointConfig{
		URL: "https://example.test/hook", URLFingerprint: domain.Hex{1}, Mode: domain.ModeHTTP,
		EventTypes: []string{}, Policy: policy,
	}})
	if err != nil {
		f.t.Fatal(err)
	}
	target := domain.Target{URL: "https://example.test/hook", Secrets: []domain.SigningSecret{{Secret: "whsec_AAAA"}}}
	if err := f.CreateEndpoint(f.t.Context(), c, target); err != nil {
		f.t.Fatal(err)
	}
	return c.After
}

// draft is a submission of one delivery to an endpoint, at a moment.
func (f fixture) draft(endpoint uuid.UUID, at domain.Instant, key string) projections.Submission {
	f.t.Helper()
	salt := []byte("salt")
	payload := []byte(`{"n":1}`)
	m := projections.Message{
		ID: postgres.NewID(at), Tenant: domain.DefaultTenant, EventType: "t.a", ContentType: "application/json",
		Payload: payload, Salt: salt, Commitment: events.Commitment(salt, payload),
	}
	blank := projections.Delivery{Delivery: domain.Delivery{ID: postgres.NewID(at), Tenant: domain.DefaultTenant}}
	s := projections.Submission{Message: m, Key: key, Scope: endpoint}
	fact := domain.Scheduled{EndpointID: endpoint, MessageID: m.ID, EventType: "t.a", ContentType: m.ContentType,
		PayloadSize: len(payload), Commitment: m.Commitment, IdempotencyKey: key, DueAt: at}
	if key != "" {
		s.Fingerprint = events.Fingerprint(salt, m.ContentType, m.EventType, "", payload)
		fact.Fingerprint = s.Fingerprint
	}
	c, err := blank.Advance("key:test", at, fact)
	if err != nil {
		f.t.Fatal(err)
	}
	s.Deliveries = []projections.DeliveryChange{c}
	return s
}

// schedule accepts n deliveries to an endpoint and returns their rows.
func (f fixture) schedule(endpoint uuid.UUID, n int) []projections.Delivery {
	f.t.Helper()
	now := f.now()
	items := make([]projections.Submission, n)
	rows := make([]projections.Delivery, n)
	for i := range items {
		items[i] = f.draft(endpoint, now, "")
		rows[i] = items[i].Deliveries[0].After
	}
	if _, err := f.Schedule(f.t.Context(), items, now); err != nil {
		f.t.Fatal(err)
	}
	return rows
}

// claim takes up to n due deliveries of an endpoint under a lease.
func (f fixture) claim(endpoint uuid.UUID, n int, lease time.Duration) projections.Batch {
	f.t.Helper()
	b, err := f.Claim(f.t.Context(), projections.ClaimRequest{
		Worker: "w", Lease: lease, Batch: n,
		From: []projections.ClaimQuota{{EndpointID: endpoint, Limit: n}},
	})
	if err != nil {
		f.t.Fatal(err)
	}
	return b
}

// stream reads a delivery's whole history.
func (f fixture) stream(id uuid.UUID) []events.Record {
	f.t.Helper()
	list, err := f.Stream(f.t.Context(), domain.DefaultTenant, events.DeliveryStream, id, 0, 1000)
	if err != nil {
		f.t.Fatal(err)
	}
	return list
}

func names(records []events.Record) []string {
	list := make([]string, len(records))
	for i, r := range records {
		list[i] = r.Name
	}
	return list
}

// verify demands that every row is the fold of its stream.
func (f fixture) verify() {
	f.t.Helper()
	rep, err := f.Verify(context.Background())
	if err != nil {
		f.t.Fatal(err)
	}
	for _, fault := range rep.Faults {
		f.t.Error(fault)
	}
}
