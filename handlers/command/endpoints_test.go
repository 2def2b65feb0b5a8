package command_test

import (
	"encoding/json"
	"errors"
	"net/netip"
	"strings"
	"sync"
	"testing"

	"github.com/google/uuid"

	"waybill/adapters/postgres"
	"waybill/adapters/postgres/postgrestest"
	"waybill/adapters/secrets"
	"waybill/adapters/webhook"
	"waybill/domain"
	"waybill/events"
	"waybill/handlers/command"
	"waybill/projections"
)

type rules struct{ allow []netip.Prefix }

func (r rules) CheckURL(url string) error            { return webhook.CheckURL(url, r.allow) }
func (rules) RedactURL(url string) string            { return webhook.RedactURL(url) }
func (rules) CheckHeaders(h map[string]string) error { return webhook.CheckHeaders(h) }
func (rules) NewSecret() (string, error)             { return webhook.NewSecret() }

var admin = command.Caller{Tenant: domain.DefaultTenant, Actor: "operator:test@host", OnBehalfOf: "Ada"}

// configured is endpoints over a database of the test's own.
type configured struct {
	command.Endpoints
	t      *testing.T
	ledger *postgres.Ledger
}

func configure(t *testing.T) configured {
	t.Helper()
	vault, err := secrets.New()
	if err != nil {
		t.Fatal(err)
	}
	ledger := postgres.Open(postgrestest.Pool(t), postgres.Config{Vault: vault})
	return configured{command.Endpoints{Ledger: ledger, Rules: rules{}}, t, ledger}
}

func (c configured) create(in command.EndpointInput) (projections.Endpoint, string) {
	c.t.Helper()
	p, secret, err := c.Create(c.t.Context(), admin, in)
	if err != nil {
		c.t.Fatal(err)
	}
	return p, secret
}

func (c configured) patch(id uuid.UUID, patch string) (projections.Endpoint, string) {
	c.t.Helper()
	p, secret, err := c.Update(c.t.Context(), admin, id, json.RawMessage(patch), 0)
	if err != nil {
		c.t.Fatal(err)
	}
	return p, secret
}

// target opens what is sealed.
func (c configured) target(id uuid.UUID) domain.Target {
	c.t.Helper()
	var target domain.Target
	_, err := c.ledger.ChangeEndpoint(c.t.Context(), admin.Tenant, id,
		func(_ projections.Endpoint, t domain.Target) (projections.EndpointDecision, error) {
			target = t
			return projections.EndpointDecision{}, nil
		})
	if err != nil {
		c.t.Fatal(err)
	}
	return target
}

// history is an endpoint's stream as text.
func (c configured) history(id uuid.UUID) string {
	c.t.Helper()
	records, err := c.ledger.Stream(c.t.Context(), admin.Tenant, events.EndpointStream, id, 0, 100)
	if err != nil {
		c.t.Fatal(err)
	}
	var lines []string
	for _, r := range records {
		lines = append(lines, r.Name+" "+string(r.Data))
	}
	return strings.Join(lines, "\n")
}

// TestSecretPartsAreSealed: neither the log nor the projection holds a header's
// value, a query value or a secret.
func TestSecretPartsAreSealed(t *testing.T) {
	t.Parallel()
	c := configure(t)
	p, secret := c.create(command.EndpointInput{
		URL: "https://example.com/hook?token=qu3ry", Policy: json.RawMessage(`{"headers":{"X-Api-Key":"he4der"}}`),
	})
	if !strings.HasPrefix(secret, "whsec_") {
		t.Errorf("secret %q", secret)
	}
	c.patch(p.ID, `{"url":"https://example.com/hook?token=qu3ry2","policy":{"headers":{"X-Api-Key":"he4der2","X-More":"he4der"}}}`)
	log := c.history(p.ID)
	for _, hidden := range []string{"qu3ry", "he4der", secret[6:]} {
		if strings.Contains(log, hidden) {
			t.Errorf("the log holds %q:\n%s", hidden, log)
		}
	}
	if !strings.Contains(log, `"X-Api-Key":"hmac-sha256:`) || !strings.Contains(log, `"on_behalf_of":"Ada"`) {
		t.Errorf("the log lacks what it may hold:\n%s", log)
	}
	target := c.target(p.ID)
	if target.URL != "https://example.com/hook?token=qu3ry2" || target.Headers["X-Api-Key"] != "he4der2" || target.Headers["X-More"] != "he4der" {
		t.Errorf("target %+v", target)
	}
	if rep, err := c.ledger.Verify(t.Context()); err != nil || rep.Endpoints != 1 || len(rep.Faults) > 0 {
		t.Errorf("verify: %v %v", err, rep.Faults)
	}
}

