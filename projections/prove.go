package projections

import (
	"context"
	"fmt"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"

	"waybill/domain"
	"waybill/events"
)

// Checkpoint states how far the log is sealed now; its origin is left to the signer.
func (r Reader) Checkpoint(ctx context.Context) (events.Checkpoint, error) {
	head, err := r.Head(ctx)
	if err != nil {
		return events.Checkpoint{}, err
	}
	root, err := r.Root(ctx, head.Blocks)
	return events.Checkpoint{Size: head.Blocks, Root: root, Ledger: head.Ledger, Epoch: head.Epoch, Last: head.Last}, err
}

// Root is the root of the tree of the first size blocks, from its stored nodes.
func (r Reader) Root(ctx context.Context, size int64) (events.Hash, error) {
	root, err := tlog.TreeHash(size, r.Tree(ctx))
	return events.Hash(root), err
}

// Prove returns the proof of the event at a position of a tenant's log under a checkpoint
// of now, or ErrNotSealed.
func (r Reader) Prove(ctx context.Context, tenant string, position int64, signer note.Signer) (events.Proof, error) {
	at, err := r.Sealed(ctx, position-1, position, 1)
	if err != nil {
		return events.Proof{}, err
	}
	if len(at) == 0 || at[0].Tenant != tenant {
		return events.Proof{}, r.unproven(ctx, position, len(at) == 0)
	}
	p := events.Proof{Format: events.ProofFormat, Event: at[0]}
	if p.Previous, err = r.previous(ctx, p.Event); err != nil {
		return p, err
	}
	c, err := r.Checkpoint(ctx)
	if err != nil {
		return p, err
	}
	if position > c.Last {
		return p, domain.ErrNotSealed
	}
	if err := r.locate(ctx, &p); err != nil {
		return p, err
	}
	path, err := tlog.ProveRecord(c.Size, p.Block.Number, r.Tree(ctx))
	if err != nil {
		return p, fmt.Errorf("prove block %d: %w", p.Block.Number, err)
	}
	p.InTree = ours(path)
	signed, err := c.Sign(signer)
	p.Checkpoint = string(signed)
	return p, err
}

// unproven is why there is no proof at a position: what is archived is proven by its file.
func (r Reader) unproven(ctx context.Context, position int64, empty bool) error {
	leaves, err := r.Leaves(ctx, position-1, position, 1)
	switch {
	case err != nil:
		return err
	case empty && len(leaves) == 1:
		return domain.ErrDeliveryArchived
	}
	return domain.ErrNotSealed
}

// previous is the hash of the stream's event before.
func (r Reader) previous(ctx context.Context, e events.Record) (events.Hash, error) {
	if e.Seq == 1 {
		return events.Hash{}, nil
	}
	before, err := r.Stream(ctx, e.Tenant, e.Stream, e.StreamID, e.Seq-2, 1)
	if err != nil || len(before) == 0 {
		return events.Hash{}, fmt.Errorf("prove %s %s at seq %d: the event before is missing: %w", e.Stream, e.StreamID, e.Seq, err)
	}
	return before[0].Hash, nil
}

// locate finds the proof's block and the event's place in it.
func (r Reader) locate(ctx context.Context, p *events.Proof) error {
	b, err := r.BlockOf(ctx, p.Event.Position)
	if err != nil {
		return err
	}
	leaves, err := r.Leaves(ctx, b.First-1, b.Last, events.MaxBlock+1)
	if err != nil {
		return err
	}
	p.Block, p.Index = b.Block, -1
	var stored tree
	for i, l := range leaves {
		if l.Position == p.Event.Position {
			p.Index = int64(i)
		}
		if err := stored.add(int64(i), l.Sum()); err != nil {
			return err
		}
	}
	if p.Index < 0 || len(leaves) != b.Count {
		return fmt.Errorf("prove position %d: block %d does not hold what it was closed with; run: waybill verify", p.Event.Position, b.Number)
	}
	path, err := tlog.ProveRecord(int64(len(leaves)), p.Index, stored)
	p.InBlock = ours(path)
	return err
}

// tree is a Merkle tree in memory: its hashes in the order in which they are completed.
type tree []tlog.Hash

func (t *tree) add(n int64, leaf tlog.Hash) error {
	more, err := tlog.StoredHashesForRecordHash(n, leaf, *t)
	*t = append(*t, more...)
	return err
}

// ReadHashes is [tlog.HashReader].
func (t tree) ReadHashes(indexes []int64) ([]tlog.Hash, error) {
	list := make([]tlog.Hash, len(indexes))
	for i, x := range indexes {
		list[i] = t[x]
	}
	return list, nil
}

// Consistent returns the path that shows that the log's first to blocks extend its first
// from.
func (r Reader) Consistent(ctx context.Context, from, to int64) ([]events.Hash, error) {
	path, err := tlog.ProveTree(to, from, r.Tree(ctx))
	if err != nil {
		return nil, fmt.Errorf("prove the log's growth from %d to %d: %w", from, to, err)
	}
	return ours(path), nil
}

func ours(path []tlog.Hash) []events.Hash {
	list := make([]events.Hash, len(path))
	for i, h := range path {
		list[i] = events.Hash(h)
	}
	return list
}
