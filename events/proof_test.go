package events_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/transparency-dev/merkle/proof"
	"github.com/transparency-dev/merkle/rfc6962"
	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"
	"pgregory.net/rapid"

	"waybill/domain"
	"waybill/events"
)

// ledger is a sealed log in memory, built by the product's own functions; what it proves
// is checked by another implementation.
type ledger struct {
	records []events.Record
	prev    []events.Hash
	blocks  []events.Block
	leaves  [][]tlog.Hash // of each block
	tree    stored
}

type stored []tlog.Hash

func (s stored) ReadHashes(indexes []int64) ([]tlog.Hash, error) {
	list := make([]tlog.Hash, len(indexes))
	for i, x := range indexes {
		list[i] = s[x]
	}
	return list, nil
}

func treeOf(t *rapid.T, leaves []tlog.Hash) stored {
	var s stored
	for i, l := range leaves {
		more, err := tlog.StoredHashesForRecordHash(int64(i), l, s)
		if err != nil {
			t.Fatal(err)
		}
		s = append(s, more...)
	}
	return s
}

// draw makes a log of random streams, gaps in the positions and blocks of random size,
// empty ones too.
func draw(t *rapid.T) ledger {
	var l ledger
	heads := map[uuid.UUID]events.Record{}
	position, last := int64(0), int64(0)
	for number := range rapid.IntRange(1, 9).Draw(t, "blocks") {
		var leaves []events.Leaf
		var sums []tlog.Hash
		for range rapid.IntRange(0, 6).Draw(t, "events") {
			position += int64(rapid.IntRange(1, 3).Draw(t, "gap"))
			id := uuid.UUID{15: byte(rapid.IntRange(1, 3).Draw(t, "stream"))}
			head := heads[id]
			env := events.Envelope{Tenant: string('a' + rune(id[15])), Stream: events.DeliveryStream, StreamID: id, Actor: "key:a",
				RecordedAt: domain.At(time.Unix(1_700_000_000+position, 0))}
			list, err := events.Chain(env, head.Seq, head.Hash, []domain.Event{domain.Cancelled{Reason: "<why>"}})
			if err != nil {
				t.Fatal(err)
			}
			r := list[0]
			r.Position = position
			l.records, l.prev = append(l.records, r), append(l.prev, head.Hash)
			heads[id] = r
			leaf := events.Leaf{Position: position, Hash: r.Hash}
			leaves, sums = append(leaves, leaf), append(sums, leaf.Sum())
		}
		position += int64(rapid.IntRange(0, 2).Draw(t, "rolled back"))
		if position == last {
			position++
		}
		b := events.NewBlock(int64(number), last+1, position, leaves)
		l.blocks, l.leaves, last = append(l.blocks, b), append(l.leaves, sums), position
	}
	var headers []tlog.Hash
	for _, b := range l.blocks {
		headers = append(headers, tlog.RecordHash(b.Header()))
	}
	l.tree = treeOf(t, headers)
	return l
}

