package main

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"waybill/adapters/postgres"
	"waybill/adapters/secrets"
	"waybill/domain"
)

// fleet is several API processes over one ledger, each with a pool of its own.
type fleet struct {
	operatorOf
	*postgres.Ledger
	nodes  []*served
	client *http.Client
}

func newFleet(t *testing.T, nodes int) *fleet {
	t.Helper()
	f := &fleet{operatorOf: newOperator(t), client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 100}}}
	t.Cleanup(f.client.CloseIdleConnections)
	vault, err := secrets.LoadOrCreate(f.keyset)
	if err != nil {
		t.Fatal(err)
	}
	f.Ledger = postgres.Open(f.db.App, postgres.Config{Vault: vault})
	var started sync.WaitGroup
	f.nodes = make([]*served, nodes)
	for i := range f.nodes {
		started.Go(func() { f.nodes[i] = f.serve("--no-worker", "--allow-networks", loopback) })
	}
	started.Wait()
	if t.Failed() {
		t.FailNow()
	}
	return f
}

// key makes an API key.
func (f *fleet) key(args ...string) string {
	f.t.Helper()
	return f.get("key", append([]string{"keys", "create", "--name", "n"}, args...)...)
}

// ask is a request to one of the processes.
type ask struct {
	method, path, key string
	headers           map[string]string
	body              string
}

// answer is what came back.
type answer struct {
	node   int
	status int
	header http.Header
	body   map[string]any
	raw    []byte
}

// text is a member of the answer's body.
func (a answer) text(member string) string {
	s, _ := a.body[member].(string)
	return s
}

// send makes a request to a process.
func (f *fleet) send(node int, a ask) answer {
	q, err := http.NewRequestWithContext(f.t.Context(), a.method, "http://"+f.nodes[node].addr+a.path, bytes.NewBufferString(a.body))
	if err != nil {
		f.t.Error(err)
		return answer{}
	}
	q.Header.Set("Authorization", "Bearer "+a.key)
	for name, value := range a.headers {
		q.Header.Set(name, value)
	}
	resp, err := f.client.Do(q)
	if err != nil {
		f.t.Error(err)
		return answer{}
	}
	defer func() { _ = resp.Body.Close() }()
	got := answer{node: node, status: resp.StatusCode, header: resp.Header}
	got.raw, err = io.ReadAll(resp.Body)
	if err == nil {
		err = json.Unmarshal(got.raw, &got.body)
	}
	if err != nil {
		f.t.Errorf("%s %s: %d %q: %v", a.method, a.path, resp.StatusCode, got.raw, err)
	}
	return got
}

// atOnce releases n requests together, in turn to each process, and returns the answers
// in order.
func (f *fleet) atOnce(n int, of func(i int) ask) []answer {
	answers := make([]answer, n)
	start := make(chan struct{})
	var wg sync.WaitGroup
	for i := range answers {
		wg.Go(func() {
			<-start
			answers[i] = f.send(i%len(f.nodes), of(i))
		})
	}
	close(start)
	wg.Wait()
	return answers
}

// behind locks a row that all of the requests will want, lets the requests go, and frees
// it when so many sessions wait for it at the same time: each of them has read by then, and
// none has written.
func (f *fleet) behind(lock string, row any, waiting int, requests func() []answer) []answer {
	f.t.Helper()
	tx, err := f.db.Super().Begin(f.t.Context())
	if err == nil {
		_, err = tx.Exec(f.t.Context(), lock, row)
	}
	if err != nil {
		f.t.Fatal(err)
	}
	got := make(chan []answer, 1)
	go func() { got <- requests() }()
	for deadline := time.Now().Add(1500 * time.Millisecond); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		if f.count("select count(*) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'") >= waiting {
			break
		}
	}
	if err := tx.Rollback(f.t.Context()); err != nil {
		f.t.Fatal(err)
	}
	return <-got
}

// count asks the database.
func (f *fleet) count(sql string, args ...any) (n int) {
	f.t.Helper()
	if err := f.db.Super().QueryRow(f.t.Context(), sql, args...).Scan(&n); err != nil {
		f.t.Fatal(err)
	}
	return n
}

// stop ends the processes, and demands that every row is the fold of its stream.
func (f *fleet) stop() {
	f.t.Helper()
	if rep, err := f.Verify(f.t.Context()); err != nil || len(rep.Faults) > 0 {
		f.t.Errorf("%+v %v", rep, err)
	}
	for _, s := range f.nodes {
		_ = s.cmd.Process.Kill()
	}
}

// row is a delivery as it stands.
func (f *fleet) row(id string) domain.Delivery {
	f.t.Helper()
	d, err := f.Delivery(f.t.Context(), domain.DefaultTenant, uuid.MustParse(id))
	if err != nil {
		f.t.Fatal(err)
	}
	return d.Delivery
}
