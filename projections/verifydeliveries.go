package projections

import (
	"bytes"
	"cmp"
	"context"
	_ "embed"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"sync"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"

	"waybill/domain"
	"waybill/events"
)

var (
	//go:embed sql/page_deliveries.sql
	pageDeliveries string
	//go:embed sql/skip_deliveries.sql
	skipDeliveries string
	//go:embed sql/lock_rows.sql
	lockRows string
	//go:embed sql/read_range.sql
	readRange string
)

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
			return nil
		})
		at = next
	}
	return work.Wait()
}

// stretch says what to look at above an id, and where to go on.
func (v *verification) stretch(ctx context.Context, at, last uuid.UUID) (s stretch, next uuid.UUID, err error) {
	if v.Sample <= 0 || v.Sample >= 1 {
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

// deliveryStretch compares the rows of a range of ids with the streams of that range.
func (v *verification) deliveryStretch(ctx context.Context, db DB, s stretch) error {
	if err := v.holdRows(ctx, db); err != nil {
		return err
	}
	rows, err := db.Query(ctx, v.Schema.SQL(pageDeliveries), pgx.StrictNamedArgs{"after": s.after, "up_to": s.upTo})
	if err != nil {
		return fmt.Errorf("verify: %w", err)
	}
	list, err := collect(rows, scanDelivery, "verify deliveries")
	if err != nil {
		return err
	}
	c := &deliveryCheck{verification: v, rows: list, bytes: boundBytes{
		payloads: map[uuid.UUID][]boundPayload{}, excerpts: map[exchangeKey]boundExcerpt{},
	}}
	if err := v.stream(ctx, db, events.DeliveryStream, s, c.record); err != nil {
		return err
	}
	c.end()
	for ; len(c.rows) > 0; c.rows = c.rows[1:] {
		c.rowless(c.rows[0])
	}
	v.Done(int64(c.seen))
	return c.bytes.check(ctx, db, v, s)
}

// holdRows keeps a rebuild from swapping a table between the snapshot and the reading of
// it: the snapshot would not see the new table's rows.
func (v *verification) holdRows(ctx context.Context, db DB) error {
	rows, err := db.Query(ctx, v.Schema.SQL(lockRows))
	if err == nil {
		rows.Close()
		err = rows.Err()
	}
	if err != nil {
		return fmt.Errorf("verify: %w", err)
	}
	return nil
}

// stream reads the records of one kind in a range of ids, stream by stream.
func (v *verification) stream(ctx context.Context, db DB, kind events.Stream, s stretch, do func(*events.Record)) error {
	rows, err := db.Query(ctx, v.Schema.SQL(readRange), rawFormats,
		pgx.StrictNamedArgs{"stream": string(kind), "after": s.after, "up_to": s.upTo})
	if err != nil {
		return fmt.Errorf("verify: %w", err)
	}
	if err := eachRecord(rows, do); err != nil {
		return fmt.Errorf("verify: %w", err)
	}
	return nil
}

// deliveryCheck goes through rows and records in order of id at once.
type deliveryCheck struct {
	*verification
	rows  []Delivery // still to be compared
	link  link
	fold  Delivery
	seen  int
	bytes boundBytes
}

func (c *deliveryCheck) record(r *events.Record) {
	if c.link.id != r.StreamID {
		c.end()
		c.link.begin(events.DeliveryStream, r.StreamID)
		c.fold = Delivery{}
		c.fold.ID = r.StreamID
	}
	c.seen++
	c.check(&c.link, r)
	e := c.event(&c.link, r)
	if e == nil {
		return
	}
	c.fold.Tenant, c.fold.Head = r.Tenant, r.Hash
	c.fold.Delivery = c.fold.Evolve(e, r.RecordedAt)
	switch e := e.(type) {
	case domain.Scheduled:
		c.bytes.payload(r, e)
	case domain.Attempted:
		c.bytes.excerpt(r, e)
	}
}

// end compares the stream that has ended with its row.
func (c *deliveryCheck) end() {
	if c.link.id == uuid.Nil {
		return
	}
	for ; len(c.rows) > 0 && bytes.Compare(c.rows[0].ID[:], c.link.id[:]) < 0; c.rows = c.rows[1:] {
		c.rowless(c.rows[0])
	}
	c.bytes.settle(c.fold)
	if len(c.rows) == 0 || c.rows[0].ID != c.link.id {
		c.fault(FaultRow, events.DeliveryStream, c.link.id, c.link.seq, "the stream has no row in deliveries")
		return
	}
	row := c.rows[0]
	c.rows = c.rows[1:]
	c.deliveries.Add(1)
	if c.link.sound && row != c.fold {
		c.fault(FaultRow, events.DeliveryStream, row.ID, row.Version, "the row is not the fold of its events: %s", differences(row, c.fold))
	}
}

// rowless is a row whose stream is not there.
func (c *deliveryCheck) rowless(d Delivery) {
	c.deliveries.Add(1)
	c.fault(FaultMissing, events.DeliveryStream, d.ID, 1, "the row says %d events; the log has none of them", d.Version)
}

// differences names what differs, and how.
func differences(row, fold Delivery) string {
	var list []string
	a, b := reflect.ValueOf(row.Delivery), reflect.ValueOf(fold.Delivery)
	for i := range a.NumField() {
		if x, y := a.Field(i).Interface(), b.Field(i).Interface(); x != y {
			list = append(list, fmt.Sprintf("%s is %v, of the events %v", a.Type().Field(i).Name, x, y))
		}
	}
	if row.Head != fold.Head {
		list = append(list, fmt.Sprintf("the last hash is %s, of the events %s", row.Head, fold.Head))
	}
	return strings.Join(list, "; ")
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
