package projections

import (
	"bytes"
	"context"
	_ "embed"
	"fmt"
	"slices"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"waybill/domain"
	"waybill/events"
)

var (
	//go:embed sql/read_payloads.sql
	readPayloads string
	//go:embed sql/read_payloads_between.sql
	readPayloadsBetween string
	//go:embed sql/read_excerpts.sql
	readExcerpts string
)

// boundBytes is what the log of some deliveries commits to and does not hold: payloads
// and what receivers answered.
type boundBytes struct {
	payloads map[uuid.UUID][]boundPayload // by message
	excerpts map[exchangeKey]boundExcerpt
	since    []exchangeKey // of the stream that is being read
	last     uuid.UUID     // its message
}

type boundPayload struct {
	delivery   uuid.UUID
	commitment []byte
	erased     bool // as the log says
}

type exchangeKey struct {
	delivery uuid.UUID
	attempt  int
}

type boundExcerpt struct {
	seq        int
	commitment []byte
	erased     bool
}

func (b *boundBytes) payload(r *events.Record, e domain.Scheduled) {
	b.last = e.MessageID
	b.payloads[e.MessageID] = append(b.payloads[e.MessageID], boundPayload{delivery: r.StreamID, commitment: e.Commitment})
}

func (b *boundBytes) excerpt(r *events.Record, e domain.Attempted) {
	if len(e.ResponseCommitment) == 0 {
		return
	}
	k := exchangeKey{r.StreamID, e.Attempt}
	b.excerpts[k] = boundExcerpt{seq: r.Seq, commitment: e.ResponseCommitment}
	b.since = append(b.since, k)
}

// settle ends a stream: only now it is known whether its bytes are erased. Those of a
// delivery that is leaving may have gone already.
func (b *boundBytes) settle(d Delivery, leaving bool) {
	if leaving {
		b.payloads[b.last] = slices.DeleteFunc(b.payloads[b.last], func(p boundPayload) bool { return p.delivery == d.ID })
		for _, k := range b.since {
			delete(b.excerpts, k)
		}
	}
	if d.PayloadErased && !leaving {
		for i := range b.payloads[b.last] {
			if p := &b.payloads[b.last][i]; p.delivery == d.ID {
				p.erased = true
			}
		}
		for _, k := range b.since {
			x := b.excerpts[k]
			x.erased = true
			b.excerpts[k] = x
		}
	}
	b.since = b.since[:0]
}

// check hashes the bytes again.
func (b *boundBytes) check(ctx context.Context, db DB, v *verification, s stretch) error {
	if err := b.checkPayloads(ctx, db, v); err != nil {
		return fmt.Errorf("verify payloads: %w", err)
	}
	if err := b.checkExcerpts(ctx, db, v, s); err != nil {
		return fmt.Errorf("verify what receivers answered: %w", err)
	}
	return nil
}

func (b *boundBytes) checkPayloads(ctx context.Context, db DB, v *verification) error {
	if len(b.payloads) == 0 {
		return nil
	}
	// A message is as old as its deliveries, so that theirs lie together; others may between.
	least, most := uuid.Max, uuid.Nil
	for id := range b.payloads {
		if bytes.Compare(id[:], least[:]) < 0 {
			least = id
		}
		if bytes.Compare(id[:], most[:]) > 0 {
			most = id
		}
	}
	between := pgx.StrictNamedArgs{"least": least, "most": most, "limit": 2 * len(b.payloads)}
	if err := b.comparePayloads(ctx, db, v, readPayloadsBetween, between); err != nil {
		return err
	}
	if len(b.payloads) == 0 {
		return nil
	}
	ids := make([][16]byte, 0, len(b.payloads)) // as uuid.UUID each would become text first
	for id := range b.payloads {
		ids = append(ids, id)
	}
	if err := b.comparePayloads(ctx, db, v, readPayloads, pgx.StrictNamedArgs{"ids": ids}); err != nil {
		return err
	}
	for id, list := range b.payloads {
		for _, p := range list {
			v.fault(FaultPayload, events.DeliveryStream, p.delivery, 1, "its message %s is missing", id)
		}
	}
	return nil
}

// comparePayloads compares the payloads that a query finds, and strikes them off.
func (b *boundBytes) comparePayloads(ctx context.Context, db DB, v *verification, sql string, args pgx.StrictNamedArgs) error {
	rows, err := db.Query(ctx, v.Schema.SQL(sql), args)
	if err != nil {
		return err
	}
	var id uuid.UUID
	var payload, salt, commitment pgtype.DriverBytes
	_, err = pgx.ForEachRow(rows, []any{(*[16]byte)(&id), &payload, &salt, &commitment}, func() error {
		list, bound := b.payloads[id]
		if !bound {
			return nil
		}
		v.payloads.Add(1)
		for _, p := range list {
			p.compare(v, id, payload, salt, commitment)
		}
		delete(b.payloads, id)
		return nil
	})
	return err
}

func (p boundPayload) compare(v *verification, message uuid.UUID, payload, salt, commitment []byte) {
	switch {
	case !bytes.Equal(commitment, p.commitment):
		v.fault(FaultPayload, events.DeliveryStream, p.delivery, 1, "message %s has another commitment than the log", message)
	case payload == nil && !p.erased:
		v.fault(FaultPayload, events.DeliveryStream, p.delivery, 1, "the payload of message %s is gone, and no event says that it was erased", message)
	case payload != nil && !bytes.Equal(events.Commitment(salt, payload), commitment):
		v.fault(FaultPayload, events.DeliveryStream, p.delivery, 1, "the payload of message %s is not the one that was handed in", message)
	}
}

func (b *boundBytes) checkExcerpts(ctx context.Context, db DB, v *verification, s stretch) error {
	if len(b.excerpts) == 0 {
		return nil
	}
	rows, err := db.Query(ctx, v.Schema.SQL(readExcerpts), pgx.StrictNamedArgs{"after": s.after, "up_to": s.upTo})
	if err != nil {
		return err
	}
	var k exchangeKey
	var salt, excerpt []byte
	_, err = pgx.ForEachRow(rows, []any{(*[16]byte)(&k.delivery), &k.attempt, &salt, &excerpt}, func() error {
		x, bound := b.excerpts[k]
		if !bound {
			return nil
		}
		delete(b.excerpts, k)
		v.excerpts.Add(1)
		if !x.erased && !bytes.Equal(events.Commitment(salt, excerpt), x.commitment) {
			v.fault(FaultExcerpt, events.DeliveryStream, k.delivery, x.seq, "what the receiver answered to attempt %d is not what was recorded", k.attempt)
		}
		return nil
	})
	for k, x := range b.excerpts {
		if !x.erased {
			v.fault(FaultExcerpt, events.DeliveryStream, k.delivery, x.seq, "what the receiver answered to attempt %d is gone, and no event says that it was erased", k.attempt)
		}
	}
	return err
}
