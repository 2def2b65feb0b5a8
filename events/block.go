package events

import (
	"encoding/binary"

	"golang.org/x/mod/sumdb/tlog"
)

// blockPrefix separates the headers of blocks from all other leaves.
const blockPrefix = "waybill.block.v1"

// MaxBlock is the most events that a block holds.
const MaxBlock = 8192

// Leaf is what a block knows of an event: where it stands in the log and its hash.
type Leaf struct {
	Position int64
	Hash     Hash
}

// Sum is the leaf's hash as RFC 6962, section 2.1, says: of a zero byte, the position
// (big-endian u64) and the event's hash.
func (l Leaf) Sum() tlog.Hash {
	var b [8 + len(l.Hash)]byte
	binary.BigEndian.PutUint64(b[:8], uint64(l.Position))
	copy(b[8:], l.Hash[:])
	return tlog.RecordHash(b[:])
}

// Block is a closed range of positions that never changes again. Positions of it that
// hold no event were drawn by appends that rolled back.
type Block struct {
	Number int64 `json:"number"` // from 0
	First  int64 `json:"first"`
	Last   int64 `json:"last"`
	Count  int   `json:"count"` // of events
	Root   Hash  `json:"root"`  // of the Merkle tree (RFC 6962) of its leaves in order of position
}

// Header is the block as a leaf of the tree of blocks: a prefix, then number, first,
// last and count (big-endian u64 each), then the root.
func (b Block) Header() []byte {
	h := append(make([]byte, 0, len(blockPrefix)+4*8+len(b.Root)), blockPrefix...)
	for _, n := range []int64{b.Number, b.First, b.Last, int64(b.Count)} {
		h = binary.BigEndian.AppendUint64(h, uint64(n))
	}
	return append(h, b.Root[:]...)
}

// NewBlock closes the range from first to last with the events found in it, in order
// of position.
func NewBlock(number, first, last int64, leaves []Leaf) Block {
	var root Root
	for _, l := range leaves {
		root.Add(l.Sum())
	}
	return Block{Number: number, First: first, Last: last, Count: len(leaves), Root: root.Sum()}
}

// Root computes a Merkle tree's root while its leaves come, in the memory of one
// branch. The zero Root is that of an empty tree.
type Root struct {
	n     uint64
	peaks []tlog.Hash // the roots of the complete subtrees so far, the largest first
}

// Add adds the hash of the next leaf.
func (r *Root) Add(leaf tlog.Hash) {
	for n := r.n; n&1 == 1; n >>= 1 {
		leaf = tlog.NodeHash(r.peaks[len(r.peaks)-1], leaf)
		r.peaks = r.peaks[:len(r.peaks)-1]
	}
	r.peaks = append(r.peaks, leaf)
	r.n++
}

// AddTree adds a perfect subtree of 2^level leaves by its root. It reports whether one
// may stand there: the leaves so far must be a multiple of its size.
func (r *Root) AddTree(level int, root tlog.Hash) bool {
	if level < 0 || level > maxLevel || r.n&(1<<level-1) != 0 || r.n>>62 != 0 {
		return false
	}
	for n := r.n >> level; n&1 == 1; n >>= 1 {
		root = tlog.NodeHash(r.peaks[len(r.peaks)-1], root)
		r.peaks = r.peaks[:len(r.peaks)-1]
	}
	r.peaks = append(r.peaks, root)
	r.n += 1 << level
	return true
}

// maxLevel bounds what a subtree may hold.
const maxLevel = 60

// Len is how many leaves there are so far.
func (r *Root) Len() int64 { return int64(r.n) }

// Complete adds the hash of the next leaf and returns the hashes that it completes: its
// own, then those of the subtrees that end with it, from small to large.
func (r *Root) Complete(leaf tlog.Hash) []tlog.Hash {
	nodes := []tlog.Hash{leaf}
	for i, n := len(r.peaks)-1, r.n; n&1 == 1; i, n = i-1, n>>1 {
		nodes = append(nodes, tlog.NodeHash(r.peaks[i], nodes[len(nodes)-1]))
	}
	r.Add(leaf)
	return nodes
}

// Sum is the root of the leaves so far.
func (r *Root) Sum() Hash {
	if r.n == 0 {
		h, _ := tlog.TreeHash(0, nil) // of an empty tree: it reads nothing
		return Hash(h)
	}
	sum := r.peaks[len(r.peaks)-1]
	for i := len(r.peaks) - 2; i >= 0; i-- {
		sum = tlog.NodeHash(r.peaks[i], sum)
	}
	return Hash(sum)
}
