package events_test

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"testing"
	"time"

	"github.com/google/uuid"
	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"
	"pgregory.net/rapid"

	"waybill/domain"
	"waybill/events"
)

// signers returns a signer and its verifier key.
func signers(t testing.TB) (note.Signer, string) {
	t.Helper()
	private, err := events.NewSigningKey("ledger.example")
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

// export writes what the head wants of the log, as whoever reads a database does.
func (l ledger) export(t *rapid.T, head events.ExportHead, signer note.Signer) (file, manifest []byte) {
	head.Format, head.Size, head.Last = events.ExportFormat, int64(len(l.blocks)), l.blocks[len(l.blocks)-1].Last
	head.Root, head.Ledger, head.Epoch = events.Hash(l.root(t, head.Size)), uuid.UUID{1}, 1
	if signer != nil {
		c, err := events.Checkpoint{Size: head.Size, Root: head.Root, Ledger: head.Ledger, Epoch: 1, Last: head.Last}.Sign(signer)
		must(t, err)
		head.Checkpoint = string(c)
	}
	var f, m bytes.Buffer
	x, err := events.NewExporter(head, &f, &m)
	must(t, err)
	for _, b := range l.blocks {
		var leaves []events.Leaf
		var list []events.Record
		previous := map[int64]events.Hash{}
		for i, r := range l.records {
			if r.Position < b.First || r.Position > b.Last {
				continue
			}
			leaves, previous[r.Position] = append(leaves, events.Leaf{Position: r.Position, Hash: r.Hash}), l.prev[i]
			if head.Wants(r) {
				list = append(list, r)
			}
		}
		if len(list) == 0 {
			continue
		}
		l.blank(t, x, b.Number)
		x.Follow(list)
		must(t, x.Block(b, leaves, list, previous))
	}
	l.blank(t, x, head.Size)
	_, err = x.Close("out", signer)
	must(t, err)
	return f.Bytes(), m.Bytes()
}

func (l ledger) blank(t *rapid.T, x *events.Exporter, to int64) {
	trees := events.Spans(x.Covered(), to)
	for i, s := range trees {
		h, err := l.tree.ReadHashes([]int64{tlog.StoredHashIndex(s.Level, s.At>>s.Level)})
		must(t, err)
		trees[i].Root = events.Hash(h[0])
	}
	must(t, x.Blank(trees))
}

func must(t interface{ Fatal(...any) }, err error) {
	if err != nil {
		t.Fatal(err)
	}
}

func check(t interface{ Fatal(...any) }, file, manifest []byte, key string) events.ExportReport {
	rep, err := events.CheckExport(bytes.NewReader(manifest), bytes.NewReader(file), "out", key, func(int64) {})
	must(t, err)
	return rep
}

// TestExportProves: whatever is asked of whatever log, the export verifies without it;
// one event changed, left out, added or moved, and it does not.
func TestExportProves(t *testing.T) {
	t.Parallel()
	signer, key := signers(t)
	rapid.Check(t, func(t *rapid.T) {
		l := draw(t)
		head := events.ExportHead{Encoding: rapid.SampledFrom([]events.Encoding{events.JSONLines, events.CSV}).Draw(t, "encoding")}
		head.Tenant = rapid.SampledFrom([]string{"", "a", "b", "c"}).Draw(t, "tenant")
		if rapid.Bool().Draw(t, "period") {
			from := rapid.Int64Range(0, 40).Draw(t, "from")
			head.Since = domain.At(time.Unix(1_700_000_000+from, 0))
			head.Until = head.Since.After(time.Duration(rapid.IntRange(1, 30).Draw(t, "seconds")) * time.Second)
		}
		file, manifest := l.export(t, head, signer)
		wanted := int64(0)
		for _, r := range l.records {
			if head.Wants(r) {
				wanted++
			}
		}
		if rep := check(t, file, manifest, key); rep.Wrong > 0 || rep.Events != wanted || !rep.Signed {
			t.Fatalf("%+v, %d wanted\n%s\n%s", rep, wanted, file, manifest)
		}
		if !json.Valid(manifest) {
			t.Fatalf("no JSON:\n%s", manifest)
		}
		lines := bytes.SplitAfter(file, []byte("\n"))
		lines = lines[:len(lines)-1]
		header := 0
		if head.Encoding == events.CSV {
			header = 1
			if rows, err := csv.NewReader(bytes.NewReader(file)).ReadAll(); err != nil || len(rows) != int(wanted)+1 {
				t.Fatalf("as others read it: %d rows, %v", len(rows), err)
			}
		}
		if len(lines) <= header+1 {
			return
		}
		i := rapid.IntRange(header, len(lines)-2).Draw(t, "line")
		gone := bytes.Join(append(append([][]byte{}, lines[:i]...), lines[i+1:]...), nil)
		swapped := append([][]byte{}, lines...)
		swapped[i], swapped[i+1] = swapped[i+1], swapped[i]
		for what, other := range map[string][]byte{"gone": gone, "swapped": bytes.Join(swapped, nil), "twice": append(bytes.Clone(file), lines[i]...)} {
			if rep := check(t, other, manifest, key); rep.Wrong < 2 { // the file's hash, and where
				t.Fatalf("%s: %+v", what, rep)
			}
		}
	})
}

// TestEveryByteCounts: any byte of a file or of a signed manifest that is changed is
// found, and a changed event is named.
func TestEveryByteCounts(t *testing.T) {
	t.Parallel()
	signer, key := signers(t)
	for _, encoding := range []events.Encoding{events.JSONLines, events.CSV} {
		var file, manifest []byte
		for seed := 1; len(file) < 1500 || len(manifest) < 2000; seed++ {
			rapid.Custom(func(t *rapid.T) int {
				file, manifest = draw(t).export(t, events.ExportHead{Encoding: encoding, Tenant: "b"}, signer)
				return 0
			}).Example(seed)
		}
		for i := range file {
			for _, flip := range []byte{1, 0x20} {
				other := bytes.Clone(file)
				other[i] ^= flip
				if rep := check(t, other, manifest, key); rep.Wrong == 0 {
					t.Fatalf("%s: byte %d of the file", encoding, i)
				}
			}
		}
		for i := range manifest {
			for _, flip := range []byte{1, 0x20} {
				other := bytes.Clone(manifest)
				other[i] ^= flip
				if rep := check(t, file, other, key); rep.Wrong == 0 {
					t.Fatalf("%s: byte %d (%q) of the manifest\n%s", encoding, i, manifest[i], manifest)
				}
			}
		}
		at := bytes.Index(file, []byte("why"))
		other := bytes.Clone(file)
		other[at] = 'W'
		rep := check(t, other, manifest, key)
		named := false
		for _, f := range rep.Faults {
			named = named || f.Stream == events.DeliveryStream && f.Seq > 0 && f.StreamID != uuid.Nil
		}
		if !named {
			t.Errorf("%s: a changed event is not named: %v", encoding, rep.Faults)
		}
	}
}

// TestManifestVouches: without a signature, or under another key, nobody vouches for a
// manifest, and a made-up one shows only that it fits its file.
func TestManifestVouches(t *testing.T) {
	t.Parallel()
	signer, key := signers(t)
	_, others := signers(t)
	rapid.Custom(func(t *rapid.T) int {
		l := draw(t)
		file, unsigned := l.export(t, events.ExportHead{Encoding: events.JSONLines}, nil)
		if rep := check(t, file, unsigned, ""); rep.Wrong > 0 || rep.Signed {
			t.Fatalf("%+v", rep)
		}
		if rep := check(t, file, unsigned, key); rep.Wrong == 0 {
			t.Fatal("an unsigned one passes for signed")
		}
		file, signed := l.export(t, events.ExportHead{Encoding: events.JSONLines}, signer)
		if rep := check(t, file, signed, others); rep.Wrong == 0 || rep.Signed {
			t.Fatal("another's key")
		}
		if rep := check(t, file, signed, key); rep.Wrong > 0 || !rep.Signed {
			t.Fatalf("%+v", rep)
		}
		rep, err := events.CheckExport(bytes.NewReader(signed), bytes.NewReader(file), "other", key, func(int64) {})
		if err != nil || rep.Wrong == 0 {
			t.Fatal("a file of another name")
		}
		return 0
	}).Example(7)
}

// TestMonthBounds are those of the ids that a database makes.
func TestMonthBounds(t *testing.T) {
	t.Parallel()
	low, high, err := events.MonthBounds("2026-12")
	must(t, err)
	lowAt, highAt := time.UnixMilli(idMillis(low)).UTC(), time.UnixMilli(idMillis(high)).UTC()
	if lowAt.Format(time.RFC3339Nano) != "2026-12-01T00:00:00Z" || highAt.Format(time.RFC3339Nano) != "2027-01-01T00:00:00Z" {
		t.Errorf("%s to %s", lowAt, highAt)
	}
	if _, _, err := events.MonthBounds("2026-13"); err == nil {
		t.Error("there is no 13th month")
	}
}

func idMillis(id uuid.UUID) (ms int64) {
	for _, b := range id[:6] {
		ms = ms<<8 | int64(b)
	}
	return ms
}

// FuzzExport: nothing that somebody made passes for an export unless it is the one that
// was made, and nothing makes a check fall over.
func FuzzExport(f *testing.F) {
	signer, key := signers(f)
	made := map[string]string{}
	for _, encoding := range []events.Encoding{events.JSONLines, events.CSV} {
		rapid.Custom(func(t *rapid.T) int {
			file, manifest := draw(t).export(t, events.ExportHead{Encoding: encoding, Tenant: "b"}, signer)
			made[string(manifest)] = string(file)
			f.Add(file, manifest)
			return 0
		}).Example(3)
	}
	f.Add([]byte(`{"position":1}`), []byte("{}"))
	f.Fuzz(func(t *testing.T, file, manifest []byte) {
		rep, err := events.CheckExport(bytes.NewReader(manifest), bytes.NewReader(file), "out", key, func(int64) {})
		if original, known := made[string(manifest)]; err == nil && rep.Wrong == 0 && (!known || original != string(file)) {
			t.Fatalf("passes:\n%s\n%s", file, manifest)
		}
		_, _ = events.CheckExport(bytes.NewReader(manifest), bytes.NewReader(file), "out", "", func(int64) {})
	})
}
