package api_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"sync"
	"testing"
	"time"

	"waybill/adapters/postgres"
	"waybill/handlers/api"
	"waybill/handlers/command"
)

// tally is what a crowd of clients was answered.
type tally struct {
	mu       sync.Mutex
	accepted map[string]bool // delivery ids
	refused  int
	heap     uint64 // the most that was in use
}

// TestOverloadIsShed: two hundred clients hand in 1 MiB each, as fast as they are
// answered, on two connections to a database that takes 200 ms for a commit. The API
// answers 202 or 503 with Retry-After and nothing else, its memory stays bounded (all
// bodies at once would take 400 MiB), and what it accepted is there exactly once.
//
// It is not parallel, so that the heap is its own. It fails without the admission of
// bodies, and if a message is answered before its commit.
func TestOverloadIsShed(t *testing.T) {
	w := start(t)
	endpoint := w.endpoint()
	if _, err := w.db.Super().Exec(t.Context(), `create function public.slow() returns trigger language plpgsql as 'begin perform pg_sleep(0.2); return null; end';
		grant execute on function public.slow() to public;
		create trigger slow after insert on waybill.messages for each statement execute function public.slow()`); err != nil {
		t.Fatal(err)
	}
	crowded := *w
	crowded.url = w.narrow(2)
	got := &tally{accepted: map[string]bool{}}
	var base runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&base)
	ctx, stop := context.WithTimeout(t.Context(), 2*time.Second)
	defer stop()
	var clients sync.WaitGroup
	payload := bytes.Repeat([]byte("x"), 1<<20)
	for i := range 200 {
		clients.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				got.take(&crowded, endpoint, payload, fmt.Sprintf("k-%d-%d", i, n))
			}
		})
	}
	for ctx.Err() == nil {
		got.measure()
		time.Sleep(5 * time.Millisecond)
	}
	clients.Wait()
	if len(got.accepted) == 0 || got.refused == 0 {
		t.Errorf("%d accepted, %d refused: there was no overload", len(got.accepted), got.refused)
	}
	if most := got.heap - min(got.heap, base.HeapInuse); most > 160<<20 {
		t.Errorf("the heap grew by %d MiB", most>>20)
	}
	t.Logf("%d accepted, %d refused, heap at most %d MiB, was %d", len(got.accepted), got.refused, got.heap>>20, base.HeapInuse>>20)
	w.keeps(got)
	crowded.call("POST", endpoint+"/deliveries", payload).is(202) // what was taken has been given back
}

// narrow runs the API once more, on a pool of so many connections and with little room.
func (w *world) narrow(conns int32) (url string) {
	w.t.Helper()
	pool, err := postgres.Connect(w.t.Context(), w.db.URL, postgres.ConnectOptions{MaxConns: conns})
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(pool.Close)
	ledger := postgres.Open(pool, postgres.Config{})
	submitter := command.NewSubmitter(ledger, command.SubmitOptions{Isolable: postgres.Isolable})
	w.t.Cleanup(submitter.Close)
	c := w.config
	c.Submitter, c.Keys, c.MaxBodies = submitter, command.Keys{Ledger: ledger}, 8<<20
	server := httptest.NewServer(api.New(c))
	w.t.Cleanup(server.Close)
	return server.URL
}

// take hands in one message and notes the answer.
func (g *tally) take(w *world, endpoint string, payload []byte, key string) {
	r, err := http.NewRequestWithContext(w.t.Context(), http.MethodPost, w.url+endpoint+"/deliveries", bytes.NewReader(payload))
	if err != nil {
		w.t.Error(err)
		return
	}
	r.Header.Set("Authorization", "Bearer "+w.key)
	r.Header.Set("Idempotency-Key", key)
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		return // an answer that overtakes the body may break the connection
	}
	body, _ := io.ReadAll(res.Body)
	_ = res.Body.Close()
	a := answer{t: w.t, what: key, status: res.StatusCode, header: res.Header, body: body}
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case a.status == http.StatusAccepted:
		g.accepted[a.text("delivery_id")] = true
	case a.status == http.StatusServiceUnavailable && a.header.Get("Retry-After") == "1" && a.text("code") == "storage_unavailable":
		g.refused++
	default:
		w.t.Errorf("%s: %d %s", key, a.status, body)
	}
}

func (g *tally) measure() {
	var now runtime.MemStats
	runtime.ReadMemStats(&now)
	g.heap = max(g.heap, now.HeapInuse)
}

// keeps demands that what was accepted is there once, and nothing by halves.
func (w *world) keeps(g *tally) {
	w.t.Helper()
	ids := make([]string, 0, len(g.accepted))
	for id := range g.accepted {
		ids = append(ids, id)
	}
	var found, messages, deliveries, keys, events int
	err := w.db.App.QueryRow(w.t.Context(), `select (select count(*) from waybill.deliveries where id = any($1::text[]::uuid[])),
		(select count(*) from waybill.messages), (select count(*) from waybill.deliveries), (select count(*) from waybill.idempotency_keys),
		(select count(*) from waybill.events where stream = 'delivery')`, ids).Scan(&found, &messages, &deliveries, &keys, &events)
	if err != nil {
		w.t.Fatal(err)
	}
	if found != len(ids) || messages < found || deliveries != messages || keys != messages || events != messages {
		w.t.Errorf("%d of %d are there; %d messages, %d deliveries, %d keys, %d events", found, len(ids), messages, deliveries, keys, events)
	}
}

// TestRequestsAreBounded: beyond the limit a request is sent away before anything is
// asked of the database; who looks after the process is let in. It fails without the
// bound on requests.
func TestRequestsAreBounded(t *testing.T) {
	t.Parallel()
	busy, done := make(chan struct{}), make(chan struct{})
	w := start(t, func(c *api.Config) {
		c.MaxRequests = 1
		c.Submitter = broken(func(context.Context) error { close(busy); <-done; return context.Canceled })
	})
	release := sync.OnceFunc(func() { close(done) })
	t.Cleanup(release) // before the server is closed, which waits for its requests
	endpoint := w.endpoint()
	var first sync.WaitGroup
	first.Go(func() { w.post(endpoint+"/deliveries", "x") })
	<-busy
	for range 3 {
		if a := w.get("/v1/deliveries"); a.refuses(503, "storage_unavailable").Status != 503 || a.header.Get("Retry-After") != "1" {
			t.Errorf("%v", a.header)
		}
	}
	for _, path := range []string{"/healthz", "/readyz", "/metrics"} {
		w.get(path).is(200)
	}
	release()
	first.Wait()
	w.get("/v1/deliveries").is(200)
}

// TestReadyTellsTheBacklog: results that wait to be recorded are counted, and for long
// they make a process not ready.
func TestReadyTellsTheBacklog(t *testing.T) {
	t.Parallel()
	for longest, ready := range map[time.Duration]bool{time.Second: true, time.Minute: false} {
		w := start(t, func(c *api.Config) { c.Backlog = func() (int, time.Duration) { return 7, longest } })
		a := w.get("/readyz")
		if n, _ := a.object()["unrecorded_results"].(float64); n != 7 {
			t.Errorf("after %s: %s", longest, a.body)
		}
		if ready {
			a.is(200)
		} else {
			a.refuses(503, "results_unrecorded")
		}
	}
}
