package api_test

import (
	"strings"
	"sync"
	"testing"
	"time"
)

func TestIdempotency(t *testing.T) {
	t.Parallel()
	w := start(t)
	endpoint := w.endpoint()
	send := func(payload string, headers ...string) answer {
		t.Helper()
		return w.post(endpoint+"/deliveries", payload, append(headers, "Idempotency-Key", "k")...)
	}
	first := send("a", "Waybill-Event-Type", "t").is(202)
	again := send("a", "Waybill-Event-Type", "t", "Waybill-Not-Before", "2030-01-01T00:00:00Z").is(202)
	if again.text("delivery_id") != first.text("delivery_id") || again.text("message_id") != first.text("message_id") || again.object()["duplicate"] != true {
		t.Errorf("first %s again %s", first.body, again.body)
	}
	for _, other := range []answer{
		send("b", "Waybill-Event-Type", "t"), send("a", "Waybill-Event-Type", "u"), send("a"),
		send("a", "Waybill-Event-Type", "t", "Content-Type", "text/plain"), send("a", "Waybill-Event-Type", "t", "Waybill-Ordering-Key", "o"),
	} {
		if p := other.refuses(422, "idempotency_conflict"); strings.Contains(p.Detail, first.text("delivery_id")) {
			t.Errorf("the conflict tells of the original: %s", p.Detail)
		}
	}
	w.post("/v1/deliveries/"+first.text("delivery_id")+"/cancel", `{"reason":"r"}`).is(202)
	if again := send("a", "Waybill-Event-Type", "t").is(202); again.text("state") != "cancelled" {
		t.Errorf("not the present state: %s", again.body)
	}
	if other := w.post(w.endpoint()+"/deliveries", "b", "Idempotency-Key", "k").is(202); other.object()["duplicate"] != false {
		t.Error("another endpoint shares the key")
	}
	if n := len(w.list("/v1/deliveries?idempotency_key=k")); n != 2 {
		t.Errorf("%d deliveries", n)
	}
}

// TestTwoAtOnceAreOne is case 4, with more than two.
func TestTwoAtOnceAreOne(t *testing.T) {
	t.Parallel()
	w := start(t)
	endpoint := w.endpoint()
	const n = 16
	answers := make([]answer, n)
	var wg sync.WaitGroup
	begin := make(chan struct{})
	for i := range n {
		wg.Go(func() {
			<-begin
			answers[i] = w.post(endpoint+"/deliveries", "a", "Idempotency-Key", "k")
		})
	}
	close(begin)
	wg.Wait()
	fresh := 0
	for _, a := range answers {
		if a.is(202).text("delivery_id") != answers[0].text("delivery_id") {
			t.Errorf("two ids: %s and %s", a.body, answers[0].body)
		}
		if a.object()["duplicate"] == false {
			fresh++
		}
	}
	if list := w.list("/v1/deliveries"); fresh != 1 || len(list) != 1 {
		t.Errorf("%d are first, %d deliveries", fresh, len(list))
	}
}

func (w *world) list(path string) []map[string]any {
	w.t.Helper()
	var out struct{ Items []map[string]any }
	w.get(path).is(200).into(&out)
	return out.Items
}

