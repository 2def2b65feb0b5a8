package projections

import (
	"cmp"
	"context"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"waybill/events"
)

// Whatever order events are read in, and however few the window holds: each block is
// confirmed or read by itself, once; and none is confirmed that holds anything else than
// what it was closed with.
func TestWindowJudgesEveryBlockOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		blocks, leaves := drawLog(t)
		leaves, spoilt := drawDamage(t, blocks, leaves)
		read := make([]events.Leaf, 0, len(leaves))
		for _, l := range leaves {
			if l.Position > 0 { // not lost
				read = append(read, l)
			}
		}
		read = rapid.Permutation(read).Draw(t, "order")
		judged, direct := map[int64]int{}, map[int64]bool{}
		w := &window{
			last: blocks[len(blocks)-1].Last, holds: rapid.IntRange(1, 200).Draw(t, "holds"), chunks: map[int64][]events.Leaf{},
			blocks: func(_ context.Context, from int64) ([]SealedBlock, error) {
				return blocks[from:min(len(blocks), int(from)+3)], nil
			},
			direct: func(_ context.Context, list []SealedBlock) error {
				for _, b := range list {
					direct[b.Number] = true
				}
				return nil
			},
			of: func(_ context.Context, position int64) (SealedBlock, error) {
				n, _ := slices.BinarySearchFunc(blocks, position, func(b SealedBlock, at int64) int { return cmp.Compare(b.Last, at) })
				return blocks[n], nil
			},
			judged: func(b SealedBlock) { judged[b.Number]++ },
		}
		for part := range slices.Chunk(read, 7) {
			w.add(part)
			if err := w.room(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.rest(t.Context()); err != nil {
			t.Fatal(err)
		}
		for _, b := range blocks {
			if judged[b.Number] != 1 {
				t.Fatalf("block %d was judged %d times", b.Number, judged[b.Number])
			}
			if spoilt[b.Number] && !direct[b.Number] {
				t.Fatalf("block %d was confirmed, though it does not hold what it was closed with", b.Number)
			}
		}
		if w.held != 0 {
			t.Fatalf("%d leaves are still held", w.held)
		}
	})
}

// drawLog draws blocks of about chunks' size, positions that hold nothing among them.
func drawLog(t *rapid.T) (blocks []SealedBlock, leaves []events.Leaf) {
	at := int64(0)
	for n := range rapid.IntRange(1, 12).Draw(t, "blocks") {
		first, own := at+1, len(leaves)
		for range rapid.IntRange(1, 20).Draw(t, "events") {
			at += rapid.SampledFrom([]int64{1, 1, 1, 2, 900, windowChunk - 1, windowChunk, 3 * windowChunk}).Draw(t, "step")
			leaves = append(leaves, events.Leaf{Position: at, Hash: events.HashOf([]byte{byte(at), byte(at >> 8), byte(at >> 16)})})
		}
		blocks = append(blocks, SealedBlock{Block: events.NewBlock(int64(n), first, at, leaves[own:])})
	}
	return blocks, leaves
}

// drawDamage loses (position 0), changes or adds some events; it names the blocks that are
// not what they were.
func drawDamage(t *rapid.T, blocks []SealedBlock, leaves []events.Leaf) ([]events.Leaf, map[int64]bool) {
	spoilt := map[int64]bool{}
	for range rapid.IntRange(0, 3).Draw(t, "damages") {
		l := &leaves[rapid.IntRange(0, len(leaves)-1).Draw(t, "at")]
		if l.Position == 0 {
			continue
		}
		spoil := func(position int64) {
			for _, b := range blocks {
				if b.First <= position && position <= b.Last {
					spoilt[b.Number] = true
				}
			}
		}
		switch rapid.SampledFrom([]string{"lost", "changed", "added"}).Draw(t, "damage") {
		case "lost":
			spoil(l.Position)
			l.Position = 0
		case "changed":
			spoil(l.Position)
			l.Hash = events.HashOf([]byte("changed"))
		case "added": // another one at a position that is taken
			spoil(l.Position)
			leaves = append(leaves, events.Leaf{Position: l.Position, Hash: events.HashOf([]byte("added"))})
		}
	}
	return leaves, spoilt
}
