package projections

import (
	"bytes"
	"context"
	_ "embed"
	"fmt"
	"reflect"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"waybill/events"
)

var (
	//go:embed sql/page_endpoints.sql
	pageEndpoints string
	//go:embed sql/list_admin_heads.sql
	listAdminHeads string
)

// verifyEndpoints is how many endpoints are compared in one snapshot.
const verifyEndpoints = 500

// endpointRows compares the rows of endpoints with their streams.
func (v *verification) endpointRows(ctx context.Context) error {
	s := stretch{upTo: uuid.Nil}
	for s.upTo != highest && !v.enough() {
		s.after = s.upTo
		err := v.Snapshot(ctx, func(db DB) error {
			if err := v.holdRows(ctx, db); err != nil {
				return err
			}
			rows, err := db.Query(ctx, v.Schema.SQL(pageEndpoints), pgx.StrictNamedArgs{"after": s.after, "limit": verifyEndpoints})
			if err != nil {
				return fmt.Errorf("verify: %w", err)
			}
			list, err := collect(rows, scanEndpoint, "verify endpoints")
			if err != nil {
				return err
			}
			if s.upTo = highest; len(list) == verifyEndpoints {
				s.upTo = list[len(list)-1].ID
			}
			c := &endpointCheck{verification: v, rows: list}
			if err := v.stream(ctx, db, events.EndpointStream, s, c.record); err != nil {
				return err
			}
			c.end()
			c.rowless(highest)
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// endpointCheck is deliveryCheck for endpoints.
type endpointCheck struct {
	*verification
	rows []Endpoint
	link link
	fold Endpoint
}

func (c *endpointCheck) record(r *events.Record) {
	if c.link.id != r.StreamID {
		c.end()
		c.link.begin(events.EndpointStream, r.StreamID)
		c.fold = Endpoint{}
		c.fold.ID = r.StreamID
	}
	c.check(&c.link, r)
	c.Done(1)
	if e := c.event(&c.link, r); e != nil {
		c.fold.take(r, e)
	}
}

func (c *endpointCheck) end() {
	if c.link.id == uuid.Nil {
		return
	}
	c.rowless(c.link.id)
	if len(c.rows) == 0 || c.rows[0].ID != c.link.id {
		c.fault(FaultRow, events.EndpointStream, c.link.id, c.link.seq, "the stream has no row in endpoints")
		return
	}
	row := c.rows[0]
	c.rows = c.rows[1:]
	c.endpoints.Add(1)
	if c.link.sound && !reflect.DeepEqual(row, c.fold) {
		c.fault(FaultRow, events.EndpointStream, row.ID, row.Version, "the row is not the fold of its events")
	}
}

// rowless names the rows before an id: their streams are not there.
func (c *endpointCheck) rowless(before uuid.UUID) {
	for ; len(c.rows) > 0 && bytes.Compare(c.rows[0].ID[:], before[:]) < 0; c.rows = c.rows[1:] {
		c.endpoints.Add(1)
		c.fault(FaultMissing, events.EndpointStream, c.rows[0].ID, 1, "the row says %d events; the log has none of them", c.rows[0].Version)
	}
}

// adminHead is where a tenant's administrative stream ends, as its head's row says.
type adminHead struct {
	Stream  uuid.UUID
	Version int
	Hash    []byte
}

// administration checks the administrative streams, one a tenant, against their heads.
func (v *verification) administration(ctx context.Context) error {
	return v.Snapshot(ctx, func(db DB) error {
		rows, err := db.Query(ctx, v.Schema.SQL(listAdminHeads))
		if err != nil {
			return fmt.Errorf("verify: %w", err)
		}
		list, err := collect(rows, pgx.RowToStructByPos[adminHead], "verify administration")
		if err != nil {
			return err
		}
		heads := make(map[uuid.UUID]adminHead, len(list))
		for _, h := range list {
			heads[h.Stream] = h
		}
		var k link
		err = v.stream(ctx, db, events.AdminStream, stretch{upTo: highest}, func(r *events.Record) {
			if k.id != r.StreamID {
				v.adminEnd(heads, k)
				k.begin(events.AdminStream, r.StreamID)
			}
			v.check(&k, r)
			v.event(&k, r)
		})
		v.adminEnd(heads, k)
		for id, h := range heads {
			if h.Version > 0 {
				v.fault(FaultMissing, events.AdminStream, id, 1, "the head says %d events; the log has none of them", h.Version)
			}
		}
		return err
	})
}

func (v *verification) adminEnd(heads map[uuid.UUID]adminHead, k link) {
	if k.id == uuid.Nil {
		return
	}
	h := heads[k.id]
	delete(heads, k.id)
	if h.Version != k.seq || !bytes.Equal(h.Hash, k.prev[:]) {
		v.fault(FaultRow, events.AdminStream, k.id, k.seq, "the head is at seq %d with another hash, or at another seq, than the stream's last event", h.Version)
	}
}
