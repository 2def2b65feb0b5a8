package events

import (
	"encoding/json"
	"time"

	"github.com/google/uuid"
	"golang.org/x/mod/sumdb/tlog"

	"waybill/domain"
)

// ExportFormat names what a manifest describes.
const ExportFormat = "waybill.export.v1"

// ExportHead is what an export is of. Its first members say which log, the next which of
// its events, the last the sealed log that they are proven to be in.
type ExportHead struct {
	Format   string         `json:"format"`
	Encoding Encoding       `json:"encoding"`
	Ledger   uuid.UUID      `json:"ledger"`
	Epoch    int            `json:"epoch"`
	Tenant   string         `json:"tenant,omitempty"` // empty: of all tenants
	Since    domain.Instant `json:"since,omitzero"`   // recorded at or after
	Until    domain.Instant `json:"until,omitzero"`   // recorded before
	Names    []string       `json:"names,omitempty"`  // of events; none: all
	Month    string         `json:"month,omitempty"`  // only of deliveries whose id is of this month: 2026-01
	Archived []string       `json:"archived_months,omitempty"`
	// The last: months whose deliveries had left the ledger before, and are not here.

	Size       int64  `json:"size"` // of the tree of blocks
	Root       Hash   `json:"root"`
	Last       int64  `json:"last"`                 // the position that its last block ends with
	Checkpoint string `json:"checkpoint,omitempty"` // the same, signed
}

// Wants reports whether the export is to hold an event.
func (h ExportHead) Wants(r Record) bool {
	switch {
	case h.Tenant != "" && r.Tenant != h.Tenant,
		!h.Since.IsZero() && r.RecordedAt.Before(h.Since.Time),
		!h.Until.IsZero() && !r.RecordedAt.Before(h.Until.Time),
		len(h.Names) > 0 && !contains(h.Names, r.Name):
		return false
	case h.Month == "":
		return true
	}
	low, high, err := MonthBounds(h.Month)
	return err == nil && r.Stream == DeliveryStream && !less(r.StreamID, low) && less(r.StreamID, high)
}

// MonthBounds are the lowest id of a month (2026-01, in UTC) and that of the next one.
func MonthBounds(month string) (low, high uuid.UUID, err error) {
	first, err := time.Parse("2006-01", month)
	if err != nil {
		return low, high, err
	}
	return lowestID(first), lowestID(first.AddDate(0, 1, 0)), nil
}

// lowestID is the lowest UUIDv7 of a moment: its milliseconds since 1970, then zeros.
func lowestID(at time.Time) (id uuid.UUID) {
	ms := uint64(at.UnixMilli())
	for i := range 6 {
		id[i] = byte(ms >> (8 * (5 - i)))
	}
	return id
}

func less(a, b uuid.UUID) bool { return string(a[:]) < string(b[:]) }

func contains(list []string, s string) bool {
	for _, v := range list {
		if v == s {
			return true
		}
	}
	return false
}

// ExportTail is what came of an export.
type ExportTail struct {
	File   string `json:"file"` // its name, without directories
	Bytes  int64  `json:"bytes"`
	SHA256 Hash   `json:"sha256"`
	Count  int64  `json:"count"` // of events
	First  int64  `json:"first"` // position of the first, 0 where there is none
	Last   int64  `json:"last"`
}

// Subtree is the root of 2^level leaves that are not in the export, from leaf At on.
type Subtree struct {
	At    int64 `json:"at"`
	Level int   `json:"level"`
	Root  Hash  `json:"root"`
}

// ExportedBlock is a block that some of the export's events are in, with what is needed to
// compute its root from them.
type ExportedBlock struct {
	Block
	Others   []Subtree      `json:"others,omitempty"`   // of its leaves that are not in the export
	Previous []PreviousHash `json:"previous,omitempty"` // what the export does not hold nearby
}

// PreviousHash is the hash of the event before that at a position, in its stream.
type PreviousHash struct {
	Position int64 `json:"position"`
	Hash     Hash  `json:"hash"`
}

// exportEntry is one line of a manifest's list of blocks: a block, or blocks none of whose
// events are in the export.
type exportEntry struct {
	Block *ExportedBlock `json:"block,omitempty"`
	Blank *Subtree       `json:"blank,omitempty"`
}

// Spans cuts the leaves from one to below another into the fewest perfect subtrees that
// stand in a tree as RFC 6962 has them. Their roots are left to the caller.
func Spans(from, to int64) []Subtree {
	var list []Subtree
	for at := from; at < to; {
		level := 0
		for level < maxLevel && at&(1<<(level+1)-1) == 0 && at+1<<(level+1) <= to {
			level++
		}
		list = append(list, Subtree{At: at, Level: level})
		at += 1 << level
	}
	return list
}

// others returns the subtrees of a block's leaves that are not at the given positions,
// which must rise and be among them.
func others(leaves []Leaf, positions []int64) []Subtree {
	var list []Subtree
	for from := 0; from < len(leaves); from++ {
		to := from
		for to < len(leaves) && (len(positions) == 0 || leaves[to].Position != positions[0]) {
			to++
		}
		for _, s := range Spans(int64(from), int64(to)) {
			var root Root
			for _, l := range leaves[s.At : s.At+1<<s.Level] {
				root.Add(l.Sum())
			}
			s.Root = root.Sum()
			list = append(list, s)
		}
		if from = to; len(positions) > 0 {
			positions = positions[1:]
		}
	}
	return list
}

// nearby is how many events back a manifest relies on a checker's memory for the hash of
// a stream's event before.
const nearby = 1 << 16

// Chains remembers the last hash of the streams of the last few events, in bounded memory.
type Chains struct {
	last map[chainKey]chainEnd
	ring []chainKey
	n    int
}

type chainKey struct {
	stream Stream
	id     uuid.UUID
}

type chainEnd struct {
	seq, n int
	hash   Hash
}

// NewChains remembers nothing yet.
func NewChains() *Chains { return &Chains{last: map[chainKey]chainEnd{}} }

// Follow takes the next event and returns the hash of the one before it in its stream.
// known is false where that is neither the first nor remembered; fault where what is
// remembered does not go before it.
func (c *Chains) Follow(r Record) (previous Hash, known, fault bool) {
	key := chainKey{r.Stream, r.StreamID}
	end, seen := c.last[key]
	known, fault = r.Seq == 1 || seen && end.seq == r.Seq-1, seen && end.seq >= r.Seq
	if r.Seq != 1 && known {
		previous = end.hash
	}
	if len(c.ring) < nearby {
		c.ring = append(c.ring, key)
	} else {
		old := c.ring[c.n%nearby]
		if c.last[old].n == c.n-nearby {
			delete(c.last, old)
		}
		c.ring[c.n%nearby] = key
	}
	c.last[key] = chainEnd{r.Seq, c.n, r.Hash}
	c.n++
	return previous, known, fault
}

func mustJSON(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err) // texts and numbers only
	}
	return b
}

func treeHash(h Hash) tlog.Hash { return tlog.Hash(h) }

func headerHash(b Block) Hash { return Hash(tlog.RecordHash(b.Header())) }

// TimeOf is when a UUIDv7 says that it was drawn.
func TimeOf(id uuid.UUID) domain.Instant {
	var ms int64
	for _, b := range id[:6] {
		ms = ms<<8 | int64(b)
	}
	return domain.At(time.UnixMilli(ms))
}
