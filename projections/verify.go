package projections

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/google/uuid"

	"waybill/domain"
	"waybill/events"
)

// Fault is one thing that verification found wrong: with an event or a row, which stream
// and seq name, or with a block.
type Fault struct {
	Code     FaultCode     `json:"code"`
	Stream   events.Stream `json:"stream,omitempty"`
	StreamID uuid.UUID     `json:"stream_id,omitzero"`
	Seq      int           `json:"seq,omitempty"`
	Block    *int64        `json:"block,omitempty"`
	What     string        `json:"what"`
}

// FaultCode tells kinds of faults apart, for scripts.
type FaultCode string

// The codes of faults.
const (
	FaultHash        FaultCode = "hash"        // an event was changed, or another put in its place
	FaultMissing     FaultCode = "missing"     // a seq is not there
	FaultPosition    FaultCode = "position"    // positions do not rise with seq
	FaultUndecodable FaultCode = "undecodable" // an event that this program cannot read
	FaultRow         FaultCode = "row"         // a row is not the fold of its stream
	FaultPayload     FaultCode = "payload"     // a payload is not the one that was committed to
	FaultExcerpt     FaultCode = "excerpt"     // nor is what a receiver answered
	FaultBlock       FaultCode = "block"       // a block does not hold what it was closed with
	FaultTree        FaultCode = "tree"        // the tree of blocks is not that of the blocks
	FaultHead        FaultCode = "head"        // the head is not where the last block ends
	FaultCheckpoint  FaultCode = "checkpoint"  // the log does not extend what was signed
)

// String names the stream and the seq, or the block.
func (f Fault) String() string {
	switch {
	case f.Block != nil:
		return fmt.Sprintf("%s: block %d: %s", f.Code, *f.Block, f.What)
	case f.Stream == "":
		return fmt.Sprintf("%s: %s", f.Code, f.What)
	}
	return fmt.Sprintf("%s: %s %s seq %d: %s", f.Code, f.Stream, f.StreamID, f.Seq, f.What)
}

// Report is what a verification looked at and found.
type Report struct {
	Deliveries int `json:"deliveries"`
	Endpoints  int `json:"endpoints"`
	Events     int `json:"events"` // whose hashes were computed
	Blocks     int `json:"blocks"` // whose roots were
	Payloads   int `json:"payloads"`
	Excerpts   int `json:"excerpts"`
	// Up to this delivery everything was looked at; zero: none yet.
	Through uuid.UUID `json:"through,omitzero"`
	Faults  []Fault   `json:"faults"`
	// The verification ended at mostFaults; there may be more.
	More bool `json:"more_faults,omitempty"`
}

// mostFaults is how many faults a report lists.
const mostFaults = 10_000

// Verification compares everything that is derived from the log, or bound to it, with the
// log: every row with the fold of its stream, the hash chain and the order of every
// stream, payloads and excerpts with their commitments, blocks with the events in them,
// the tree with the blocks and, where there is one, a checkpoint with the tree.
//
// It reads in many short snapshots and may run beside traffic: what it compares is
// compared within one snapshot, and what is sealed never changes. Its memory does not
// grow with the log.
type Verification struct {
	Schema Schema
	// Snapshot runs something in a read-only transaction of its own at repeatable read.
	Snapshot func(context.Context, func(DB) error) error
	Workers  int // at once; 0: 2
	// From and To bound it to deliveries whose ids are From or above and below To; zero
	// does not. Bounded, it leaves out endpoints, administration and blocks.
	From, To uuid.UUID
	// Sample is the share of deliveries and of blocks to look into, above 0 and below 1;
	// otherwise all. The chain of blocks and the tree are always whole.
	Sample     float64
	Checkpoint *events.Checkpoint // to be extended by the log; nil: none
	// Phase is told when another part begins, of so many steps (0: nobody knows), and Done
	// counts them, from anywhere; nil: nobody looks.
	Phase func(name string, total int64)
	Done  func(steps int64)
}

// verification is one run.
type verification struct {
	Verification
	mu      sync.Mutex
	faults  []Fault
	through uuid.UUID
	window  *window // nil where blocks are not looked into with the streams

	events, deliveries, endpoints, blocks, payloads, excerpts atomic.Int64
}

