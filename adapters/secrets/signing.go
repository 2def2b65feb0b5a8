package secrets

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"golang.org/x/mod/sumdb/note"

	"waybill/events"
)

// maxSigningKey bounds the file of a signing key, in bytes.
const maxSigningKey = 4096

// SigningKey signs checkpoints.
type SigningKey struct {
	note.Signer
	Verifier string // the public half, for whoever checks: NAME+HASH+KEY
}

// CreateSigningKey makes a key of a name in a new file of mode 0600, never in place of
// another; see [Vault.Save] for how.
func CreateSigningKey(path, name string) (SigningKey, error) {
	private, err := events.NewSigningKey(name)
	if err != nil {
		return SigningKey{}, fmt.Errorf("make a signing key: %w", err)
	}
	if err := writeNew(path, []byte(private+"\n")); err != nil {
		return SigningKey{}, fmt.Errorf("save the signing key: %w", err)
	}
	return signingKey(private)
}

// ReadSigningKey reads a key from a file that nobody but its owner may read or write.
func ReadSigningKey(path string) (SigningKey, error) {
	f, err := os.Open(path)
	if err != nil {
		return SigningKey{}, fmt.Errorf("open the signing key: %w", err)
	}
	defer func() { _ = f.Close() }()
	if err := checkMode(f); err != nil {
		return SigningKey{}, fmt.Errorf("signing key %s: %w", path, err)
	}
	content, err := io.ReadAll(io.LimitReader(f, maxSigningKey))
	if err != nil {
		return SigningKey{}, fmt.Errorf("signing key %s: %w", path, err)
	}
	key, err := signingKey(strings.TrimSpace(string(content)))
	if err != nil {
		return key, fmt.Errorf("signing key %s: %w", path, err)
	}
	return key, nil
}

// ReadOrCreateSigningKey is for development; see [LoadOrCreate].
func ReadOrCreateSigningKey(path, name string) (SigningKey, error) {
	key, err := ReadSigningKey(path)
	if !errors.Is(err, fs.ErrNotExist) {
		return key, err
	}
	if key, err = CreateSigningKey(path, name); errors.Is(err, fs.ErrExist) {
		return ReadSigningKey(path)
	}
	return key, err
}

func signingKey(private string) (SigningKey, error) {
	verifier, err := events.VerifierKey(private)
	if err != nil {
		return SigningKey{}, err
	}
	signer, err := note.NewSigner(private)
	return SigningKey{signer, verifier}, err
}
