package secrets

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/tink-crypto/tink-go/v2/aead"
	"github.com/tink-crypto/tink-go/v2/insecurecleartextkeyset"
	"github.com/tink-crypto/tink-go/v2/keyset"
	"github.com/tink-crypto/tink-go/v2/tink"
)

// MaxKeyset bounds the size of a keyset in bytes; one key takes about 250.
const MaxKeyset = 64 << 10

// The faults of this package that a caller may want to tell apart.
var (
	// ErrNotOpened: the bytes were sealed by another key or under another context,
	// or are not what was sealed. Nothing says which.
	ErrNotOpened = errors.New("open sealed bytes: another key, another context, or altered bytes")
	// ErrKeyset: this is not a keyset that seals and opens.
	ErrKeyset = errors.New("not a Tink AEAD keyset in JSON with an enabled primary key")
)

// Vault seals and opens with the keys of one keyset. It never changes and is safe
// for concurrent use. It does not print its keys.
type Vault struct {
	keys *keyset.Handle
	aead tink.AEAD
}

// New makes a vault with one fresh AES-256-GCM key. Until it is saved, what it seals
// is lost with the process.
func New() (*Vault, error) {
	h, err := keyset.NewHandle(aead.AES256GCMKeyTemplate())
	if err != nil {
		return nil, fmt.Errorf("make a key: %w", err)
	}
	return open(h)
}

// Load reads a keyset in JSON, at most [MaxKeyset] bytes of it. Whatever is wrong
// with its content is [ErrKeyset].
func Load(r io.Reader) (*Vault, error) {
	b, err := io.ReadAll(io.LimitReader(r, MaxKeyset+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("read the keyset: %w", err)
	case len(b) > MaxKeyset:
		return nil, fmt.Errorf("read the keyset: more than %d bytes: %w", MaxKeyset, ErrKeyset)
	}
	h, err := insecurecleartextkeyset.Read(keyset.NewJSONReader(bytes.NewReader(b)))
	if err != nil {
		return nil, ErrKeyset // the decoder's own text may quote key material
	}
	return open(h)
}

// Parse reads a keyset from the text of an environment variable.
func Parse(json string) (*Vault, error) {
	return Load(strings.NewReader(json))
}

func open(h *keyset.Handle) (*Vault, error) {
	a, err := aead.New(h)
	if err != nil {
		return nil, ErrKeyset
	}
	return &Vault{keys: h, aead: a}, nil
}

// Rotated returns a vault with a fresh key that seals, beside all keys of v, which
// still open. v itself stays as it is.
func (v *Vault) Rotated() (*Vault, error) {
	m := keyset.NewManagerFromHandle(v.keys)
	id, err := m.Add(aead.AES256GCMKeyTemplate())
	if err != nil {
		return nil, fmt.Errorf("add a key: %w", err)
	}
	if err := m.SetPrimary(id); err != nil {
		return nil, fmt.Errorf("make key %d the primary: %w", id, err)
	}
	h, err := m.Handle()
	if err != nil {
		return nil, fmt.Errorf("add a key: %w", err)
	}
	return open(h)
}

// Seal encrypts plain and binds it to the context. Sealing the same twice gives
// different bytes.
func (v *Vault) Seal(plain, context []byte) ([]byte, error) {
	sealed, err := v.aead.Encrypt(plain, context)
	if err != nil {
		return nil, fmt.Errorf("seal %d bytes: %w", len(plain), err)
	}
	return sealed, nil
}

// Open returns what was sealed under the same context by any key of the keyset. Its
// only error is [ErrNotOpened].
func (v *Vault) Open(sealed, context []byte) ([]byte, error) {
	plain, err := v.aead.Decrypt(sealed, context)
	if err != nil {
		return nil, ErrNotOpened
	}
	return plain, nil
}

// String names the keys by their public ids.
func (v *Vault) String() string {
	info := v.keys.KeysetInfo()
	return fmt.Sprintf("vault of %d keys, primary %d", len(info.GetKeyInfo()), info.GetPrimaryKeyId())
}

// GoString is String.
func (v *Vault) GoString() string { return v.String() }

// json returns the keyset in clear text, ending in a newline.
func (v *Vault) json() ([]byte, error) {
	var b bytes.Buffer
	if err := insecurecleartextkeyset.Write(v.keys, keyset.NewJSONWriter(&b)); err != nil {
		return nil, errors.New("write the keyset as JSON")
	}
	b.WriteByte('\n')
	return b.Bytes(), nil
}
