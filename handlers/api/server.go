package api

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/google/uuid"
	"golang.org/x/mod/sumdb/note"

	"waybill/domain"
	"waybill/events"
	"waybill/handlers/command"
	"waybill/projections"
)

// Submitter accepts messages.
type Submitter interface {
	Submit(ctx context.Context, by command.Caller, sub command.Submission) (projections.Acceptance, error)
	SubmitBatch(ctx context.Context, by command.Caller, subs []command.Submission) []projections.Acceptance
}

// Authenticator tells whose key a bearer token is.
type Authenticator interface {
	Authenticate(ctx context.Context, bearer string) (projections.Key, error)
}

// Reader answers questions, each bound to a tenant.
type Reader interface {
	Now(ctx context.Context) (domain.Instant, error)
	Endpoint(ctx context.Context, tenant string, id uuid.UUID) (projections.Endpoint, error)
	Endpoints(ctx context.Context, tenant string, before uuid.UUID, limit int) ([]projections.Endpoint, error)
	Delivery(ctx context.Context, tenant string, id uuid.UUID) (projections.Delivery, error)
	Deliveries(ctx context.Context, tenant string, f projections.DeliveryFilter, before uuid.UUID, limit int) ([]projections.Delivery, error)
	DeliveryAsOf(ctx context.Context, tenant string, id uuid.UUID, p projections.Past) (projections.DeliveryThen, error)
	DeliveriesAsOf(ctx context.Context, tenant string, f projections.DeliveryFilter, at domain.Instant, before uuid.UUID, limit int) ([]projections.DeliveryThen, uuid.UUID, error)
	EndpointAsOf(ctx context.Context, tenant string, id uuid.UUID, p projections.Past) (projections.EndpointThen, error)
	Actions(ctx context.Context, tenant string, f projections.AuditFilter, before int64, limit int) ([]projections.Action, error)
	Attempts(ctx context.Context, tenant string, f projections.AuditFilter, before int64, limit int) ([]projections.AuditAttempt, error)
	Doubts(ctx context.Context, tenant string, f projections.AuditFilter, before int64, limit int) ([]projections.Doubt, error)
	Dossier(ctx context.Context, tenant string, id uuid.UUID) (projections.Dossier, error)
	Stream(ctx context.Context, tenant string, kind events.Stream, id uuid.UUID, after, limit int) ([]events.Record, error)
	ReadPayload(ctx context.Context, tenant string, id uuid.UUID, by domain.Actor, from, onBehalfOf string) ([]byte, string, error)
	Exchanges(ctx context.Context, tenant string, id uuid.UUID) ([]projections.Exchange, error)
}

// Readiness tells whether the ledger can be used.
type Readiness interface {
	Ping(ctx context.Context) error
	CheckSchema(ctx context.Context) error
}

// Config is what the API works with.
type Config struct {
	Submitter  Submitter
	Operations command.Operations
	Eraser     command.Eraser
	Remote     command.Remote
	Endpoints  command.Endpoints
	Keys       Authenticator
	Ledger     Reader
	Ready      Readiness
	Proofs     Prover
	Signer     note.Signer // of checkpoints; nil: nothing can be proven here
	Verifier   string      // the signer's verifier key

	Transient  func(error) bool // whether a fault may pass by itself; nil: none may
	Log        *slog.Logger     // nil: slog.Default()
	MaxPayload int64            // bytes of one message; 0: 1 MiB
	// What all requests under /v1 together may hold; who comes beyond it is answered
	// with storage_unavailable before its body is read.
	MaxRequests int   // at a time; 0: 4,096
	MaxBodies   int64 // bytes of messages and batches; 0: 128 MiB

	// Backlog says how many results of this process wait to be recorded and how long
	// the oldest has; nil: there is no worker.
	Backlog func() (results int, longest time.Duration)
	Metrics http.Handler // answers /metrics; nil: nothing to show

	Timeout time.Duration // of one request; 0: 30 s
	Version string        // of the program, for the description
}

// Bounds of requests, in bytes and number.
const (
	defaultMaxPayload = 1 << 20
	maxBatchBytes     = 16 << 20
	maxBatchItems     = 1000
	maxJSONBytes      = 256 << 10 // of bodies other than messages and batches
	defaultTimeout    = 30 * time.Second
)

type server struct {
	Config
	mux              *http.ServeMux
	requests, bodies admission
}

// New returns the API. It answers /v1, /healthz, /readyz, /metrics and /openapi.json,
// and every other path with a problem. The server that it runs in must bound the time
// for reading headers.
func New(c Config) http.Handler {
	s := newServer(c)
	s.serveDescription(s.describe())
	return s
}

// Probes returns what a node answers that has no API: /healthz, /readyz and /metrics. Of
// the Config only Ready, Backlog, Metrics, Transient, Log and Timeout count.
func Probes(c Config) http.Handler {
	s := newServer(c)
	s.probes(s.adopt())
	return s
}

func newServer(c Config) *server {
	if c.Log == nil {
		c.Log = slog.Default()
	}
	if c.Transient == nil {
		c.Transient = func(error) bool { return false }
	}
	if c.MaxPayload == 0 {
		c.MaxPayload = defaultMaxPayload
	}
	if c.Timeout == 0 {
		c.Timeout = defaultTimeout
	}
	if c.MaxRequests == 0 {
		c.MaxRequests = defaultMaxRequests
	}
	if c.MaxBodies == 0 {
		c.MaxBodies = defaultMaxBodies
	}
	if c.Backlog == nil {
		c.Backlog = func() (int, time.Duration) { return 0, 0 }
	}
	if c.Metrics == nil {
		c.Metrics = http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})
	}
	s := &server{Config: c, mux: http.NewServeMux()}
	s.requests.most, s.bodies.most = int64(c.MaxRequests), c.MaxBodies
	return s
}

// serveDescription answers /openapi.json, made once.
func (s *server) serveDescription(doc json.Marshaler) {
	text, err := json.Marshal(doc)
	if err != nil {
		panic(fmt.Sprintf("the API's description: %v", err)) // a mistake in this package
	}
	s.mux.HandleFunc("GET /openapi.json", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/openapi+json")
		_, _ = w.Write(text)
	})
}
