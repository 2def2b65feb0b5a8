package api_test

import (
	"fmt"
	"strings"
	"testing"
)

// TestOneBadItemHarmsNoOther is rule 12, seen from outside: every way to be wrong
// stands between two good items, and each gets the problem of a single call.
func TestOneBadItemHarmsNoOther(t *testing.T) {
	t.Parallel()
	w := start(t)
	id := strings.TrimPrefix(w.endpoint(), "/v1/endpoints/")
	archived := w.endpoint()
	w.call("DELETE", archived, nil).is(200)
	w.post("/v1/endpoints/"+id+"/deliveries", "1", "Idempotency-Key", "used").is(202)
	e := `"endpoint_id":"` + id + `"`
	bad := []struct {
		item   string
		status int
		code   string
	}{
		{`null`, 400, "invalid_request"}, {`7`, 400, "invalid_request"}, {`[]`, 400, "invalid_request"}, {`{}`, 400, "invalid_request"},
		{`{"payload":1}`, 400, "invalid_request"},
		{`{"endpoint_id":null,"payload":1}`, 400, "invalid_request"},
		{`{"endpoint_id":"x","payload":1}`, 400, "invalid_request"},
		{`{"endpoint_id":5,"payload":1}`, 400, "invalid_request"},
		{`{"endpoint_id":"01a228de-7199-7ad8-a0e9-c850f671af39","payload":1}`, 404, "endpoint_not_found"},
		{`{"endpoint_id":"` + strings.TrimPrefix(archived, "/v1/endpoints/") + `","payload":1}`, 409, "endpoint_archived"},
		{`{` + e + `}`, 400, "invalid_request"},
		{`{` + e + `,"payload":1,"payload_base64":"AA=="}`, 400, "invalid_request"},
		{`{` + e + `,"payload_base64":"A"}`, 400, "invalid_request"},
		{`{` + e + `,"payload_base64":1}`, 400, "invalid_request"},
		{`{` + e + `,"payload":1,"payload":2}`, 400, "invalid_request"},
		{`{` + e + `,"payload":1,"Payload":2}`, 400, "invalid_request"},
		{`{` + e + `,"payload":1,"priority":2}`, 400, "invalid_request"},
		{`{` + e + `,"payload":1,"event_type":"a b"}`, 400, "invalid_request"},
		{`{` + e + `,"payload":1,"event_type":7}`, 400, "invalid_request"},
		{`{` + e + `,"payload":1,"ordering_key":"\u0000"}`, 400, "invalid_request"},
		{`{` + e + `,"payload":1,"ordering_key":"\ud800"}`, 400, "invalid_request"},
		{`{` + e + `,"payload":1,"content_type":"a\r\nb: c"}`, 400, "invalid_request"},
		{`{` + e + `,"payload":1,"content_type":"a\u0001"}`, 400, "invalid_request"},
		{`{` + e + `,"payload":1,"not_before":"soon"}`, 400, "invalid_request"},
		{`{` + e + `,"payload":1,"idempotency_key":""}`, 400, "idempotency_key_invalid"},
		{`{` + e + `,"payload":1,"idempotency_key":"é"}`, 400, "idempotency_key_invalid"},
		{`{` + e + `,"payload":2,"idempotency_key":"used","content_type":""}`, 422, "idempotency_conflict"},
	}
	items := []string{`{` + e + `,"payload":0}`}
	for i, b := range bad {
		items = append(items, b.item, fmt.Sprintf(`{%s,"payload":%d,"idempotency_key":null,"event_type":"t"}`, e, i))
	}
	for i, got := range w.batch(items...) {
		if i%2 == 0 {
			if got.Error != nil || got.DeliveryID == "" || got.MessageID == "" || got.State != "pending" || got.Duplicate == nil || *got.Duplicate {
				t.Errorf("good item %s: %+v, %+v", items[i], got, got.Error)
			}
			continue
		}
		want := bad[i/2]
		if p := got.Error; p == nil || p.Status != want.status || p.Code != want.code || p.Type != "about:blank" || p.Title == "" || p.Detail == "" || got.DeliveryID != "" {
			t.Errorf("item %s: %+v, want %d %s", want.item, p, want.status, want.code)
		}
	}
	if n := len(w.list("/v1/deliveries?limit=500")); n != len(bad)+2 {
		t.Errorf("%d deliveries", n)
	}
}

func TestBatchKeys(t *testing.T) {
	t.Parallel()
	w := start(t)
	id := strings.TrimPrefix(w.endpoint(), "/v1/endpoints/")
	item := `{"endpoint_id":"` + id + `","payload":1,"idempotency_key":"k"}`
	got := w.batch(item, item, item)
	fresh := 0
	for _, g := range got {
		if g.Error != nil || g.DeliveryID != got[0].DeliveryID {
			t.Errorf("%+v", g)
		} else if !*g.Duplicate {
			fresh++
		}
	}
	if fresh != 1 {
		t.Errorf("%d are first", fresh)
	}
}

func TestBatchAsAWhole(t *testing.T) {
	t.Parallel()
	w := start(t)
	id := strings.TrimPrefix(w.endpoint(), "/v1/endpoints/")
	for _, body := range []string{"", "null", "[]", "{", `{}`, `{"items":null}`, `{"items":{}}`, `{"items":[]} x`, `{"items":[],"items":[]}`, `{"items":[],"more":1}`, `{"Items":[]}`} {
		w.post("/v1/deliveries/batch", body).refuses(400, "invalid_request")
	}
	if a := w.post("/v1/deliveries/batch", ` {"items":[]} `).is(200); string(a.body) != "{\"items\":[]}\n" {
		t.Errorf("%s", a.body)
	}
	item := `{"endpoint_id":"` + id + `","payload":1}`
	most := make([]string, 1000)
	for i := range most {
		most[i] = item
	}
	seen := map[string]bool{}
	for _, g := range w.batch(most...) {
		seen[g.DeliveryID] = g.Error == nil
	}
	if len(seen) != 1000 {
		t.Errorf("%d deliveries", len(seen))
	}
	w.post("/v1/deliveries/batch", `{"items":[`+strings.Join(append(most, item), ",")+`]}`).refuses(400, "invalid_request")
}
