package command

import (
	"crypto/hmac"
	"crypto/sha256"
	"maps"
	"strings"

	"waybill/domain"
)

// fingerprintPrefix marks what stands for a header's value where it is shown.
const fingerprintPrefix = "hmac-sha256:"

// A configuration is plain while it is decided on: its URL is whole and its headers
// have their values. Sealed, it is what the log may know, and the rest is the target.

// reveal makes a stored configuration plain.
func reveal(c domain.EndpointConfig, t domain.Target) domain.EndpointConfig {
	c.URL, c.Policy.Headers = t.URL, maps.Clone(t.Headers)
	return c
}

// seal parts a plain configuration into what the log may know and the rest.
func (e Endpoints) seal(plain domain.EndpointConfig, key []byte) (domain.EndpointConfig, domain.Target) {
	t := domain.Target{URL: plain.URL, Headers: plain.Policy.Headers, FingerprintKey: key}
	plain.URL, plain.URLFingerprint = e.Rules.RedactURL(t.URL), fingerprint(key, t.URL)
	plain.Policy.Headers = make(map[string]string, len(t.Headers))
	for name, value := range t.Headers {
		plain.Policy.Headers[name] = fingerprintPrefix + fingerprint(key, value).String()
	}
	return plain, t
}

func fingerprint(key []byte, value string) domain.Hex {
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(value))
	return mac.Sum(nil)
}

// restore takes what a reading shows for what it stands for.
func restore(plain *domain.EndpointConfig, shown domain.EndpointConfig, t domain.Target) {
	if plain.URL == shown.URL {
		plain.URL = t.URL
	}
	for name, value := range plain.Policy.Headers {
		if value == shown.Policy.Headers[name] && strings.HasPrefix(value, fingerprintPrefix) {
			plain.Policy.Headers[name] = t.Headers[name]
		}
	}
}

// check refuses what cannot be kept or has no effect.
func (e Endpoints) check(plain domain.EndpointConfig) error {
	switch {
	case plain.Mode == domain.ModeRemote && plain.URL != "":
		return domain.ErrInvalidRequest.With("an endpoint of mode remote has no url")
	case plain.Mode == domain.ModeRemote:
		return checkAll(checkPlain(plain), plain.Policy.CheckRemote())
	case plain.Mode != domain.ModeHTTP:
		return domain.ErrInvalidRequest.With("mode is http or remote")
	case plain.URL == "":
		return domain.ErrInvalidRequest.With("url is missing")
	}
	if err := checkPlain(plain); err != nil {
		return err
	}
	return e.checkHeaders(plain.Policy)
}

// checkPlain refuses what no mode can keep.
func checkPlain(plain domain.EndpointConfig) error {
	return checkAll(domain.CheckText("description", plain.Description, domain.MaxDescription),
		domain.CheckEventTypes(plain.EventTypes), plain.Policy.Check())
}

func (e Endpoints) checkURL(url string) error {
	if err := e.Rules.CheckURL(url); err != nil {
		return domain.ErrURLNotAllowed.With(err.Error())
	}
	return nil
}

func (e Endpoints) checkHeaders(p domain.Policy) error {
	if err := e.Rules.CheckHeaders(p.Headers); err != nil {
		return domain.ErrHeaderNotAllowed.With(err.Error())
	}
	for name := range p.Headers {
		if p.IdempotencyHeader != nil && strings.EqualFold(name, *p.IdempotencyHeader) {
			return domain.ErrHeaderNotAllowed.With("header " + name + " is set by policy.idempotency_header")
		}
	}
	return nil
}
