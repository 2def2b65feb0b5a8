package postgres

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"

	"waybill/domain"
)

// maxReadingAge is how old a reading of the database's clock may grow.
const maxReadingAge = 5 * time.Second

// Clock estimates the database's clock: its time at a reading at most five seconds
// old, plus monotonic time since. It never runs backwards and, because a reading's
// way back is not counted, never ahead of the database.
type Clock struct {
	pool *pgxpool.Pool
	read chan struct{} // one reading at a time

	mu     sync.Mutex
	base   time.Time // the database's time at the reading
	since  time.Time // when it arrived, by our monotonic clock
	latest time.Time
}

// NewClock returns a clock that reads the pool's database when it is first asked.
func NewClock(pool *pgxpool.Pool) *Clock { return &Clock{pool: pool, read: make(chan struct{}, 1)} }

// Now returns the estimate; the error is that of a reading that was due.
func (c *Clock) Now(ctx context.Context) (domain.Instant, error) {
	if now, fresh := c.estimate(); fresh {
		return now, nil
	}
	select {
	case c.read <- struct{}{}:
		defer func() { <-c.read }()
	case <-ctx.Done():
		return domain.Instant{}, fmt.Errorf("read the database's clock: %w", ctx.Err())
	}
	if now, fresh := c.estimate(); fresh {
		return now, nil
	}
	var at time.Time
	if err := c.pool.QueryRow(ctx, "select clock_timestamp()").Scan(&at); err != nil {
		return domain.Instant{}, fmt.Errorf("read the database's clock: %w", err)
	}
	c.observe(at)
	now, _ := c.estimate()
	return now, nil
}

// observe takes a reading that came along with something else.
func (c *Clock) observe(at time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.base, c.since = at, time.Now()
}

func (c *Clock) estimate() (now domain.Instant, fresh bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	age := time.Since(c.since)
	if c.since.IsZero() || age > maxReadingAge {
		return domain.Instant{}, false
	}
	if t := c.base.Add(age); t.After(c.latest) {
		c.latest = t
	}
	return domain.At(c.latest), true
}

// NewID returns a UUIDv7 (RFC 9562, section 5.7) of the given moment. Ids are made
// from the database's time and never from the process's clock: a wrong clock would
// land in a month that has no partition.
func NewID(at domain.Instant) uuid.UUID {
	var id uuid.UUID
	_, _ = rand.Read(id[:]) // never fails, says its documentation
	var ms [8]byte
	binary.BigEndian.PutUint64(ms[:], uint64(at.UnixMilli()))
	copy(id[:6], ms[2:])
	id[6] = id[6]&0x0f | 0x70
	id[8] = id[8]&0x3f | 0x80
	return id
}

// NewIDAt is NewID, for those who know the ledger by an interface.
func (l *Ledger) NewIDAt(at domain.Instant) uuid.UUID { return NewID(at) }

// Now returns the estimate of the database's clock.
func (l *Ledger) Now(ctx context.Context) (domain.Instant, error) { return l.clock.Now(ctx) }
