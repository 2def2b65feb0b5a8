package command

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"time"

	"github.com/google/uuid"

	"waybill/domain"
	"waybill/projections"
)

// EndpointLedger is what configuring endpoints needs of the ledger.
type EndpointLedger interface {
	Clock
	NewIDAt(at domain.Instant) uuid.UUID
	CreateEndpoint(ctx context.Context, c projections.EndpointChange, target domain.Target) error
	ChangeEndpoint(ctx context.Context, tenant string, id uuid.UUID,
		decide func(projections.Endpoint, domain.Target) (projections.EndpointDecision, error),
	) (projections.Endpoint, error)
	ChangeEndpointStatus(ctx context.Context, tenant string, id uuid.UUID,
		decide func(projections.Endpoint) (projections.EndpointDecision, error),
	) (projections.Endpoint, error)
}

// EndpointRules is what the sending side knows of URLs, headers and secrets. Errors
// are words for whoever wrote the value, and quote no secret part of it.
type EndpointRules interface {
	CheckURL(url string) error
	RedactURL(url string) string
	CheckHeaders(headers map[string]string) error
	NewSecret() (string, error)
}

// Bounds of how long a replaced signing secret signs beside its successor.
const (
	DefaultOverlap = 24 * time.Hour
	MaxOverlap     = 7 * 24 * time.Hour
)

// Endpoints are the decisions about where deliveries go. Changes of one endpoint
// follow one another: each is decided under a lock on what the one before it
// stored, so every answer is what was stored, and nobody is given a secret that was
// not. ifVersion names the version a change is meant for; 0 is any.
type Endpoints struct {
	Ledger EndpointLedger
	Rules  EndpointRules
}

// EndpointInput is an endpoint as its creator describes it.
type EndpointInput struct {
	URL         string          `json:"url"`
	Description string          `json:"description,omitempty"`
	Mode        domain.Mode     `json:"mode,omitempty"`        // empty: http
	EventTypes  []string        `json:"event_types,omitempty"` // none: all
	Policy      json.RawMessage `json:"policy,omitempty"`      // members of domain.Policy; what is left out or null has its default
}

// Create makes an endpoint and returns it with its signing secret, which is shown
// this once; one of mode remote signs nothing and has none.
func (e Endpoints) Create(ctx context.Context, by Caller, in EndpointInput) (projections.Endpoint, string, error) {
	none := projections.Endpoint{}
	plain, err := e.described(by, in)
	if err != nil {
		return none, "", err
	}
	at, err := e.Ledger.Now(ctx)
	if err != nil {
		return none, "", err
	}
	config, target := e.seal(plain, newFingerprintKey())
	secret := ""
	if plain.Mode == domain.ModeHTTP {
		if secret, err = e.Rules.NewSecret(); err != nil {
			return none, "", err
		}
		target.Secrets = []domain.SigningSecret{{Secret: secret}}
	}
	blank := projections.Endpoint{Endpoint: domain.Endpoint{ID: e.Ledger.NewIDAt(at), Tenant: by.Tenant}}
	change, err := blank.Advance(by.Actor, at, domain.EndpointCreated{Config: config, OnBehalfOf: by.OnBehalfOf})
	if err != nil {
		return none, "", err
	}
	if err := e.Ledger.CreateEndpoint(ctx, change, target); err != nil {
		return none, "", err
	}
	return change.After, secret, nil
}

// described is the configuration that a new endpoint's description amounts to.
func (e Endpoints) described(by Caller, in EndpointInput) (domain.EndpointConfig, error) {
	if err := by.Check(); err != nil {
		return domain.EndpointConfig{}, err
	}
	patch, err := json.Marshal(in)
	if err != nil {
		return domain.EndpointConfig{}, domain.ErrInvalidRequest.With("policy is not JSON")
	}
	plain, err := merge(domain.EndpointConfig{Mode: domain.ModeHTTP, Policy: domain.DefaultPolicy()}, patch)
	if err != nil {
		return plain, err
	}
	if err := e.check(plain); err != nil || plain.Mode == domain.ModeRemote {
		return plain, err
	}
	return plain, e.checkURL(plain.URL)
}

// Update merges a JSON document into an endpoint's configuration, member by member
// (RFC 7396): null is back to the default, headers merge by name, and retries given
// in one form replace the other form. What a reading shows of a URL and of header
// values may be sent back and changes nothing. Where the URL becomes another one, a
// new secret is returned, and signs alone from then on.
func (e Endpoints) Update(ctx context.Context, by Caller, id uuid.UUID, patch json.RawMessage, ifVersion int) (projections.Endpoint, string, error) {
	var secret string
	after, err := e.change(ctx, by, id, ifVersion, func(p projections.Endpoint, t domain.Target, at domain.Instant) ([]domain.Event, *domain.Target, error) {
		plain, err := e.patched(p, t, patch)
		if err != nil {
			return nil, nil, err
		}
		config, target := e.seal(plain, t.FingerprintKey)
		target.Secrets = t.Secrets
		facts, mint, err := p.Update(config, by.OnBehalfOf, at)
		if err != nil || !mint {
			return facts, &target, err
		}
		if secret, err = e.Rules.NewSecret(); err != nil {
			return nil, nil, err
		}
		target.Secrets = []domain.SigningSecret{{Secret: secret}}
		return facts, &target, nil
	})
	if err != nil {
		return after, "", err
	}
	return after, secret, nil
}

