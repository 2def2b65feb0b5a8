package projections

import (
	"context"
	_ "embed"
	"errors"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"golang.org/x/mod/sumdb/tlog"

	"waybill/events"
)

var (
	//go:embed sql/export_events.sql
	exportEvents string
	//go:embed sql/get_hashes.sql
	getHashes string
)

// How much of the log one step of an export reads.
const (
	exportBlocks     = 256
	exportEventsMost = 2 * events.MaxBlock
)

// Export writes the sealed events that the head wants, up to the checkpoint that it names,
// in order of position and in bounded memory. Told is called with the number of positions
// that have been looked at.
func (r Reader) Export(ctx context.Context, head events.ExportHead, x *events.Exporter, told func(int64)) error {
	first, last, err := r.exportRange(ctx, head)
	if err != nil || first > last {
		return errors.Join(err, r.blank(ctx, x, head.Size))
	}
	b, err := r.BlockOf(ctx, first)
	if err != nil {
		return err
	}
	for from := b.Number; from < head.Size; {
		blocks, err := r.exportStep(ctx, from, head.Size)
		if err != nil {
			return err
		}
		if len(blocks) == 0 || blocks[0].First > last {
			break
		}
		if err := r.exportThem(ctx, head, x, blocks); err != nil {
			return err
		}
		end := blocks[len(blocks)-1]
		told(end.Last - blocks[0].First + 1)
		from = end.Number + 1
	}
	return r.blank(ctx, x, head.Size)
}

// exportStep returns the next blocks, as many as may be read together.
func (r Reader) exportStep(ctx context.Context, from, size int64) ([]SealedBlock, error) {
	blocks, err := r.Blocks(ctx, from, int(min(exportBlocks, size-from)))
	held := 0
	for i, b := range blocks {
		if held += b.Count; held > exportEventsMost && i > 0 {
			return blocks[:i], err
		}
	}
	return blocks, err
}

func (r Reader) exportThem(ctx context.Context, head events.ExportHead, x *events.Exporter, blocks []SealedBlock) error {
	after, last := blocks[0].First-1, blocks[len(blocks)-1].Last
	list, err := r.wanted(ctx, head, after, last)
	if err != nil || len(list) == 0 {
		return err
	}
	previous, err := r.hashesBefore(ctx, x.Follow(list))
	if err != nil {
		return err
	}
	var all []events.Leaf
	if partly(blocks, list) {
		if all, err = r.Leaves(ctx, after, last, exportEventsMost+events.MaxBlock); err != nil {
			return err
		}
	}
	for _, b := range blocks {
		n := through(list, b.Last, func(e events.Record) int64 { return e.Position })
		k := through(all, b.Last, func(l events.Leaf) int64 { return l.Position })
		if n > 0 {
			if err := r.blank(ctx, x, b.Number); err != nil {
				return err
			}
			if err := x.Block(b.Block, all[:k], list[:n], previous); err != nil {
				return err
			}
		}
		list, all = list[n:], all[k:]
	}
	return nil
}

// partly reports whether the list has some but not all events of a block.
func partly(blocks []SealedBlock, list []events.Record) bool {
	for _, b := range blocks {
		n := through(list, b.Last, func(e events.Record) int64 { return e.Position })
		if n > 0 && n < b.Count {
			return true
		}
		list = list[n:]
	}
	return false
}

// through counts the first items up to a position.
func through[T any](list []T, last int64, position func(T) int64) int {
	n := 0
	for n < len(list) && position(list[n]) <= last {
		n++
	}
	return n
}

func (r Reader) wanted(ctx context.Context, head events.ExportHead, after, last int64) ([]events.Record, error) {
	a := pgx.StrictNamedArgs{"after": after, "last": last, "tenant": orNull(head.Tenant), "names": head.Names,
		"since": orNull(head.Since.Time), "until": orNull(head.Until.Time), "low": nil, "high": nil,
		"limit": exportEventsMost + events.MaxBlock}
	if head.Month != "" {
		low, high, err := events.MonthBounds(head.Month)
		if err != nil {
			return nil, err
		}
		a["low"], a["high"] = low, high
	}
	rows, err := r.DB.Query(ctx, r.Schema.SQL(exportEvents), a)
	if err != nil {
		return nil, fmt.Errorf("export: %w", err)
	}
	return collect(rows, ScanRecord, "export")
}

// hashesBefore reads the hash of each event's predecessor in its stream, by position. One
// that is not there has none: the export then does not verify, and rightly.
func (r Reader) hashesBefore(ctx context.Context, list []events.Record) (map[int64]events.Hash, error) {
	if len(list) == 0 {
		return nil, nil
	}
	streams, ids, seqs := make([]string, len(list)), make([]uuid.UUID, len(list)), make([]int, len(list))
	for i, e := range list {
		streams[i], ids[i], seqs[i] = string(e.Stream), e.StreamID, e.Seq-1
	}
	rows, err := r.DB.Query(ctx, r.Schema.SQL(getHashes), pgx.StrictNamedArgs{"streams": streams, "ids": ids, "seqs": seqs})
	if err != nil {
		return nil, fmt.Errorf("export: %w", err)
	}
	hashes, err := collect(rows, pgx.RowTo[[]byte], "export")
	if err != nil {
		return nil, err
	}
	before := make(map[int64]events.Hash, len(list))
	for i, e := range list {
		if len(hashes[i]) == len(events.Hash{}) {
			before[e.Position] = events.Hash(hashes[i])
		}
	}
	return before, nil
}

// blank passes over the blocks up to one that has something for the export.
func (r Reader) blank(ctx context.Context, x *events.Exporter, to int64) error {
	trees := events.Spans(x.Covered(), to)
	if len(trees) == 0 {
		return nil
	}
	indexes := make([]int64, len(trees))
	for i, t := range trees {
		indexes[i] = tlog.StoredHashIndex(t.Level, t.At>>t.Level)
	}
	hashes, err := r.Tree(ctx).ReadHashes(indexes)
	if err != nil {
		return err
	}
	for i := range trees {
		trees[i].Root = events.Hash(hashes[i])
	}
	return x.Blank(trees)
}
