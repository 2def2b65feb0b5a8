package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/uuid"

	"waybill/domain"
	"waybill/handlers/command"
)

// sleepy is a receiver that reads first attempts and does not answer them until woken;
// all others it answers at once with 200.
type sleepy struct {
	*httptest.Server
	wake    chan struct{}
	mu      sync.Mutex
	arrived map[string][]string // delivery id: attempt numbers
}

func newSleepy(t *testing.T) *sleepy {
	s := &sleepy{wake: make(chan struct{}), arrived: map[string][]string{}}
	s.Server = httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, q *http.Request) {
		_, _ = io.Copy(io.Discard, q.Body)
		id, attempt := q.Header.Get("waybill-delivery-id"), q.Header.Get("waybill-attempt")
		s.mu.Lock()
		s.arrived[id] = append(s.arrived[id], attempt)
		s.mu.Unlock()
		if attempt == "1" {
			select {
			case <-s.wake:
			case <-q.Context().Done():
			}
		}
	}))
	t.Cleanup(s.Close)
	return s
}

// of returns which attempts of a delivery have arrived.
func (s *sleepy) of(id uuid.UUID) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.arrived[id.String()])
}

// TestStoppedAndKilledWorkers is Case 1 and the dead worker of "in doubt". One worker is
// stopped (SIGSTOP) with its requests read and unanswered, another is killed (SIGKILL) in
// the same place; a third takes over when their leases have run out. At the endpoint that
// retries the new owner's result counts and nothing follows it; at the one that holds
// nothing is sent until a person says so, in each of the three ways. Then the first worker
// goes on (SIGCONT): its results are on record as superseded and move nothing but what
// they prove. The guards are the claim's token and that Expire holds where the policy says.
func TestStoppedAndKilledWorkers(t *testing.T) {
	t.Parallel()
	k, to := newTrack(t), newSleepy(t)
	policy := `{"timeout":"4s","retries":{"delays":["0s","0s","0s"]},"jitter":0,"on_unknown_outcome":"`
	take := func(worker string) (c *exec.Cmd, retried, held []uuid.UUID) {
		c = startWorker(t, k.db.URL, k.keyset, worker)
		retried, held = submitWith(t, k.Ledger, to.URL, policy+`retry"}`, 3), submitWith(t, k.Ledger, to.URL, policy+`hold"}`, 3)
		for _, id := range append(slices.Clone(retried), held...) {
			within(t, "the request of "+worker+" is read", func() bool { return len(to.of(id)) == 1 })
		}
		return c, retried, held
	}
	stopped, late, lateHeld := take("stopped")
	if err := stopped.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	killed, lost, lostHeld := take("killed")
	if err := killed.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	third := startWorker(t, k.db.URL, k.keyset, "third")
	for _, id := range append(slices.Clone(late), lost...) {
		k.await(id, domain.StateDelivered)
	}
	for _, id := range append(slices.Clone(lateHeld), lostHeld...) {
		if d := k.await(id, domain.StateHeld); !d.InDoubt() || d.UnknownAttempts != 1 || len(to.of(id)) != 1 {
			t.Errorf("held: %+v after arrivals %v", d, to.of(id))
		}
	}
	k.resolveEachWay(lostHeld, to)
	close(to.wake)
	if err := stopped.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	k.checkLate(late, to, "1 superseded", "2 owner")
	k.checkLate(lateHeld, to, "1 superseded")
	for _, c := range []*exec.Cmd{stopped, third} {
		_ = c.Process.Signal(syscall.SIGTERM)
		if err := c.Wait(); err != nil {
			t.Errorf("%v: %v", c.Args, err)
		}
	}
	k.verify()
}

// await waits until a delivery is in a state, for longer than a lease lasts.
func (k track) await(id uuid.UUID, state domain.State) domain.Delivery {
	k.t.Helper()
	for deadline := time.Now().Add(3 * patience); ; time.Sleep(20 * time.Millisecond) {
		d, err := k.Delivery(k.t.Context(), domain.DefaultTenant, id)
		switch {
		case err != nil:
			k.t.Fatal(err)
		case d.State == state:
			return d.Delivery
		case time.Now().After(deadline):
			k.t.Fatalf("%s is %s, not %s", id, d.State, state)
		}
	}
}

// resolveEachWay ends three holds that a dead worker left: as delivered, as failed, and
// as one to try again, which is a new cycle and is then delivered.
func (k track) resolveEachWay(ids []uuid.UUID, to *sleepy) {
	k.t.Helper()
	by := command.Caller{Tenant: domain.DefaultTenant, Actor: "key:k"}
	for i, as := range []domain.Resolution{domain.ResolvedDelivered, domain.ResolvedFailed, domain.ResolvedRetry} {
		if _, err := (command.Operations{Ledger: k}).Resolve(k.t.Context(), by, ids[i], as, "looked at the other side"); err != nil {
			k.t.Fatal(err)
		}
	}
	for i, want := range []domain.Delivery{
		{State: domain.StateDelivered, Cycle: 1, Attempts: 1},
		{State: domain.StateFailed, Cycle: 1, Attempts: 1, FailureReason: domain.ByPerson},
		{State: domain.StateDelivered, Cycle: 2, Attempts: 2},
	} {
		d := k.await(ids[i], want.State)
		if d.Cycle != want.Cycle || d.Attempts != want.Attempts || d.FailureReason != want.FailureReason || len(to.of(ids[i])) != want.Attempts {
			k.t.Errorf("%+v after arrivals %v", d, to.of(ids[i]))
		}
	}
}

// checkLate waits for the late attempt of each delivery and compares all of its attempts.
// What the worker saw when it went on, the answer or that its time was up, is a race of
// its own: only an answer proves a delivery that is held.
func (k track) checkLate(ids []uuid.UUID, to *sleepy, want ...string) {
	k.t.Helper()
	for _, id := range ids {
		var attempts []string
		var late domain.Attempted
		within(k.t, "the late result is on record", func() bool {
			attempts = nil
			for _, r := range k.events(id) {
				e, err := r.Event()
				if a, ok := e.(domain.Attempted); err == nil && ok && a.Superseded {
					late, attempts = a, append(attempts, "1 superseded")
				} else if ok {
					attempts = append(attempts, "2 owner")
				}
			}
			return late.Attempt != 0
		})
		slices.Sort(attempts)
		d, err := k.Delivery(k.t.Context(), domain.DefaultTenant, id)
		state := domain.StateDelivered
		if len(want) == 1 && late.Outcome != domain.Succeeded {
			state = domain.StateHeld
		}
		if err != nil || !slices.Equal(attempts, want) || late.Attempt != 1 || d.State != state || len(to.of(id)) != len(want) {
			k.t.Errorf("attempts %v, arrivals %v, late %+v, %s: %v", attempts, to.of(id), late, d.State, err)
		}
	}
}
