package events

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/google/uuid"
	"golang.org/x/mod/sumdb/note"
)

// Checkpoint is a statement of how large the sealed log is and what its root is: with it
// one can prove, to somebody without access to the database, that an event is in the log
// and that a later log extends an earlier one. Signed, it is a note
// (golang.org/x/mod/sumdb/note) whose text is, as C2SP's tlog-checkpoint lays down,
//
//	waybill                               origin: the signing key's name
//	1204                                  size: how many blocks
//	z4QuMN…=                              root of the tree of blocks, base64
//	ledger 019af3…                        which ledger
//	epoch 1                               one more for each older state that was accepted
//	last 88213                            the position that the last block ends with
type Checkpoint struct {
	Origin string
	Size   int64
	Root   Hash
	Ledger uuid.UUID
	Epoch  int
	Last   int64
}

// Text is what is signed.
func (c Checkpoint) Text() string {
	return fmt.Sprintf("%s\n%d\n%s\nledger %s\nepoch %d\nlast %d\n",
		c.Origin, c.Size, base64.StdEncoding.EncodeToString(c.Root[:]), c.Ledger, c.Epoch, c.Last)
}

// Sign returns the checkpoint as a signed note; its origin is the signer's name.
func (c Checkpoint) Sign(s note.Signer) ([]byte, error) {
	c.Origin = s.Name()
	return note.Sign(&note.Note{Text: c.Text()}, s)
}

// ErrUnsigned: a checkpoint is not signed by the key that it is checked with.
var ErrUnsigned = errors.New("the checkpoint is not signed by this key")

// OpenCheckpoint reads a signed checkpoint and checks its signature by the verifier key
// given, in the form NAME+HASH+KEY.
func OpenCheckpoint(signed []byte, verifierKey string) (Checkpoint, error) {
	v, err := note.NewVerifier(strings.TrimSpace(verifierKey))
	if err != nil {
		return Checkpoint{}, fmt.Errorf("read the verifier key (NAME+HASH+KEY, as waybill keys signing-show prints it): %w", err)
	}
	n, err := note.Open(signed, note.VerifierList(v))
	if err != nil {
		return Checkpoint{}, fmt.Errorf("%w: %w", ErrUnsigned, err)
	}
	c, err := parseCheckpoint(n.Text)
	if err == nil && c.Origin != v.Name() {
		err = fmt.Errorf("read the checkpoint: its origin is %q, the key's name %q", c.Origin, v.Name())
	}
	return c, err
}

// parseCheckpoint reads the text of a note. Lines that it does not know are others' to
// read.
func parseCheckpoint(text string) (Checkpoint, error) {
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	if len(lines) < 3 {
		return Checkpoint{}, errors.New("read the checkpoint: it has fewer than three lines")
	}
	c := Checkpoint{Origin: lines[0]}
	var err error
	if c.Size, err = number(lines[1]); err != nil {
		return c, fmt.Errorf("read the checkpoint: size: %w", err)
	}
	root, err := base64.StdEncoding.DecodeString(lines[2])
	if err != nil || len(root) != len(c.Root) {
		return c, errors.New("read the checkpoint: the root is not 32 bytes in base64")
	}
	copy(c.Root[:], root)
	for _, l := range lines[3:] {
		name, value, _ := strings.Cut(l, " ")
		if err := c.extend(name, value); err != nil {
			return c, fmt.Errorf("read the checkpoint: %s: %w", name, err)
		}
	}
	return c, nil
}

func (c *Checkpoint) extend(name, value string) (err error) {
	switch name {
	case "ledger":
		c.Ledger, err = uuid.Parse(value)
	case "last":
		c.Last, err = number(value)
	case "epoch":
		var n int64
		n, err = number(value)
		c.Epoch = int(n)
	}
	return err
}

// number reads a decimal number without sign or leading zeros.
func number(s string) (int64, error) {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || n < 0 || strconv.FormatInt(n, 10) != s {
		return 0, fmt.Errorf("%q is not a decimal number", s)
	}
	return n, nil
}

// NewSigningKey makes an Ed25519 key pair of a name: the private half in the form that
// [note.NewSigner] reads.
func NewSigningKey(name string) (private string, err error) {
	private, _, err = note.GenerateKey(rand.Reader, name)
	return private, err
}

// VerifierKey is the public half of a private signing key.
func VerifierKey(private string) (string, error) {
	const form = "a signing key is PRIVATE+KEY+NAME+HASH+KEY"
	if _, err := note.NewSigner(private); err != nil {
		return "", errors.New(form) // what it is must not be quoted
	}
	parts := strings.SplitN(private, "+", 5)
	seed, err := base64.StdEncoding.DecodeString(parts[4])
	if err != nil || len(seed) != 1+ed25519.SeedSize {
		return "", errors.New(form)
	}
	public := ed25519.NewKeyFromSeed(seed[1:]).Public().(ed25519.PublicKey)
	return note.NewEd25519VerifierKey(parts[2], public)
}
