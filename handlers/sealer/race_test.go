package sealer_test

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"waybill/adapters/embedded"
	"waybill/adapters/postgres"
	"waybill/adapters/postgres/postgrestest"
	"waybill/events"
	"waybill/handlers/sealer"
	"waybill/projections"
)

const insert = `insert into waybill.events (tenant, stream, stream_id, seq, name, version, recorded_at, actor, data, hash)
	values ('default', 'admin', $1, 1, 'x', 1, now(), 'key:a', '{}', $2)`

// TestSealersRaceThroughARestart: three sealers at once over eight appenders that take
// their time and often roll back, while the server is killed and comes back and one sealer
// after the other ends in the middle. The blocks follow each other, hold what is in the
// log, and nobody who read below the horizon missed an event.
func TestSealersRaceThroughARestart(t *testing.T) {
	t.Parallel()
	server := postgrestest.Server(t, embedded.Config{Fsync: true})
	pool := postgrestest.NewOn(t, server).App
	ledger := postgres.Open(pool, postgres.Config{})
	ctx, stop := context.WithCancel(t.Context())
	var work sync.WaitGroup
	var committed sync.Map
	var n atomic.Int64
	for range 8 {
		work.Go(func() {
			for ctx.Err() == nil {
				if id, ok := appendSlowly(ctx, pool); ok {
					committed.Store(id, true)
					n.Add(1)
				}
			}
		})
	}
	for range 3 {
		work.Go(func() {
			for ctx.Err() == nil { // a sealer's life is short
				life, end := context.WithTimeout(ctx, time.Duration(rand.IntN(300))*time.Millisecond)
				s := sealer.New(sealer.Config{Ledger: ledger, Log: slog.New(slog.DiscardHandler), Patience: 50 * time.Millisecond})
				for life.Err() == nil {
					_, _, _ = s.Round(life)
				}
				end()
			}
		})
	}
	var read sync.Map
	var cursor atomic.Int64 // how far somebody who reads up to the horizon has come
	work.Go(func() {
		for ctx.Err() == nil {
			cursor.Store(readOn(ctx, ledger, cursor.Load(), &read))
		}
	})
	blocks := func() int64 { head, _ := ledger.Head(ctx); return head.Blocks }
	waitFor(t, func() bool { return n.Load() > 200 && blocks() > 5 })
	if err := syscall.Kill(server.PID(), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if err := server.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	appended, sealed := n.Load(), blocks()
	waitFor(t, func() bool { return n.Load() > appended+200 && blocks() > sealed+5 })
	stop()
	work.Wait()
	check(t, ledger, cursor.Load(), &committed, &read)
}

// appendSlowly draws a position, waits, and mostly commits. It says so only of what it
// knows to have committed.
func appendSlowly(ctx context.Context, pool *pgxpool.Pool) (id string, ok bool) {
	id = uuid.NewString()
	tx, err := pool.Begin(ctx)
	if err != nil {
		return "", false
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(ctx)) }()
	if _, err := tx.Exec(ctx, insert, id, make([]byte, 32)); err != nil {
		return "", false
	}
	time.Sleep(time.Duration(rand.IntN(20)) * time.Millisecond)
	return id, rand.IntN(5) > 0 && tx.Commit(ctx) == nil
}

func readOn(ctx context.Context, l *postgres.Ledger, cursor int64, read *sync.Map) int64 {
	head, err := l.Head(ctx)
	if err != nil {
		return cursor
	}
	list, err := l.Sealed(ctx, cursor, head.Last, 1_000_000)
	if err != nil {
		return cursor
	}
	for _, r := range list {
		read.Store(r.StreamID.String(), true)
	}
	return max(cursor, head.Last)
}

func waitFor(t *testing.T, done func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !done(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("nothing moves on")
		}
	}
}

// check seals the rest, reads on from the cursor and holds the blocks against the log.
func check(t *testing.T, l *postgres.Ledger, cursor int64, committed, read *sync.Map) {
	t.Helper()
	ctx := t.Context()
	s := sealer.New(sealer.Config{Ledger: l, Log: slog.New(slog.DiscardHandler)})
	drawn, err := l.Drawn(ctx)
	if err != nil {
		t.Fatal(err)
	}
	waitFor(t, func() bool { // what the stopped sealers and appenders hold is theirs for a moment yet
		_, _, err := s.Round(ctx)
		head, headErr := l.Head(ctx)
		return err == nil && headErr == nil && head.Last >= drawn
	})
	readOn(ctx, l, cursor, read)
	committed.Range(func(id, _ any) bool {
		if _, ok := read.Load(id); !ok {
			t.Error("a reader missed", id)
		}
		return true
	})
	head, err := l.Head(ctx)
	if err != nil {
		t.Fatal(err)
	}
	blocks, err := l.Blocks(ctx, 0, 1_000_000)
	if err != nil || int64(len(blocks)) != head.Blocks {
		t.Fatalf("%d blocks, the head says %d: %v", len(blocks), head.Blocks, err)
	}
	last := int64(0)
	for i, b := range blocks {
		leaves, err := l.Leaves(ctx, b.First-1, b.Last, events.MaxBlock+1)
		if want := events.NewBlock(int64(i), last+1, b.Last, leaves); err != nil || b.Block != want {
			t.Errorf("block %+v, want %+v: %v", b.Block, want, err)
		}
		last = b.Last
	}
}

