package main

import (
	"math/rand/v2"
	"slices"
	"time"

	"waybill/handlers/worker"
)

// mishap is one fault, planned.
type mishap struct {
	At     time.Duration // after the run began
	Kind   string
	Whom   []int         // of the subjects; all of them
	Length time.Duration // until it is over
	Toxic  *toxic        // of the wire
}

// The kinds of mishap.
const (
	mishapKill     = "kill -9"
	mishapKillAPI  = "kill -9 of the API"
	mishapEnd      = "SIGTERM"
	mishapStop     = "SIGSTOP past the lease"
	mishapCutOff   = "half-open past the lease"
	mishapDatabase = "PostgreSQL stop -m immediate"
	mishapLatency  = "latency"
	mishapReset    = "reset_peer"
	mishapHalfOpen = "half-open"
	mishapClose    = "slow_close"
)

// deck is dealt again and again in a new order, so that each kind has its turn.
var deck = []string{
	mishapKill, mishapKill, mishapKill, mishapKillAPI, mishapEnd, mishapDatabase,
	mishapLatency, mishapReset, mishapReset, mishapHalfOpen, mishapHalfOpen, mishapClose,
}

// theAPI is the subject that answers the API; the others are workers.
const theAPI = 0

// settling is how much of a run is left to itself before its end.
const settling = 500 * time.Millisecond

// Streams of random numbers that one seed stands for.
const (
	dicePlan = iota + 1
	diceCrashes
	diceMessages
	diceReceiver
	diceOperator
)

func dice(seed uint64, stream ...uint64) *rand.Rand {
	var mixed uint64
	for _, s := range stream {
		mixed = mixed*0x9E3779B97F4A7C15 + s + 1
	}
	return rand.New(rand.NewPCG(seed, mixed))
}

// planMishaps is the faults of a run: the seed decides all of it.
func planMishaps(seed uint64, length time.Duration, workers int) (plan []mishap) {
	d := dice(seed, dicePlan)
	var dealt []string
	for at := between(d, 300, 900); at < length-settling; at += between(d, 300, 1400) {
		if len(dealt) == 0 {
			dealt = slices.Clone(deck)
			d.Shuffle(len(dealt), func(i, j int) { dealt[i], dealt[j] = dealt[j], dealt[i] })
		}
		plan = append(plan, newMishap(d, at, dealt[0], workers))
		dealt = dealt[1:]
	}
	// What outlasts a lease befalls one worker after the other, so that others take over.
	// The first comes at once, so that a short run has it.
	long := []string{mishapStop, mishapCutOff}
	n := d.IntN(2)
	for at := between(d, 1000, 2500); at < max(length-worker.MinLease, 3*time.Second); at += between(d, 9000, 15000) {
		n++
		plan = append(plan, newMishap(d, at, long[n%2], workers))
	}
	slices.SortStableFunc(plan, func(a, b mishap) int { return int(a.At - b.At) })
	return plan
}

// newMishap decides how bad a mishap is, and whom it befalls.
func newMishap(d *rand.Rand, at time.Duration, kind string, workers int) mishap {
	m := mishap{At: at, Kind: kind, Whom: []int{1 + d.IntN(workers)}}
	switch kind {
	case mishapKillAPI:
		m.Whom = []int{theAPI}
	case mishapStop:
		m.Length = worker.MinLease + between(d, 500, 2500)
	case mishapCutOff:
		m.befallWire(d, workers, worker.MinLease+between(d, 500, 2500), "timeout", map[string]int{"timeout": 0})
		m.Whom, m.Toxic.Toxicity = []int{1 + d.IntN(workers)}, 1
	case mishapDatabase:
		m.Whom, m.Length = nil, between(d, 0, 800)
	case mishapLatency:
		m.befallWire(d, workers, between(d, 500, 3000), "latency", map[string]int{"latency": 5 + d.IntN(500), "jitter": d.IntN(100)})
	case mishapReset:
		m.befallWire(d, workers, between(d, 200, 1500), "reset_peer", map[string]int{"timeout": d.IntN(60)})
	case mishapHalfOpen:
		m.befallWire(d, workers, between(d, 500, 4000), "timeout", map[string]int{"timeout": 0})
	case mishapClose:
		m.befallWire(d, workers, between(d, 500, 2500), "slow_close", map[string]int{"delay": 100 + d.IntN(900)})
	}
	return m
}

// befallWire makes it a mishap of the wire: of one process, or of all.
func (m *mishap) befallWire(d *rand.Rand, workers int, length time.Duration, kind string, how map[string]int) {
	m.Length = length
	m.Whom = []int{d.IntN(workers + 1)}
	if d.IntN(3) == 0 {
		m.Whom = []int{0}
		for w := range workers {
			m.Whom = append(m.Whom, w+1)
		}
	}
	m.Toxic = &toxic{
		Type: kind, Stream: []string{"upstream", "downstream"}[d.IntN(2)],
		Toxicity: []float32{0.5, 1, 1}[d.IntN(3)], Attributes: how,
	}
}

// planCrashes is where the worker kills itself in its nth life; nothing in some.
func planCrashes(seed uint64, which, life int) (crashes, bool) {
	d := dice(seed, diceCrashes, uint64(which), uint64(life))
	points := []crashes{
		{point: worker.AtClaimed, probability: 0.03}, {point: worker.AtSending, probability: 0.02},
		{point: worker.AtAnswered, probability: 0.02}, {point: worker.AtRecording, probability: 0.03},
	}
	c := points[d.IntN(len(points))]
	c.seed = d.Uint64()
	return c, d.IntN(2) == 0
}

// between is a random duration between two numbers of milliseconds.
func between(d *rand.Rand, least, most int) time.Duration {
	return time.Duration(least+d.IntN(most-least+1)) * time.Millisecond
}
