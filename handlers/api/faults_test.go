package api_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"waybill/adapters/postgres"
	"waybill/handlers/api"
	"waybill/handlers/command"
	"waybill/projections"
)

// broken is a submitter that fails as it is told to.
type broken func(ctx context.Context) error

func (b broken) Submit(ctx context.Context, _ command.Caller, _ command.Submission) (projections.Acceptance, error) {
	return projections.Acceptance{}, b(ctx)
}

func (b broken) SubmitBatch(ctx context.Context, _ command.Caller, subs []command.Submission) []projections.Acceptance {
	return []projections.Acceptance{{Err: b(ctx)}}
}

// TestFaultsSayNothing: a 5xx carries no driver's and no Go text; the log does.
func TestFaultsSayNothing(t *testing.T) {
	t.Parallel()
	passing := errors.New("passing: dial tcp 10.1.2.3:5432")
	for name, c := range map[string]struct {
		fail   broken
		status int
		code   string
		logged string
	}{
		"fault":     {func(context.Context) error { return errors.New("SQLSTATE 42P01 at /src/x.go") }, 500, "internal", "SQLSTATE 42P01"},
		"transient": {func(context.Context) error { return passing }, 503, "storage_unavailable", "10.1.2.3"},
		"deadline":  {func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }, 503, "storage_unavailable", "deadline"},
		"panic":     {func(context.Context) error { panic("at /src/y.go") }, 500, "internal", "/src/y.go"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := start(t, func(c2 *api.Config) {
				c2.Submitter, c2.Timeout = c.fail, 300*time.Millisecond
				c2.Transient = func(err error) bool { return errors.Is(err, passing) }
			})
			a := w.post("/v1/endpoints/01a228de-7199-7ad8-a0e9-c850f671af39/deliveries", "s3cret payload")
			p := a.refuses(c.status, c.code)
			if strings.ContainsAny(p.Detail, "/0123456789") || (a.header.Get("Retry-After") == "1") != (c.status == 503) {
				t.Errorf("%+v, Retry-After %q", p, a.header.Get("Retry-After"))
			}
			if log := w.log.String(); !strings.Contains(log, c.logged) || strings.Contains(log, "s3cret") || strings.Contains(log, "wbk_") {
				t.Errorf("log: %s", log)
			}
			w.get("/healthz").is(200)
		})
	}
}

// TestDatabaseAway is case 17.
func TestDatabaseAway(t *testing.T) {
	t.Parallel()
	w := start(t)
	pool, err := postgres.Connect(t.Context(), "postgres://nobody@127.0.0.1:1/none?connect_timeout=1", postgres.ConnectOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	away := postgres.Open(pool, postgres.Config{})
	dead := start(t, func(c *api.Config) { c.Keys, c.Ready = command.Keys{Ledger: away}, away })
	dead.key = w.key
	for _, a := range []answer{dead.get("/v1/deliveries"), dead.post("/v1/messages", "x", "Waybill-Event-Type", "a"), dead.get("/readyz")} {
		if a.refuses(503, "storage_unavailable"); a.header.Get("Retry-After") != "1" {
			t.Errorf("%s: %v", a.what, a.header)
		}
	}
	dead.get("/healthz").is(200)
}

// TestBodiesThatDoNotCome: a body that stops half-way is no message.
func TestBodiesThatDoNotCome(t *testing.T) {
	t.Parallel()
	w := start(t, func(c *api.Config) { c.Timeout = 300 * time.Millisecond })
	endpoint := w.endpoint()
	for _, path := range []string{endpoint + "/deliveries", "/v1/deliveries/batch", "/v1/endpoints"} {
		slow, stop := stalled()
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, w.url+path, slow)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+w.key)
		w.send(r).refuses(400, "invalid_request")
		stop()
	}
	if items := w.get("/v1/deliveries").is(200).object()["items"].([]any); len(items) != 0 {
		t.Errorf("%v", items)
	}
}

// stalled is a body that gives a byte and then nothing until it is stopped.
func stalled() (body *stall, stop func()) {
	s := &stall{done: make(chan struct{})}
	return s, func() { close(s.done) }
}

type stall struct {
	begun bool
	done  chan struct{}
}

func (s *stall) Read(b []byte) (int, error) {
	if !s.begun {
		s.begun, b[0] = true, '{'
		return 1, nil
	}
	<-s.done
	return 0, errors.New("stopped")
}

// TestDatabaseAwayInTheMiddle is case 17 at its worst: the connection is ended from the
// server's side while the transaction has written the message and not yet its delivery.
// The caller gets a 503 with Retry-After, nothing of it is stored, and the same key is as
// good as new. It fails if message and delivery are written in two transactions.
func TestDatabaseAwayInTheMiddle(t *testing.T) {
	t.Parallel()
	w := start(t)
	endpoint := w.endpoint()
	tx, err := w.db.Super().Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), "lock table waybill.deliveries in share mode"); err != nil {
		t.Fatal(err)
	}
	got := make(chan answer, 1)
	go func() { got <- w.post(endpoint+"/deliveries", "x", "Idempotency-Key", "k") }()
	for ended := false; !ended; time.Sleep(5 * time.Millisecond) {
		err := w.db.Super().QueryRow(t.Context(), `select coalesce(bool_or(pg_terminate_backend(pid)), false) from pg_stat_activity
			where datname = current_database() and usename = 'waybill_test_app' and wait_event_type = 'Lock'`).Scan(&ended)
		if err != nil {
			t.Fatal(err)
		}
	}
	a := <-got
	if a.refuses(503, "storage_unavailable"); a.header.Get("Retry-After") != "1" {
		t.Errorf("%v", a.header)
	}
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.keeps(&tally{})
	var n int
	if err := w.db.App.QueryRow(t.Context(), "select count(*) from waybill.messages").Scan(&n); err != nil || n != 0 {
		t.Errorf("%d messages are there: %v", n, err)
	}
	if again := w.post(endpoint+"/deliveries", "x", "Idempotency-Key", "k").is(202).object(); again["duplicate"] != false {
		t.Errorf("%v", again)
	}
}
