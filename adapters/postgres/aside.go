package postgres

import (
	"fmt"
	"sync"
	"time"

	"github.com/google/uuid"
)

// How long what cannot be written is passed over before it is tried again, and how
// much of it is remembered.
const (
	asideFor = time.Minute
	asideMax = 1000
)

// aside remembers deliveries and claims that make whatever holds them fail, so that
// they are passed over for a while and their neighbours go on. Each is named once a
// while, in the error that put returns.
type aside struct {
	mu    sync.Mutex
	until map[uuid.UUID]time.Time
}

func newAside() *aside { return &aside{until: map[uuid.UUID]time.Time{}} }

// put sets one aside and returns the fault with its name.
func (a *aside) put(id uuid.UUID, err error) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.until) < asideMax {
		a.until[id] = time.Now().Add(asideFor)
	}
	return fmt.Errorf("%s is set aside for %s: %w", id, asideFor, err)
}

// list returns what is to be passed over now.
func (a *aside) list() []uuid.UUID {
	a.mu.Lock()
	defer a.mu.Unlock()
	ids := make([]uuid.UUID, 0, len(a.until))
	for id, until := range a.until {
		if time.Now().After(until) {
			delete(a.until, id)
			continue
		}
		ids = append(ids, id)
	}
	return ids
}