// patched is the configuration after a patch. A URL that stays is not checked again:
// what the rules allow may have become less since, and that binds when it is dialled.
func (e Endpoints) patched(p projections.Endpoint, t domain.Target, patch json.RawMessage) (domain.EndpointConfig, error) {
	plain, err := merge(reveal(p.Config, t), patch)
	if err != nil {
		return plain, err
	}
	restore(&plain, p.Config, t)
	if err := e.check(plain); err != nil || plain.URL == t.URL {
		return plain, err
	}
	return plain, e.checkURL(plain.URL)
}

// RotateSecret mints a new signing secret; what signs beside it, for at most the
// overlap (0 to MaxOverlap), is for [domain.Target.Rotate] to say.
func (e Endpoints) RotateSecret(ctx context.Context, by Caller, id uuid.UUID, overlap time.Duration, ifVersion int) (projections.Endpoint, string, error) {
	if overlap < 0 || overlap > MaxOverlap {
		return projections.Endpoint{}, "", domain.ErrInvalidRequest.With(fmt.Sprintf("overlap is 0s to %s", MaxOverlap))
	}
	secret, err := e.Rules.NewSecret()
	if err != nil {
		return projections.Endpoint{}, "", err
	}
	after, err := e.change(ctx, by, id, ifVersion, func(p projections.Endpoint, t domain.Target, at domain.Instant) ([]domain.Event, *domain.Target, error) {
		if p.Config.Mode == domain.ModeRemote {
			return nil, nil, domain.ErrNoSecret
		}
		facts, err := p.RotateSecret(at.After(overlap), by.OnBehalfOf)
		rotated := t.Rotate(secret, at.After(overlap), at)
		return facts, &rotated, err
	})
	if err != nil {
		return after, "", err
	}
	return after, secret, nil
}

// Pause makes an endpoint's deliveries wait.
func (e Endpoints) Pause(ctx context.Context, by Caller, id uuid.UUID, ifVersion int) (projections.Endpoint, error) {
	return e.changeStatus(ctx, by, id, ifVersion, func(p projections.Endpoint) ([]domain.Event, error) { return p.Pause(by.OnBehalfOf) })
}

// Resume lets an endpoint's deliveries flow again.
func (e Endpoints) Resume(ctx context.Context, by Caller, id uuid.UUID, ifVersion int) (projections.Endpoint, error) {
	return e.changeStatus(ctx, by, id, ifVersion, func(p projections.Endpoint) ([]domain.Event, error) { return p.Resume(by.OnBehalfOf) })
}

// Archive ends an endpoint for ever; its history stays.
func (e Endpoints) Archive(ctx context.Context, by Caller, id uuid.UUID, ifVersion int) (projections.Endpoint, error) {
	return e.changeStatus(ctx, by, id, ifVersion, func(p projections.Endpoint) ([]domain.Event, error) { return p.Archive(by.OnBehalfOf) })
}

// endpointDecision looks at an endpoint and says what follows; a nil target stays.
type endpointDecision func(projections.Endpoint, domain.Target, domain.Instant) ([]domain.Event, *domain.Target, error)

// change has a decision taken and stored under the endpoint's lock. No events is no
// change.
func (e Endpoints) change(ctx context.Context, by Caller, id uuid.UUID, ifVersion int, decide endpointDecision) (projections.Endpoint, error) {
	if err := by.Check(); err != nil {
		return projections.Endpoint{}, err
	}
	at, err := e.Ledger.Now(ctx)
	if err != nil {
		return projections.Endpoint{}, err
	}
	return e.Ledger.ChangeEndpoint(ctx, by.Tenant, id, func(p projections.Endpoint, t domain.Target) (projections.EndpointDecision, error) {
		at := at.Later(p.UpdatedAt)
		facts, target, err := decide(p, t, at)
		return follow(by, p, ifVersion, at, facts, target, err)
	})
}

// changeStatus is change for decisions that need nothing secret.
func (e Endpoints) changeStatus(ctx context.Context, by Caller, id uuid.UUID, ifVersion int,
	decide func(projections.Endpoint) ([]domain.Event, error),
) (projections.Endpoint, error) {
	if err := by.Check(); err != nil {
		return projections.Endpoint{}, err
	}
	at, err := e.Ledger.Now(ctx)
	if err != nil {
		return projections.Endpoint{}, err
	}
	return e.Ledger.ChangeEndpointStatus(ctx, by.Tenant, id, func(p projections.Endpoint) (projections.EndpointDecision, error) {
		facts, err := decide(p)
		return follow(by, p, ifVersion, at, facts, nil, err)
	})
}

// follow turns what was decided into what is stored, unless the change was meant for
// another version.
func follow(by Caller, p projections.Endpoint, ifVersion int, at domain.Instant, facts []domain.Event, target *domain.Target, err error) (projections.EndpointDecision, error) {
	if ifVersion != 0 && ifVersion != p.Version {
		return projections.EndpointDecision{}, domain.ErrVersionMismatch
	}
	if err != nil || len(facts) == 0 {
		return projections.EndpointDecision{}, err
	}
	change, err := p.Advance(by.Actor, at, facts...)
	return projections.EndpointDecision{Change: change, Target: target}, err
}

func newFingerprintKey() []byte {
	key := make([]byte, 32)
	_, _ = rand.Read(key) // never fails, says its documentation
	return key
}
