package api

import (
	"net/http"
	"strings"
	"sync/atomic"

	"waybill/domain"
)

// Bounds of what all requests together may hold, so that the API sheds load before
// memory grows, however slow the database is.
const (
	defaultMaxRequests = 4096
	defaultMaxBodies   = 128 << 20
	batchWeight        = 3 // a batch is held as it came, in parts, and decoded
)

// admission is a budget that is taken before anything is read and given back when the
// request has been answered. Nobody waits for it: who does not get it is sent away, to
// come again.
type admission struct {
	most  int64
	taken atomic.Int64
}

// enter takes n. Where nothing is taken any n fits, so that a limit below the largest
// request does not shut it out for good.
func (a *admission) enter(n int64) (leave func(), err error) {
	if now := a.taken.Add(n); now > a.most && now > n {
		a.taken.Add(-n)
		return nil, domain.ErrStorageUnavailable.With("too many requests wait for the ledger's database; try again")
	}
	return func() { a.taken.Add(-n) }, nil
}

// admitted answers a request if there is room for it. Who looks after the process is let
// in at any time.
func (s *server) admitted(w http.ResponseWriter, r *http.Request) {
	if strings.HasPrefix(r.URL.Path, "/v1/") {
		leave, err := s.requests.enter(1)
		if err != nil {
			s.problem(r.Context(), err).write(w)
			return
		}
		defer leave()
	}
	s.mux.ServeHTTP(w, r)
}

// bodyWeight is what a request's body may come to in memory: what it says, or, where it
// does not say, as much as it may have.
func bodyWeight(r *http.Request, limit int64) int64 {
	if r.ContentLength < 0 {
		return limit
	}
	return r.ContentLength
}