// TestBlocksCannotFork: a block that does not follow the one before, or takes its number,
// is refused, and none can be changed or removed, by its owner either.
func TestBlocksCannotFork(t *testing.T) {
	t.Parallel()
	db := postgrestest.New(t)
	l := postgres.Open(db.App, postgres.Config{})
	if _, err := db.App.Exec(t.Context(), insert, uuid.New(), make([]byte, 32)); err != nil {
		t.Fatal(err)
	}
	s := sealer.New(sealer.Config{Ledger: l, Log: slog.New(slog.DiscardHandler)})
	if n, _, err := s.Round(t.Context()); err != nil || n != 1 {
		t.Fatal(n, err)
	}
	const block = "insert into waybill.blocks (number, first, last, count, root, nodes) values ($1, $2, $3, 0, $4, '')"
	root := make([]byte, 32)
	for what, a := range map[string][]any{
		"that number again": {0, 1, 1, root}, "a hole before it": {1, 3, 4, root},
		"an overlap": {1, 1, 4, root}, "a number left out": {2, 2, 4, root},
	} {
		if _, err := db.Owner().Exec(t.Context(), block, a...); err == nil {
			t.Errorf("a block with %s was taken", what)
		}
	}
	for _, sql := range []string{"update waybill.blocks set count = 0", "delete from waybill.blocks", "truncate waybill.blocks", "delete from waybill.archived_leaves"} {
		if _, err := db.Owner().Exec(t.Context(), sql); err == nil {
			t.Errorf("%s went through", sql)
		}
	}
}

// TestWritersElsewhereHoldNothingBack is Case 32; who holds the horizon back is an appender,
// by name.
func TestWritersElsewhereHoldNothingBack(t *testing.T) {
	t.Parallel()
	db := postgrestest.New(t)
	l := postgres.Open(db.App, postgres.Config{})
	elsewhere := begin(t, db.Owner(), "create table waybill.other (n int); insert into waybill.other values (1)")
	var waiting []projections.Appender
	s := sealer.New(sealer.Config{Ledger: l, Log: slog.New(slog.DiscardHandler), Patience: time.Millisecond,
		Waiting: func(by []projections.Appender) { waiting = by }})
	if _, err := db.App.Exec(t.Context(), insert, uuid.New(), make([]byte, 32)); err != nil {
		t.Fatal(err)
	}
	if n, _, err := s.Round(t.Context()); err != nil || n != 1 {
		t.Errorf("sealed %d beside a writer elsewhere: %v", n, err)
	}
	appender := begin(t, db.App, "")
	if _, err := appender.Exec(t.Context(), insert, uuid.New(), make([]byte, 32)); err != nil {
		t.Fatal(err)
	}
	if n, _, err := s.Round(t.Context()); err != nil || n != 0 || len(waiting) != 1 || waiting[0].Application != "waybill" || waiting[0].PID == 0 {
		t.Errorf("sealed %d over an open append, waiting for %+v: %v", n, waiting, err)
	}
	if err := appender.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n, _, err := s.Round(t.Context()); err != nil || n != 1 || len(waiting) != 0 {
		t.Errorf("sealed %d after the append, waiting for %+v: %v", n, waiting, err)
	}
	if err := elsewhere.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n, _, err := s.Round(t.Context()); err != nil || n != 0 {
		t.Errorf("sealed %d of an idle log: %v", n, err)
	}
	if blocks, err := l.Blocks(t.Context(), 0, 10); err != nil || len(blocks) != 2 {
		t.Errorf("%d blocks: %v", len(blocks), err)
	}
}

func begin(t *testing.T, pool *pgxpool.Pool, sql string) pgx.Tx {
	t.Helper()
	tx, err := pool.Begin(t.Context())
	if err == nil && sql != "" {
		_, err = tx.Exec(t.Context(), sql)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tx.Rollback(context.Background()) })
	return tx
}
