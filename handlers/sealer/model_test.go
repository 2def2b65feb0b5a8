package sealer_test

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"pgregory.net/rapid"

	"waybill/adapters/postgres"
	"waybill/adapters/postgres/postgrestest"
	"waybill/events"
	"waybill/handlers/sealer"
	"waybill/projections"
)

const (
	appenders = 4
	missed    = "the reader never saw "
)

// world is a real log with writers that do what writers may: draw a position early and
// commit late, roll back (a savepoint too), prepare a transaction, or sit idle in one. A
// sealer and a reader live in it. Whenever the sealer is about to take a step, writers
// may go on first.
type world struct {
	choose func(n int) int // 0 to n-1
	ctx    context.Context
	pool   *pgxpool.Pool
	ledger *postgres.Ledger
	sealer *sealer.Sealer

	conns     []*pgxpool.Conn
	open      []bool     // whether a writer has a transaction open
	drawn     [][]string // by it, in the open transaction
	prepared  map[string][]string
	committed map[string]bool // stream ids
	serial    int

	cursor int64
	read   map[string]bool
	wrong  []string
}

func newWorld(ctx context.Context, pool *pgxpool.Pool, choose func(int) int) (*world, error) {
	w := &world{choose: choose, ctx: ctx, pool: pool, ledger: postgres.Open(pool, postgres.Config{}),
		open: make([]bool, appenders), drawn: make([][]string, appenders),
		prepared: map[string][]string{}, committed: map[string]bool{}, read: map[string]bool{}}
	head, err := w.ledger.Head(ctx)
	w.cursor = head.Last
	for range appenders {
		if err != nil {
			break
		}
		var c *pgxpool.Conn
		c, err = pool.Acquire(ctx)
		w.conns = append(w.conns, c)
	}
	return w, err
}

// stepping lets writers go on before each of the sealer's steps.
type stepping struct {
	sealer.Ledger
	w *world
}

func (s stepping) Drawn(ctx context.Context) (int64, error) {
	s.w.some()
	return s.Ledger.Drawn(ctx)
}

func (s stepping) Appenders(ctx context.Context) ([]projections.Appender, error) {
	s.w.some()
	return s.Ledger.Appenders(ctx)
}

func (s stepping) Seal(ctx context.Context, settled int64) (projections.Head, int, error) {
	s.w.some()
	return s.Ledger.Seal(ctx, settled)
}

func (w *world) some() {
	for range w.choose(4) {
		w.act(w.choose(appenders))
	}
}

// act takes one step of one writer.
func (w *world) act(i int) {
	switch what := w.choose(10); {
	case !w.open[i] && what < 3 && len(w.prepared) > 0:
		w.settle()
	case !w.open[i]:
		w.run(i, "begin")
		w.open[i] = true
		w.draw(i)
	case what < 3:
		w.draw(i)
	case what < 4:
		w.run(i, "savepoint s")
		w.draw(i)
		w.run(i, "rollback to s")
		w.drawn[i] = w.drawn[i][:len(w.drawn[i])-1]
	case what < 5:
		w.end(i, "rollback", nil)
	case what < 6:
		name := fmt.Sprintf("waybill_%s_%d", uuid.NewString(), i)
		w.prepared[name] = slices.Clone(w.drawn[i])
		w.end(i, "prepare transaction '"+name+"'", nil)
	case what < 9:
		w.end(i, "commit", w.drawn[i])
	}
}

// draw appends an event, which draws a position now and is visible when it commits.
func (w *world) draw(i int) {
	id := uuid.NewString()
	w.serial++
	_, err := w.conns[i].Exec(w.ctx, `insert into waybill.events (tenant, stream, stream_id, seq, name, version, recorded_at, actor, data, hash)
		values ('default', 'admin', $1, 1, 'x', 1, now(), 'key:a', '{}', $2)`, id, make([]byte, 32))
	w.note(err)
	w.drawn[i] = append(w.drawn[i], id)
}

func (w *world) end(i int, how string, committed []string) {
	w.run(i, how)
	for _, id := range committed {
		w.committed[id] = true
	}
	w.open[i], w.drawn[i] = false, nil
}

// settle ends one of the prepared transactions.
func (w *world) settle() {
	for name, ids := range w.prepared {
		delete(w.prepared, name)
		if w.choose(2) == 0 {
			_, err := w.pool.Exec(w.ctx, "rollback prepared '"+name+"'")
			w.note(err)
			return
		}
		_, err := w.pool.Exec(w.ctx, "commit prepared '"+name+"'")
		w.note(err)
		for _, id := range ids {
			w.committed[id] = true
		}
		return
	}
}

func (w *world) run(i int, sql string) {
	_, err := w.conns[i].Exec(w.ctx, sql)
	w.note(err)
}

func (w *world) note(err error) {
	if err != nil {
		w.wrong = append(w.wrong, err.Error())
	}
}

