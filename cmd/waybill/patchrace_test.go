package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"testing"

	"github.com/google/uuid"

	"waybill/domain"
	"waybill/events"
	"waybill/projections"
)

// TestPatchesFromTwoProcesses: two processes change one endpoint at once (its URL, its
// description, its policy, its secret). Each answer is what was stored at its version, the
// fold of the stream up to there, and of the secrets that were handed out exactly those
// sign at the end that the changes, in the order of their versions, leave: nobody was
// given one that was never stored. The guard is the row lock in lock_endpoint.sql, under
// which decision, secret and answer are made.
func TestPatchesFromTwoProcesses(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 2)
	key := f.key("--scope", "admin")
	made := f.send(0, ask{method: http.MethodPost, path: "/v1/endpoints", key: key,
		headers: map[string]string{"Content-Type": "application/json"}, body: `{"url":"http://127.0.0.1:1/0"}`})
	id := uuid.MustParse(made.text("id"))
	answers := f.behind("select from waybill.endpoints where id = $1 for update", id, 8, func() []answer {
		return f.atOnce(60, func(i int) ask { return change(id, key, i) })
	})
	records, err := f.Stream(t.Context(), domain.DefaultTenant, events.EndpointStream, id, 0, 500)
	if err != nil {
		t.Fatal(err)
	}
	for i, a := range answers {
		asked := kindOf(i)
		if got := a.text("secret") != ""; got != (asked == "url" || asked == "rotate") {
			t.Errorf("a change of %s was answered with a secret: %v", asked, got)
		}
		if asked == "url" && a.text("url") != urlOf(i) || asked == "description" && a.text("description") != fmt.Sprint("change ", i) {
			t.Errorf("a change of %s, number %d, was answered with %s", asked, i, a.raw)
		}
	}
	answers = append(answers, made)
	slices.SortFunc(answers, func(a, b answer) int { return cmp.Compare(a.version(), b.version()) })
	var secrets []string // newest first
	for _, a := range answers {
		if a.status != http.StatusOK && a.status != http.StatusCreated || a.version() < 1 || a.version() > len(records) {
			t.Fatalf("%d %s", a.status, a.raw)
		}
		secret := a.text("secret")
		switch renewed := renewedBy(t, records[:a.version()], a); {
		case renewed == "" && secret != "":
			t.Errorf("version %d: a secret although none was stored", a.version())
		case renewed == "requested":
			secrets = append([]string{secret}, secrets...)
		case renewed != "":
			secrets = []string{secret}
		}
	}
	secrets = secrets[:min(len(secrets), domain.MaxSecrets)]
	if got := f.signing(id); !slices.Equal(got, secrets) {
		t.Errorf("%d secrets sign, not the %d that were handed out last", len(got), len(secrets))
	}
	f.stop()
}

// kindOf is what the i-th change is of; each kind comes from both processes.
func kindOf(i int) string {
	return []string{"url", "description", "policy", "description", "rotate"}[i/2%5]
}

func urlOf(i int) string { return fmt.Sprintf("http://127.0.0.1:1/%d", i+1) }

// change is the i-th change of an endpoint.
func change(id uuid.UUID, key string, i int) ask {
	a := ask{method: http.MethodPatch, path: "/v1/endpoints/" + id.String(), key: key, headers: map[string]string{"Content-Type": "application/json"}}
	switch kindOf(i) {
	case "url":
		a.body = fmt.Sprintf(`{"url":%q}`, urlOf(i))
	case "description":
		a.body = fmt.Sprintf(`{"description":"change %d"}`, i)
	case "policy":
		a.body = fmt.Sprintf(`{"policy":{"timeout":"%dms","headers":{"X-N":"%d"}}}`, 1000+i, i)
	default:
		a.method, a.path, a.body = http.MethodPost, a.path+"/secret/rotate", `{"overlap":"1h"}`
	}
	return a
}

// version is which version of an endpoint an answer shows.
func (a answer) version() int {
	n, _ := a.body["version"].(float64)
	return int(n)
}

// renewedBy compares an answer with the fold of the stream up to its version, and says why
// that change renewed the secret, if it did.
func renewedBy(t *testing.T, records []events.Record, a answer) (why string) {
	t.Helper()
	p, err := projections.FoldEndpoint(records)
	if err != nil {
		t.Fatal(err)
	}
	text, _ := json.Marshal(p.View())
	var stored map[string]any
	if err := json.Unmarshal(text, &stored); err != nil {
		t.Fatal(err)
	}
	shown := map[string]any{}
	for name := range stored {
		shown[name] = a.body[name]
	}
	if !reflect.DeepEqual(shown, stored) {
		t.Errorf("version %d was answered with %s, stored is %s", a.version(), a.raw, text)
	}
	e, err := records[len(records)-1].Event()
	if err != nil {
		t.Fatal(err)
	}
	switch e := e.(type) {
	case domain.EndpointCreated:
		return "created"
	case domain.SecretRotated:
		return e.Why
	}
	return ""
}

// signing is what is sealed, newest first.
func (f *fleet) signing(id uuid.UUID) (secrets []string) {
	f.t.Helper()
	_, err := f.ChangeEndpoint(f.t.Context(), domain.DefaultTenant, id,
		func(_ projections.Endpoint, target domain.Target) (projections.EndpointDecision, error) {
			for _, s := range target.Secrets {
				secrets = append(secrets, s.Secret)
			}
			return projections.EndpointDecision{}, nil
		})
	if err != nil {
		f.t.Fatal(err)
	}
	return secrets
}
