package main

import (
	"context"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	"waybill/adapters/postgres"
	"waybill/adapters/postgres/postgrestest"
	"waybill/adapters/secrets"
	"waybill/domain"
	"waybill/events"
)

// track is where racers run: a ledger, and how to reach it from another process.
type track struct {
	*postgres.Ledger
	t      *testing.T
	db     *postgrestest.DB
	keyset string
}

func newTrack(t *testing.T) track {
	t.Helper()
	db, keyset := postgrestest.New(t), filepath.Join(t.TempDir(), "keyset.json")
	vault, err := secrets.LoadOrCreate(keyset)
	if err != nil {
		t.Fatal(err)
	}
	return track{postgres.Open(db.App, postgres.Config{Vault: vault}), t, db, keyset}
}

// race is processes that wait for their release.
type race struct {
	track
	barrier io.Closer
	lines   []*json.Decoder
}

// lineUp starts a process for each job and returns once all of them are ready. They wait
// at one pipe: closing its only other end releases all of them at the same moment.
func (k track) lineUp(jobs ...raceJob) race {
	k.t.Helper()
	wait, open, err := os.Pipe()
	if err != nil {
		k.t.Fatal(err)
	}
	r := race{track: k, barrier: open}
	for _, j := range jobs {
		j.DatabaseURL, j.Keyset = k.db.URL, k.keyset
		spec, _ := json.Marshal(j)
		c := exec.CommandContext(k.t.Context(), "racer", string(spec))
		c.ExtraFiles, c.Stderr = []*os.File{wait}, k.t.Output()
		out, err := c.StdoutPipe()
		if err == nil {
			err = c.Start()
		}
		if err != nil {
			k.t.Fatal(err)
		}
		k.t.Cleanup(func() { _ = c.Process.Kill(); _ = c.Wait() })
		r.lines = append(r.lines, json.NewDecoder(out))
	}
	_ = wait.Close()
	r.results() // each says once that it is ready
	return r
}

func (r race) release() { _ = r.barrier.Close() }

// results waits for what each process says next.
func (r race) results() []raceResult {
	r.t.Helper()
	list := make([]raceResult, len(r.lines))
	for i, line := range r.lines {
		if err := line.Decode(&list[i]); err != nil {
			r.t.Fatalf("racer %d says nothing: %v", i, err)
		}
	}
	return list
}

// run releases the processes and waits for what came of it.
func (r race) run() []raceResult {
	r.t.Helper()
	r.release()
	return r.results()
}

// submit hands in n messages for an endpoint that nobody sends to.
func (k track) submit(policy string, n int) (endpoint uuid.UUID, ids []uuid.UUID) {
	k.t.Helper()
	ids = submitWith(k.t, k.Ledger, "http://127.0.0.1:1/", policy, n)
	return k.endpointOf(ids[0]), ids
}

func (k track) endpointOf(id uuid.UUID) uuid.UUID {
	k.t.Helper()
	d, err := k.Delivery(k.t.Context(), domain.DefaultTenant, id)
	if err != nil {
		k.t.Fatal(err)
	}
	return d.EndpointID
}

func (k track) events(id uuid.UUID) []events.Record {
	k.t.Helper()
	list, err := k.Stream(k.t.Context(), domain.DefaultTenant, events.DeliveryStream, id, 0, 100)
	if err != nil {
		k.t.Fatal(err)
	}
	return list
}

func (k track) verify() {
	k.t.Helper()
	if rep, err := k.Verify(context.Background()); err != nil || len(rep.Faults) > 0 {
		k.t.Errorf("%+v %v", rep, err)
	}
}

// TestProcessesPartitionTheWork: six processes that claim at one moment share the work
// out, while an eleventh of it is locked by somebody else: each takes all that it may,
// nothing is taken twice, and what is locked is passed over and not waited for. The guard
// is FOR NO KEY UPDATE SKIP LOCKED in select_due.sql: without SKIP LOCKED they wait for
// the locked rows until their time is up, without the lock they take the same.
func TestProcessesPartitionTheWork(t *testing.T) {
	t.Parallel()
	k := newTrack(t)
	e, ids := k.submit(`{}`, 264)
	locked, err := k.db.Super().Begin(t.Context())
	if err == nil {
		_, err = locked.Exec(t.Context(), "select from waybill.deliveries where id = any ($1) for update", ids[:24])
	}
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = locked.Rollback(context.Background()) }()
	var jobs []raceJob
	for range 6 {
		jobs = append(jobs, raceJob{Worker: "w", Endpoint: e, Lease: time.Minute, Take: 40})
	}
	together := k.lineUp(jobs...)
	seen := map[uuid.UUID]int{}
	for i, r := range together.run() {
		for _, id := range r.Taken {
			seen[id]++
		}
		if len(r.Taken) != 40 {
			t.Errorf("process %d took %d, although there was enough for all", i, len(r.Taken))
		}
	}
	for i, id := range ids {
		want := 1
		if i < 24 {
			want = 0
		}
		if history := k.events(id); seen[id] != want || len(history) != 1+want {
			t.Errorf("%s was taken by %d processes; %d events", id, seen[id], len(history))
		}
	}
	k.verify()
}

// TestRunOutLeaseIsTakenOverOnce: of two processes that meet a run-out lease at one
// moment, exactly one ends it and one, perhaps the other, takes each delivery over. The
// guards, either of which suffices, are FOR UPDATE SKIP LOCKED on the claim and the lock on
// the deliveries under which the token is compared, in select_processing.sql.
func TestRunOutLeaseIsTakenOverOnce(t *testing.T) {
	t.Parallel()
	k := newTrack(t)
	e, ids := k.submit(`{"retries":{"delays":["0s","0s","0s"]},"jitter":0}`, 30)
	dead := k.lineUp(raceJob{Worker: "dead", Endpoint: e, Hold: 30, Lease: time.Millisecond})
	over := raceJob{Worker: "over", Endpoint: e, Recover: true, Lease: time.Minute, Take: 30}
	together := k.lineUp(over, over)
	var ended int
	taken := map[uuid.UUID]int{}
	for _, r := range together.run() {
		ended += r.Ended
		for _, id := range r.Taken {
			taken[id]++
		}
	}
	dead.run()
	want := []string{"delivery.scheduled", "delivery.claimed", "delivery.lease_expired", "delivery.retry_scheduled", "delivery.claimed"}
	for _, id := range ids {
		var names []string
		for _, r := range k.events(id) {
			names = append(names, r.Name)
		}
		if taken[id] != 1 || !slices.Equal(names, want) {
			t.Errorf("%s was taken over %d times: %v", id, taken[id], names)
		}
	}
	if ended != len(ids) {
		t.Errorf("%d leases were ended %d times", len(ids), ended)
	}
	k.verify()
}
