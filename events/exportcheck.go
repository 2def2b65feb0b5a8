package events

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"hash"
	"io"

	"github.com/google/uuid"
)

// ExportReport is what a check of an export found.
type ExportReport struct {
	Head   ExportHead    `json:"export"`
	Tail   ExportTail    `json:"file"`
	Signed bool          `json:"signed"` // by the key that it was checked with
	Events int64         `json:"events"` // that were looked at
	Faults []ExportFault `json:"faults"` // the first of them
	Wrong  int           `json:"wrong"`  // how many there are
}

// ExportFault is one thing that is wrong, of an event where it is one's.
type ExportFault struct {
	Stream   Stream    `json:"stream,omitempty"`
	StreamID uuid.UUID `json:"stream_id,omitzero"`
	Seq      int       `json:"seq,omitempty"`
	Position int64     `json:"position,omitempty"`
	What     string    `json:"what"`
}

// String names the stream and the seq.
func (f ExportFault) String() string {
	if f.Stream == "" {
		return f.What
	}
	return fmt.Sprintf("%s %s seq %d (position %d): %s", f.Stream, f.StreamID, f.Seq, f.Position, f.What)
}

const (
	maxFaults = 100
	maxLine   = 8 << 20 // of a file or a manifest, in bytes
	maxCount  = 1 << 24 // of a block's events
)

func (r *ExportReport) fault(format string, args ...any) {
	r.add(ExportFault{What: fmt.Sprintf(format, args...)})
}

func (r *ExportReport) of(e Record, format string, args ...any) {
	r.add(ExportFault{e.Stream, e.StreamID, e.Seq, e.Position, fmt.Sprintf(format, args...)})
}

func (r *ExportReport) add(f ExportFault) {
	if r.Wrong++; len(r.Faults) < maxFaults {
		r.Faults = append(r.Faults, f)
	}
}

// CheckExport checks a file of events by its manifest, in bounded memory and without any
// database: that neither was changed, that each event is the one that its hash is of,
// follows the one before it in its stream, is what the export was asked for, and is in the
// log that the checkpoint speaks of. With a verifier key it also checks who says so; by
// itself a manifest shows only that file and manifest belong together. Told is called with
// the events looked at. The error is that of reading.
func CheckExport(manifest io.ReadSeeker, file io.Reader, name, verifierKey string, told func(int64)) (ExportReport, error) {
	rep := ExportReport{Faults: []ExportFault{}}
	readable, err := readManifest(manifest, &rep, verifierKey)
	if err != nil || !readable {
		return rep, err
	}
	if rep.Tail.File != name {
		rep.fault("the manifest is of a file called %s", rep.Tail.File)
	}
	if _, err := manifest.Seek(0, io.SeekStart); err != nil {
		return rep, err
	}
	c := exportCheck{rep: &rep, told: told, chains: NewChains(), sum: sha256.New()}
	c.from = io.TeeReader(file, counting{&c.size, c.sum})
	c.lines = bufio.NewScanner(c.from)
	c.lines.Buffer(nil, maxLine)
	c.lines.Split(rep.Head.Encoding.split)
	return rep, c.run(manifest)
}

// counting is a hash that knows how much it was given.
type counting struct {
	n *int64
	hash.Hash
}

// Write adds to both.
func (c counting) Write(b []byte) (int, error) {
	*c.n += int64(len(b))
	return c.Hash.Write(b)
}

// manifestLines reads a manifest line by line.
func manifestLines(from io.Reader) *bufio.Scanner {
	s := bufio.NewScanner(from)
	s.Buffer(nil, maxLine)
	s.Split(JSONLines.split)
	return s
}

// readManifest reads everything but the blocks, and checks that nothing was changed. It
// reports whether it makes sense to go on.
func readManifest(from io.Reader, rep *ExportReport, verifierKey string) (bool, error) {
	lines, sum := manifestLines(from), sha256.New()
	next := func() []byte {
		if !lines.Scan() {
			return nil
		}
		return lines.Bytes()
	}
	take := func(begins, ends string, into any) bool {
		line := next()
		sum.Write(append(bytes.Clone(line), '\n'))
		inner, ok := bytes.CutPrefix(line, []byte(begins))
		inner, closed := bytes.CutSuffix(inner, []byte(ends))
		return ok && closed && json.Unmarshal(inner, into) == nil
	}
	ok := take(`{"export":`, `,`, &rep.Head) && rep.Head.Format == ExportFormat && rep.Head.Encoding.Valid()
	for line := next(); ok && line != nil && !bytes.Equal(line, []byte("],")); line = next() {
		sum.Write(append(line, '\n')) // the scanner's own buffer has room for the end that it cut off
	}
	sum.Write([]byte("],\n"))
	ok = ok && take(`"file":`, `,`, &rep.Tail)
	if !ok {
		rep.fault("the manifest is not one that this program can read")
		return false, lines.Err()
	}
	var stated Hash
	copy(stated[:], sum.Sum(nil))
	rest := append(bytes.Clone(next()), '\n')
	rest = append(append(rest, next()...), '\n')
	var seal struct {
		Signature string `json:"signature"`
	}
	_, last, _ := bytes.Cut(rest, []byte{'\n'})
	bad := json.Unmarshal(append([]byte("{"), last...), &seal) != nil
	if bad || !bytes.Equal(rest, sealLines(stated, seal.Signature)) || lines.Scan() {
		rep.fault("the manifest was changed: its own hash is not that of what it says")
	}
	checkSigned(rep, seal.Signature, stated, verifierKey)
	return true, lines.Err()
}

// checkSigned checks who vouches for the manifest and for the checkpoint in it.
func checkSigned(rep *ExportReport, signature string, sum Hash, verifierKey string) {
	if verifierKey == "" {
		return
	}
	err := openSeal(signature, sum, verifierKey)
	if err != nil {
		rep.fault("the manifest: %v", err)
	}
	c, checkpointErr := OpenCheckpoint([]byte(rep.Head.Checkpoint), verifierKey)
	h := rep.Head
	switch {
	case checkpointErr != nil:
		rep.fault("the checkpoint: %v", checkpointErr)
	case c.Size != h.Size || c.Root != h.Root || c.Last != h.Last || c.Ledger != h.Ledger || c.Epoch != h.Epoch:
		rep.fault("the checkpoint speaks of another log than the manifest")
	default:
		rep.Signed = err == nil
	}
}