func TestHeadersOfAMessage(t *testing.T) {
	t.Parallel()
	w := start(t)
	endpoint := w.endpoint()
	for _, c := range []struct {
		code    string
		headers []string
	}{
		{"idempotency_key_invalid", []string{"Idempotency-Key", ""}},
		{"idempotency_key_invalid", []string{"Idempotency-Key", "   "}},
		{"idempotency_key_invalid", []string{"Idempotency-Key", "é"}},
		{"idempotency_key_invalid", []string{"Idempotency-Key", strings.Repeat("k", 256)}},
		{"idempotency_key_invalid", []string{"Idempotency-Key", "a", "Idempotency-Key", "a"}},
		{"invalid_request", []string{"Content-Encoding", "gzip"}},
		{"invalid_request", []string{"Waybill-Event-Type", "a b"}},
		{"invalid_request", []string{"Waybill-Event-Type", "a.*"}},
		{"invalid_request", []string{"Waybill-Event-Type", "a", "Waybill-Event-Type", "b"}},
		{"invalid_request", []string{"Waybill-Not-Before", "tomorrow"}},
		{"invalid_request", []string{"Waybill-Not-Before", "2030-01-01"}},
		{"invalid_request", []string{"Waybill-Ordering-Key", "\xff"}},
		{"invalid_request", []string{"Waybill-Ordering-Key", strings.Repeat("o", 256)}},
		{"invalid_request", []string{"Content-Type", strings.Repeat("o", 256)}},
		{"invalid_request", []string{"Content-Type", "text/\xff"}},
	} {
		w.post(endpoint+"/deliveries", "x", c.headers...).refuses(400, c.code)
	}
	w.post("/v1/messages", "x").refuses(400, "invalid_request")
	w.post(endpoint+"/deliveries?pretty=1", "x").refuses(400, "invalid_request")
	d := w.get(w.submit(endpoint, "x", "Waybill-Not-Before", "2099-01-02T03:04:05.123456789+01:00", "Idempotency-Key", strings.Repeat("~", 255))).is(200)
	if d.text("due_at") != "2099-01-02T02:04:05.123456Z" {
		t.Errorf("due at %s", d.text("due_at"))
	}
	d = w.get(w.submit(endpoint, "x", "Waybill-Not-Before", "1999-01-02T03:04:05Z")).is(200)
	if due, err := time.Parse(time.RFC3339, d.text("due_at")); err != nil || time.Since(due) > time.Minute {
		t.Errorf("due at %s", d.text("due_at"))
	}
}

func TestTraceParents(t *testing.T) {
	t.Parallel()
	w := start(t)
	endpoint := w.endpoint()
	const good = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	for given, kept := range map[string]bool{
		good: true, strings.ToUpper(good): false, "ff" + good[2:]: false, "rubbish": false, good + "-x": false, "": false,
		"00-00000000000000000000000000000000-b7ad6b7169203331-01": false, "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01": false,
	} {
		events := w.list(w.submit(endpoint, "x", "Traceparent", given) + "/events")
		if got := events[0]["trace_parent"]; (got == given) != kept {
			t.Errorf("%q became %q", given, got)
		}
	}
}

func TestFanOut(t *testing.T) {
	t.Parallel()
	w := start(t)
	all := w.endpoint()
	exact := w.endpoint(`,"event_types":["order.paid"]`)
	prefix := w.endpoint(`,"event_types":["order.*"]`)
	w.endpoint(`,"event_types":["user.*","order"]`)
	paused, archived := w.endpoint(), w.endpoint()
	w.post(paused+"/pause", "").is(200)
	w.call("DELETE", archived, nil).is(200)
	send := func(headers ...string) answer {
		t.Helper()
		return w.post("/v1/messages", "x", append(headers, "Waybill-Event-Type", "order.paid")...).is(202)
	}
	var got struct {
		MessageID  string `json:"message_id"`
		Deliveries []struct {
			DeliveryID string `json:"delivery_id"`
			EndpointID string `json:"endpoint_id"`
			State      string
			Duplicate  bool
		}
	}
	first := send("Idempotency-Key", "k").into(&got)
	reached := map[string]bool{}
	for _, d := range got.Deliveries {
		reached["/v1/endpoints/"+d.EndpointID] = d.State == "pending" && !d.Duplicate
	}
	if len(reached) != 4 || !reached[all] || !reached[exact] || !reached[prefix] || !reached[paused] {
		t.Errorf("reached %v: %s", reached, first.body)
	}
	again := strings.ReplaceAll(string(send("Idempotency-Key", "k").body), `"duplicate":true`, `"duplicate":false`)
	if again != string(first.body) {
		t.Errorf("first %s again %s", first.body, again)
	}
	w.post("/v1/messages", "y", "Waybill-Event-Type", "order.paid", "Idempotency-Key", "k").refuses(422, "idempotency_conflict")
	w.newTenant("empty")
	if none := w.as("empty", "submit").post("/v1/messages", "x", "Waybill-Event-Type", "a").is(202); !strings.Contains(string(none.body), `"deliveries":[]`) {
		t.Errorf("%s", none.body)
	}
}

func TestEndpointsThatDoNotSend(t *testing.T) {
	t.Parallel()
	w := start(t)
	endpoint := w.endpoint()
	w.post(endpoint+"/pause", "").is(200)
	if d := w.get(w.submit(endpoint, "x")).is(200); d.text("state") != "pending" {
		t.Errorf("%s", d.body)
	}
	w.post(endpoint+"/resume", "").is(200)
	w.call("DELETE", endpoint, nil).is(200)
	w.post(endpoint+"/deliveries", "x").refuses(409, "endpoint_archived")
}
