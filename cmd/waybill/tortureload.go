package main

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
)

// submitters is how many hand in messages at a time, each about ten a second.
const submitters = 12

// load hands in messages and remembers what was accepted.
type load struct {
	*ordeal
	next    atomic.Int64
	repeats atomic.Int64 // submissions made again for want of an answer

	mu         sync.Mutex
	accepted   map[uuid.UUID]handedIn
	recent     []uuid.UUID
	unanswered map[string]bool
}

func newLoad(o *ordeal) *load {
	return &load{ordeal: o, accepted: map[uuid.UUID]handedIn{}, unanswered: map[string]bool{}}
}

// run submits until running ends, and then until the last submission has its answer,
// or ctx ends.
func (l *load) run(ctx, running context.Context) {
	var group sync.WaitGroup
	for range submitters {
		group.Go(func() {
			c := newClient(l.api, l.key)
			defer c.close()
			for running.Err() == nil {
				d := dice(l.Seed, diceMessages, uint64(l.next.Load()))
				l.submit(ctx, c, int(l.next.Add(1)))
				sleep(running, between(d, 20, 180))
			}
		})
	}
	group.Wait()
}

// sleep waits for a time, or until ctx ends.
func sleep(ctx context.Context, t time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(t):
	}
}

// submit hands in the nth message of the seed, and hands it in again under the same
// key until there is an answer.
func (l *load) submit(ctx context.Context, c *client, n int) {
	d := dice(l.Seed, diceMessages, uint64(n))
	e := l.endpoints[d.IntN(len(l.endpoints))]
	if e.Path == pathSlow && d.IntN(2) == 0 { // a worker has only so many senders for it
		e = l.endpoints[0]
	}
	payload := make([]byte, 8+d.IntN(2000)) // any bytes; the number makes them unlike all others
	for i := range payload {
		payload[i] = byte(d.Uint32())
	}
	binary.BigEndian.PutUint64(payload, uint64(n))
	s := handedIn{Key: fmt.Sprintf("torture-%d-%d", l.Seed, n), Endpoint: e.ID, Payload: sha256.Sum256(payload)}
	l.expectAnswer(s.Key, true)
	for answers := 1 + d.IntN(20)/19; answers > 0 && ctx.Err() == nil; { // one in twenty is handed in twice
		if l.once(ctx, c, s, payload) {
			answers--
			continue
		}
		l.repeats.Add(1)
		sleep(ctx, 100*time.Millisecond)
	}
}

// once makes one submission and reports whether it was answered.
func (l *load) once(ctx context.Context, c *client, s handedIn, payload []byte) bool {
	var made struct {
		ID uuid.UUID `json:"delivery_id"`
	}
	status, text := c.call(ctx, "POST", "/v1/endpoints/"+s.Endpoint.String()+"/deliveries", s.Key, payload, &made)
	switch {
	case status == 0 || status == 503 || status == 429:
		return false
	case status != 202 || made.ID == uuid.Nil:
		l.breach(ruleAPI, "submission %s was answered with %d: %s", s.Key, status, text)
		return true
	}
	l.expectAnswer(s.Key, false)
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, again := l.accepted[made.ID]; !again {
		l.recent = append(l.recent, made.ID)
	}
	l.accepted[made.ID] = s
	return true
}

func (l *load) expectAnswer(key string, expect bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if expect {
		l.unanswered[key] = true
	} else {
		delete(l.unanswered, key)
	}
}

// pick returns one of the latest deliveries.
func (l *load) pick(n int) (uuid.UUID, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.recent) == 0 {
		return uuid.Nil, false
	}
	latest := l.recent[max(0, len(l.recent)-300):]
	return latest[n%len(latest)], true
}

// known is what was accepted, and what never got an answer.
func (l *load) known() (map[uuid.UUID]handedIn, map[string]bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return maps.Clone(l.accepted), maps.Clone(l.unanswered)
}

// The paths of the receivers that may be gone, and that always are late.
const (
	pathGone = "/gone"
	pathSlow = "/slow"
)

// tortureTarget is an endpoint of the run.
type tortureTarget struct {
	Path    string
	Timeout time.Duration
	Hold    bool
	Delays  []string
	ID      uuid.UUID
}

// tortureTargets is what is delivered to: retrying and holding ones, one that waits long
// enough for late results to come, one whose requests last as long as a lease allows,
// and one that may be gone.
func tortureTargets() []*tortureTarget {
	short := []string{"0s", "100ms", "200ms", "300ms", "500ms", "700ms"}
	return []*tortureTarget{
		{Path: "/a", Timeout: 1500 * time.Millisecond, Delays: short},
		{Path: "/b", Timeout: 600 * time.Millisecond, Delays: short},
		{Path: "/c", Timeout: time.Second, Delays: short[:3]},
		{Path: "/hold", Timeout: time.Second, Hold: true, Delays: short},
		{Path: "/held", Timeout: 500 * time.Millisecond, Hold: true, Delays: short[:3]},
		{Path: "/patient", Timeout: time.Second, Delays: []string{"0s", "2500ms", "2500ms"}},
		{Path: pathSlow, Timeout: 4500 * time.Millisecond, Delays: short[:4]},
		{Path: pathGone, Timeout: 800 * time.Millisecond, Delays: short},
	}
}

func timeoutOf(path string) time.Duration {
	targets := tortureTargets()
	i := slices.IndexFunc(targets, func(t *tortureTarget) bool { return t.Path == path })
	if i < 0 {
		return time.Second
	}
	return targets[i].Timeout
}
