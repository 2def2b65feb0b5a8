package domain

import (
	"reflect"

	"github.com/google/uuid"
)

// EndpointStatus is whether an endpoint takes part in deliveries.
type EndpointStatus string

// The statuses. Paused and disabled endpoints accept deliveries and send none;
// archived ones accept nothing, and what waits there fails as endpoint_gone.
const (
	StatusActive   EndpointStatus = "active"
	StatusPaused   EndpointStatus = "paused"
	StatusDisabled EndpointStatus = "disabled"
	StatusArchived EndpointStatus = "archived"
)

// Mode says who makes an endpoint's requests.
type Mode string

// The modes.
const (
	ModeHTTP   Mode = "http"   // Waybill's workers send
	ModeRemote Mode = "remote" // only remote workers claim, and call with their own code
)

// EndpointConfig is what a person configures, as the log may know it: the URL
// without userinfo and query values, and of the secret parts only fingerprints.
type EndpointConfig struct {
	URL            string   `json:"url"`
	URLFingerprint Hex      `json:"url_fingerprint"` // HMAC-SHA256 of the whole URL under the endpoint's own key
	Description    string   `json:"description"`
	Mode           Mode     `json:"mode"`
	EventTypes     []string `json:"event_types"`
	Policy         Policy   `json:"policy"`
}

// Endpoint is the state that the events of an endpoint's stream add up to.
type Endpoint struct {
	ID        uuid.UUID
	Tenant    string
	Config    EndpointConfig
	Status    EndpointStatus
	Version   int
	CreatedAt Instant
	UpdatedAt Instant
}

// EndpointCreated: an endpoint came to be.
type EndpointCreated struct {
	Config     EndpointConfig `json:"config"`
	OnBehalfOf string         `json:"on_behalf_of,omitempty"`
}

// EndpointUpdated: its configuration changed. Before and After hold the members
// that differ, and no others.
type EndpointUpdated struct {
	Before     EndpointChange `json:"before"`
	After      EndpointChange `json:"after"`
	OnBehalfOf string         `json:"on_behalf_of,omitempty"`
}

// EndpointChange is some members of an EndpointConfig.
type EndpointChange struct {
	URL            *string   `json:"url,omitempty"`
	URLFingerprint *Hex      `json:"url_fingerprint,omitempty"`
	Description    *string   `json:"description,omitempty"`
	EventTypes     *[]string `json:"event_types,omitempty"`
	Policy         *Policy   `json:"policy,omitempty"`
}

// SecretRotated: a new signing secret; the old ones sign too until OverlapUntil.
type SecretRotated struct {
	OverlapUntil Instant `json:"overlap_until"`
	Why          string  `json:"why"` // "requested" or "url_changed"
	OnBehalfOf   string  `json:"on_behalf_of,omitempty"`
}

// EndpointPaused: deliveries wait.
type EndpointPaused struct {
	OnBehalfOf string `json:"on_behalf_of,omitempty"`
}

// EndpointResumed: deliveries flow again.
type EndpointResumed struct {
	OnBehalfOf string `json:"on_behalf_of,omitempty"`
}

// EndpointDisabled: the receiver said that it wants no more.
type EndpointDisabled struct {
	Why        string    `json:"why"`
	DeliveryID uuid.UUID `json:"delivery_id"` // whose attempt was answered so
}

// EndpointArchived: the endpoint takes nothing more, for ever.
type EndpointArchived struct {
	OnBehalfOf string `json:"on_behalf_of,omitempty"`
}

func (EndpointCreated) fact()  {}
func (EndpointUpdated) fact()  {}
func (SecretRotated) fact()    {}
func (EndpointPaused) fact()   {}
func (EndpointResumed) fact()  {}
func (EndpointDisabled) fact() {}
func (EndpointArchived) fact() {}

// Evolve returns the state after one more event of the endpoint's stream.
func (p Endpoint) Evolve(e Event, at Instant) Endpoint {
	p.Version++
	p.UpdatedAt = at
	switch e := e.(type) {
	case EndpointCreated:
		p.Config, p.Status, p.CreatedAt = e.Config, StatusActive, at
	case EndpointUpdated:
		p.Config = e.After.apply(p.Config)
	case EndpointPaused:
		p.Status = StatusPaused
	case EndpointResumed:
		p.Status = StatusActive
	case EndpointDisabled:
		p.Status = StatusDisabled
	case EndpointArchived:
		p.Status = StatusArchived
	}
	return p
}

