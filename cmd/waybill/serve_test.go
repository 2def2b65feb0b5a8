package main

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// receiver counts requests; while gate is open it answers them at once.
type receiver struct {
	*httptest.Server
	requests atomic.Int64
	gate     chan struct{}
}

func newReceiver(t *testing.T) *receiver {
	t.Helper()
	r := &receiver{gate: make(chan struct{})}
	r.Server = httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, req *http.Request) {
		_, _ = io.Copy(io.Discard, req.Body) // or a caller who hangs up is not noticed
		r.requests.Add(1)
		select {
		case <-r.gate:
		case <-req.Context().Done():
		}
	}))
	t.Cleanup(r.Close)
	return r
}

const loopback = "127.0.0.0/8"

func (o operatorOf) endpoint(url string) string {
	o.t.Helper()
	return o.get("id", "endpoints", "create", "--url", url, "--allow-networks", loopback)
}

func (o operatorOf) submit(endpoint, payload string) string {
	o.t.Helper()
	cmd := o.command("submit", "--endpoint", endpoint, "-")
	cmd.Stdin = strings.NewReader(payload)
	out, err := cmd.Output()
	if err != nil {
		o.t.Fatal(err)
	}
	return strings.TrimSpace(string(out))
}

func (o operatorOf) state(delivery string) string {
	o.t.Helper()
	return o.get("state", "deliveries", "show", delivery)
}

// TestServeDrains: a signal while a request is on the wire ends the process with 0,
// after the answer came and was recorded; nothing new is begun.
//
// Case 12.
func TestServeDrains(t *testing.T) {
	t.Parallel()
	o, to := newOperator(t), newReceiver(t)
	s := o.serve("--allow-networks", loopback, "--worker-name", "w1")
	first := o.submit(o.endpoint(to.URL), "{}")
	within(t, "the request is on the wire", func() bool { return to.requests.Load() == 1 })
	s.signal(syscall.SIGTERM)
	within(t, "the API accepts nothing more", func() bool {
		c, err := net.DialTimeout("tcp", s.addr, time.Second)
		if err == nil {
			_ = c.Close()
		}
		return err != nil
	})
	second := o.submit(o.endpoint(to.URL), "{}")
	close(to.gate)
	if code := s.ended(); code != exitDone {
		t.Errorf("exit code %d after SIGTERM: %v", code, s.lines(""))
	}
	if a, b := o.state(first), o.state(second); a != "delivered" || b != "pending" {
		t.Errorf("what was in flight is %s, what came later is %s", a, b)
	}
	if n := len(s.lines("ready")); n != 1 {
		t.Errorf("%d ready lines", n)
	}
	if n := len(s.lines("CONNECTED AS") /* the application's role is neither */); n != 0 {
		t.Errorf("a warning without cause: %v", s.lines("CONNECTED AS"))
	}
	if history := o.run("deliveries", "events", first); !strings.Contains(history, "worker:w1") {
		t.Errorf("the history does not name the worker:\n%s", history)
	}
}

// TestServeEndsAtOnce: a second signal that is no repetition waits for nothing.
func TestServeEndsAtOnce(t *testing.T) {
	t.Parallel()
	o, to := newOperator(t), newReceiver(t)
	s := o.serve("--allow-networks", loopback)
	o.submit(o.endpoint(to.URL), "{}")
	within(t, "the request is on the wire", func() bool { return to.requests.Load() == 1 })
	s.signal(syscall.SIGINT)
	within(t, "it is stopping", func() bool { return len(s.lines("stopping")) == 1 })
	time.Sleep(graceOfSignals + 200*time.Millisecond)
	begun := time.Now()
	s.signal(syscall.SIGINT)
	if code := s.ended(); code == exitDone || time.Since(begun) > 2*time.Second {
		t.Errorf("exit code %d after %s", code, time.Since(begun))
	}
}

