package projections

import (
	"context"
	_ "embed"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"golang.org/x/mod/sumdb/tlog"

	"waybill/domain"
	"waybill/events"
)

var (
	//go:embed sql/get_head.sql
	getHead string
	//go:embed sql/read_sealed.sql
	readSealed string
	//go:embed sql/read_leaves.sql
	readLeaves string
	//go:embed sql/list_blocks.sql
	listBlocks string
	//go:embed sql/get_block_of.sql
	getBlockOf string
	//go:embed sql/get_nodes.sql
	getNodes string
)

// Head says how far the log is settled: every position up to Last is that of an event
// that can be read, or of none that ever will.
type Head struct {
	Ledger   uuid.UUID      // tells this ledger from every other
	Epoch    int            // from 1; one more for each older state that was accepted
	Blocks   int64          // how many there are: the size of the tree
	Last     int64          // the horizon
	SealedAt domain.Instant // when the last block was closed; zero while there is none
}

// SealedBlock is a block and what it completes in the tree of blocks: the hashes of
// level 0, 1 and so on.
type SealedBlock struct {
	events.Block
	Nodes []tlog.Hash
}

// Head returns how far the log is settled.
func (r Reader) Head(ctx context.Context) (Head, error) {
	rows, err := r.DB.Query(ctx, r.Schema.SQL(getHead))
	if err != nil {
		return Head{}, fmt.Errorf("read the head: %w", err)
	}
	h, err := pgx.CollectExactlyOneRow(rows, ScanHead)
	if err != nil {
		return h, fmt.Errorf("read the head: %w", err)
	}
	return h, nil
}

// ScanHead reads the columns ledger, epoch, blocks, last, sealed_at.
func ScanHead(row pgx.CollectableRow) (h Head, err error) {
	var at *time.Time
	err = row.Scan(&h.Ledger, &h.Epoch, &h.Blocks, &h.Last, &at)
	h.SealedAt = instant(at)
	return h, err
}

// Sealed returns the log's records of every tenant in order of position, from above
// after up to last, at most limit. Whoever asks for more than [Head.Last] may miss
// events that commit later at lower positions.
func (r Reader) Sealed(ctx context.Context, after, last int64, limit int) ([]events.Record, error) {
	rows, err := r.DB.Query(ctx, r.Schema.SQL(readSealed), pgx.StrictNamedArgs{"after": after, "last": last, "limit": limit})
	if err != nil {
		return nil, fmt.Errorf("read the log: %w", err)
	}
	return collect(rows, ScanRecord, "read the log")
}

// Leaves is Sealed of positions and hashes alone, which are there of archived events too.
func (r Reader) Leaves(ctx context.Context, after, last int64, limit int) ([]events.Leaf, error) {
	rows, err := r.DB.Query(ctx, r.Schema.SQL(readLeaves), pgx.StrictNamedArgs{"after": after, "last": last, "limit": limit})
	if err != nil {
		return nil, fmt.Errorf("read leaves: %w", err)
	}
	return collect(rows, scanLeaf, "read leaves")
}

func scanLeaf(row pgx.CollectableRow) (l events.Leaf, err error) {
	var hash []byte
	err = row.Scan(&l.Position, &hash)
	copy(l.Hash[:], hash)
	return l, err
}

// Blocks returns blocks in order, from the number from on, at most limit.
func (r Reader) Blocks(ctx context.Context, from int64, limit int) ([]SealedBlock, error) {
	rows, err := r.DB.Query(ctx, r.Schema.SQL(listBlocks), pgx.StrictNamedArgs{"from": from, "limit": limit})
	if err != nil {
		return nil, fmt.Errorf("read blocks: %w", err)
	}
	return collect(rows, scanBlock, "read blocks")
}

// BlockOf returns the block that a position is in, or ErrNotSealed.
func (r Reader) BlockOf(ctx context.Context, position int64) (SealedBlock, error) {
	rows, err := r.DB.Query(ctx, r.Schema.SQL(getBlockOf), pgx.StrictNamedArgs{"position": position})
	if err != nil {
		return SealedBlock{}, fmt.Errorf("read the block of position %d: %w", position, err)
	}
	b, err := pgx.CollectExactlyOneRow(rows, scanBlock)
	return b, found(err, domain.ErrNotSealed, "read the block of position %d", position)
}

func scanBlock(row pgx.CollectableRow) (b SealedBlock, err error) {
	var root, nodes []byte
	err = row.Scan(&b.Number, &b.First, &b.Last, &b.Count, &root, &nodes)
	copy(b.Root[:], root)
	b.Nodes = splitNodes(nodes)
	return b, err
}

func splitNodes(b []byte) []tlog.Hash {
	list := make([]tlog.Hash, 0, len(b)/tlog.HashSize)
	for ; len(b) >= tlog.HashSize; b = b[tlog.HashSize:] {
		list = append(list, tlog.Hash(b[:tlog.HashSize]))
	}
	return list
}

// Tree reads the tree of blocks: the node (level, n) stands with the block that
// completes it, which is number (n+1)·2^level − 1.
func (r Reader) Tree(ctx context.Context) tlog.HashReader {
	return tlog.HashReaderFunc(func(indexes []int64) ([]tlog.Hash, error) {
		numbers := make([]int64, len(indexes))
		levels := make([]int, len(indexes))
		for i, x := range indexes {
			level, n := tlog.SplitStoredHashIndex(x)
			numbers[i], levels[i] = (n+1)<<level-1, level
		}
		stored, err := r.nodes(ctx, numbers)
		if err != nil {
			return nil, err
		}
		hashes := make([]tlog.Hash, len(indexes))
		for i, n := range numbers {
			if len(stored[n]) <= levels[i] {
				return nil, fmt.Errorf("read the tree: block %d lacks its node of level %d", n, levels[i])
			}
			hashes[i] = stored[n][levels[i]]
		}
		return hashes, nil
	})
}

func (r Reader) nodes(ctx context.Context, numbers []int64) (map[int64][]tlog.Hash, error) {
	rows, err := r.DB.Query(ctx, r.Schema.SQL(getNodes), pgx.StrictNamedArgs{"numbers": numbers})
	if err != nil {
		return nil, fmt.Errorf("read the tree: %w", err)
	}
	stored := make(map[int64][]tlog.Hash, len(numbers))
	var number int64
	var nodes []byte
	_, err = pgx.ForEachRow(rows, []any{&number, &nodes}, func() error {
		stored[number] = splitNodes(nodes)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read the tree: %w", err)
	}
	return stored, nil
}