// Run verifies. A report with faults is no error. Cut off, it returns what it has found
// and how far it came beside the error.
func (v Verification) Run(ctx context.Context) (Report, error) {
	run := &verification{Verification: v}
	if run.Workers < 1 {
		run.Workers = 2
	}
	if run.Phase == nil {
		run.Phase = func(string, int64) {}
	}
	if run.Done == nil {
		run.Done = func(int64) {}
	}
	err := run.all(ctx)
	return run.report(), err
}

func (v *verification) all(ctx context.Context) error {
	var head Head
	err := v.Snapshot(ctx, func(db DB) (err error) {
		head, err = v.reader(db).Head(ctx)
		return err
	})
	if err != nil {
		return err
	}
	if v.From == uuid.Nil && v.To == uuid.Nil {
		v.Phase("blocks", head.Last)
		if err := v.log(ctx, head); err != nil {
			return err
		}
		if !v.sampled() {
			v.window = v.newWindow(head)
		}
		v.Phase("endpoints", 0)
		if err := v.endpointRows(ctx); err != nil {
			return err
		}
		if err := v.administration(ctx); err != nil {
			return err
		}
	}
	v.Phase("deliveries", head.Last)
	if err := v.deliveryRows(ctx); err != nil || v.enough() {
		return err
	}
	return v.window.rest(ctx)
}

func (v *verification) sampled() bool { return v.Sample > 0 && v.Sample < 1 }

func (v *verification) reader(db DB) Reader { return Reader{DB: db, Schema: v.Schema} }

func (v *verification) fault(code FaultCode, kind events.Stream, id uuid.UUID, seq int, what string, args ...any) {
	v.found(Fault{Code: code, Stream: kind, StreamID: id, Seq: seq, What: fmt.Sprintf(what, args...)})
}

func (v *verification) found(f Fault) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.faults = append(v.faults, f)
}

// enough says that there are more faults than anybody reads.
func (v *verification) enough() bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return len(v.faults) > mostFaults
}

func (v *verification) report() Report {
	rep := Report{
		Deliveries: int(v.deliveries.Load()), Endpoints: int(v.endpoints.Load()), Events: int(v.events.Load()),
		Blocks: int(v.blocks.Load()), Payloads: int(v.payloads.Load()), Excerpts: int(v.excerpts.Load()),
		Through: v.through, Faults: v.faults, More: v.enough(),
	}
	slices.SortStableFunc(rep.Faults, func(a, b Fault) int {
		return cmp.Or(cmp.Compare(a.Stream, b.Stream), slices.Compare(a.StreamID[:], b.StreamID[:]), cmp.Compare(a.Seq, b.Seq))
	})
	rep.Faults = rep.Faults[:min(len(rep.Faults), mostFaults)]
	return rep
}

// link is where the check of one stream is.
type link struct {
	kind     events.Stream
	id       uuid.UUID
	seq      int
	position int64
	prev     events.Hash
	buf      []byte
	sound    bool // every record so far has followed the one before and could be read
}

func (k *link) begin(kind events.Stream, id uuid.UUID) {
	*k = link{kind: kind, id: id, buf: k.buf[:0], sound: true}
}

// check checks that the stream's next record has the next seq, a higher position and a
// hash that is its own and that of the one before.
func (v *verification) check(k *link, r *events.Record) {
	v.events.Add(1)
	follows := r.Seq == k.seq+1
	if !follows {
		k.sound = false
		v.fault(FaultMissing, k.kind, k.id, k.seq+1, "missing; the next record has seq %d", r.Seq)
	}
	k.buf = r.AppendCanonical(k.buf[:0], k.prev)
	if follows && r.Hash != events.HashOf(k.buf) {
		v.fault(FaultHash, k.kind, k.id, r.Seq, "the hash is not that of the record and the one before: the record, or that before it, was changed")
	}
	if r.Position <= k.position {
		v.fault(FaultPosition, k.kind, k.id, r.Seq, "position %d does not rise with seq", r.Position)
	}
	k.seq, k.position, k.prev = r.Seq, r.Position, r.Hash
}

// event decodes the record; nil where it cannot be read.
func (v *verification) event(k *link, r *events.Record) domain.Event {
	e, err := r.Event()
	if err != nil {
		k.sound = false
		v.fault(FaultUndecodable, k.kind, k.id, r.Seq, "%s", err)
		return nil
	}
	return e
}