// TestServeAPIAlone answers and delivers nothing; TestServeWorkerAlone the reverse.
func TestServeAPIAlone(t *testing.T) {
	t.Parallel()
	o, to := newOperator(t), newReceiver(t)
	close(to.gate)
	s := o.serve("--worker=false")
	d := o.submit(o.endpoint(to.URL), "{}")
	for _, path := range []string{"/healthz", "/readyz", "/metrics", "/openapi.json"} {
		if status, _ := s.get(path); status != http.StatusOK {
			t.Errorf("%s answers %d", path, status)
		}
	}
	s.signal(syscall.SIGTERM)
	if code := s.ended(); code != exitDone || o.state(d) != "pending" || to.requests.Load() != 0 {
		t.Errorf("exit code %d, the delivery is %s, %d requests", code, o.state(d), to.requests.Load())
	}
	if name := s.lines("ready")[0]["worker"]; name != "" {
		t.Errorf("the ready line names a worker: %v", name)
	}
}

// TestServeWorkerAlone delivers, and where it is told to listen has no more than probes
// and metrics. It runs as the schema's owner and with a short lease, and says what is
// wrong with both.
func TestServeWorkerAlone(t *testing.T) {
	t.Parallel()
	o, to := newOperator(t), newReceiver(t)
	close(to.gate)
	s := o.serve("--no-api", "--allow-networks", loopback, "--lease", "20s", "--database-url", o.db.OwnerURL)
	d := o.submit(o.endpoint(to.URL), "{}")
	within(t, "it is delivered", func() bool { return o.state(d) == "delivered" })
	for name, want := range map[string]float64{
		"waybill_results_unrecorded": 0, `waybill_attempts_total{outcome="succeeded",reason=""}`: 1, "waybill_claimed_deliveries_total": 1,
		"waybill_attempt_duration_seconds_count": 1, "waybill_stale_appends_total": 0, "waybill_attempts_in_flight": 0,
	} {
		if got := s.metric(name); got != want {
			t.Errorf("%s is %v", name, got)
		}
	}
	if len(s.lines("CONNECTED AS THE OWNER")) != 1 {
		t.Errorf("log %v", s.lines(""))
	}
	for path, status := range map[string]int{"/healthz": 200, "/readyz": 200, "/metrics": 200, "/openapi.json": 404, "/v1/deliveries": 404} {
		if got, _ := s.get(path); got != status {
			t.Errorf("%s answers %d", path, got)
		}
	}
	if cut := s.lines("cut short"); len(cut) != 1 || cut[0]["longest_request"] != "15s" {
		t.Errorf("what it says of a short lease: %v", cut)
	}
	s.signal(syscall.SIGTERM)
	if code := s.ended(); code != exitDone {
		t.Errorf("exit code %d", code)
	}
	super := o.serve("--database-url", o.db.SuperURL)
	if len(super.lines("CONNECTED AS A SUPERUSER")) != 1 {
		t.Errorf("what it says of a superuser: %v", super.lines(""))
	}
	super.signal(syscall.SIGTERM)
	super.ended()
}

// TestGoneDisables: a 410 fails the delivery and disables its endpoint.
func TestGoneDisables(t *testing.T) {
	t.Parallel()
	o := newOperator(t)
	to := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusGone) }))
	defer to.Close()
	s := o.serve("--allow-networks", loopback)
	e := o.endpoint(to.URL)
	d := o.submit(e, "{}")
	within(t, "it fails", func() bool { return o.state(d) == "failed" })
	within(t, "the endpoint is disabled", func() bool { return o.get("status", "endpoints", "show", e) == "disabled" })
	if got := o.get("failure_reason", "deliveries", "show", d); got != "rejected" {
		t.Errorf("failure reason %q", got)
	}
	s.signal(syscall.SIGTERM)
	s.ended()
}

// TestAddressTaken: a port that somebody has is a failure, told in one line.
func TestAddressTaken(t *testing.T) {
	t.Parallel()
	o := newOperator(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	out, err := o.command("serve", "--listen", l.Addr().String()).CombinedOutput()
	if err == nil || !strings.Contains(string(out), "waybill: failed: listen") || strings.Contains(string(out), `"ready"`) {
		t.Errorf("%v: %s", err, out)
	}
}
