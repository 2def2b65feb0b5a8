package main

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"waybill/adapters/postgres"
	"waybill/domain"
	"waybill/events"
	"waybill/handlers/sealer"
	"waybill/projections"
)

// What the log of a benchmark consists of.
const (
	benchEndpoints = 100
	benchWave      = 250 // deliveries whose events are interleaved, as those of a busy ledger are
	benchCommit    = 40  // waves in one transaction
	benchPerLife   = 4   // events of a delivery: scheduled, claimed, attempted, delivered
)

// benchLog fills an empty ledger with deliveries that were delivered at once: events that
// follow from each other as those of real ones, and their messages. The projections are
// rebuilt from it, the blocks closed by the sealer.
type benchLog struct {
	*postgres.Ledger
	db        *pgx.Conn // may do anything
	url       string
	shown     *progress
	at        domain.Instant
	payload   []byte
	endpoints []uuid.UUID
	records   [][]any
	messages  [][]any
}

var eventColumns = []string{"tenant", "stream", "stream_id", "seq", "name", "version", "recorded_at", "actor", "endpoint_id", "trace_parent", "data", "hash"}

func (b *benchLog) fill(ctx context.Context, total int) error {
	b.at = domain.At(time.Now().Add(-time.Hour))
	b.payload = fmt.Appendf(nil, `{"type":"order.paid","data":{"id":"or_1","amount":1200,"note":%q}}`, make([]byte, 50))
	b.shown.phase("fill", int64(total))
	if err := b.configure(); err != nil {
		return err
	}
	lives := total / benchPerLife
	for made := 0; made < lives; {
		for wave := 0; wave < benchCommit && made < lives; wave++ {
			n := min(benchWave, lives-made)
			if err := b.wave(n); err != nil {
				return err
			}
			made += n
		}
		if err := b.write(ctx); err != nil {
			return err
		}
	}
	if _, err := b.db.Exec(ctx, "vacuum analyze waybill.events"); err != nil {
		return err
	}
	return b.derive(ctx)
}

// configure makes the endpoints.
func (b *benchLog) configure() error {
	for range benchEndpoints {
		blank := projections.Endpoint{Endpoint: domain.Endpoint{ID: postgres.NewID(b.at), Tenant: domain.DefaultTenant}}
		c, err := blank.Advance("system:bench", b.at, domain.EndpointCreated{Config: domain.EndpointConfig{
			URL: "https://example.test/hook", URLFingerprint: domain.Hex{1}, Mode: domain.ModeHTTP, EventTypes: []string{}, Policy: domain.DefaultPolicy(),
		}})
		if err != nil {
			return err
		}
		b.endpoints = append(b.endpoints, c.After.ID)
		b.keep(c.Records[0])
	}
	return nil
}

func (b *benchLog) keep(r events.Record) {
	var trace any
	if r.TraceParent != "" {
		trace = r.TraceParent
	}
	b.records = append(b.records, []any{r.Tenant, string(r.Stream), r.StreamID, r.Seq, r.Name, r.Version, r.RecordedAt.Time,
		string(r.Actor), r.EndpointID, trace, []byte(r.Data), r.Hash[:]})
}

// wave is a claim's worth of deliveries: all are scheduled, then claimed, then done.
func (b *benchLog) wave(n int) error {
	b.at = b.at.After(20 * time.Millisecond) // and the steps take as long
	token := postgres.NewID(b.at)
	rows := make([]projections.Delivery, n)
	steps := []func(d projections.Delivery) []domain.Event{
		func(d projections.Delivery) []domain.Event { return b.scheduled(d.ID, len(b.messages)) },
		func(projections.Delivery) []domain.Event {
			return []domain.Event{domain.Claimed{Token: token, Worker: "bench", LeaseUntil: b.at.After(time.Minute), Cycle: 1, Attempt: 1, CycleAttempt: 1}}
		},
		func(d projections.Delivery) []domain.Event {
			return []domain.Event{domain.Attempted{Attempt: 1, CycleAttempt: 1, Token: token, Outcome: domain.Succeeded, Status: 200,
				URL: "https://example.test/hook", EndpointVersion: 1, StartedAt: b.at, DurationMS: 12, ResponseBytes: 2}, domain.Delivered{Attempt: 1}}
		},
	}
	for i := range rows {
		rows[i].ID, rows[i].Tenant = postgres.NewID(b.at), domain.DefaultTenant
	}
	for step, decide := range steps {
		at := b.at.After(time.Duration(step) * 20 * time.Millisecond)
		for i, d := range rows {
			c, err := d.Advance("worker:bench", at, decide(d)...)
			if err != nil {
				return err
			}
			for _, r := range c.Records {
				b.keep(r)
			}
			rows[i] = c.After
		}
	}
	return nil
}

func (b *benchLog) scheduled(delivery uuid.UUID, n int) []domain.Event {
	message, salt := postgres.NewID(b.at), delivery[:]
	commitment := events.Commitment(salt, b.payload)
	b.messages = append(b.messages, []any{message, domain.DefaultTenant, "order.paid", "application/json", b.payload, salt, commitment,
		[]uuid.UUID{delivery}, b.at.Time})
	return []domain.Event{domain.Scheduled{EndpointID: b.endpoints[n%len(b.endpoints)], MessageID: message, EventType: "order.paid",
		ContentType: "application/json", PayloadSize: len(b.payload), Commitment: commitment, DueAt: b.at}}
}

func (b *benchLog) write(ctx context.Context) error {
	_, err := b.db.CopyFrom(ctx, pgx.Identifier{"waybill", "events"}, eventColumns, pgx.CopyFromRows(b.records))
	if err == nil {
		_, err = b.db.CopyFrom(ctx, pgx.Identifier{"waybill", "messages"},
			[]string{"id", "tenant", "event_type", "content_type", "payload", "salt", "commitment", "delivery_ids", "created_at"}, pgx.CopyFromRows(b.messages))
	}
	if err != nil {
		return fmt.Errorf("fill the log: %w", err)
	}
	b.shown.add(int64(len(b.records)))
	b.records, b.messages = b.records[:0], b.messages[:0]
	return nil
}

// derive closes the blocks and makes the rows.
func (b *benchLog) derive(ctx context.Context) error {
	drawn, err := b.Drawn(ctx)
	if err != nil {
		return err
	}
	b.shown.phase("seal", drawn)
	s := sealer.New(sealer.Config{Ledger: b.Ledger, Log: slog.New(slog.DiscardHandler)})
	for head := (projections.Head{}); head.Last < drawn; {
		before := head.Last
		if _, _, err := s.Round(ctx); err != nil {
			return err
		}
		if head, err = b.Head(ctx); err != nil {
			return err
		}
		b.shown.add(head.Last - before)
	}
	for _, p := range projections.Projections {
		if p.Stream == "" {
			continue // follows by itself
		}
		if _, err := postgres.Rebuild(ctx, b.url, b.Schema, p, postgres.RebuildOptions{Phase: b.shown.phase, Done: b.shown.add}); err != nil {
			return err
		}
	}
	_, err = b.db.Exec(ctx, "vacuum analyze")
	return err
}
