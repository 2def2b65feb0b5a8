package worker

import (
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"

	"waybill/domain"
	"waybill/projections"
)

// How the roster goes about endpoints.
const (
	firstRetry  = 20 * time.Millisecond  // an endpoint that ran dry is asked again so soon,
	lastRetry   = 500 * time.Millisecond // then ever more seldom,
	afterDone   = 5 * time.Millisecond   // an ended request may have made room under a cap
	dryFor      = 2 * time.Second        // and forgotten after this long
	sweepEvery  = 2 * time.Second        // how often a claim looks below its lower bound
	boundMargin = 200 * time.Millisecond // the lower bound stays this far under what was last claimed
	lightQuota  = 4                      // of an endpoint that did not fill its last quota
	maxAsked    = 512                    // endpoints in one claim
	maxKnown    = 50_000                 // endpoints on the roster
	farAhead    = 5 * time.Minute        // what is due later is found when its time comes
)

// roster knows which endpoints may have due work, and hands them out in turn. Times
// are the process's own, monotonic.
type roster struct {
	mu      sync.Mutex
	cap     int // deliveries of one endpoint in flight
	entries map[uuid.UUID]*entry
	ring    []uuid.UUID // order of turns
	next    int
	woken   chan struct{}
}

// entry is an endpoint on the roster.
type entry struct {
	try      time.Time      // when to ask for work
	retry    time.Duration  // the wait after the next dry claim
	dry      time.Time      // since when it has had nothing; zero: it had
	known    bool           // try is a due time, so that being dry is no reason to forget it
	filled   bool           // the last claim filled its quota
	bound    domain.Instant // where to begin
	swept    time.Time
	inFlight int
}

func newRoster(concurrency int) *roster {
	return &roster{
		cap: max(1, concurrency/2), entries: map[uuid.UUID]*entry{}, woken: make(chan struct{}, 1),
	}
}

// hint puts endpoints on the roster, to be asked at once.
func (r *roster) hint(endpoints []uuid.UUID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	for _, id := range endpoints {
		if e := r.entry(id); e != nil && (e.try.After(now) || e.known) {
			e.try, e.known, e.retry, e.dry = now, false, firstRetry, time.Time{}
		}
	}
	wake(r.woken)
}

// due notes when an endpoint has its next work, as seen from the database's present
// time.
func (r *roster) due(id uuid.UUID, at, dbNow domain.Instant) {
	r.mu.Lock()
	defer r.mu.Unlock()
	fresh := r.entries[id] == nil
	if fresh && at.Sub(dbNow.Time) > farAhead {
		return
	}
	e := r.entry(id)
	if e == nil {
		return
	}
	if !e.bound.IsZero() && at.Before(e.bound.Time) {
		e.bound = at
	}
	when := time.Now().Add(max(0, at.Sub(dbNow.Time)))
	if fresh || when.Before(e.try) || !e.dry.IsZero() && !e.known {
		e.try, e.known, e.dry, e.retry = when, true, time.Time{}, firstRetry
		wake(r.woken)
	}
}

// entry finds or makes an endpoint's entry; nil when the roster is full of endpoints
// that have work now.
func (r *roster) entry(id uuid.UUID) *entry {
	e, ok := r.entries[id]
	if !ok {
		if len(r.entries) >= maxKnown && !r.makeRoom() {
			return nil
		}
		e = &entry{try: time.Now(), retry: firstRetry, swept: time.Now()}
		r.entries[id] = e
		r.ring = append(r.ring, id)
	}
	return e
}

// makeRoom drops an endpoint that only waits for its time: it is found again then.
func (r *roster) makeRoom() bool {
	now := time.Now()
	for i, id := range r.ring {
		if e := r.entries[id]; e.inFlight == 0 && e.try.After(now) {
			delete(r.entries, id)
			r.ring = slices.Delete(r.ring, i, i+1)
			return true
		}
	}
	return false
}

