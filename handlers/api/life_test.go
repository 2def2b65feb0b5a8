package api_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"waybill/events"
)

// TestLifeOfADelivery is the contract from end to end, as a caller sees it.
func TestLifeOfADelivery(t *testing.T) {
	t.Parallel()
	w := start(t)
	made := w.post("/v1/endpoints", `{"url":"https://example.com/hook?token=s3cret","description":"orders","event_types":["order.*"]}`).is(201)
	if !strings.HasPrefix(made.text("secret"), "whsec_") || made.text("url") != "https://example.com/hook?token=***" || made.header.Get("ETag") != `"1"` {
		t.Errorf("endpoint %s", made.body)
	}
	endpoint := "/v1/endpoints/" + made.text("id")
	if shown := w.get(endpoint).is(200); shown.text("secret") != "" || shown.text("status") != "active" || shown.header.Get("ETag") != `"1"` {
		t.Errorf("endpoint %s", shown.body)
	}
	accepted := w.post(endpoint+"/deliveries", `{"a":1}`, "Waybill-Event-Type", "order.paid", "Idempotency-Key", "k1", "Waybill-Actor", "Åsa",
		"Content-Type", "application/json", "Traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01").is(202)
	if got := accepted.object(); len(got) != 4 || got["state"] != "pending" || got["duplicate"] != false || got["message_id"] == "" {
		t.Errorf("accepted %s", accepted.body)
	}
	d := "/v1/deliveries/" + accepted.text("delivery_id")
	if read := w.get(d).is(200); read.header.Get("ETag") != `"1"` || read.text("event_type") != "order.paid" || read.text("idempotency_key") != "k1" {
		t.Errorf("delivery %s", read.body)
	}
	w.post(d+"/resolve", `{"outcome":"failed","reason":"r"}`).refuses(409, "delivery_not_held")
	w.post(d+"/replay", `{"reason":"r"}`).refuses(409, "delivery_not_replayable")
	if c := w.post(d+"/cancel", `{"reason":"wrong order"}`).is(202); c.text("state") != "cancelled" || c.header.Get("ETag") != `"2"` {
		t.Errorf("cancelled %s", c.body)
	}
	w.post(d+"/cancel", `{"reason":"again"}`).refuses(409, "delivery_not_cancellable")
	w.post(d+"/replay", `{"reason":"r"}`).refuses(409, "delivery_not_replayable")
	if r := w.post(d+"/replay", `{"reason":"right after all","force":true}`).is(202); r.text("state") != "pending" {
		t.Errorf("replayed %s", r.body)
	}
	w.history(d)
}

// history checks the events of the delivery above.
func (w *world) history(d string) {
	w.t.Helper()
	var list struct {
		Items []struct {
			Name, Actor string
			Seq         int
			TraceParent string `json:"trace_parent"`
			Data        map[string]any
			Hash        string
		}
		NextCursor *string `json:"next_cursor"`
	}
	w.get(d + "/events").is(200).into(&list)
	var names []string
	for i, e := range list.Items {
		names = append(names, e.Name)
		if e.Seq != i+1 || len(e.Hash) != 64 || !strings.HasPrefix(e.Actor, "key:") {
			w.t.Errorf("event %+v", e)
		}
	}
	if got := strings.Join(names, " "); got != "delivery.scheduled delivery.cancelled delivery.replayed" || list.NextCursor != nil {
		w.t.Fatalf("history %s", got)
	}
	first := list.Items[0]
	if first.Data["on_behalf_of"] != "Åsa" || first.TraceParent != "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01" {
		w.t.Errorf("scheduled %+v", first)
	}
	if list.Items[1].Data["reason"] != "wrong order" {
		w.t.Errorf("cancelled %+v", list.Items[1])
	}
}

// TestEventsAreShownAsTheLogHasThem: the bytes that were hashed are those that are
// shown, so that a reader can check the chain.
func TestEventsAreShownAsTheLogHasThem(t *testing.T) {
	t.Parallel()
	w := start(t)
	d := w.submit(w.endpoint(), `x`, "Waybill-Ordering-Key", `<a href="x">&</a>`)
	w.post(d+"/cancel", `{"reason":"<&> \u2028 é 😀"}`).is(202)
	var list struct{ Items []json.RawMessage }
	w.get(d + "/events").is(200).into(&list)
	var prev events.Hash
	for _, raw := range list.Items {
		r := readRecord(t, raw)
		if r.Hash != r.Sum(prev) {
			t.Errorf("the hash is not that of %s", raw)
		}
		prev = r.Hash
	}
	if len(list.Items) != 2 {
		t.Errorf("%d events", len(list.Items))
	}
}

// readRecord reads an event as a caller would who wants to check it.
func readRecord(t *testing.T, raw json.RawMessage) events.Record {
	t.Helper()
	var r events.Record
	for name, into := range map[string]any{
		"tenant": &r.Tenant, "stream": &r.Stream, "stream_id": &r.StreamID, "seq": &r.Seq, "name": &r.Name, "version": &r.Version,
		"recorded_at": &r.RecordedAt, "actor": &r.Actor, "endpoint_id": &r.EndpointID, "trace_parent": &r.TraceParent,
		"data": &r.Data, "hash": &r.Hash,
	} {
		var all map[string]json.RawMessage
		if err := json.Unmarshal(raw, &all); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(all[name], into); all[name] != nil && err != nil {
			t.Fatal(name, err)
		}
	}
	return r
}

