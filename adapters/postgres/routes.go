package postgres

import (
	"encoding/json"
	"fmt"
	"sync"

	"github.com/google/uuid"

	"waybill/domain"
	"waybill/projections"
)

// maxRoutes bounds how many endpoints' routes are kept opened.
const maxRoutes = 20_000

// routes remembers the opened route of each endpoint's latest seen version.
type routes struct {
	mu sync.Mutex
	by map[uuid.UUID]*projections.Route
}

func newRoutes() *routes { return &routes{by: map[uuid.UUID]*projections.Route{}} }

// of returns what is known of the endpoints that a claim asks for.
func (r *routes) of(from []projections.ClaimQuota) map[uuid.UUID]*projections.Route {
	r.mu.Lock()
	defer r.mu.Unlock()
	known := make(map[uuid.UUID]*projections.Route, len(from))
	for _, q := range from {
		if route := r.by[q.EndpointID]; route != nil {
			known[q.EndpointID] = route
		}
	}
	return known
}

func (r *routes) put(known *projections.Route) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.by) >= maxRoutes {
		clear(r.by)
	}
	r.by[known.ID] = known
}

// route returns how to send to a version of an endpoint, opening the sealed target
// if that version is new to this process.
func (l *Ledger) route(id uuid.UUID, version int, policy, sealed []byte) (*projections.Route, error) {
	r := &projections.Route{ID: id, Version: version}
	if err := json.Unmarshal(policy, &r.Policy); err != nil {
		return nil, fmt.Errorf("endpoint %s: policy: %w", id, err)
	}
	var err error
	if r.Target, err = l.openTarget(id, sealed); err != nil {
		return nil, err
	}
	l.routes.put(r)
	return r, nil
}

func (l *Ledger) openTarget(id uuid.UUID, sealed []byte) (domain.Target, error) {
	var t domain.Target
	plain, err := l.vault.Open(sealed, id[:])
	if err != nil {
		return t, fmt.Errorf("endpoint %s: open its sealed target (is this the keyset that sealed it?): %w", id, err)
	}
	if err := json.Unmarshal(plain, &t); err != nil {
		return t, fmt.Errorf("endpoint %s: sealed target: not as expected", id)
	}
	return t, nil
}

func (l *Ledger) sealTarget(id uuid.UUID, t domain.Target) ([]byte, error) {
	plain, err := json.Marshal(t)
	if err != nil {
		return nil, fmt.Errorf("endpoint %s: seal: %w", id, err)
	}
	return l.vault.Seal(plain, id[:])
}