// Update changes the configuration; what stays the same is no event. mintSecret
// says that the URL is another one, so that a new secret goes with it and the old
// one signs no more.
func (p Endpoint) Update(next EndpointConfig, onBehalfOf string, at Instant) (events []Event, mintSecret bool, err error) {
	if p.Status == StatusArchived {
		return nil, false, ErrEndpointArchived
	}
	before, after, changed := diff(p.Config.normal(), next.normal())
	if !changed {
		return nil, false, nil
	}
	events = []Event{EndpointUpdated{Before: before, After: after, OnBehalfOf: onBehalfOf}}
	if after.URLFingerprint != nil {
		mintSecret = true
		events = append(events, SecretRotated{OverlapUntil: at, Why: "url_changed", OnBehalfOf: onBehalfOf})
	}
	return events, mintSecret, nil
}

// RotateSecret mints a new signing secret; the old ones sign too until then.
func (p Endpoint) RotateSecret(overlapUntil Instant, onBehalfOf string) ([]Event, error) {
	if p.Status == StatusArchived {
		return nil, ErrEndpointArchived
	}
	return []Event{SecretRotated{OverlapUntil: overlapUntil, Why: "requested", OnBehalfOf: onBehalfOf}}, nil
}

// Pause makes deliveries wait. Pausing twice is no event.
func (p Endpoint) Pause(onBehalfOf string) ([]Event, error) {
	switch p.Status {
	case StatusArchived:
		return nil, ErrEndpointArchived
	case StatusPaused:
		return nil, nil
	}
	return []Event{EndpointPaused{OnBehalfOf: onBehalfOf}}, nil
}

// Resume lets deliveries flow again, after a pause or a disabling.
func (p Endpoint) Resume(onBehalfOf string) ([]Event, error) {
	switch p.Status {
	case StatusArchived:
		return nil, ErrEndpointArchived
	case StatusActive:
		return nil, nil
	}
	return []Event{EndpointResumed{OnBehalfOf: onBehalfOf}}, nil
}

// Disable stops deliveries because the receiver answered 410 (Gone).
func (p Endpoint) Disable(why string, delivery uuid.UUID) ([]Event, error) {
	if p.Status == StatusArchived || p.Status == StatusDisabled {
		return nil, nil
	}
	return []Event{EndpointDisabled{Why: why, DeliveryID: delivery}}, nil
}

// Archive ends the endpoint. Archiving twice is no event.
func (p Endpoint) Archive(onBehalfOf string) ([]Event, error) {
	if p.Status == StatusArchived {
		return nil, nil
	}
	return []Event{EndpointArchived{OnBehalfOf: onBehalfOf}}, nil
}

// Wants reports whether a message of this event type goes to the endpoint in a
// fan-out: it names the type, or a prefix of it as "prefix.*", or names none.
func (p Endpoint) Wants(eventType string) bool {
	if p.Status == StatusArchived {
		return false
	}
	return matches(p.Config.EventTypes, eventType)
}

// normal writes what is empty in one way, so that writing it in another is no change,
// and none is written as a null that the log would read as "not changed".
func (c EndpointConfig) normal() EndpointConfig {
	if c.EventTypes == nil {
		c.EventTypes = []string{}
	}
	if c.Policy.Headers == nil {
		c.Policy.Headers = map[string]string{}
	}
	if len(c.Policy.Retries.Delays) == 0 {
		c.Policy.Retries.Delays = nil
	}
	return c
}

func (c EndpointChange) apply(to EndpointConfig) EndpointConfig {
	assign(&to.URL, c.URL)
	assign(&to.URLFingerprint, c.URLFingerprint)
	assign(&to.Description, c.Description)
	assign(&to.EventTypes, c.EventTypes)
	assign(&to.Policy, c.Policy)
	return to
}

func assign[T any](to, from *T) {
	if from != nil {
		*to = *from
	}
}

func diff(a, b EndpointConfig) (before, after EndpointChange, changed bool) {
	changed = false
	changed = differ(a.URL, b.URL, &before.URL, &after.URL) || changed
	changed = differ(a.URLFingerprint, b.URLFingerprint, &before.URLFingerprint, &after.URLFingerprint) || changed
	changed = differ(a.Description, b.Description, &before.Description, &after.Description) || changed
	changed = differ(a.EventTypes, b.EventTypes, &before.EventTypes, &after.EventTypes) || changed
	changed = differ(a.Policy, b.Policy, &before.Policy, &after.Policy) || changed
	return before, after, changed
}

func differ[T any](a, b T, before, after **T) bool {
	if reflect.DeepEqual(a, b) {
		return false
	}
	*before, *after = &a, &b
	return true
}
