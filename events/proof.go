package events

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"golang.org/x/mod/sumdb/tlog"
)

// ProofFormat and ConsistencyFormat name what a proof's file holds.
const (
	ProofFormat       = "waybill.proof.v1"
	ConsistencyFormat = "waybill.consistency.v1"
)

// Proof shows that an event is in the log that a checkpoint speaks of, to somebody who
// has the checkpoint's verifier key and nothing else. It has two levels: the event is a
// leaf of its block, the block's header a leaf of the tree of blocks.
type Proof struct {
	Format     string `json:"format"`
	Event      Record `json:"event"`
	Previous   Hash   `json:"previous_hash,omitzero"` // of the stream's event before; none at seq 1
	Block      Block  `json:"block"`
	Index      int64  `json:"index"`    // of the event among the block's leaves, from 0
	InBlock    []Hash `json:"in_block"` // audit path, RFC 6962 section 2.1.1
	InTree     []Hash `json:"in_tree"`  // audit path of the block's header
	Checkpoint string `json:"checkpoint"`
}

// Check returns the checkpoint that the event is proven under, or why it is not.
func (p Proof) Check(verifierKey string) (Checkpoint, error) {
	c, err := OpenCheckpoint([]byte(p.Checkpoint), verifierKey)
	if err != nil {
		return c, err
	}
	return c, p.under(c)
}

func (p Proof) under(c Checkpoint) error {
	if p.Event.Sum(p.Previous) != p.Event.Hash {
		return errors.New("the event's hash is not that of the event: it was changed")
	}
	if p.Event.Position < p.Block.First || p.Event.Position > p.Block.Last {
		return errors.New("the event's position is not in the block's range")
	}
	leaf := Leaf{p.Event.Position, p.Event.Hash}.Sum()
	if err := tlog.CheckRecord(hashes(p.InBlock), int64(p.Block.Count), tlog.Hash(p.Block.Root), p.Index, leaf); err != nil {
		return errors.New("the event is not in the block")
	}
	header := tlog.RecordHash(p.Block.Header())
	if err := tlog.CheckRecord(hashes(p.InTree), c.Size, tlog.Hash(c.Root), p.Block.Number, header); err != nil {
		return errors.New("the block is not in the log that the checkpoint speaks of")
	}
	return nil
}

// Consistency shows that the log of a later checkpoint is that of an earlier one with
// blocks added: nothing that the earlier one spoke of was changed or left out.
type Consistency struct {
	Format string `json:"format"`
	From   string `json:"from"` // the earlier checkpoint
	To     string `json:"to"`
	Path   []Hash `json:"path"` // RFC 6962 section 2.1.2
}

// Check returns both checkpoints, or why the later does not extend the earlier.
func (p Consistency) Check(verifierKey string) (from, to Checkpoint, err error) {
	if from, err = OpenCheckpoint([]byte(p.From), verifierKey); err != nil {
		return from, to, fmt.Errorf("the earlier one: %w", err)
	}
	if to, err = OpenCheckpoint([]byte(p.To), verifierKey); err != nil {
		return from, to, fmt.Errorf("the later one: %w", err)
	}
	return from, to, CheckConsistency(p.Path, from, to)
}

// CheckConsistency checks a path from one checkpoint to a later one.
func CheckConsistency(path []Hash, from, to Checkpoint) error {
	switch {
	case from.Ledger != to.Ledger:
		return errors.New("the checkpoints are of different ledgers")
	case from.Epoch != to.Epoch:
		return fmt.Errorf("the checkpoints are of different epochs, %d and %d: an older state was accepted in between", from.Epoch, to.Epoch)
	case from.Size > to.Size || from.Size == 0:
		return errors.New("the earlier checkpoint is not the smaller one, or is of an empty log")
	}
	err := tlog.CheckTree(hashes(path), to.Size, tlog.Hash(to.Root), from.Size, tlog.Hash(from.Root))
	if err != nil {
		return errors.New("the later log does not extend the earlier: something was changed, or left out")
	}
	return nil
}

func hashes(list []Hash) []tlog.Hash {
	h := make([]tlog.Hash, len(list))
	for i, v := range list {
		h[i] = tlog.Hash(v)
	}
	return h
}

// UnmarshalJSON reads a record as MarshalJSON writes it. White space between the members
// of its data does not count.
func (r *Record) UnmarshalJSON(b []byte) error {
	var v recordJSON
	if err := json.Unmarshal(b, &v); err != nil {
		return err
	}
	var data bytes.Buffer
	if err := json.Compact(&data, v.Data); err != nil {
		return fmt.Errorf("data: %w", err)
	}
	*r = v.record()
	r.Data = data.Bytes()
	return nil
}
