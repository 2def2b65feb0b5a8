package worker

import (
	"sync"
	"time"

	"github.com/google/uuid"
)

// backlog is what has ended and is not recorded yet.
type backlog struct {
	mu    sync.Mutex
	since map[held]time.Time // when it ended
}

// held names one end of one claim.
type held struct{ token, delivery uuid.UUID }

func newBacklog() *backlog { return &backlog{since: map[held]time.Time{}} }

func (b *backlog) add(f finished) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.since[held{f.Token, f.Delivery.ID}] = time.Now()
}

func (b *backlog) end(list []finished) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, f := range list {
		delete(b.since, held{f.Token, f.Delivery.ID})
	}
}

// waiting counts what is there and says how long the oldest of it has been.
func (b *backlog) waiting() (n int, longest time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, since := range b.since {
		longest = max(longest, time.Since(since))
	}
	return len(b.since), longest
}
