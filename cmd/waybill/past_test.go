package main

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/rogpeppe/go-internal/testscript"

	"waybill/adapters/postgres"
	"waybill/domain"
	"waybill/events"
	"waybill/projections"
)

// pastMonth is a month of the past in a ledger: deliveries that were handed in then.
type pastMonth struct {
	owner, app *pgxpool.Pool
	month      string
	endpoint   uuid.UUID
}

// hand makes the month's partition where it is missing, and hands in n messages with keys
// in it, all of them cancelled but the last of those left waiting.
func (p pastMonth) hand(ctx context.Context, n, waiting int) ([]uuid.UUID, error) {
	low, _, err := events.MonthBounds(p.month)
	if err != nil {
		return nil, err
	}
	if _, err := p.owner.Exec(ctx, "select waybill.make_partition($1::date)", p.month+"-01"); err != nil {
		return nil, err
	}
	l := postgres.Open(p.app, postgres.Config{})
	var ids []uuid.UUID
	var items []projections.Submission
	var ends []projections.DeliveryChange
	for i := range n {
		at := events.TimeOf(low).After(time.Duration(i+1) * time.Second)
		s, err := p.message(at, fmt.Sprintf("%s/%d", p.month, i))
		if err != nil {
			return nil, err
		}
		c, err := s.Deliveries[0].After.Advance("operator:test@here", at, domain.Cancelled{Reason: "r"})
		if err != nil {
			return nil, err
		}
		if items, ids = append(items, s), append(ids, c.After.ID); i < n-waiting {
			ends = append(ends, c)
		}
	}
	if _, err := l.Schedule(ctx, items, events.TimeOf(low)); err != nil {
		return nil, err
	}
	_, err = l.Append(ctx, ends)
	return ids, err
}

func (p pastMonth) message(at domain.Instant, key string) (projections.Submission, error) {
	salt, payload := []byte("salt"), []byte("{}")
	m := projections.Message{ID: postgres.NewID(at), Tenant: domain.DefaultTenant, EventType: "t.a", ContentType: "application/json",
		Payload: payload, Salt: salt, Commitment: events.Commitment(salt, payload)}
	s := projections.Submission{Message: m, Key: key, Scope: p.endpoint, Fingerprint: events.Fingerprint(salt, m.ContentType, m.EventType, "", payload)}
	blank := projections.Delivery{Delivery: domain.Delivery{ID: postgres.NewID(at), Tenant: domain.DefaultTenant}}
	c, err := blank.Advance("key:test", at, domain.Scheduled{EndpointID: p.endpoint, MessageID: m.ID, EventType: m.EventType,
		ContentType: m.ContentType, PayloadSize: len(payload), Commitment: m.Commitment, IdempotencyKey: key, Fingerprint: s.Fingerprint, DueAt: at})
	s.Deliveries = []projections.DeliveryChange{c}
	return s, err
}

// handPast is: past MONTH N WAITING ENDPOINT. It sets PAST to the first delivery's id and
// WAITING to the last one's.
func handPast(ts *testscript.TestScript, _ bool, args []string) {
	ctx := context.Background()
	open := func(url string) *pgxpool.Pool {
		pool, err := postgres.Connect(ctx, url, postgres.ConnectOptions{MaxConns: 2})
		ts.Check(err)
		ts.Defer(pool.Close)
		return pool
	}
	n, err := strconv.Atoi(args[1])
	ts.Check(err)
	waiting, err := strconv.Atoi(args[2])
	ts.Check(err)
	endpoint, err := uuid.Parse(args[3])
	ts.Check(err)
	ids, err := pastMonth{open(ts.Getenv("OWNER_URL")), open(ts.Getenv("APP_URL")), args[0], endpoint}.hand(ctx, n, waiting)
	ts.Check(err)
	ts.Setenv("PAST", ids[0].String())
	ts.Setenv("WAITING", ids[n-1].String())
}