// pick chooses whom to ask for how much, at most free in all, beginning after the
// last one picked. Where nobody is to be asked now, it says how long to wait.
func (r *roster) pick(free int) ([]projections.ClaimQuota, time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	r.forget(now)
	var picked []projections.ClaimQuota
	wait := lastRetry
	left := free
	for range len(r.ring) {
		if left <= 0 || len(picked) == maxAsked {
			break
		}
		r.next = (r.next + 1) % len(r.ring)
		id := r.ring[r.next]
		e := r.entries[id]
		if d := e.try.Sub(now); d > 0 {
			wait = min(wait, d)
			continue
		}
		if q := e.quota(r.cap, free); q > 0 {
			q = min(q, left)
			picked = append(picked, projections.ClaimQuota{EndpointID: id, Since: e.since(now), Limit: q, Busy: e.inFlight})
			left -= q
		}
	}
	return picked, wait
}

// quota is how much to ask of an endpoint: little, unless its last claim was filled;
// and never so much that nothing is left for the others.
func (e *entry) quota(limit, free int) int {
	q := lightQuota
	if e.filled {
		q = max(lightQuota, free/2)
	}
	return min(q, limit-e.inFlight, max(1, free/2))
}

// since is the lower bound of the next claim: dead index entries at the head are
// what makes queues in PostgreSQL slow as they age. Now and then there is none.
func (e *entry) since(now time.Time) domain.Instant {
	if now.Sub(e.swept) > sweepEvery {
		e.swept = now
		e.bound = domain.Instant{}
	}
	return e.bound
}

// claimed notes what a claim brought of each endpoint it asked.
func (r *roster) claimed(asked []projections.ClaimQuota, b projections.Batch) {
	r.mu.Lock()
	defer r.mu.Unlock()
	got, last := map[uuid.UUID]int{}, map[uuid.UUID]domain.Instant{}
	for _, a := range b.Taken {
		id := a.Delivery.EndpointID
		got[id]++
		last[id] = a.WasDue
	}
	for _, d := range b.Ended {
		got[d.EndpointID]++
	}
	now := time.Now()
	for _, q := range asked {
		e := r.entries[q.EndpointID]
		if e == nil {
			continue
		}
		e.inFlight += got[q.EndpointID]
		e.filled = got[q.EndpointID] >= q.Limit
		if at, ok := last[q.EndpointID]; ok {
			e.bound = domain.At(at.Add(-boundMargin))
		}
		e.settle(now, got[q.EndpointID] > 0)
	}
	for _, d := range b.Ended {
		if e := r.entries[d.EndpointID]; e != nil {
			e.inFlight--
		}
	}
}

// settle decides when to ask next: at once while it fills its quotas, soon while it
// has something, ever more seldom once it has nothing.
func (e *entry) settle(now time.Time, brought bool) {
	e.known = false
	switch {
	case e.filled:
		e.try, e.retry, e.dry = now, firstRetry, time.Time{}
		return
	case brought:
		e.retry, e.dry = firstRetry, time.Time{}
	case e.dry.IsZero():
		e.dry = now
	}
	e.try = now.Add(e.retry)
	e.retry = min(2*e.retry, lastRetry)
}

// done notes that a delivery of the endpoint is in flight no more.
func (r *roster) done(id uuid.UUID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	e := r.entries[id]
	if e == nil {
		return
	}
	e.inFlight--
	// It may have been a cap that let the last claim bring less than asked.
	if soon := time.Now().Add(afterDone); e.inFlight >= 0 && !e.known && e.try.After(soon) {
		e.try = soon
	}
	wake(r.woken)
}

// failed puts endpoints off after a claim that failed.
func (r *roster) failed(asked []projections.ClaimQuota) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, q := range asked {
		if e := r.entries[q.EndpointID]; e != nil {
			e.try = time.Now()
		}
	}
}

// forget drops endpoints that have had nothing for a while and have nothing in
// flight; whoever gets work again is found again.
func (r *roster) forget(now time.Time) {
	gone := func(id uuid.UUID) bool {
		e := r.entries[id]
		if e.known || e.inFlight > 0 || e.dry.IsZero() || now.Sub(e.dry) < dryFor {
			return false
		}
		delete(r.entries, id)
		return true
	}
	r.ring = slices.DeleteFunc(r.ring, gone)
	if r.next >= len(r.ring) {
		r.next = 0
	}
}