// root is the tree's after size blocks.
func (l ledger) root(t *rapid.T, size int64) tlog.Hash {
	h, err := tlog.TreeHash(size, l.tree)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func (l ledger) prove(t *rapid.T, i int, signer note.Signer) events.Proof {
	r := l.records[i]
	p := events.Proof{Format: events.ProofFormat, Event: r, Previous: l.prev[i]}
	for n, b := range l.blocks {
		if r.Position < b.First || r.Position > b.Last {
			continue
		}
		p.Block = b
		for k, sum := range l.leaves[n] {
			if sum == (events.Leaf{Position: r.Position, Hash: r.Hash}).Sum() {
				p.Index = int64(k)
			}
		}
		in, err := tlog.ProveRecord(int64(b.Count), p.Index, treeOf(t, l.leaves[n]))
		if err != nil {
			t.Fatal(err)
		}
		p.InBlock = own(in)
	}
	size := int64(len(l.blocks))
	path, err := tlog.ProveRecord(size, p.Block.Number, l.tree)
	if err != nil {
		t.Fatal(err)
	}
	p.InTree = own(path)
	signed, err := events.Checkpoint{Size: size, Root: events.Hash(l.root(t, size)), Epoch: 1, Last: p.Block.Last}.Sign(signer)
	if err != nil {
		t.Fatal(err)
	}
	p.Checkpoint = string(signed)
	return p
}

func own[T ~[]tlog.Hash](path T) []events.Hash {
	list := make([]events.Hash, len(path))
	for i, h := range path {
		list[i] = events.Hash(h)
	}
	return list
}

func raw(path []events.Hash) [][]byte {
	list := make([][]byte, len(path))
	for i, h := range path {
		list[i] = h[:]
	}
	return list
}

func keys(t interface{ Fatal(...any) }) (note.Signer, string) {
	private, err := events.NewSigningKey("test.example/log")
	if err != nil {
		t.Fatal(err)
	}
	signer, err := note.NewSigner(private)
	if err != nil {
		t.Fatal(err)
	}
	verifier, err := events.VerifierKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return signer, verifier
}

// TestProofsHoldForAnother: whatever the log, an event's proof holds, through JSON too, for
// us and for an implementation that is not ours; with any part of it changed it does not.
func TestProofsHoldForAnother(t *testing.T) {
	t.Parallel()
	signer, verifier := keys(t)
	rapid.Check(t, func(t *rapid.T) {
		l := draw(t)
		if len(l.records) == 0 {
			return
		}
		p := l.prove(t, rapid.IntRange(0, len(l.records)-1).Draw(t, "which"), signer)
		text, err := json.MarshalIndent(p, "", "  ")
		if err != nil {
			t.Fatal(err)
		}
		var again events.Proof
		if err := json.Unmarshal(text, &again); err != nil {
			t.Fatal(err)
		}
		c, err := again.Check(verifier)
		if err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		leaf := events.Leaf{Position: p.Event.Position, Hash: p.Event.Hash}.Sum()
		err = proof.VerifyInclusion(rfc6962.DefaultHasher, uint64(p.Index), uint64(p.Block.Count), leaf[:], raw(p.InBlock), p.Block.Root[:])
		if err != nil {
			t.Error("the event in its block:", err)
		}
		header := rfc6962.DefaultHasher.HashLeaf(p.Block.Header())
		err = proof.VerifyInclusion(rfc6962.DefaultHasher, uint64(p.Block.Number), uint64(c.Size), header, raw(p.InTree), c.Root[:])
		if err != nil {
			t.Error("the block in the log:", err)
		}
		for name, change := range changes {
			other := again
			if change(&other); sameProof(other, again) {
				continue
			}
			if _, err := other.Check(verifier); err == nil {
				t.Errorf("a proof with another %s still holds", name)
			}
		}
	})
}

func sameProof(a, b events.Proof) bool {
	x, _ := json.Marshal(a)
	y, _ := json.Marshal(b)
	return string(x) == string(y)
}

var changes = map[string]func(*events.Proof){
	"data":        func(p *events.Proof) { p.Event.Data = json.RawMessage(`{"reason":"other"}`) },
	"actor":       func(p *events.Proof) { p.Event.Actor = "key:b" },
	"time":        func(p *events.Proof) { p.Event.RecordedAt = p.Event.RecordedAt.After(1e9) },
	"position":    func(p *events.Proof) { p.Event.Position++ },
	"seq":         func(p *events.Proof) { p.Event.Seq++ },
	"hash":        func(p *events.Proof) { p.Event.Hash[0]++ },
	"predecessor": func(p *events.Proof) { p.Previous[0] ^= 1; p.Event.Seq = max(p.Event.Seq, 2) },
	"block":       func(p *events.Proof) { p.Block.Number++ },
	"range":       func(p *events.Proof) { p.Block.Last++ },
	"count":       func(p *events.Proof) { p.Block.Count++ },
	"root":        func(p *events.Proof) { p.Block.Root[3] ^= 1 },
	"index":       func(p *events.Proof) { p.Index++ },
	"path":        func(p *events.Proof) { p.InTree = append([]events.Hash{{1}}, p.InTree...) },
	"checkpoint":  func(p *events.Proof) { p.Checkpoint = strings.Replace(p.Checkpoint, "epoch 1", "epoch 2", 1) },
}

// TestConsistencyHoldsForAnother: a later checkpoint extends an earlier one, for us and for
// an implementation that is not ours; a log with another past does not.
func TestConsistencyHoldsForAnother(t *testing.T) {
	t.Parallel()
	signer, verifier := keys(t)
	rapid.Check(t, func(t *rapid.T) {
		l := draw(t)
		to := int64(len(l.blocks))
		from := rapid.Int64Range(1, to).Draw(t, "from")
		path, err := tlog.ProveTree(to, from, l.tree)
		if err != nil {
			t.Fatal(err)
		}
		sign := func(size int64, root tlog.Hash) string {
			signed, err := events.Checkpoint{Size: size, Root: events.Hash(root), Epoch: 1}.Sign(signer)
			if err != nil {
				t.Fatal(err)
			}
			return string(signed)
		}
		p := events.Consistency{From: sign(from, l.root(t, from)), To: sign(to, l.root(t, to)), Path: own(path)}
		a, b, err := p.Check(verifier)
		if err != nil {
			t.Fatal(err)
		}
		err = proof.VerifyConsistency(rfc6962.DefaultHasher, uint64(from), uint64(to), raw(p.Path), a.Root[:], b.Root[:])
		if err != nil {
			t.Error(err)
		}
		forged := l.root(t, from)
		forged[5] ^= 1
		p.From = sign(from, forged)
		if _, _, err := p.Check(verifier); err == nil {
			t.Error("a log with another past extends this one")
		}
	})
}

// TestRootIsRFC6962 holds the root that is computed leaf by leaf against two others.
func TestRootIsRFC6962(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, 70).Draw(t, "leaves")
		var root events.Root
		leaves := make([]tlog.Hash, n)
		for i := range leaves {
			leaves[i] = tlog.RecordHash([]byte{byte(i)})
			root.Add(leaves[i])
		}
		want, err := tlog.TreeHash(int64(n), treeOf(t, leaves))
		if err != nil || root.Sum() != events.Hash(want) {
			t.Errorf("%d leaves: %v, want %v: %v", n, root.Sum(), want, err)
		}
		if empty := rfc6962.DefaultHasher.EmptyRoot(); n == 0 && string(want[:]) != string(empty) {
			t.Errorf("the empty root is %x, want %x", want, empty)
		}
	})
}

