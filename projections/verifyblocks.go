package projections

import (
	"cmp"
	"context"
	_ "embed"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
	"golang.org/x/mod/sumdb/tlog"
	"golang.org/x/sync/errgroup"

	"waybill/events"
)

//go:embed sql/stream_leaves.sql
var streamLeaves string

// How many blocks are read at a time, and how many positions they may span where their
// events are read in one snapshot.
const (
	blockPage  = 1000
	leafSpread = 50_000
)

// log checks that blocks follow each other and make the tree that stands with them, that
// the head is where the last one ends and that a checkpoint is one of this tree; of a
// sample of blocks, that they hold the events that they were closed with.
func (v *verification) log(ctx context.Context, head Head) error {
	work, ctx := errgroup.WithContext(ctx)
	work.SetLimit(v.Workers + 1)
	c := chainCheck{verification: v, head: head}
	for c.next < head.Blocks && ctx.Err() == nil && !v.enough() {
		list, err := v.pageOfBlocks(ctx, c.next, head)
		if err != nil {
			return cmp.Or(work.Wait(), err) // a worker's fault has ended the context
		}
		if len(list) == 0 {
			break
		}
		for _, b := range list {
			c.block(b)
			v.Done(b.Last - b.First + 1)
		}
		if !v.sampled() {
			continue // the window looks into them
		}
		for _, group := range spread(list) {
			if rand.Float64() < v.Sample {
				work.Go(func() error {
					defer v.blocks.Add(int64(len(group)))
					return v.holdings(ctx, group)
				})
			}
		}
	}
	if err := work.Wait(); err != nil {
		return err
	}
	c.end()
	return nil
}

// pageOfBlocks is the next blocks of those that the head knows.
func (v *verification) pageOfBlocks(ctx context.Context, from int64, head Head) (list []SealedBlock, err error) {
	if from >= head.Blocks {
		return nil, nil
	}
	err = v.Snapshot(ctx, func(db DB) (err error) {
		list, err = v.reader(db).Blocks(ctx, from, int(min(blockPage, head.Blocks-from)))
		return err
	})
	return list, err
}

// spread groups adjacent blocks so that one group's events are read in a short snapshot.
func spread(list []SealedBlock) (groups [][]SealedBlock) {
	for from := 0; from < len(list); {
		to := from + 1
		for to < len(list) && list[to].First == list[to-1].Last+1 && list[to].Last-list[from].First < leafSpread {
			to++
		}
		groups = append(groups, list[from:to])
		from = to
	}
	return groups
}

// chainCheck goes through all blocks in order.
type chainCheck struct {
	*verification
	head Head
	next int64 // the number that comes next
	last int64 // where the block before ends
	tree events.Root
	at   *events.Hash // the root at the checkpoint's size
}

func (c *chainCheck) block(b SealedBlock) {
	switch {
	case b.Number != c.next:
		c.blockFault(FaultTree, c.next, "missing; the next one is %d", b.Number)
	case b.First != c.last+1:
		c.blockFault(FaultTree, b.Number, "begins at position %d; the one before ends at %d", b.First, c.last)
	}
	nodes := c.tree.Complete(tlog.RecordHash(b.Header()))
	if !slices.Equal(nodes, b.Nodes) {
		c.blockFault(FaultTree, b.Number, "the hashes that it completes in the tree are not those stored with it")
	}
	c.next, c.last = b.Number+1, b.Last
	if c.Checkpoint != nil && c.Checkpoint.Size == c.tree.Len() {
		root := c.tree.Sum()
		c.at = &root
	}
}

// blockFault names a fault of a block, once.
func (v *verification) blockFault(code FaultCode, n int64, what string, args ...any) {
	f := Fault{Code: code, Block: &n, What: fmt.Sprintf(what, args...)}
	v.mu.Lock()
	defer v.mu.Unlock()
	if !slices.ContainsFunc(v.faults, func(g Fault) bool { return g.Block != nil && *g.Block == n && g.What == f.What }) {
		v.faults = append(v.faults, f)
	}
}

func (c *chainCheck) end() {
	if c.tree.Len() != c.head.Blocks || c.last != c.head.Last {
		c.found(Fault{Code: FaultHead, What: fmt.Sprintf("the head says %d blocks up to position %d; there are %d up to %d",
			c.head.Blocks, c.head.Last, c.tree.Len(), c.last)})
	}
	p := c.Checkpoint
	if p == nil {
		return
	}
	what := ""
	switch {
	case p.Ledger != c.head.Ledger:
		what = fmt.Sprintf("it is of ledger %s, not of %s", p.Ledger, c.head.Ledger)
	case p.Size > c.tree.Len():
		what = fmt.Sprintf("it is signed for %d blocks up to position %d; the log has %d up to %d: it was cut, or is an older state",
			p.Size, p.Last, c.tree.Len(), c.last)
	case p.Size > 0 && (c.at == nil || *c.at != p.Root):
		what = fmt.Sprintf("the first %d blocks are not those that were signed", p.Size)
	default:
		return
	}
	c.found(Fault{Code: FaultCheckpoint, What: what})
}

// holdings closes blocks anew with the events that are there, and compares.
func (v *verification) holdings(ctx context.Context, list []SealedBlock) error {
	return v.Snapshot(ctx, func(db DB) error { return v.holdingsIn(ctx, db, list) })
}

func (v *verification) holdingsIn(ctx context.Context, db DB, list []SealedBlock) error {
	rows, err := db.Query(ctx, v.Schema.SQL(streamLeaves), pgx.QueryResultFormats{pgtype.BinaryFormatCode},
		pgx.StrictNamedArgs{"after": list[0].First - 1, "last": list[len(list)-1].Last})
	if err != nil {
		return fmt.Errorf("verify blocks: %w", err)
	}
	defer rows.Close()
	var root events.Root
	done := func() {
		b := list[0]
		list, root = list[1:], reset(v, b, root)
	}
	var before events.Leaf
	for rows.Next() {
		raw := rows.RawValues()
		if len(raw) != 2 || len(raw[0]) != 8 {
			return fmt.Errorf("verify blocks: the columns are not those of a leaf")
		}
		l := events.Leaf{Position: int64(binary.BigEndian.Uint64(raw[0])), Hash: rawHash(raw[1])}
		if l == before { // of a month that is being archived, in both places
			continue
		}
		before = l
		for len(list) > 1 && l.Position > list[0].Last {
			done()
		}
		root.Add(l.Sum())
	}
	if err := rows.Err(); err != nil {
		return fmt.Errorf("verify blocks: %w", err)
	}
	for len(list) > 0 {
		done()
	}
	return nil
}

// reset compares a block with the root of what was found in it, and begins the next.
func reset(v *verification, b SealedBlock, root events.Root) events.Root {
	switch {
	case root.Len() != int64(b.Count):
		v.blockFault(FaultBlock, b.Number, "positions %d to %d hold %d events; it was closed with %d", b.First, b.Last, root.Len(), b.Count)
	case root.Sum() != b.Root:
		v.blockFault(FaultBlock, b.Number, "an event at positions %d to %d is not the one it was closed with, or stands elsewhere", b.First, b.Last)
	}
	return events.Root{}
}
