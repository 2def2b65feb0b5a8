package domain

import "github.com/google/uuid"

// Scope is what an API key may do.
type Scope string

// The scopes. Each route needs exactly one.
const (
	ScopeSubmit  Scope = "submit"  // hand in messages
	ScopeRead    Scope = "read"    // read deliveries, histories and endpoints
	ScopeOperate Scope = "operate" // replay, cancel, resolve
	ScopeAdmin   Scope = "admin"   // configure endpoints
	ScopeAudit   Scope = "audit"   // read payloads, export, prove
	ScopeClaim   Scope = "claim"   // work for remote endpoints
)

// Scopes lists every scope.
var Scopes = []Scope{ScopeSubmit, ScopeRead, ScopeOperate, ScopeAdmin, ScopeAudit, ScopeClaim}

// CheckScopes refuses an empty list and unknown scopes.
func CheckScopes(scopes []Scope) error {
	if len(scopes) == 0 {
		return ErrInvalidRequest.With("a key needs at least one scope: submit, read, operate, admin, audit or claim")
	}
	for _, s := range scopes {
		if !has(Scopes, s) {
			return ErrInvalidRequest.With("scopes are submit, read, operate, admin, audit and claim")
		}
	}
	return nil
}

func has(list []Scope, s Scope) bool {
	for _, v := range list {
		if v == s {
			return true
		}
	}
	return false
}

// TenantCreated: a tenant came to be. In the system tenant's stream.
type TenantCreated struct {
	Name string `json:"name"`
}

// KeyCreated: an API key was issued. The key itself is nowhere but with its holder.
type KeyCreated struct {
	KeyID  uuid.UUID `json:"key_id"`
	Name   string    `json:"name"`
	Scopes []Scope   `json:"scopes"`
	Rate   Rate      `json:"rate,omitzero"` // of submissions; absent: no limit
}

// KeyRevoked: an API key opens nothing any more.
type KeyRevoked struct {
	KeyID uuid.UUID `json:"key_id"`
}

// PayloadRead: somebody was given a payload's bytes.
type PayloadRead struct {
	DeliveryID uuid.UUID `json:"delivery_id"`
	MessageID  uuid.UUID `json:"message_id"`
	From       string    `json:"from"` // network address, or "command line"
	OnBehalfOf string    `json:"on_behalf_of,omitempty"`
}

// RestoreAccepted: the database was put back to an older state, and an operator took it as
// it is. The positions between what it was sealed to and what the lost checkpoint spoke of
// are never used again. In the system tenant's stream.
type RestoreAccepted struct {
	Reason    string `json:"reason"`
	Epoch     int    `json:"epoch"`      // that begins
	Last      int64  `json:"last"`       // the horizon that was found
	LostLast  int64  `json:"lost_last"`  // that of the checkpoint outside
	LostSize  int64  `json:"lost_size"`  // its blocks
	LostRoot  Hex    `json:"lost_root"`  // its root
	LostEpoch int    `json:"lost_epoch"` // its epoch
}

func (RestoreAccepted) fact() {}
func (TenantCreated) fact()   {}
func (KeyCreated) fact()      {}
func (KeyRevoked) fact()      {}
func (PayloadRead) fact()     {}
