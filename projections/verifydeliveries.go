package projections

import (
	"bytes"
	"context"
	_ "embed"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"waybill/domain"
	"waybill/events"
)

var (
	//go:embed sql/page_deliveries.sql
	pageDeliveries string
	//go:embed sql/list_leaving.sql
	listLeaving string
	//go:embed sql/lock_rows.sql
	lockRows string
	//go:embed sql/read_range.sql
	readRange string
)

// deliveryStretch compares the rows of a range of ids with the streams of that range.
func (v *verification) deliveryStretch(ctx context.Context, db DB, s stretch) error {
	if err := v.holdRows(ctx, db); err != nil {
		return err
	}
	rows, err := db.Query(ctx, v.Schema.SQL(pageDeliveries), deliveryFormats,
		pgx.StrictNamedArgs{"after": s.after, "up_to": s.upTo})
	if err != nil {
		return fmt.Errorf("verify: %w", err)
	}
	list, err := rawDeliveries(rows)
	if err != nil {
		return fmt.Errorf("verify: %w", err)
	}
	if rows, err = db.Query(ctx, v.Schema.SQL(listLeaving)); err != nil {
		return fmt.Errorf("verify: %w", err)
	}
	leaving, err := collect(rows, pgx.RowToStructByPos[idRange], "verify deliveries")
	if err != nil {
		return err
	}
	c := &deliveryCheck{verification: v, rows: list, leaving: leaving, bytes: boundBytes{
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
	leaves := make([]events.Leaf, 0, verifyChunk*4)
	err := v.reader(db).eachRecord(ctx, kind, s, func(r *events.Record) {
		do(r)
		leaves = append(leaves, events.Leaf{Position: r.Position, Hash: r.Hash})
	})
	if err != nil {
		return fmt.Errorf("verify: %w", err)
	}
	v.window.add(leaves)
	return nil
}

// deliveryCheck goes through rows and records in order of id at once.
type deliveryCheck struct {
	*verification
	rows    []Delivery // still to be compared
	leaving []idRange  // months that are being archived: their rows and bytes go first
	link    link
	fold    Delivery
	seen    int
	bytes   boundBytes
}

// idRange is a half-open range of ids.
type idRange struct{ Low, High uuid.UUID }

func (r idRange) holds(id uuid.UUID) bool {
	return bytes.Compare(r.Low[:], id[:]) <= 0 && bytes.Compare(id[:], r.High[:]) < 0
}

func (c *deliveryCheck) leaves() bool {
	return slices.ContainsFunc(c.leaving, func(r idRange) bool { return r.holds(c.link.id) })
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
	c.fold.take(r, e)
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
	leaves := c.leaves()
	if c.bytes.settle(c.fold, leaves); leaves && (len(c.rows) == 0 || c.rows[0].ID != c.link.id) {
		return
	}
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