// TestOnlyAnotherURLMintsASecret, and the old one signs no more.
func TestOnlyAnotherURLMintsASecret(t *testing.T) {
	t.Parallel()
	c := configure(t)
	p, first := c.create(command.EndpointInput{URL: "https://example.com/hook?token=a", Policy: json.RawMessage(`{"headers":{"X-A":"v"}}`)})
	shown, _ := json.Marshal(map[string]any{"url": p.Config.URL, "policy": map[string]any{"headers": p.Config.Policy.Headers}})
	for _, patch := range []string{
		`{}`, `{"url":"https://example.com/hook?token=a"}`, string(shown), `{"policy":{"headers":{"X-A":"v"}}}`, `{"policy":{"timeout":"15s"}}`,
	} {
		if after, secret := c.patch(p.ID, patch); secret != "" || after.Version != 1 {
			t.Errorf("%s: version %d, secret %q", patch, after.Version, secret)
		}
	}
	if after, secret := c.patch(p.ID, `{"description":"new"}`); secret != "" || after.Version != 2 {
		t.Errorf("version %d, secret %q", after.Version, secret)
	}
	after, second := c.patch(p.ID, `{"url":"https://example.com/hook?token=b"}`)
	if second == "" || second == first || after.Version != 4 {
		t.Errorf("version %d, secret %q", after.Version, second)
	}
	if got := c.target(p.ID); len(got.Secrets) != 1 || got.Secrets[0].Secret != second || got.Headers["X-A"] != "v" {
		t.Errorf("target %+v", got)
	}
}

// TestConcurrentChangesFollowOneAnother: of many patches at once each is answered
// with what it stored, and the secret that signs is that of the last.
func TestConcurrentChangesFollowOneAnother(t *testing.T) {
	t.Parallel()
	c := configure(t)
	p, _ := c.create(command.EndpointInput{URL: "https://example.com/0"})
	const n = 20
	var mu sync.Mutex
	secrets := map[int]string{} // by version
	var wg sync.WaitGroup
	begin := make(chan struct{})
	for i := range n {
		wg.Go(func() {
			<-begin
			after, secret, err := c.Update(t.Context(), admin, p.ID, json.RawMessage(`{"url":"https://example.com/`+string(rune('a'+i))+`"}`), 0)
			if err != nil {
				t.Error(err)
				return
			}
			mu.Lock()
			defer mu.Unlock()
			secrets[after.Version] = secret
		})
	}
	close(begin)
	wg.Wait()
	last := 1 + 2*n // an update and a rotation each
	if got := c.target(p.ID).Secrets; len(secrets) != n || len(got) != 1 || got[0].Secret != secrets[last] {
		t.Errorf("%d versions; the stored secret is not that of version %d", len(secrets), last)
	}
}

// TestIfMatchLetsOneWin: of changes meant for one version, one is taken.
func TestIfMatchLetsOneWin(t *testing.T) {
	t.Parallel()
	c := configure(t)
	p, _ := c.create(command.EndpointInput{URL: "https://example.com/0"})
	results := make(chan error, 10)
	for i := range cap(results) {
		go func() {
			_, _, err := c.Update(t.Context(), admin, p.ID, json.RawMessage(`{"description":"`+string(rune('a'+i))+`"}`), 1)
			results <- err
		}()
	}
	taken := 0
	for range cap(results) {
		switch err := <-results; {
		case err == nil:
			taken++
		case !errors.Is(err, domain.ErrVersionMismatch):
			t.Error(err)
		}
	}
	if taken != 1 {
		t.Errorf("%d were taken", taken)
	}
}

func TestEndpointIsRefused(t *testing.T) {
	t.Parallel()
	c := command.Endpoints{Rules: rules{}} // refused before any ledger is asked
	ok := "https://example.com/"
	for name, in := range map[string]struct {
		command.EndpointInput
		want error
	}{
		"no url":           {command.EndpointInput{}, domain.ErrInvalidRequest},
		"remote with url":  {command.EndpointInput{Mode: "remote", URL: "https://example.com/"}, domain.ErrInvalidRequest},
		"mode":             {command.EndpointInput{URL: ok, Mode: "smtp"}, domain.ErrInvalidRequest},
		"private":          {command.EndpointInput{URL: "https://10.0.0.1/"}, domain.ErrURLNotAllowed},
		"description":      {command.EndpointInput{URL: ok, Description: strings.Repeat("x", 2001)}, domain.ErrInvalidRequest},
		"event type":       {command.EndpointInput{URL: ok, EventTypes: []string{"a b"}}, domain.ErrInvalidRequest},
		"not JSON":         {command.EndpointInput{URL: ok, Policy: json.RawMessage(`{`)}, domain.ErrInvalidRequest},
		"ordering":         {command.EndpointInput{URL: ok, Policy: json.RawMessage(`{"ordering":"block"}`)}, domain.ErrUnsupportedPolicy},
		"header":           {command.EndpointInput{URL: ok, Policy: json.RawMessage(`{"headers":{"X-A":"a\r\nb"}}`)}, domain.ErrHeaderNotAllowed},
		"reserved header":  {command.EndpointInput{URL: ok, Policy: json.RawMessage(`{"headers":{"Webhook-Id":"a"}}`)}, domain.ErrHeaderNotAllowed},
		"the header twice": {command.EndpointInput{URL: ok, Policy: json.RawMessage(`{"idempotency_header":"Idempotency-Key","headers":{"idempotency-key":"a"}}`)}, domain.ErrHeaderNotAllowed},
	} {
		if _, _, err := c.Create(t.Context(), admin, in.EndpointInput); !errors.Is(err, in.want) {
			t.Errorf("%s: %v, want %v", name, err, in.want)
		}
	}
}
