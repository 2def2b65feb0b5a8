package events

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"hash"
	"io"
	"strings"

	"golang.org/x/mod/sumdb/note"
)

// Exporter writes an export as it comes: events into one file, what proves them into
// another, the manifest. A manifest is one JSON object, written in lines of a fixed form
// so that neither who writes it nor who checks it has to hold it whole:
//
//	{"export":{…},
//	"blocks":[
//	{"blank":{"at":0,"level":3,"root":"…"}},
//	{"block":{"number":8,…,"others":[…],"previous":[…]}}
//	],
//	"file":{…},
//	"sha256":"…",        of every byte before this line
//	"signature":"…"}     a signed note that says that hash, or nothing
type Exporter struct {
	head     ExportHead
	file     io.Writer
	manifest io.Writer
	fileSum  hash.Hash
	sum      hash.Hash
	chains   *Chains
	tail     ExportTail
	covered  int64 // blocks that the manifest has
	entries  int
	line     []byte
	needs    map[int64]bool // positions whose previous hash the manifest must tell
}

// NewExporter begins an export.
func NewExporter(head ExportHead, file, manifest io.Writer) (*Exporter, error) {
	x := &Exporter{head: head, fileSum: sha256.New(), sum: sha256.New(), chains: NewChains(), needs: map[int64]bool{}}
	x.file, x.manifest = io.MultiWriter(file, x.fileSum), io.MultiWriter(manifest, x.sum)
	if err := x.put([]byte(head.Encoding.header())); err != nil {
		return nil, err
	}
	_, err := fmt.Fprintf(x.manifest, "{\"export\":%s,\n\"blocks\":[", mustJSON(head))
	return x, err
}

func (x *Exporter) put(b []byte) error {
	n, err := x.file.Write(b)
	x.tail.Bytes += int64(n)
	return err
}

// Follow takes the next events, in order of position, and returns those whose stream's
// event before the manifest must tell the hash of. Each event is followed once, before it
// is written.
func (x *Exporter) Follow(list []Record) (missing []Record) {
	for _, r := range list {
		if _, known, _ := x.chains.Follow(r); !known {
			missing = append(missing, r)
			x.needs[r.Position] = true
		}
	}
	return missing
}

// Covered is how many blocks have been dealt with.
func (x *Exporter) Covered() int64 { return x.covered }

// Blank passes over blocks that have nothing for the export.
func (x *Exporter) Blank(trees []Subtree) error {
	for _, t := range trees {
		if err := x.entry(exportEntry{Blank: &t}); err != nil {
			return err
		}
		x.covered = t.At + 1<<t.Level
	}
	return nil
}

// Block writes a block's events. Leaves are all of the block, and may be left out where
// all its events are in the export. Previous has the hashes that Follow asked for.
func (x *Exporter) Block(b Block, leaves []Leaf, list []Record, previous map[int64]Hash) error {
	positions := make([]int64, len(list))
	entry := ExportedBlock{Block: b}
	for i, r := range list {
		positions[i] = r.Position
		if h, told := previous[r.Position]; told && x.needs[r.Position] {
			entry.Previous = append(entry.Previous, PreviousHash{r.Position, h})
			delete(x.needs, r.Position)
		}
	}
	if len(list) < b.Count {
		if len(leaves) != b.Count {
			return fmt.Errorf("export: block %d does not hold what it was closed with; run: waybill verify", b.Number)
		}
		entry.Others = others(leaves, positions)
	}
	if err := x.entry(exportEntry{Block: &entry}); err != nil {
		return err
	}
	x.covered = b.Number + 1
	return x.records(list)
}

func (x *Exporter) records(list []Record) error {
	for _, r := range list {
		x.line = x.head.Encoding.append(x.line[:0], r)
		if err := x.put(x.line); err != nil {
			return err
		}
		if x.tail.Count++; x.tail.First == 0 {
			x.tail.First = r.Position
		}
		x.tail.Last = r.Position
	}
	return nil
}

func (x *Exporter) entry(e exportEntry) error {
	comma := ","
	if x.entries++; x.entries == 1 {
		comma = ""
	}
	_, err := fmt.Fprintf(x.manifest, "%s\n%s", comma, mustJSON(e))
	return err
}

// Close ends the manifest, signed if there is a signer, and returns what came of it. The
// file's name is without directories.
func (x *Exporter) Close(name string, signer note.Signer) (ExportTail, error) {
	x.tail.File = name
	copy(x.tail.SHA256[:], x.fileSum.Sum(nil))
	if _, err := fmt.Fprintf(x.manifest, "\n],\n\"file\":%s,\n", mustJSON(x.tail)); err != nil {
		return x.tail, err
	}
	var sum Hash
	copy(sum[:], x.sum.Sum(nil))
	signature := ""
	if signer != nil {
		signed, err := note.Sign(&note.Note{Text: sealText(signer.Name(), sum)}, signer)
		if err != nil {
			return x.tail, err
		}
		signature = string(signed)
	}
	_, err := x.manifest.Write(sealLines(sum, signature))
	return x.tail, err
}

// sealText is what a manifest's signature signs.
func sealText(signer string, sum Hash) string {
	return signer + "\n" + ExportFormat + "\n" + sum.String() + "\n"
}

// sealLines are a manifest's last two.
func sealLines(sum Hash, signature string) []byte {
	return fmt.Appendf(nil, "\"sha256\":%s,\n\"signature\":%s}\n", mustJSON(sum), mustJSON(signature))
}

// openSeal checks a manifest's signature. A note's base64 has spare bits that nobody
// checks; here they must be as written.
func openSeal(signature string, sum Hash, verifierKey string) error {
	v, err := note.NewVerifier(strings.TrimSpace(verifierKey))
	if err != nil {
		return fmt.Errorf("read the verifier key (NAME+HASH+KEY, as waybill keys signing-show prints it): %w", err)
	}
	n, err := note.Open([]byte(signature), note.VerifierList(v))
	if err != nil {
		return fmt.Errorf("%w: %w", ErrUnsigned, err)
	}
	text := sealText(v.Name(), sum)
	sig, err := base64.StdEncoding.Strict().DecodeString(n.Sigs[0].Base64)
	exact := err == nil && signature == text+"\n— "+v.Name()+" "+base64.StdEncoding.EncodeToString(sig)+"\n"
	if n.Text != text || !exact {
		return fmt.Errorf("%w: it signs something else", ErrUnsigned)
	}
	return nil
}
