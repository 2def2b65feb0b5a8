package worker_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/http"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"waybill/domain"
)

// fault is a way for bookkeeping to fail. While it lasts only those of the results are
// recorded that it lets through.
type fault struct {
	name       string
	begin, end func(b *frailBench, ids []uuid.UUID)
	away       bool // the database does not even answer
}

func faults() []fault {
	var locked pgx.Tx
	free := make(chan struct{})
	return []fault{
		{name: "statements that time out", begin: func(b *frailBench, ids []uuid.UUID) {
			locked = b.lock(ids[:len(ids)/2])
			go b.cancelUntil(free)
		}, end: func(b *frailBench, ids []uuid.UUID) {
			within(b.t, "the neighbours of what is locked are recorded", func() bool { return b.delivered(ids) == len(ids)/2 })
			close(free)
			_ = locked.Rollback(context.Background())
		}},
		{name: "disk full", begin: func(b *frailBench, _ []uuid.UUID) { b.limitFiles(b.fill()) },
			end: func(b *frailBench, _ []uuid.UUID) { b.limitFiles("unlimited") }},
		{name: "connections gone", begin: func(b *frailBench, _ []uuid.UUID) { b.must("alter role waybill_test_app nologin"); b.cut() },
			end: func(b *frailBench, _ []uuid.UUID) { b.must("alter role waybill_test_app login") }},
		{name: "failover to a standby that is read-only", begin: func(b *frailBench, _ []uuid.UUID) {
			b.must(fmt.Sprintf("alter role waybill_test_app in database %s set default_transaction_read_only = on", b.name))
			b.cut()
		}, end: func(b *frailBench, _ []uuid.UUID) { // whoever is connected to it stays so
			b.must(fmt.Sprintf("alter role waybill_test_app in database %s reset default_transaction_read_only", b.name))
		}},
		{name: "stop -m immediate", away: true, begin: func(b *frailBench, _ []uuid.UUID) { _ = b.server.StopImmediate() },
			end: func(b *frailBench, _ []uuid.UUID) { b.restart() }},
		{name: "kill -9", away: true, begin: func(b *frailBench, _ []uuid.UUID) { _ = syscall.Kill(b.server.PID(), syscall.SIGKILL) },
			end: func(b *frailBench, _ []uuid.UUID) { b.restart() }},
	}
}

// TestResultOutlivesEveryFault is rule 9 and case 3: sixteen requests were answered 200,
// and then bookkeeping fails. Nothing else is written, the deliveries keep their state,
// the worker says how many results wait, and records them once it can: nothing is asked
// a second time. One worker lives through all of it, restarts of the database included.
//
// It fails if a result that could not be recorded is dropped or released, if only the
// connection's faults are tried again, if a batch's good results wait for its bad ones,
// or, in most runs, if connections to a server that is read-only are kept; for that see
// TestReadOnlyConnectionIsGivenUp.
func TestResultOutlivesEveryFault(t *testing.T) {
	t.Parallel()
	arrived, gate := make(chan struct{}, 1000), make(chan struct{})
	body := make([]byte, 1500)
	_, _ = rand.Read(body)
	rc := newReceiver(t, func(w http.ResponseWriter, _ *http.Request) {
		arrived <- struct{}{}
		select {
		case <-gate:
		case <-t.Context().Done(): // before the server is closed
		}
		_, _ = w.Write(body)
	})
	b := newFrailBench(t)
	c := b.config("w1")
	c.Concurrency = 64
	w, _ := b.start(c)
	to := b.endpoint(rc.URL, quick, patient)
	var all []uuid.UUID
	for _, f := range faults() {
		ids := b.submitSoon(to, 16)
		for range ids {
			<-arrived
		}
		f.begin(b, ids)
		for range ids {
			gate <- struct{}{}
		}
		within(t, f.name+": results wait", func() bool { return w.Unrecorded() > 0 })
		time.Sleep(300 * time.Millisecond)
		n, longest := w.Waiting()
		if n == 0 || longest < 300*time.Millisecond {
			t.Errorf("%s: %d results wait, the oldest for %s", f.name, n, longest)
		}
		if !f.away {
			b.keepTheirState(f.name, ids)
		}
		f.end(b, ids)
		within(t, f.name+": all is recorded", func() bool { return b.delivered(ids) == len(ids) && w.Unrecorded() == 0 })
		t.Logf("%s: %d of %d results waited", f.name, n, len(ids))
		all = append(all, ids...)
	}
	b.audit(rc, all)
}

// audit demands of every delivery one arrival and the history of one attempt.
func (b *frailBench) audit(rc *receiver, ids []uuid.UUID) {
	b.t.Helper()
	fresh := &rig{Ledger: b.ledger(4), t: b.t}
	for _, id := range ids {
		if got := rc.of(id); !slices.Equal(got, []string{"1"}) {
			b.t.Errorf("%s arrived as attempts %v", id, got)
		}
		want := []string{"delivery.scheduled", "delivery.claimed", "delivery.attempted", "delivery.delivered"}
		if got := names(fresh.stream(id)); !slices.Equal(got, want) {
			b.t.Errorf("history %v", got)
		}
	}
	fresh.verify()
}

// keepTheirState demands that each delivery is as its claim left it or as its result did.
func (b *frailBench) keepTheirState(fault string, ids []uuid.UUID) {
	b.t.Helper()
	rows, err := b.super.Query(b.t.Context(), "select state::text, version from waybill.deliveries where id = any($1)", ids)
	if err != nil {
		b.t.Fatal(err)
	}
	kept, err := pgx.CollectRows(rows, pgx.RowToStructByPos[struct {
		State   domain.State
		Version int
	}])
	if err != nil {
		b.t.Fatal(err)
	}
	waiting := 0
	for _, d := range kept {
		switch {
		case d.State == domain.StateProcessing && d.Version == 2:
			waiting++
		case d.State != domain.StateDelivered || d.Version != 4:
			b.t.Errorf("%s: a delivery is %s at version %d meanwhile", fault, d.State, d.Version)
		}
	}
	if waiting == 0 {
		b.t.Errorf("%s: it kept nothing from being recorded", fault)
	}
}
