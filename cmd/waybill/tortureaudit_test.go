package main

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	"waybill/domain"
	"waybill/events"
)

// forgery makes evidence about one delivery, true or false.
type forgery struct {
	evidence
	t        *testing.T
	id       uuid.UUID
	endpoint uuid.UUID
	message  uuid.UUID
	at       time.Time
	seq      int
	position int64
}

func forge(t *testing.T, hold bool) *forgery {
	f := &forgery{t: t, id: uuid.New(), endpoint: uuid.New(), message: uuid.New(), at: time.Unix(1_800_000_000, 0)}
	f.Endpoints = map[uuid.UUID]tortureEndpoint{f.endpoint: {Attempts: 3, Hold: hold}}
	f.Accepted = map[uuid.UUID]handedIn{f.id: {Key: "k", Endpoint: f.endpoint, Payload: sha256.Sum256([]byte("p"))}}
	f.add("scheduled", "endpoint_id", f.endpoint, "message_id", f.message, "idempotency_key", "k", "due_at", f.at)
	return f
}

type fields map[string]any

// add appends an event a second after the last one.
func (f *forgery) add(name string, pairs ...any) *forgery {
	data := fields{}
	for i := 0; i < len(pairs); i += 2 {
		data[pairs[i].(string)] = pairs[i+1]
	}
	text, err := json.Marshal(data)
	if err != nil {
		f.t.Fatal(err)
	}
	f.seq++
	f.position++
	f.at = f.at.Add(time.Second)
	r := events.Record{
		Envelope: events.Envelope{Tenant: "default", Stream: events.DeliveryStream, StreamID: f.id, RecordedAt: domain.At(f.at), Actor: "system:test"},
		Seq:      f.seq, Position: f.position, Name: "delivery." + name, Version: 1, Data: text,
	}
	f.Log = append(f.Log, r)
	return f
}

// tokenOf is the nth claim's.
func tokenOf(n int) uuid.UUID { return uuid.NewSHA1(uuid.Nil, fmt.Append(nil, n)) }

// claim is the claim that draws the nth attempt, the mth of the cycle.
func (f *forgery) claim(n, m, cycle int) *forgery {
	return f.add("claimed", "claim_token", tokenOf(n), "attempt", n, "cycle_attempt", m, "cycle", cycle, "lease_until", f.at.Add(2*time.Second))
}

// result is the present claim's.
func (f *forgery) result(n, m int, outcome string, status int) *forgery {
	return f.add("attempted", "claim_token", tokenOf(n), "attempt", n, "cycle_attempt", m, "outcome", outcome, "status", status)
}

// late is a superseded claim's.
func (f *forgery) late(n, m int, outcome string, status int) *forgery {
	return f.add("attempted", "claim_token", tokenOf(n), "attempt", n, "cycle_attempt", m, "outcome", outcome, "status", status, "superseded", true)
}

func (f *forgery) retry() *forgery            { return f.add("retry_scheduled", "due_at", f.at) }
func (f *forgery) delivered(n int) *forgery   { return f.add("delivered", "attempt", n) }
func (f *forgery) failed(why string) *forgery { return f.add("failed", "why", why) }
func (f *forgery) expired(n int) *forgery {
	f.at = f.at.Add(5 * time.Second)
	return f.add("lease_expired", "claim_token", tokenOf(n), "attempt", n)
}
func (f *forgery) released(n int) *forgery {
	return f.add("released", "claim_token", tokenOf(n), "why", "drain", "due_at", f.at)
}
func (f *forgery) held(n int) *forgery { return f.add("held", "claim_token", tokenOf(n), "why", "w") }
func (f *forgery) replayed(cycle int, force bool) *forgery {
	return f.add("replayed", "cycle", cycle, "due_at", f.at, "force", force)
}
func (f *forgery) resolved(as string, cycle int) *forgery {
	return f.add("resolved", "resolution", as, "cycle", cycle, "due_at", f.at)
}
func (f *forgery) cancelled() *forgery { return f.add("cancelled") }

// came is an arrival that was answered.
func (f *forgery) came(n, status int) *forgery {
	f.Arrivals = append(f.Arrivals, arrived{
		Delivery: f.id, Message: f.message.String(), Attempt: n, Endpoint: f.endpoint, Payload: sha256.Sum256([]byte("p")),
		Whole: true, Signed: true, Answered: status,
	})
	return f
}

// then changes the last record or arrival, or whatever else.
func (f *forgery) then(change func(*forgery)) *forgery {
	change(f)
	return f
}

