package main

import (
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"sync"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
)

// receivers is an HTTP server that plays all of them, each on a path of its own. It
// keeps its own record of what arrived, to hold the ledger's against.
type receivers struct {
	url    string
	server *http.Server
	ended  sync.WaitGroup

	mu       sync.Mutex
	secrets  map[string]string // signing secrets by receiver
	arrivals map[arrival]int   // how often each came
	counts   map[string]int    // requests by delivery
	signed   int               // requests whose signature is right
}

// arrival is what identifies a request: Waybill makes each one once.
type arrival struct{ delivery, attempt string }

// openReceivers listens on a free port of this machine.
func openReceivers(cast []*part) (*receivers, error) {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("open the receivers: %w", err)
	}
	r := &receivers{
		url: "http://" + l.Addr().String(), secrets: map[string]string{},
		arrivals: map[arrival]int{}, counts: map[string]int{},
	}
	mux := http.NewServeMux()
	for _, p := range cast {
		mux.HandleFunc("POST /"+p.name, func(w http.ResponseWriter, q *http.Request) { r.receive(w, q, p) })
	}
	r.server = &http.Server{Handler: mux, ReadHeaderTimeout: headerTime}
	r.ended.Go(func() { _ = r.server.Serve(l) })
	return r, nil
}

// Close breaks off whatever hangs.
func (r *receivers) Close() error {
	err := r.server.Close()
	r.ended.Wait()
	return err
}

// expect tells the receiver the secret that its requests are signed with.
func (r *receivers) expect(p *part, secret string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.secrets[p.name] = secret
}

func (r *receivers) receive(w http.ResponseWriter, q *http.Request, p *part) {
	body, err := io.ReadAll(q.Body)
	if err != nil {
		return // it did not arrive
	}
	nth := r.note(q, p, body)
	if !p.repaired.Load() {
		p.answer(w, q, nth)
	}
}

// note keeps an arrival and says which of its delivery it is.
func (r *receivers) note(q *http.Request, p *part, body []byte) (nth int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	a := arrival{q.Header.Get("waybill-delivery-id"), q.Header.Get("waybill-attempt")}
	r.arrivals[a]++
	r.counts[a.delivery]++
	if w, err := standardwebhooks.NewWebhook(r.secrets[p.name]); err == nil && w.Verify(body, q.Header) == nil {
		r.signed++
	}
	return r.counts[a.delivery]
}

// arrived is how many requests came for a delivery.
func (r *receivers) arrived(delivery fmt.Stringer) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.counts[delivery.String()]
}

// record is what came in all, and how many of these requests were signed rightly.
func (r *receivers) record() (arrivals map[arrival]int, signed int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return maps.Clone(r.arrivals), r.signed
}