// FuzzCheckpoint: no note crashes the reader, and what it accepts says what was signed.
func FuzzCheckpoint(f *testing.F) {
	signer, verifier := keys(f)
	signed, err := events.Checkpoint{Size: 3, Epoch: 1, Last: 9}.Sign(signer)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(string(signed), "waybill\n3\nAAAA\nledger x\n")
	f.Fuzz(func(t *testing.T, forged, text string) {
		if c, err := events.OpenCheckpoint([]byte(forged), verifier); err == nil && !strings.HasPrefix(forged, c.Text()) {
			t.Errorf("%q was read as %q", forged, c.Text())
		}
		if !strings.HasSuffix(text, "\n") {
			text += "\n"
		}
		if own, err := note.Sign(&note.Note{Text: signer.Name() + "\n" + text}, signer); err == nil {
			_, _ = events.OpenCheckpoint(own, verifier)
		}
	})
}

// FuzzProof: no file crashes the check, and none that is not a proof passes.
func FuzzProof(f *testing.F) {
	_, verifier := keys(f)
	f.Add([]byte(`{"event":{"data":{}},"block":{"count":1},"in_block":[],"index":0}`))
	f.Fuzz(func(t *testing.T, file []byte) {
		var p events.Proof
		if json.Unmarshal(file, &p) != nil {
			return
		}
		if _, err := p.Check(verifier); err == nil {
			t.Error("it passes without a signature")
		}
	})
}
