package domain

import (
	"encoding/hex"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"
)

// Instant is a moment in UTC at the ledger's precision, one microsecond. Its zero
// value means "none". In JSON it is RFC 3339 with six decimals, or absent.
type Instant struct{ time.Time }

// instantLayout is RFC 3339 with exactly six decimals, in UTC.
const instantLayout = "2006-01-02T15:04:05.000000Z"

// At returns t at the ledger's precision, cut off, never rounded up.
func At(t time.Time) Instant {
	if t.IsZero() {
		return Instant{}
	}
	return Instant{t.UTC().Truncate(time.Microsecond)}
}

// After returns the instant d later.
func (i Instant) After(d time.Duration) Instant { return At(i.Add(d)) }

// Later returns the later of the two.
func (i Instant) Later(o Instant) Instant {
	if o.Time.After(i.Time) {
		return o
	}
	return i
}

// String formats the instant as it appears in JSON.
func (i Instant) String() string { return i.UTC().Format(instantLayout) }

// MarshalText formats the instant; the zero value is empty.
func (i Instant) MarshalText() ([]byte, error) {
	if i.IsZero() {
		return []byte{}, nil
	}
	return []byte(i.String()), nil
}

// MarshalJSON formats the instant; the zero value is null.
func (i Instant) MarshalJSON() ([]byte, error) {
	if i.IsZero() {
		return []byte("null"), nil
	}
	return []byte(`"` + i.String() + `"`), nil
}

// UnmarshalText reads any RFC 3339 time.
func (i *Instant) UnmarshalText(b []byte) error {
	if len(b) == 0 {
		*i = Instant{}
		return nil
	}
	t, err := time.Parse(time.RFC3339Nano, string(b))
	if err != nil {
		return fmt.Errorf("time %q is not RFC 3339: %w", b, err)
	}
	*i = At(t)
	return nil
}

// UnmarshalJSON reads a string as UnmarshalText does; null is the zero value.
func (i *Instant) UnmarshalJSON(b []byte) error {
	if string(b) == "null" {
		*i = Instant{}
		return nil
	}
	if len(b) < 2 || b[0] != '"' || b[len(b)-1] != '"' {
		return fmt.Errorf("time %s is not a string", b)
	}
	return i.UnmarshalText(b[1 : len(b)-1])
}

// Duration is a time.Duration that JSON writes as Go does ("1m30s").
type Duration time.Duration

// MarshalText formats d as Go does.
func (d Duration) MarshalText() ([]byte, error) { return []byte(time.Duration(d).String()), nil }

// UnmarshalText reads a duration as Go writes it.
func (d *Duration) UnmarshalText(b []byte) error {
	v, err := time.ParseDuration(string(b))
	if err != nil {
		return fmt.Errorf("%q is not a duration such as 1m30s", b)
	}
	*d = Duration(v)
	return nil
}

// Hex is bytes that JSON writes in lower-case hexadecimal.
type Hex []byte

// String returns the hexadecimal form.
func (h Hex) String() string { return hex.EncodeToString(h) }

// MarshalText returns the hexadecimal form.
func (h Hex) MarshalText() ([]byte, error) { return []byte(h.String()), nil }

// UnmarshalText reads the hexadecimal form.
func (h *Hex) UnmarshalText(b []byte) error {
	v, err := hex.DecodeString(string(b))
	if err != nil {
		return fmt.Errorf("%q is not hexadecimal", b)
	}
	*h = v
	return nil
}

// Actor is who was authenticated: KeyActor, WorkerActor, OperatorActor or
// SystemActor. What a caller says of itself is not an actor but data.
type Actor string

// KeyActor is the holder of an API key.
func KeyActor(id fmt.Stringer) Actor { return Actor("key:" + id.String()) }

// WorkerActor is a worker by its name.
func WorkerActor(name string) Actor { return Actor("worker:" + name) }

// OperatorActor is whoever holds the database URL, on the command line.
func OperatorActor(osUser, host string) Actor { return Actor("operator:" + osUser + "@" + host) }

// SystemActor is a part of the product that acts by itself.
func SystemActor(part string) Actor { return Actor("system:" + part) }

// The tenants that exist from the start.
const (
	DefaultTenant = "default" // what is used where none is named
	SystemTenant  = "system"  // what belongs to no one tenant
)

// Limits of texts that callers give, in bytes unless said otherwise.
const (
	MaxReason         = 2000
	MaxEventType      = 255
	MaxContentType    = 255
	MaxIdempotencyKey = 255
	MaxOrderingKey    = 255
	MaxDescription    = 2000
	MaxName           = 100
	MaxOnBehalfOf     = 200 // characters
)

// CheckText refuses text that a json or text column cannot keep as it came:
// invalid UTF-8, U+0000, or more than max bytes.
func CheckText(field, s string, max int) error {
	switch {
	case len(s) > max:
		return ErrInvalidRequest.With(fmt.Sprintf("%s has more than %d bytes", field, max))
	case !utf8.ValidString(s):
		return ErrInvalidRequest.With(field + " is not valid UTF-8")
	case strings.ContainsRune(s, 0):
		return ErrInvalidRequest.With(field + " contains U+0000")
	}
	return nil
}

// CheckReason refuses an empty or unkeepable reason.
func CheckReason(reason string) error {
	if strings.TrimSpace(reason) == "" {
		return ErrInvalidRequest.With("reason is missing: say why, for those who read the history")
	}
	return CheckText("reason", reason, MaxReason)
}

// CheckIdempotencyKey refuses what is not 1–255 printable ASCII characters.
func CheckIdempotencyKey(key string) error {
	if key == "" || len(key) > MaxIdempotencyKey {
		return ErrIdempotencyKey
	}
	for i := 0; i < len(key); i++ {
		if key[i] < 0x20 || key[i] > 0x7e {
			return ErrIdempotencyKey
		}
	}
	return nil
}

// CheckSlug refuses a tenant name that is not a slug: a–z, 0–9 and inner hyphens,
// at most 63.
func CheckSlug(s string) error {
	ok := len(s) > 0 && len(s) <= 63 && s[0] != '-' && s[len(s)-1] != '-'
	for _, r := range s {
		ok = ok && (r == '-' || r >= 'a' && r <= 'z' || r >= '0' && r <= '9')
	}
	if !ok {
		return ErrInvalidRequest.With("a tenant's name is a slug: a–z, 0–9 and inner hyphens, at most 63")
	}
	return nil
}
