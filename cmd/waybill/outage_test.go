package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"waybill/adapters/embedded"
	"waybill/adapters/postgres"
	"waybill/adapters/postgres/postgrestest"
)

// crowd hands in messages over HTTP and remembers what was accepted.
type crowd struct {
	url, key string
	mu       sync.Mutex
	accepted []string // delivery ids
	answers  map[int]int
}

// client hands in one message after the other until ctx ends, each with a key of its own
// that is used again after a 503, as callers are told to.
func (c *crowd) client(ctx context.Context, name int) {
	for n := 0; ctx.Err() == nil; n++ {
		for !c.submit(ctx, fmt.Sprintf("%d-%d", name, n)) && ctx.Err() == nil {
			time.Sleep(100 * time.Millisecond)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

func (c *crowd) submit(ctx context.Context, key string) (done bool) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url, strings.NewReader("{}"))
	if err != nil {
		return false
	}
	r.Header.Set("Authorization", "Bearer "+c.key)
	r.Header.Set("Idempotency-Key", key)
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		return false
	}
	defer func() { _ = res.Body.Close() }()
	var a struct {
		DeliveryID string `json:"delivery_id"`
	}
	err = json.NewDecoder(res.Body).Decode(&a)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.answers[res.StatusCode]++
	if res.StatusCode == http.StatusAccepted && err == nil {
		c.accepted = append(c.accepted, a.DeliveryID)
	}
	return res.StatusCode == http.StatusAccepted
}

func (c *crowd) count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.accepted)
}

// TestDatabaseRestartedAndKilledUnderLoad is case 10. While clients hand in and a worker
// delivers, PostgreSQL is stopped as by a crash, and later killed with -9. API and worker
// recover by themselves, in the same process; callers are answered 202 or 503; whatever
// was accepted is delivered; and while the database is away nothing spins: the process
// uses little CPU, and has no more goroutines afterwards than before.
//
// It fails if a loop does not wait after a fault, or does not go on after one.
func TestDatabaseRestartedAndKilledUnderLoad(t *testing.T) {
	t.Parallel()
	server := postgrestest.Server(t, embedded.Config{})
	o := operatorOf{t, postgrestest.NewOn(t, server), filepath.Join(t.TempDir(), "keyset")}
	o.run("keyset", "create", "--out", o.keyset)
	to := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer to.Close()
	s := o.serve("--allow-networks", loopback, "--lease", "10s")
	c := &crowd{url: "http://" + s.addr + "/v1/endpoints/" + o.endpoint(to.URL) + "/deliveries", answers: map[int]int{},
		key: o.get("key", "keys", "create", "--name", "crowd", "--scope", "submit")}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var clients sync.WaitGroup
	for i := range 8 {
		clients.Go(func() { c.client(ctx, i) })
	}
	within(t, "messages are accepted", func() bool { return c.count() >= 50 })
	before := s.metric("go_goroutines") // at work
	for name, end := range map[string]func(){
		"crashed": func() { _ = server.StopImmediate() },
		"killed":  func() { _ = syscall.Kill(server.PID(), syscall.SIGKILL) },
	} {
		some := c.count() + 50
		within(t, "messages are accepted", func() bool { return c.count() >= some })
		end()
		o.staysCalm(s, name)
		if err := server.Restart(t.Context()); err != nil {
			t.Fatal(err)
		}
		some = c.count() + 50
		within(t, name+": messages are accepted again", func() bool { return c.count() >= some })
	}
	stop()
	clients.Wait()
	o.endsDelivered(c)
	to.CloseClientConnections() // each that idles has two goroutines
	http.DefaultClient.CloseIdleConnections()
	within(t, "no goroutine is left over", func() bool { return s.metric("go_goroutines") <= before+20 })
	if n := s.metric("waybill_results_unrecorded"); n != 0 {
		t.Errorf("%v results wait", n)
	}
	if n := s.metric(`waybill_submissions_total{code="accepted"}`) + max(0, s.metric(`waybill_submissions_total{code="duplicate"}`)); n < float64(c.count()) {
		t.Errorf("%v submissions accepted, %d answered", n, c.count())
	}
	t.Logf("answers by status: %v; %v goroutines, %v before", c.answers, s.metric("go_goroutines"), before)
	for status := range c.answers {
		if status != http.StatusAccepted && status != http.StatusServiceUnavailable {
			t.Errorf("answered %d", status)
		}
	}
	s.signal(syscall.SIGTERM)
	if code := s.ended(); code != exitDone {
		t.Errorf("exit code %d", code)
	}
}

// staysCalm watches the process while its database is away.
func (o operatorOf) staysCalm(s *served, name string) {
	o.t.Helper()
	const watch = 1500 * time.Millisecond
	cpu := s.metric("process_cpu_seconds_total")
	time.Sleep(watch)
	if used := s.metric("process_cpu_seconds_total") - cpu; used > watch.Seconds()*0.7 {
		o.t.Errorf("%s: the process used %.2f s of CPU in %s", name, used, watch)
	}
	if status, body := s.get("/readyz"); status != http.StatusServiceUnavailable || !strings.Contains(body, `"unrecorded_results"`) {
		o.t.Errorf("%s: /readyz answers %d: %s", name, status, body)
	}
	if status, _ := s.get("/healthz"); status != http.StatusOK {
		o.t.Errorf("%s: /healthz answers %d", name, status)
	}
}

// endsDelivered waits until all that was accepted is delivered, and demands that nothing
// of it is missing and every row is the fold of its events.
func (o operatorOf) endsDelivered(c *crowd) {
	o.t.Helper()
	pool, err := postgres.Connect(o.t.Context(), o.db.URL, postgres.ConnectOptions{MaxConns: 2})
	if err != nil {
		o.t.Fatal(err)
	}
	defer pool.Close()
	count := func(state string) (n int) {
		_ = pool.QueryRow(o.t.Context(), `select count(*) from waybill.deliveries where id = any($1::text[]::uuid[])
			and state like $2`, c.accepted, state).Scan(&n)
		return n
	}
	distinct := map[string]bool{}
	for _, id := range c.accepted {
		distinct[id] = true
	}
	if n := count("%"); n != len(distinct) {
		o.t.Errorf("%d of %d accepted deliveries are there", n, len(distinct))
	}
	// What was on the wire when the database went is recorded; what was claimed by a commit
	// whose answer was lost goes on when its lease of 10 s ends.
	within(o.t, "all is delivered", func() bool { return count("delivered") == len(distinct) })
	rep, err := postgres.Open(pool, postgres.Config{}).Verify(o.t.Context())
	if err != nil || len(rep.Faults) > 0 {
		o.t.Errorf("%+v %v", rep, err)
	}
}
