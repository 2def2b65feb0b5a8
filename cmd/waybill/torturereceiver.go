package main

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
)

// misbehaver is an HTTP server that plays all receivers, each on the path that its
// endpoint names, and keeps its own record of what arrived. What it answers depends on
// the seed, the bytes of the message and the number of the attempt.
type misbehaver struct {
	seed   uint64
	url    string
	server *http.Server
	ended  sync.WaitGroup
	calm   atomic.Bool // nobody is gone any more

	mu       sync.Mutex
	secrets  map[string]*standardwebhooks.Webhook // by path
	ids      map[string]uuid.UUID                 // of endpoints, by path
	arrivals []arrived
}

func openMisbehaver(seed uint64) (*misbehaver, error) {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("open the receiver: %w", err)
	}
	r := &misbehaver{
		seed: seed, url: "http://" + l.Addr().String(),
		secrets: map[string]*standardwebhooks.Webhook{}, ids: map[string]uuid.UUID{},
	}
	r.server = &http.Server{Handler: r, ReadHeaderTimeout: headerTime}
	r.ended.Go(func() { _ = r.server.Serve(l) })
	return r, nil
}

// Close breaks off what is unanswered.
func (r *misbehaver) Close() error {
	err := r.server.Close()
	r.ended.Wait()
	return err
}

// expect tells the receiver of an endpoint on one of its paths.
func (r *misbehaver) expect(path string, id uuid.UUID, secret string) error {
	w, err := standardwebhooks.NewWebhook(secret)
	if err != nil {
		return fmt.Errorf("endpoint %s: %w", id, err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.secrets[path], r.ids[path] = w, id
	return nil
}

// record is what arrived.
func (r *misbehaver) record() []arrived {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.arrivals)
}

// ServeHTTP notes the arrival before it answers, and the answer before it is written.
func (r *misbehaver) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	body, err := io.ReadAll(q.Body)
	n, v := r.note(q, body, err == nil)
	if !v.Whole {
		return
	}
	r.answer(w, q, v, func(status int) {
		r.mu.Lock()
		r.arrivals[n].Answered = status
		r.mu.Unlock()
		w.WriteHeader(status)
	})
}

func (r *misbehaver) note(q *http.Request, body []byte, whole bool) (int, arrived) {
	v := arrived{
		Message: q.Header.Get("webhook-id"), At: time.Now(), Payload: sha256.Sum256(body), Whole: whole,
	}
	v.Delivery, _ = uuid.Parse(q.Header.Get("waybill-delivery-id"))
	v.Attempt, _ = strconv.Atoi(q.Header.Get("waybill-attempt"))
	r.mu.Lock()
	defer r.mu.Unlock()
	v.Endpoint = r.ids[q.URL.Path]
	secret := r.secrets[q.URL.Path]
	v.Signed = secret != nil && secret.Verify(body, q.Header) == nil
	r.arrivals = append(r.arrivals, v)
	return len(r.arrivals) - 1, v
}

// answer misbehaves. Some messages are unwelcome at first (403), whatever the dice say.
func (r *misbehaver) answer(w http.ResponseWriter, q *http.Request, v arrived, write func(status int)) {
	message := binary.BigEndian.Uint64(v.Payload[:8])
	d := dice(r.seed, diceReceiver, message, uint64(v.Attempt))
	timeout := timeoutOf(q.URL.Path)
	if q.URL.Path == pathSlow && !r.calm.Load() { // always late, so that much is underway whenever a worker is stopped
		pass(q, time.Duration(d.Int64N(int64(timeout)*5/4)))
	}
	switch p := d.IntN(100); {
	case message%8 == 0 && v.Attempt <= 2:
		write(http.StatusForbidden)
	case q.URL.Path == pathGone && p < 10 && !r.calm.Load():
		write(http.StatusGone)
	case p < 60:
		write(http.StatusOK)
	case p < 70:
		write(http.StatusInternalServerError)
	case p < 76:
		w.Header().Set("Retry-After", "1")
		write(http.StatusServiceUnavailable)
	case p < 84:
		cut(w, q, 0)
	case p < 94: // late, or too late
		pass(q, time.Duration(d.Int64N(int64(timeout)*5/4)))
		write(http.StatusOK)
	case p < 97:
		hang(w, q, 0)
	default: // read, and closed without a word
		panic(http.ErrAbortHandler)
	}
}

// pass waits until a time is over or nobody waits for the answer any more.
func pass(q *http.Request, t time.Duration) {
	select {
	case <-time.After(t):
	case <-q.Context().Done():
	}
}