func (f *forgery) record() *events.Record { return &f.Log[len(f.Log)-1] }
func (f *forgery) arrival() *arrived      { return &f.Arrivals[len(f.Arrivals)-1] }

// sealed gives every record the hash that it must have, and every stream its row.
func (f *forgery) sealed() *forgery {
	a := &audit{evidence: f.evidence, trials: map[uuid.UUID]*trial{}, tally: tally{Outcomes: map[string]int{}}}
	for _, r := range f.Log {
		a.trial(r.StreamID).hear(r)
	}
	for id, t := range a.trials {
		f.Rows = append(f.Rows, deliveryRow{id, t.state, t.seq, t.last, t.cycle, t.spent, t.proof})
	}
	var prev events.Hash
	for i := range f.Log {
		f.Log[i].Hash = f.Log[i].Sum(prev)
		prev = f.Log[i].Hash
	}
	return f
}

// TestAuditPasses: histories that keep every promise.
func TestAuditPasses(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]func(f *forgery){
		"delivered": func(f *forgery) { f.claim(1, 1, 1).came(1, 200).result(1, 1, "succeeded", 200).delivered(1) },
		"retried": func(f *forgery) {
			f.claim(1, 1, 1).came(1, 500).result(1, 1, "refused", 500).retry().claim(2, 2, 1).came(2, 200).result(2, 2, "succeeded", 200).delivered(2)
		},
		"given back": func(f *forgery) {
			f.claim(1, 1, 1).released(1).claim(2, 1, 1).came(2, 200).result(2, 1, "succeeded", 200).delivered(2)
		},
		"sent all the same": func(f *forgery) {
			f.claim(1, 1, 1).released(1).add("attempted", "claim_token", tokenOf(1), "attempt", 1, "cycle_attempt", 1,
				"outcome", "succeeded", "status", 200, "superseded", true, "after_release", true).came(1, 200).delivered(1)
		},
		"never written": func(f *forgery) {
			f.claim(1, 1, 1).result(1, 1, "unreached", 0).retry().cancelled()
		},
		"taken over": func(f *forgery) {
			f.claim(1, 1, 1).came(1, 200).expired(1).retry().claim(2, 2, 1).came(2, 200).late(1, 1, "succeeded", 200).
				result(2, 2, "unknown", 0).delivered(1)
		},
		"late success": func(f *forgery) {
			f.claim(1, 1, 1).came(1, 200).expired(1).retry().late(1, 1, "succeeded", 200).delivered(1)
		},
		"forced": func(f *forgery) {
			f.claim(1, 1, 1).came(1, 200).result(1, 1, "succeeded", 200).delivered(1).replayed(2, true).
				claim(2, 1, 2).came(2, 200).result(2, 1, "succeeded", 200).delivered(2)
		},
		"rejected":            func(f *forgery) { f.claim(1, 1, 1).came(1, 410).result(1, 1, "refused", 410).failed("rejected") },
		"cancelled in flight": func(f *forgery) { f.claim(1, 1, 1).came(1, 200).cancelled().late(1, 1, "succeeded", 200) },
	} {
		t.Run(name, func(t *testing.T) { passes(t, c, false) })
	}
	for name, c := range map[string]func(f *forgery){
		"held": func(f *forgery) { f.claim(1, 1, 1).came(1, 0).expired(1).held(1).resolved("failed", 0) },
		"once more": func(f *forgery) {
			f.claim(1, 1, 1).result(1, 1, "unknown", 0).held(1).resolved("retry", 2).
				claim(2, 1, 2).came(2, 200).result(2, 1, "succeeded", 200).delivered(2)
		},
		"known after all": func(f *forgery) {
			f.claim(1, 1, 1).came(1, 500).expired(1).held(1).late(1, 1, "refused", 500).retry().cancelled()
		},
	} {
		t.Run(name, func(t *testing.T) { passes(t, c, true) })
	}
}

func passes(t *testing.T, c func(f *forgery), hold bool) {
	t.Helper()
	t.Parallel()
	f := forge(t, hold)
	c(f)
	if _, found := f.sealed().check(); len(found) > 0 {
		t.Errorf("%v", found)
	}
}

// TestAuditNames forges each breach once and demands that it is named.
func TestAuditNames(t *testing.T) {
	t.Parallel()
	for name, c := range forgeries {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := forge(t, c.hold)
			c.make(f)
			if f.sealed(); c.after != nil {
				c.after(f)
			}
			_, found := f.check()
			if !slices.ContainsFunc(found, func(b breach) bool { return b.Rule == c.rule }) {
				t.Errorf("found %v, not %s", found, c.rule)
			}
		})
	}
}
