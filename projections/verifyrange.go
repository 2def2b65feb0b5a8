package projections

import (
	"bytes"
	"cmp"
	"context"
	_ "embed"
	"fmt"
	"math/rand/v2"
	"sync"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"
)

//go:embed sql/skip_deliveries.sql
var skipDeliveries string

// How many rows are compared with their streams in one snapshot, and how many at a time
// where only some are looked at.
const (
	verifyChunk  = 2000
	verifySample = 10
)

// stretch is a range of ids: above after, up to upTo.
type stretch struct{ after, upTo uuid.UUID }

// deliveryRows verifies the deliveries of the range, stretch by stretch. What lies
// between two rows belongs to a stretch as well, so that a stream without a row is found.
func (v *verification) deliveryRows(ctx context.Context) error {
	work, ctx := errgroup.WithContext(ctx)
	work.SetLimit(v.Workers)
	done := reached{ends: map[int]uuid.UUID{}}
	defer func() { v.through = done.through }() // all have ended by then
	at, last := below(v.From), highest
	if v.To != uuid.Nil {
		last = below(v.To)
	}
	for n := 0; bytes.Compare(at[:], last[:]) < 0 && ctx.Err() == nil && !v.enough(); n++ {
		s, next, err := v.stretch(ctx, at, last)
		if err != nil {
			return cmp.Or(work.Wait(), err) // a worker's fault has ended the context
		}
		work.Go(func() error {
			if s.after != s.upTo {
				if err := v.Snapshot(ctx, func(db DB) error { return v.deliveryStretch(ctx, db, s) }); err != nil {
					return err
				}
			}
			done.reach(n, next)
			return v.window.room(ctx)
		})
		at = next
	}
	return work.Wait()
}

// stretch says what to look at above an id, and where to go on.
func (v *verification) stretch(ctx context.Context, at, last uuid.UUID) (s stretch, next uuid.UUID, err error) {
	if !v.sampled() {
		next, err = v.skip(ctx, at, last, verifyChunk)
		return stretch{at, next}, next, err
	}
	stride := max(int(verifySample/v.Sample), verifySample)
	from := rand.IntN(stride)
	if s.after = at; from > 0 {
		if s.after, err = v.skip(ctx, at, last, from); err != nil {
			return s, next, err
		}
	}
	if s.upTo, err = v.skip(ctx, s.after, last, verifySample); err != nil {
		return s, next, err
	}
	if rest := stride - from - verifySample; rest > 0 {
		next, err = v.skip(ctx, s.upTo, last, rest)
		return s, next, err
	}
	return s, s.upTo, nil
}

// skip is the id of the nth row above one; the last of the range where there are fewer.
func (v *verification) skip(ctx context.Context, at, last uuid.UUID, n int) (id uuid.UUID, err error) {
	err = v.Snapshot(ctx, func(db DB) error {
		rows, err := db.Query(ctx, v.Schema.SQL(skipDeliveries), pgx.StrictNamedArgs{"after": at, "up_to": last, "skip": n - 1})
		if err != nil {
			return err
		}
		ids, err := collect(rows, pgx.RowTo[uuid.UUID], "find the next deliveries")
		if id = last; len(ids) > 0 {
			id = ids[0]
		}
		return err
	})
	if err != nil {
		return id, fmt.Errorf("verify: %w", err)
	}
	return id, nil
}

// reached keeps how far all stretches are done, whichever order they end in.
type reached struct {
	mu      sync.Mutex
	ends    map[int]uuid.UUID
	next    int
	through uuid.UUID
}

func (r *reached) reach(n int, end uuid.UUID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ends[n] = end
	for id, ok := r.ends[r.next]; ok; id, ok = r.ends[r.next] {
		delete(r.ends, r.next)
		r.through = id
		r.next++
	}
}

// highest is above every id.
var highest = uuid.Max

// below is the id before one; zero stays.
func below(id uuid.UUID) uuid.UUID {
	if id == uuid.Nil {
		return id
	}
	for i := len(id) - 1; i >= 0; i-- {
		id[i]--
		if id[i] != 0xff {
			break
		}
	}
	return id
}