// look reads on up to the horizon, as every reader does.
func (w *world) look() {
	head, err := w.ledger.Head(w.ctx)
	w.note(err)
	list, err := w.ledger.Sealed(w.ctx, w.cursor, head.Last, 10_000)
	w.note(err)
	for _, r := range list {
		w.read[r.StreamID.String()] = true
	}
	w.cursor = max(w.cursor, head.Last)
}

// live runs the world for a while and returns what a reader missed.
func (w *world) live(rounds int) []string {
	for range rounds {
		w.some()
		_, _, err := w.sealer.Round(w.ctx)
		w.note(err)
		w.look()
	}
	for i := range w.conns {
		if w.open[i] {
			w.end(i, "commit", w.drawn[i])
		}
		w.conns[i].Release()
	}
	for len(w.prepared) > 0 {
		w.settle()
	}
	for range 3 { // what was waited for, then the rest
		w.choose = func(int) int { return 0 }
		_, _, err := w.sealer.Round(w.ctx)
		w.note(err)
		w.look()
	}
	for id := range w.committed {
		if !w.read[id] {
			w.wrong = append(w.wrong, missed+id)
		}
	}
	for id := range w.read {
		if !w.committed[id] {
			w.wrong = append(w.wrong, "the reader saw what never committed: "+id)
		}
	}
	return w.wrong
}

func database(t *testing.T) *pgxpool.Pool {
	t.Helper()
	return postgrestest.New(t).Super() // who may write events as they are
}

func inhabit(t interface {
	Context() context.Context
	Fatal(...any)
}, pool *pgxpool.Pool, choose func(int) int, ledgerOf func(*world) sealer.Ledger,
) *world {
	w, err := newWorld(t.Context(), pool, choose)
	if err != nil {
		t.Fatal(err)
	}
	w.sealer = sealer.New(sealer.Config{Ledger: stepping{ledgerOf(w), w}, Log: slog.New(slog.DiscardHandler), Patience: time.Millisecond})
	return w
}

// TestNoReaderMissesAnEvent is Case 30 and 31 as a property: whatever writers do between
// the steps of the sealer, a reader who stays below the horizon sees every event that
// commits, and none that does not.
func TestNoReaderMissesAnEvent(t *testing.T) {
	t.Parallel()
	pool := database(t)
	rapid.Check(t, func(t *rapid.T) {
		choose := func(n int) int { return rapid.IntRange(0, n-1).Draw(t, "choice") }
		w := inhabit(t, pool, choose, func(w *world) sealer.Ledger { return w.ledger })
		for _, wrong := range w.live(8) {
			t.Error(wrong)
		}
	})
}

// oneSnapshot seals wrongly: it reads the events in the snapshot in which it looked for
// who appends, and so before they have ended.
type oneSnapshot struct {
	*postgres.Ledger
	w  *world
	tx pgx.Tx
}

func (o *oneSnapshot) Appenders(ctx context.Context) ([]projections.Appender, error) {
	if o.tx == nil {
		tx, err := o.w.pool.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.RepeatableRead})
		if err != nil {
			return nil, err
		}
		if _, err = tx.Exec(ctx, "select 1"); err != nil { // takes the snapshot
			return nil, err
		}
		o.tx = tx
	}
	return o.Ledger.Appenders(ctx)
}

func (o *oneSnapshot) Seal(ctx context.Context, settled int64) (projections.Head, int, error) {
	tx := o.tx
	o.tx = nil
	defer func() { _ = tx.Rollback(ctx) }()
	r := projections.Reader{DB: tx, Schema: projections.DefaultSchema}
	head, err := r.Head(ctx)
	if err != nil {
		return head, 0, err
	}
	leaves, err := r.Leaves(ctx, head.Last, settled, events.MaxBlock)
	if err != nil {
		return head, 0, err
	}
	// A reader of this sealer's blocks sees what the blocks hold.
	for _, l := range leaves {
		var id uuid.UUID
		if err := tx.QueryRow(ctx, "select stream_id from waybill.events where position = $1", l.Position).Scan(&id); err != nil {
			return head, 0, err
		}
		o.w.read[id.String()] = true
	}
	_, err = tx.Exec(ctx, "update waybill.ledger_head set last = $1", settled)
	if err == nil {
		err = tx.Commit(ctx)
	}
	head.Last = settled
	return head, len(leaves), err
}

// TestOneSnapshotMissesEvents: the same world with the steps 2 and 4 in one snapshot, so
// that the test above is known to be able to fail.
func TestOneSnapshotMissesEvents(t *testing.T) {
	t.Parallel()
	pool := database(t)
	for seed := range uint64(200) {
		random := rand.New(rand.NewPCG(seed, 1))
		w := inhabit(t, pool, random.IntN, func(w *world) sealer.Ledger { return &oneSnapshot{Ledger: w.ledger, w: w} })
		w.sealer.Patience = time.Second
		w.cursor = 1 << 62 // its reader reads the blocks
		if slices.ContainsFunc(w.live(8), func(wrong string) bool { return strings.HasPrefix(wrong, missed) }) {
			return
		}
	}
	t.Error("a sealer that reads before it has waited never missed an event")
}
