package main

import (
	"fmt"
	"net"
	"net/http"
	"sync/atomic"

	"github.com/google/uuid"
)

// part is one receiver of the demo: how it behaves, what Waybill makes of that, and
// what is sent to it.
type part struct {
	name   string
	does   string // in the board, at most 29 characters
	then   string // in the board, at most 27 characters
	policy string // of its endpoint, as JSON
	count  int    // messages
	answer behaviour

	repaired atomic.Bool // answers 200 from now on
	endpoint uuid.UUID
}

// behaviour answers a request, the nth for its delivery, whose body has been read.
type behaviour func(w http.ResponseWriter, q *http.Request, nth int)

// The parts that acts speak of by name.
const (
	theShop   = "shop"
	theBank   = "bank"
	theVault  = "vault"
	theStrict = "strict"
	theGone   = "gone"
)

// newCast is all receivers in the order of the board.
func newCast() []*part {
	return []*part{
		{name: theShop, does: "answers 200", then: "delivered, with proof", count: 6,
			policy: `{}`, answer: always(http.StatusOK)},
		{name: theBank, does: "200, but the worker dies", then: "in doubt, then taken over", count: 1,
			policy: `{"timeout":"4.9s","retries":{"delays":["0s","500ms","5s"]}}`, answer: first(1, hang)},
		{name: "flaky", does: "500 twice, then 200", then: "retried", count: 3,
			policy: `{"retries":{"delays":["0s","1s","2s"]}}`, answer: first(2, always(http.StatusInternalServerError))},
		{name: "sleepy", does: "no answer in time, then 200", then: "in doubt, retried", count: 2,
			policy: `{"timeout":"1.2s","retries":{"delays":["0s","1s","2s"]}}`, answer: first(1, hang)},
		{name: "busy", does: "503 Retry-After: 3, then 200", then: "waits as asked", count: 2,
			policy: `{"retries":{"delays":["0s","500ms","1s"]}}`, answer: first(1, busy)},
		{name: "cutter", does: "cuts the line, then 200", then: "in doubt, retried", count: 2,
			policy: `{"retries":{"delays":["0s","1s","2s"]}}`, answer: first(1, cut)},
		{name: theVault, does: "cuts the line; policy: hold", then: "in doubt, held for a human", count: 1,
			policy: `{"on_unknown_outcome":"hold"}`, answer: cut},
		{name: theStrict, does: "403 for ever", then: "gives up after 3 attempts", count: 2,
			policy: `{"retries":{"delays":["0s","1s","1s"]}}`, answer: always(http.StatusForbidden)},
		{name: theGone, does: "410, wants no more", then: "gives up, endpoint disabled", count: 1,
			policy: `{}`, answer: always(http.StatusGone)},
	}
}

// part finds a receiver by its name.
func (d *demo) part(name string) *part {
	for _, p := range d.cast {
		if p.name == name {
			return p
		}
	}
	panic("no receiver is called " + name) // a mistake in this file
}

// message is the nth message for the receiver.
func (p *part) message(n int) []byte {
	return fmt.Appendf(nil, `{"order": "%s-%d", "amount": "%d.00 EUR"}`, p.name, n, 10*n)
}

func always(status int) behaviour {
	return func(w http.ResponseWriter, _ *http.Request, _ int) { w.WriteHeader(status) }
}

// first misbehaves for the first so many requests of each delivery.
func first(many int, misbehave behaviour) behaviour {
	return func(w http.ResponseWriter, q *http.Request, nth int) {
		if nth <= many {
			misbehave(w, q, nth)
		}
	}
}

func busy(w http.ResponseWriter, _ *http.Request, _ int) {
	w.Header().Set("Retry-After", "3")
	w.WriteHeader(http.StatusServiceUnavailable)
}

// hang never answers: it waits until the other side has given up.
func hang(_ http.ResponseWriter, q *http.Request, _ int) { <-q.Context().Done() }

// cut resets the connection (TCP RST) after the request has been read.
func cut(w http.ResponseWriter, _ *http.Request, _ int) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = conn.Close()
}
