package domain

import (
	"maps"
	"time"
)

// Target is what a sender needs of an endpoint and the log must never hold: the
// whole URL, header values and signing secrets. It is stored sealed, in one piece,
// so that no part of it is ever read apart from the others.
type Target struct {
	URL            string            `json:"url"`
	Headers        map[string]string `json:"headers,omitempty"`
	Secrets        []SigningSecret   `json:"secrets"` // newest first
	FingerprintKey []byte            `json:"fingerprint_key"`
}

// SigningSecret is one secret ("whsec_…") and when it stops signing.
type SigningSecret struct {
	Secret   string  `json:"secret"`
	NotAfter Instant `json:"not_after,omitzero"` // zero for the present one
}

// MaxSecrets bounds how many secrets may sign at once.
const MaxSecrets = 10

// Rotate puts a new secret first. The ones before it sign until overlapUntil, or until
// their own end where that is sooner, so that an overlap of nothing leaves the new one
// alone; what has ended by now is forgotten.
func (t Target) Rotate(secret string, overlapUntil, now Instant) Target {
	secrets := []SigningSecret{{Secret: secret}}
	for _, s := range t.Secrets {
		if s.NotAfter.IsZero() || s.NotAfter.Time.After(overlapUntil.Time) {
			s.NotAfter = overlapUntil
		}
		if s.NotAfter.Time.After(now.Time) && len(secrets) < MaxSecrets {
			secrets = append(secrets, s)
		}
	}
	t.Secrets, t.Headers = secrets, maps.Clone(t.Headers)
	return t
}

// SigningAt returns the secrets that sign at a time, newest first.
func (t Target) SigningAt(at time.Time) []string {
	var valid []string
	for _, s := range t.Secrets {
		if s.NotAfter.IsZero() || s.NotAfter.Time.After(at) {
			valid = append(valid, s.Secret)
		}
	}
	return valid
}
