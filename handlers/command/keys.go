package command

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"strings"

	"github.com/google/uuid"

	"waybill/domain"
	"waybill/projections"
)

// KeyLedger is what API keys need of the ledger.
type KeyLedger interface {
	Clock
	NewIDAt(at domain.Instant) uuid.UUID
	CreateKey(ctx context.Context, k projections.Key, digest []byte, by domain.Actor) error
	Keys(ctx context.Context, tenant string) ([]projections.Key, error)
	RevokeKey(ctx context.Context, tenant string, id uuid.UUID, by domain.Actor) error
	KeyByDigest(ctx context.Context, digest []byte) (projections.Key, error)
}

// A token is this prefix and 32 random bytes in base64url. So many bits need no slow
// hash: what is stored is their SHA-256.
const (
	tokenPrefix = "wbk_"
	tokenBytes  = 32
)

// Keys are the decisions about API keys.
type Keys struct{ Ledger KeyLedger }

// Create makes an API key for the caller's tenant and returns it with its token,
// which is shown this once and stored nowhere. A rate bounds what it may hand in; the
// zero rate does not.
func (k Keys) Create(ctx context.Context, by Caller, name string, scopes []domain.Scope, rate domain.Rate) (projections.Key, string, error) {
	if strings.TrimSpace(name) == "" {
		return projections.Key{}, "", domain.ErrInvalidRequest.With("a key needs a name, for those who read the list")
	}
	if err := checkAll(domain.CheckText("name", name, domain.MaxName), domain.CheckScopes(scopes)); err != nil {
		return projections.Key{}, "", err
	}
	at, err := k.Ledger.Now(ctx)
	if err != nil {
		return projections.Key{}, "", err
	}
	token := newToken()
	key := projections.Key{ID: k.Ledger.NewIDAt(at), Tenant: by.Tenant, Name: name, Scopes: scopes, Rate: rate, CreatedAt: at}
	if err := k.Ledger.CreateKey(ctx, key, digest(token), by.Actor); err != nil {
		return projections.Key{}, "", err
	}
	return key, token, nil
}

// List returns the tenant's API keys, newest first.
func (k Keys) List(ctx context.Context, by Caller) ([]projections.Key, error) {
	return k.Ledger.Keys(ctx, by.Tenant)
}

// Revoke makes an API key open nothing any more.
func (k Keys) Revoke(ctx context.Context, by Caller, id uuid.UUID) error {
	return k.Ledger.RevokeKey(ctx, by.Tenant, id, by.Actor)
}

// Authenticate returns the key that a bearer token stands for. Unknown, revoked and
// malformed tokens all get ErrUnauthorized; malformed ones never reach the ledger.
func (k Keys) Authenticate(ctx context.Context, bearer string) (projections.Key, error) {
	if !isToken(bearer) {
		return projections.Key{}, domain.ErrUnauthorized
	}
	return k.Ledger.KeyByDigest(ctx, digest(bearer))
}

func newToken() string {
	secret := make([]byte, tokenBytes)
	_, _ = rand.Read(secret) // never fails, says its documentation
	return tokenPrefix + base64.RawURLEncoding.EncodeToString(secret)
}

func isToken(s string) bool {
	text, ok := strings.CutPrefix(s, tokenPrefix)
	if !ok || len(text) != base64.RawURLEncoding.EncodedLen(tokenBytes) {
		return false
	}
	secret, err := base64.RawURLEncoding.Strict().DecodeString(text)
	return err == nil && len(secret) == tokenBytes
}

func digest(token string) []byte {
	sum := sha256.Sum256([]byte(token))
	return sum[:]
}