// TestExchangesAreShownEscaped is case 19: what receivers answered is bytes, and is
// shown so that nothing of it acts on a terminal or a browser.
func TestExchangesAreShownEscaped(t *testing.T) {
	t.Parallel()
	w := start(t)
	d := w.submit(w.endpoint(), `x`)
	if got := w.get(d + "/exchanges").is(200); string(got.body) != "{\"items\":[]}\n" {
		t.Errorf("%s", got.body)
	}
	_, err := w.db.App.Exec(t.Context(), `insert into waybill.exchanges (delivery_id, attempt, salt, excerpt, location, detail) values ($1, 1, '\x00', $2, $3, $4)`,
		d[len("/v1/deliveries/"):], []byte("\x00\xff<b>"), []byte("/a\x00\xff\x1b[31m\u202e"), []byte(`say "no" \`))
	if err != nil {
		t.Fatal(err)
	}
	got := w.get(d + "/exchanges").is(200)
	var list struct{ Items []map[string]any }
	got.into(&list)
	x := list.Items[0]
	if x["excerpt_base64"] != "AP88Yj4=" || x["location"] != `/a\x00\xff\x1b[31m\u202e` || x["detail"] != `say "no" \\` {
		t.Errorf("%s", got.body)
	}
}

func TestProbes(t *testing.T) {
	t.Parallel()
	w := start(t)
	w.with("", func(w *world) {
		w.get("/healthz").is(200)
		w.get("/readyz").is(200)
		if _, err := w.db.Super().Exec(t.Context(), `insert into waybill.goose_db_version (version_id, is_applied) values (9999, true)`); err != nil {
			t.Fatal(err)
		}
		if p := w.get("/readyz").refuses(503, "schema_unknown"); !strings.Contains(p.Detail, "9999") {
			t.Errorf("%+v", p)
		}
		w.get("/healthz").is(200)
	})
}

func TestUnknownPathsAndMethods(t *testing.T) {
	t.Parallel()
	w := start(t)
	for _, path := range []string{"/", "/v1", "/v1/", "/v1/nothing", "/docs", "/schemas/Problem.json", "//v1/nothing", "/v1/deliveries/a/b/c"} {
		w.get(path).refuses(404, "route_not_found")
	}
	a := w.call(http.MethodPut, "/v1/endpoints", nil)
	if a.refuses(405, "method_not_allowed"); a.header.Get("Allow") != "GET, HEAD, POST" {
		t.Errorf("Allow: %q", a.header.Get("Allow"))
	}
	w.call(http.MethodOptions, "/v1/endpoints", nil).refuses(405, "method_not_allowed")
	for _, path := range []string{"/v1/deliveries/nothing", "/v1/deliveries/00000000-0000-0000-0000-000000000000", "/v1/deliveries/%7B01a228de-7199-7ad8-a0e9-c850f671af39%7D"} {
		w.get(path).refuses(404, "delivery_not_found")
	}
	w.get("/v1/endpoints/nothing").refuses(404, "endpoint_not_found")
	w.post("/v1/endpoints/01a228de-7199-7ad8-a0e9-c850f671af39/deliveries", "x").refuses(404, "endpoint_not_found")
}

// TestArchivedDelivery: whatever is asked of a delivery whose month has left the ledger is
// answered alike; one that never was there is not found.
func TestArchivedDelivery(t *testing.T) {
	t.Parallel()
	w := start(t)
	_, err := w.db.Owner().Exec(t.Context(), `insert into waybill.archives (month, low, high, stage, reason, actor) values
		('2025-03-01', waybill.uuid_floor('2025-03-01Z'), waybill.uuid_floor('2025-04-01Z'), 'dropped', 'r', 'operator:a@b')`)
	if err != nil {
		t.Fatal(err)
	}
	const token = `"claim_token":"01890a5d-ac96-774b-bcce-b302099a8057"`
	calls := map[string]string{
		"GET /v1/deliveries/ID": "", "GET /v1/deliveries/ID/events": "", "GET /v1/deliveries/ID/payload": "", "GET /v1/deliveries/ID/exchanges": "",
		"DELETE /v1/deliveries/ID/payload": `{"reason":"r"}`, "POST /v1/deliveries/ID/replay": `{"reason":"r","force":true}`,
		"POST /v1/deliveries/ID/cancel": `{"reason":"r"}`, "POST /v1/deliveries/ID/resolve": `{"reason":"r","outcome":"failed"}`,
		"POST /v1/claims/ID/release": `{` + token + `}`, "POST /v1/claims/ID/extend": `{"lease_seconds":10,` + token + `}`,
		"POST /v1/claims/ID/result": `{"outcome":"succeeded",` + token + `}`,
	}
	for call, body := range calls {
		method, path, _ := strings.Cut(call, " ")
		ask := func(id string) answer { return w.call(method, strings.Replace(path, "ID", id, 1), []byte(body)) }
		ask("0195554e-0000-7000-8000-000000000001").refuses(410, "delivery_archived")
		ask("0198c1d2-0000-7000-8000-000000000000").refuses(404, "delivery_not_found")
	}
}
