package command_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"waybill/adapters/postgres"
	"waybill/adapters/postgres/postgrestest"
	"waybill/domain"
	"waybill/handlers/command"
	"waybill/projections"
)

func TestKeyOpensUntilItIsRevoked(t *testing.T) {
	t.Parallel()
	pool := postgrestest.Pool(t)
	keys := command.Keys{Ledger: postgres.Open(pool, postgres.Config{})}
	ctx := t.Context()
	key, token, err := keys.Create(ctx, admin, "billing", []domain.Scope{domain.ScopeRead}, domain.Rate{})
	if err != nil || !strings.HasPrefix(token, "wbk_") || len(token) != 47 {
		t.Fatalf("%q: %v", token, err)
	}
	got, err := keys.Authenticate(ctx, token)
	if err != nil || got.ID != key.ID || got.Tenant != domain.DefaultTenant || len(got.Scopes) != 1 {
		t.Fatalf("%+v: %v", got, err)
	}
	var text string
	if err := pool.QueryRow(ctx, `select string_agg(k::text, '') from waybill.api_keys k`).Scan(&text); err != nil || strings.Contains(text, token[4:]) {
		t.Errorf("the database holds the token, or nothing: %v", err)
	}
	for range 2 { // revoking twice is no event
		if err := keys.Revoke(ctx, admin, key.ID); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := keys.Authenticate(ctx, token); !errors.Is(err, domain.ErrUnauthorized) {
		t.Errorf("revoked: %v", err)
	}
	list, err := keys.List(ctx, admin)
	if err != nil || len(list) != 1 || list[0].RevokedAt.IsZero() {
		t.Errorf("%+v: %v", list, err)
	}
	if err := keys.Revoke(ctx, command.Caller{Tenant: "other"}, key.ID); !errors.Is(err, domain.ErrKeyNotFound) {
		t.Errorf("another tenant's: %v", err)
	}
}

// noDigest is a ledger that must not be asked for a key.
type noDigest struct {
	command.KeyLedger
	t *testing.T
}

func (n noDigest) KeyByDigest(context.Context, []byte) (projections.Key, error) {
	n.t.Error("the ledger was asked")
	return projections.Key{}, nil
}

func TestMalformedTokensNeverReachTheLedger(t *testing.T) {
	t.Parallel()
	keys := command.Keys{Ledger: noDigest{t: t}}
	good := "wbk_" + strings.Repeat("A", 43)
	for _, token := range []string{
		"", "wbk_", good[:46], good + "A", "WBK_" + good[4:], "wbx_" + good[4:], good[:46] + "B" /* stray bits */, good[:46] + "+",
		good[:46] + "\n", good[:46] + "=", good[:20] + "\x00" + good[21:], " " + good, strings.Repeat("x", 1<<20),
	} {
		if _, err := keys.Authenticate(t.Context(), token); !errors.Is(err, domain.ErrUnauthorized) {
			t.Errorf("%.60q: %v", token, err)
		}
	}
}

func TestKeyIsRefused(t *testing.T) {
	t.Parallel()
	keys := command.Keys{}
	for _, c := range []struct {
		name   string
		scopes []domain.Scope
	}{
		{"", domain.Scopes}, {" ", domain.Scopes}, {strings.Repeat("x", 101), domain.Scopes}, {"a\x00", domain.Scopes}, {"a", nil}, {"a", []domain.Scope{"root"}},
	} {
		if _, _, err := keys.Create(t.Context(), admin, c.name, c.scopes, domain.Rate{}); !errors.Is(err, domain.ErrInvalidRequest) {
			t.Errorf("%.20q %v: %v", c.name, c.scopes, err)
		}
	}
}
