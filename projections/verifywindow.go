package projections

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"sync"

	"waybill/domain"
	"waybill/events"
)

// Blocks are in order of position, streams in order of id. Both follow time, so that a
// block's events are read in about one go when streams are. The window keeps what it has
// seen of events until the blocks that hold them can be closed anew with it: that spares
// the reading of every event a second time. What does not come in time, as the last events
// of a delivery that was retried for days, or of a month that was archived, costs its block
// a reading of its own, never the check.

// How positions are kept together, how many leaves the window holds, of 40 bytes each, and
// how many positions of those that came too late.
const (
	windowChunk = 8192
	windowHolds = 1 << 18
	windowLate  = 1 << 16
)

// window gathers leaves and checks blocks with them, the first ones first.
type window struct {
	last   int64 // what is above is in no block
	holds  int   // leaves, before the first blocks are judged
	blocks func(ctx context.Context, from int64) ([]SealedBlock, error)
	of     func(ctx context.Context, position int64) (SealedBlock, error)
	// direct checks adjacent blocks by reading their events, and judged is told of each block
	// that is done, read or not.
	direct func(context.Context, []SealedBlock) error
	judged func(SealedBlock)

	mu     sync.Mutex
	chunks map[int64][]events.Leaf // by position
	held   int
	passed int64 // positions up to here are taken out
	late   []int64

	judging sync.Mutex // and what it guards
	next    int64      // the number of the next block
	page    []SealedBlock
	ordered []events.Leaf // taken out, in order of position
	doubted []SealedBlock // to be checked by reading
}

func (v *verification) newWindow(head Head) *window {
	return &window{
		last: head.Last, holds: windowHolds, chunks: map[int64][]events.Leaf{},
		blocks: func(ctx context.Context, from int64) ([]SealedBlock, error) { return v.pageOfBlocks(ctx, from, head) },
		of: func(ctx context.Context, position int64) (b SealedBlock, err error) {
			err = v.Snapshot(ctx, func(db DB) (err error) {
				b, err = v.reader(db).BlockOf(ctx, position)
				return err
			})
			return b, err
		},
		direct: v.holdings, judged: func(SealedBlock) { v.blocks.Add(1) },
	}
}

// add takes what was read of events. A nil window takes nothing.
func (w *window) add(leaves []events.Leaf) {
	if w == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, l := range leaves {
		if l.Position < 1 || l.Position > w.last {
			continue
		}
		if l.Position <= w.passed {
			w.late = append(w.late, l.Position)
			continue
		}
		c := l.Position / windowChunk
		chunk, begun := w.chunks[c]
		if !begun {
			chunk = make([]events.Leaf, 0, windowChunk/4)
		}
		w.chunks[c] = append(chunk, l)
		w.held++
	}
}

func (w *window) holding() (leaves, late int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.held, len(w.late)
}

// room judges the first blocks where the window is full. Others may read on meanwhile.
func (w *window) room(ctx context.Context) error {
	if w == nil {
		return nil
	}
	if held, late := w.holding(); held < w.holds && late < windowLate || !w.judging.TryLock() {
		return nil
	}
	defer w.judging.Unlock()
	for {
		held, late := w.holding()
		switch {
		case late >= windowLate:
			if err := w.again(ctx); err != nil {
				return err
			}
		case held <= w.holds/2:
			return nil
		}
		if more, err := w.judge(ctx); !more || err != nil {
			return err
		}
	}
}

// rest judges all blocks that are left: everything was read.
func (w *window) rest(ctx context.Context) error {
	if w == nil {
		return nil
	}
	w.judging.Lock()
	defer w.judging.Unlock()
	for {
		more, err := w.judge(ctx)
		if err != nil {
			return err
		}
		if !more {
			break
		}
	}
	if err := w.read(ctx); err != nil {
		return err
	}
	return w.again(ctx)
}

// judge closes the next block anew with the leaves that are there.
func (w *window) judge(ctx context.Context) (more bool, err error) {
	if len(w.page) == 0 {
		if w.page, err = w.blocks(ctx, w.next); len(w.page) == 0 || err != nil {
			return false, err
		}
	}
	b := w.page[0]
	w.page, w.next = w.page[1:], b.Number+1
	w.take(b.Last)
	n, _ := slices.BinarySearchFunc(w.ordered, b.Last+1, func(l events.Leaf, at int64) int { return cmp.Compare(l.Position, at) })
	var root events.Root
	for _, l := range w.ordered[:n] {
		root.Add(l.Sum())
	}
	w.ordered = w.ordered[n:]
	if root.Len() == int64(b.Count) && root.Sum() == b.Root {
		w.judged(b)
		return true, nil
	}
	if w.doubted = append(w.doubted, b); b.Last-w.doubted[0].First < leafSpread {
		return true, nil
	}
	return true, w.read(ctx)
}

// read checks the doubted blocks.
func (w *window) read(ctx context.Context) error {
	for _, group := range spread(w.doubted) {
		if err := w.direct(ctx, group); err != nil {
			return err
		}
		for _, b := range group {
			w.judged(b)
		}
	}
	w.doubted = w.doubted[:0]
	return nil
}

// again reads the blocks of what came when they were judged: they may have been confirmed
// without it, and hold too much.
func (w *window) again(ctx context.Context) error {
	w.mu.Lock()
	late := w.late
	w.late = nil
	w.mu.Unlock()
	slices.Sort(late)
	for len(late) > 0 {
		b, err := w.of(ctx, late[0])
		if errors.Is(err, domain.ErrNotSealed) { // between blocks: the tree's fault
			late = late[1:]
			continue
		}
		if err != nil {
			return err
		}
		if err := w.direct(ctx, []SealedBlock{b}); err != nil {
			return err
		}
		n, _ := slices.BinarySearch(late, max(b.Last, late[0])+1)
		late = late[n:]
	}
	return nil
}

// take takes out the leaves of whole chunks, until a position is reached.
func (w *window) take(upTo int64) {
	if upTo <= w.passed { // only who judges changes it
		return
	}
	w.mu.Lock()
	taken := map[int64][]events.Leaf{}
	for c, leaves := range w.chunks {
		if c <= upTo/windowChunk {
			taken[c] = leaves
			w.held -= len(leaves)
			delete(w.chunks, c)
		}
	}
	w.passed = upTo/windowChunk*windowChunk + windowChunk - 1
	w.mu.Unlock()
	for _, c := range slices.Sorted(maps.Keys(taken)) {
		w.ordered = inOrder(w.ordered, taken[c])
	}
}

// inOrder appends a chunk's leaves in order of position.
func inOrder(to, leaves []events.Leaf) []events.Leaf {
	var places [windowChunk]int32
	for i, l := range leaves {
		place := &places[l.Position%windowChunk]
		if *place > 0 { // two at one position: a fault, that their block's reading will name
			slices.SortFunc(leaves, func(a, b events.Leaf) int { return cmp.Compare(a.Position, b.Position) })
			return append(to, leaves...)
		}
		*place = int32(i) + 1
	}
	for _, i := range places {
		if i > 0 {
			to = append(to, leaves[i-1])
		}
	}
	return to
}
