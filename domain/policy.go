package domain

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"math"
	"time"
)

// OnUnknown says what follows an attempt whose outcome nobody can know.
type OnUnknown string

// The answers to an unknown outcome.
const (
	RetryUnknown OnUnknown = "retry" // try again; the receiver dedupes on webhook-id
	HoldUnknown  OnUnknown = "hold"  // hold the delivery for a person
)

// Ordering says how deliveries with one ordering key follow each other.
type Ordering string

// OrderingNone is the only ordering that is built so far.
const OrderingNone Ordering = "none"

// Policy is how an endpoint's deliveries are made. It is always complete: what a
// caller leaves out has the default of [DefaultPolicy]. In an event, header
// values are replaced by keyed fingerprints.
type Policy struct {
	Timeout           Duration          `json:"timeout"`
	Retries           Retries           `json:"retries"`
	Jitter            float64           `json:"jitter"`
	MaxInFlight       *int              `json:"max_in_flight"`
	RatePerSecond     *float64          `json:"rate_per_second"`
	SubmitRate        *Rate             `json:"submit_rate"` // of messages handed in to this very endpoint; null: no limit
	OnUnknown         OnUnknown         `json:"on_unknown_outcome"`
	Ordering          Ordering          `json:"ordering"`
	Headers           map[string]string `json:"headers"`
	IdempotencyHeader *string           `json:"idempotency_header"`
	CA                *string           `json:"ca_pem"` // certificates to trust instead of the system's; null: the system's
	ExpireAfter       *Duration         `json:"expire_after"`
	DisableAfter      *Duration         `json:"disable_after"`
}

// DefaultPolicy is what holds where a caller says nothing.
func DefaultPolicy() Policy {
	return Policy{
		Timeout: Duration(15 * time.Second), Retries: DefaultRetries(), Jitter: 0.1,
		OnUnknown: RetryUnknown, Ordering: OrderingNone, Headers: map[string]string{},
	}
}

// MaxAttempts is how many attempts a cycle has.
func (p Policy) MaxAttempts() int { return p.Retries.Max() }

// Bounds of a policy's timeout.
const (
	MinTimeout = 100 * time.Millisecond
	MaxTimeout = 30 * time.Second
)

// Check refuses what is out of range, and what is not built yet: nothing is
// stored without effect.
func (p Policy) Check() error {
	if err := p.unsupported(); err != nil {
		return err
	}
	t := time.Duration(p.Timeout)
	switch {
	case t < MinTimeout || t > MaxTimeout:
		return ErrInvalidRequest.With("policy.timeout is 100ms to 30s")
	case math.IsNaN(p.Jitter) || p.Jitter < 0 || p.Jitter > 1:
		return ErrInvalidRequest.With("policy.jitter is 0 to 1")
	case p.MaxInFlight != nil && (*p.MaxInFlight < 1 || *p.MaxInFlight > 100_000):
		return ErrInvalidRequest.With("policy.max_in_flight is 1 to 100000, or null")
	case p.SubmitRate != nil && p.SubmitRate.IsZero():
		return ErrInvalidRequest.With("policy.submit_rate is a rate such as 1000/1m, or null")
	case p.OnUnknown != RetryUnknown && p.OnUnknown != HoldUnknown:
		return ErrInvalidRequest.With("policy.on_unknown_outcome is retry or hold")
	case p.IdempotencyHeader != nil && *p.IdempotencyHeader != "Idempotency-Key":
		return ErrInvalidRequest.With("policy.idempotency_header is Idempotency-Key, or null")
	}
	return checkBoth(p.checkCA(), p.Retries.check())
}

func checkBoth(a, b error) error {
	if a != nil {
		return a
	}
	return b
}

// MaxCA bounds the certificates of an endpoint, in bytes of PEM.
const MaxCA = 16 << 10

// checkCA refuses what is not one or more PEM certificates and nothing else.
func (p Policy) checkCA() error {
	if p.CA == nil {
		return nil
	}
	if len(*p.CA) > MaxCA {
		return ErrInvalidRequest.With("policy.ca_pem has more than 16 KiB")
	}
	rest := []byte(*p.CA)
	for n := 0; ; n++ {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			if n == 0 || len(bytes.TrimSpace(rest)) > 0 {
				return ErrInvalidRequest.With("policy.ca_pem is one or more certificates in PEM, or null")
			}
			return nil
		}
		if _, err := x509.ParseCertificate(block.Bytes); err != nil || block.Type != "CERTIFICATE" {
			return ErrInvalidRequest.With("policy.ca_pem holds something that is no certificate")
		}
	}
}

// CheckRemote refuses what has no effect where Waybill does not make the requests.
func (p Policy) CheckRemote() error {
	for name, set := range map[string]bool{
		"max_in_flight": p.MaxInFlight != nil, "headers": len(p.Headers) > 0, "ca_pem": p.CA != nil, "idempotency_header": p.IdempotencyHeader != nil,
	} {
		if set {
			return ErrUnsupportedPolicy.With("policy: " + name + " has no effect in mode remote; leave it out")
		}
	}
	return nil
}

func (p Policy) unsupported() error {
	for _, u := range []struct {
		name string
		set  bool
	}{
		{"ordering other than none", p.Ordering != OrderingNone},
		{"rate_per_second", p.RatePerSecond != nil},
		{"expire_after", p.ExpireAfter != nil},
		{"disable_after", p.DisableAfter != nil},
	} {
		if u.set {
			return ErrUnsupportedPolicy.With("policy: " + u.name + " is not supported by this version; leave it out")
		}
	}
	return nil
}
