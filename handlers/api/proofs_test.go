package api_test

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"testing"

	"waybill/adapters/secrets"
	"waybill/domain"
	"waybill/events"
	"waybill/handlers/api"
)

// seal closes blocks over all there is; nobody else appends meanwhile.
func (w *world) seal() {
	w.t.Helper()
	drawn, err := w.ledger.Drawn(w.t.Context())
	if err == nil {
		_, _, err = w.ledger.Seal(w.t.Context(), drawn)
	}
	if err != nil {
		w.t.Fatal(err)
	}
}

// signed starts an API that signs checkpoints.
func signed(t *testing.T) (*world, secrets.SigningKey) {
	t.Helper()
	key, err := secrets.CreateSigningKey(filepath.Join(t.TempDir(), "key"), "ledger.example")
	if err != nil {
		t.Fatal(err)
	}
	return start(t, func(c *api.Config) { c.Signer, c.Verifier = key, key.Verifier }), key
}

// TestProofs: what the API gives an auditor is checked with the verifier key alone, also
// after the log has grown; and nothing is proven to another tenant.
func TestProofs(t *testing.T) {
	t.Parallel()
	w, key := signed(t)
	w.get("/v1/checkpoint/consistency?from=1").refuses(400, "checkpoint_unknown")
	delivery := w.submit(w.endpoint(), "payload")
	position := w.firstEvent(delivery).Position
	proof := fmt.Sprintf("/v1/events/%d/proof", position)
	w.get(proof).refuses(404, "not_sealed")
	w.seal()

	var p events.Proof
	w.get(proof).is(200).into(&p)
	at, err := p.Check(key.Verifier)
	if err != nil || p.Event.Position != position || "/v1/deliveries/"+p.Event.StreamID.String() != delivery {
		t.Fatalf("%+v under %+v: %v", p, at, err)
	}
	var first struct {
		Checkpoint string `json:"checkpoint"`
		Size       int64
		Last       int64
	}
	w.get("/v1/checkpoint").is(200).into(&first)
	if first.Size != at.Size || first.Last != at.Last || first.Last < position {
		t.Errorf("%+v, but the proof is under %+v", first, at)
	}
	w.post(delivery+"/cancel", `{"reason":"proof"}`).is(202)
	w.seal()
	var growth struct {
		Path       []events.Hash
		Checkpoint string
	}
	w.get(fmt.Sprintf("/v1/checkpoint/consistency?from=%d", first.Size)).is(200).into(&growth)
	c := events.Consistency{Format: events.ConsistencyFormat, From: first.Checkpoint, To: growth.Checkpoint, Path: growth.Path}
	if _, to, err := c.Check(key.Verifier); err != nil || to.Size <= first.Size {
		t.Errorf("%+v: %v", to, err)
	}
	w.get(fmt.Sprintf("/v1/checkpoint/consistency?from=%d&to=%d", first.Size+9, first.Size+10)).refuses(400, "checkpoint_unknown")

	w.newTenant("other")
	w.as("other", domain.Scopes...).get(proof).refuses(404, "not_sealed")
	w.as("default", domain.ScopeRead).get(proof).refuses(403, "scope_missing")
}

// firstEvent returns the event that a delivery began with.
func (w *world) firstEvent(delivery string) events.Record {
	w.t.Helper()
	var page struct{ Items []json.RawMessage }
	w.get(delivery + "/events").is(200).into(&page)
	var r events.Record
	if err := json.Unmarshal(page.Items[0], &r); err != nil {
		w.t.Fatal(err)
	}
	return r
}

// TestNothingIsSignedWithoutKey: an API without a signing key says so.
func TestNothingIsSignedWithoutKey(t *testing.T) {
	t.Parallel()
	w := start(t)
	for _, path := range []string{"/v1/checkpoint", "/v1/events/1/proof", "/v1/checkpoint/consistency?from=1"} {
		w.get(path).refuses(409, "signing_key_missing")
	}
}
