package postgres

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"golang.org/x/mod/sumdb/tlog"

	"waybill/events"
	"waybill/projections"
)

var (
	//go:embed sql/get_drawn.sql
	getDrawn string
	//go:embed sql/list_appenders.sql
	listAppenders string
	//go:embed sql/lock_head.sql
	lockHead string
	//go:embed sql/insert_blocks.sql
	insertBlocks string
	//go:embed sql/move_head.sql
	moveHead string
)

// blocksAtOnce is the most blocks that one transaction closes.
const blocksAtOnce = 16

// Drawn returns the last position that any append has drawn, 0 if none has.
func (l *Ledger) Drawn(ctx context.Context) (position int64, err error) {
	if err = l.pool.QueryRow(ctx, l.Schema.SQL(getDrawn)).Scan(&position); err != nil {
		return 0, fmt.Errorf("read the last position: %w", err)
	}
	return position, nil
}

// Appenders returns the transactions that may hold a position back. It must be called
// after [Ledger.Drawn], in a statement of its own: then whoever drew a position up to that
// one and has not ended is among them.
func (l *Ledger) Appenders(ctx context.Context) ([]projections.Appender, error) {
	rows, err := l.pool.Query(ctx, l.Schema.SQL(listAppenders))
	if err != nil {
		return nil, fmt.Errorf("look at who appends: %w", err)
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (a projections.Appender, err error) {
		var age float64
		err = row.Scan(&a.Transaction, &a.PID, &a.Application, &a.State, &age)
		a.Age = time.Duration(age * float64(time.Second))
		return a, err
	})
}

// Seal closes blocks up to a position that is settled, at most a few at a time, and
// returns the head after it and how many events it sealed. It does nothing if another
// process is sealing or has sealed as far.
func (l *Ledger) Seal(ctx context.Context, settled int64) (head projections.Head, sealed int, err error) {
	err = pgx.BeginFunc(ctx, l.pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "set local synchronous_commit = on"); err != nil { // a block outlives a crash
			return err
		}
		rows, err := tx.Query(ctx, l.Schema.SQL(lockHead))
		if err != nil {
			return err
		}
		head, err = pgx.CollectExactlyOneRow(rows, projections.ScanHead)
		if errors.Is(err, pgx.ErrNoRows) {
			return nil
		}
		if err != nil || head.Last >= settled {
			return err
		}
		// The transaction reads committed: what follows has snapshots of its own, taken
		// after every append up to the settled position has ended.
		head, sealed, err = l.closeBlocks(ctx, tx, head, settled)
		return err
	})
	if err != nil {
		return head, 0, fmt.Errorf("seal: %w", err)
	}
	return head, sealed, nil
}

func (l *Ledger) closeBlocks(ctx context.Context, tx pgx.Tx, head projections.Head, settled int64) (projections.Head, int, error) {
	r := projections.Reader{DB: tx, Schema: l.Schema}
	g := growth{stored: r.Tree(ctx), made: map[int64]tlog.Hash{}}
	var blocks []projections.SealedBlock
	sealed := 0
	for head.Last < settled && len(blocks) < blocksAtOnce {
		leaves, err := r.Leaves(ctx, head.Last, settled, events.MaxBlock)
		if err != nil {
			return head, 0, err
		}
		last := settled
		if len(leaves) == events.MaxBlock {
			last = leaves[len(leaves)-1].Position
		}
		b := projections.SealedBlock{Block: events.NewBlock(head.Blocks, head.Last+1, last, leaves)}
		if b.Nodes, err = g.add(b.Block); err != nil {
			return head, 0, err
		}
		blocks = append(blocks, b)
		head.Blocks, head.Last, sealed = head.Blocks+1, last, sealed+len(leaves)
	}
	if _, err := tx.Exec(ctx, l.Schema.SQL(insertBlocks), blockArgs(blocks)); err != nil {
		return head, 0, err
	}
	_, err := tx.Exec(ctx, l.Schema.SQL(moveHead), args{
		"blocks": head.Blocks, "last": head.Last, "channel": SealedChannel(l.Schema),
	})
	return head, sealed, err
}

// SealedChannel is where a NOTIFY says how far the log is sealed, after each sealing.
func SealedChannel(s projections.Schema) string { return string(s) + "_sealed" }

// growth is the tree of blocks while blocks are added to it.
type growth struct {
	stored tlog.HashReader
	made   map[int64]tlog.Hash // by stored index; not yet in the database
}

// add returns the hashes that a block completes.
func (g growth) add(b events.Block) ([]tlog.Hash, error) {
	nodes, err := tlog.StoredHashes(b.Number, b.Header(), g)
	for level, h := range nodes {
		g.made[tlog.StoredHashIndex(level, (b.Number+1)>>level-1)] = h
	}
	return nodes, err
}

// ReadHashes is [tlog.HashReader] over what is stored and what was added.
func (g growth) ReadHashes(indexes []int64) ([]tlog.Hash, error) {
	hashes := make([]tlog.Hash, len(indexes))
	var missing []int64
	for _, x := range indexes {
		if _, ok := g.made[x]; !ok {
			missing = append(missing, x)
		}
	}
	if len(missing) > 0 {
		read, err := g.stored.ReadHashes(missing)
		if err != nil {
			return nil, err
		}
		for i, x := range missing {
			g.made[x] = read[i]
		}
	}
	for i, x := range indexes {
		hashes[i] = g.made[x]
	}
	return hashes, nil
}

func blockArgs(blocks []projections.SealedBlock) args {
	n := len(blocks)
	numbers, firsts, lasts := make([]int64, n), make([]int64, n), make([]int64, n)
	counts, roots, nodes := make([]int, n), make([][]byte, n), make([][]byte, n)
	for i, b := range blocks {
		numbers[i], firsts[i], lasts[i], counts[i], roots[i] = b.Number, b.First, b.Last, b.Count, b.Root[:]
		for _, h := range b.Nodes {
			nodes[i] = append(nodes[i], h[:]...)
		}
	}
	return args{"numbers": numbers, "firsts": firsts, "lasts": lasts, "counts": counts, "roots": roots, "nodes": nodes}
}
