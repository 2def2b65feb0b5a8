package main

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/google/uuid"

	"waybill/domain"
	"waybill/events"
)

// TestOneKeyFromThreeProcesses is Case 4: one idempotency key at the same instant from
// three processes is one message and one delivery; all who sent the same content get the
// same ids, the others are refused, and nothing of the losers stays behind. The guards are
// the unique key of idempotency_keys with ON CONFLICT DO NOTHING in claim_keys.sql, and
// that a loser inserts nothing.
func TestOneKeyFromThreeProcesses(t *testing.T) {
	t.Parallel()
	const keys, each = 15, 12
	f := newFleet(t, 3)
	e, key := f.endpoint("http://127.0.0.1:1/hook"), f.key("--scope", "submit")
	answers := f.atOnce(keys*each, func(i int) ask {
		return ask{method: http.MethodPost, path: "/v1/endpoints/" + e + "/deliveries", key: key,
			headers: map[string]string{"Idempotency-Key": fmt.Sprint("key-", i%keys)}, body: fmt.Sprint("content ", i/keys%2)}
	})
	for k := range keys {
		ids, originals, accepted := map[string]bool{}, 0, map[int]int{}
		for i := k; i < len(answers); i += keys {
			switch a := answers[i]; {
			case a.status == http.StatusAccepted:
				ids[a.text("delivery_id")+" "+a.text("message_id")] = true
				accepted[i/keys%2]++
				if a.body["duplicate"] == false {
					originals++
				}
			case a.status != http.StatusUnprocessableEntity || a.text("code") != domain.ErrIdempotencyConflict.Code || a.text("delivery_id") != "":
				t.Errorf("key %d: %d %s", k, a.status, a.raw)
			}
		}
		if len(ids) != 1 || originals != 1 || len(accepted) != 1 || accepted[0]+accepted[1] != each/2 {
			t.Errorf("key %d: %d originals, accepted by content %v: %v", k, originals, accepted, ids)
		}
	}
	for _, table := range []string{"messages", "deliveries", "idempotency_keys", "events where stream = 'delivery'"} {
		if n := f.count("select count(*) from waybill." + table); n != keys {
			t.Errorf("%d rows in %s, want %d", n, table, keys)
		}
	}
	f.stop()
}

// TestFiftyReplaysOverTwoProcesses is Case 7: of fifty operators who replay one failed
// delivery at once one is told 202 and forty-nine 409, and one new cycle begins. The guard
// is that an append which comes back stale is decided again (Operations.decide), on the
// version in append_deliveries.sql.
func TestFiftyReplaysOverTwoProcesses(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 2)
	to := receiverThat(t, http.StatusGone)
	d := f.submit(f.endpoint(to.URL), "{}")
	w := f.serve("--no-api", "--allow-networks", loopback)
	within(t, "it fails", func() bool { return f.row(d).State == domain.StateFailed })
	_ = w.cmd.Process.Kill()
	key := f.key("--scope", "operate")
	won := 0
	replay := ask{method: http.MethodPost, path: "/v1/deliveries/" + d + "/replay", key: key,
		headers: map[string]string{"Content-Type": "application/json"}, body: `{"reason":"all at once"}`}
	for _, a := range f.behind("select from waybill.deliveries where id = $1 for update", d, 8, func() []answer {
		return f.atOnce(50, func(int) ask { return replay })
	}) {
		switch {
		case a.status == http.StatusAccepted:
			won++
		case a.status != http.StatusConflict || a.text("code") != domain.ErrNotReplayable.Code:
			t.Errorf("%d %s", a.status, a.raw)
		}
	}
	records, err := f.Stream(t.Context(), domain.DefaultTenant, events.DeliveryStream, uuid.MustParse(d), 4, 100)
	row := f.row(d)
	if err != nil || won != 1 || row.Cycle != 2 || row.State != domain.StatePending || len(records) != 1 || records[0].Name != "delivery.replayed" {
		t.Errorf("%d won; %+v; %d events follow: %v", won, row, len(records), err)
	}
	f.stop()
}
