package events

import (
	"bufio"
	"bytes"
	"encoding/json"
	"hash"
	"io"
)

// exportCheck walks a file and the blocks of its manifest side by side.
type exportCheck struct {
	rep    *ExportReport
	told   func(int64)
	chains *Chains
	tree   Root

	from  io.Reader
	lines *bufio.Scanner
	sum   hash.Hash
	size  int64

	line   int64 // of the file, from 1
	ahead  *Record
	broken bool // the file cannot be read further
	last   int64
	first  int64
	ended  int64 // position that the block before ended with, if it was the one before
	at     int64 // its number
}

func (c *exportCheck) run(manifest io.Reader) error {
	if h := c.rep.Head.Encoding.header(); h != "" && (!c.scan() || c.lines.Text()+"\r\n" != h) {
		c.rep.fault("line 1: the header is not that of an export")
	}
	c.at = -2
	lines := manifestLines(manifest)
	lines.Scan() // the head
	lines.Scan() // "blocks":[
	for lines.Scan() && !bytes.Equal(lines.Bytes(), []byte("],")) {
		var e exportEntry
		err := json.Unmarshal(bytes.TrimSuffix(lines.Bytes(), []byte{','}), &e)
		switch {
		case err == nil && e.Blank != nil:
			c.blank(*e.Blank)
		case err == nil && e.Block != nil:
			c.block(*e.Block)
		default:
			c.rep.fault("the manifest has an entry that this program cannot read")
		}
	}
	for r := c.next(); r != nil; r = c.next() {
		c.rep.of(*r, "it is in none of the manifest's blocks")
		c.take()
	}
	_, err := io.Copy(io.Discard, c.from) // what is left of a broken file
	c.whole()
	if err == nil {
		err = lines.Err()
	}
	return err
}

// whole compares what was read with what the manifest says of all of it.
func (c *exportCheck) whole() {
	h, t := c.rep.Head, c.rep.Tail
	var sum Hash
	copy(sum[:], c.sum.Sum(nil))
	if sum != t.SHA256 || c.size != t.Bytes {
		c.rep.fault("the file was changed: its SHA-256 is %s and its size %d, the manifest says %s and %d", sum, c.size, t.SHA256, t.Bytes)
	}
	if c.rep.Events != t.Count || c.first != t.First || c.last != t.Last {
		c.rep.fault("the file holds %d events at positions %d to %d, the manifest says %d at %d to %d",
			c.rep.Events, c.first, c.last, t.Count, t.First, t.Last)
	}
	if c.tree.Len() != h.Size || c.tree.Sum() != h.Root {
		c.rep.fault("the blocks are not those of the log that the checkpoint speaks of")
	}
}

func (c *exportCheck) scan() bool {
	c.line++
	return c.lines.Scan()
}

// next is the file's next event that can be read; nil at its end.
func (c *exportCheck) next() *Record {
	for c.ahead == nil && !c.broken {
		if !c.scan() {
			if c.broken = true; c.lines.Err() != nil {
				c.rep.fault("line %d: it cannot be read: %v", c.line, c.lines.Err())
			}
			break
		}
		r, err := c.rep.Head.Encoding.decode(c.lines.Bytes())
		if err != nil {
			c.rep.fault("line %d: %v", c.line, err)
			continue
		}
		r.Data = bytes.Clone(r.Data)
		c.ahead = &r
	}
	return c.ahead
}

func (c *exportCheck) take() Record {
	r := *c.ahead
	c.ahead = nil
	if r.Position <= c.last {
		c.rep.of(r, "its position does not rise")
	}
	if c.rep.Events++; c.first == 0 {
		c.first = r.Position
	}
	c.last = r.Position
	c.told(1)
	return r
}

func (c *exportCheck) blank(t Subtree) {
	if t.At != c.tree.Len() || !c.tree.AddTree(t.Level, treeHash(t.Root)) {
		c.rep.fault("the manifest leaves out blocks from %d on in a place where it cannot", t.At)
	}
}

// block checks one block and the events of the file that are in it.
func (c *exportCheck) block(b ExportedBlock) {
	if b.Number != c.tree.Len() || b.Last < b.First || b.Count < 0 || b.Count > maxCount || c.at == b.Number-1 && c.ended+1 != b.First {
		c.rep.fault("block %d does not follow the one before it", b.Number)
	}
	for r := c.next(); r != nil && r.Position < b.First; r = c.next() {
		c.rep.of(*r, "it is in none of the manifest's blocks")
		c.take()
	}
	root, missing := c.leaves(b)
	for r := c.next(); r != nil && r.Position <= b.Last; r = c.next() {
		c.rep.of(*r, "block %d holds no such event", b.Number)
		c.take()
	}
	switch {
	case missing:
		c.rep.fault("block %d (positions %d to %d): events of it are missing from the file", b.Number, b.First, b.Last)
	case root.Sum() != b.Root:
		c.rep.fault("block %d (positions %d to %d): its events are not those that it was closed with", b.Number, b.First, b.Last)
	}
	c.tree.AddTree(0, treeHash(headerHash(b.Block)))
	c.at, c.ended = b.Number, b.Last
}

// leaves computes the block's root from the file's events and what the manifest has of the
// others.
func (c *exportCheck) leaves(b ExportedBlock) (root Root, missing bool) {
	others, previous := b.Others, b.Previous
	for int(root.Len()) < b.Count {
		if len(others) > 0 && others[0].At == root.Len() {
			if !root.AddTree(others[0].Level, treeHash(others[0].Root)) {
				return root, true
			}
			others = others[1:]
			continue
		}
		r := c.next()
		if r == nil || r.Position > b.Last {
			return root, true
		}
		var told *PreviousHash
		if len(previous) > 0 && previous[0].Position == r.Position {
			told, previous = &previous[0], previous[1:]
		}
		taken := c.take()
		c.event(taken, told)
		root.Add(Leaf{taken.Position, taken.Hash}.Sum())
	}
	return root, int(root.Len()) != b.Count || len(others) > 0 || len(previous) > 0
}

// event checks one event by itself and against its stream's event before.
func (c *exportCheck) event(r Record, told *PreviousHash) {
	previous, known, fault := c.chains.Follow(r)
	if !known && told != nil {
		previous, known = told.Hash, true
	}
	switch {
	case fault:
		c.rep.of(r, "its seq does not rise")
	case !known:
		c.rep.of(r, "the event before it is neither near it in the file nor told of by the manifest")
	case r.Sum(previous) != r.Hash:
		c.rep.of(r, "the hash is not that of the event and the one before: it was changed")
	}
	if !c.rep.Head.Wants(r) {
		c.rep.of(r, "the export was not to hold it")
	}
}
