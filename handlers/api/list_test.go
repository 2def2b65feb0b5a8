package api_test

import (
	"net/url"
	"strings"
	"testing"
	"time"
)

// pages reads a list to its end; between pages it does what is to disturb.
func (w *world) pages(path string, disturb func()) []map[string]any {
	w.t.Helper()
	var all []map[string]any
	for cursor := ""; ; {
		var page struct {
			Items      []map[string]any
			NextCursor *string `json:"next_cursor"`
		}
		w.get(path + cursor).is(200).into(&page)
		all = append(all, page.Items...)
		if page.NextCursor == nil {
			return all
		}
		cursor = "&cursor=" + url.QueryEscape(*page.NextCursor)
		disturb()
	}
}

// TestPagesHoldStillUnderInserts: every delivery that was there at the start comes
// exactly once, newest first, whatever is added meanwhile.
func TestPagesHoldStillUnderInserts(t *testing.T) {
	t.Parallel()
	w := start(t)
	endpoint := w.endpoint()
	var want []string
	for range 25 {
		want = append(want, strings.TrimPrefix(w.submit(endpoint, "x"), "/v1/deliveries/"))
		time.Sleep(time.Millisecond) // ids of one millisecond have no order
	}
	got := w.pages("/v1/deliveries?limit=7", func() { w.submit(endpoint, "later") })
	if len(got) != 25 {
		t.Fatalf("%d deliveries", len(got))
	}
	for i, d := range got {
		if d["id"] != want[24-i] {
			t.Errorf("place %d: %v, want %s", i, d["id"], want[24-i])
		}
	}
}

func TestPagesOfEventsAndEndpoints(t *testing.T) {
	t.Parallel()
	w := start(t)
	d := w.submit(w.endpoint(), "x")
	for range 4 {
		w.post(d+"/cancel", `{"reason":"r"}`).is(202)
		w.post(d+"/replay", `{"reason":"r","force":true}`).is(202)
	}
	history := w.pages(d+"/events?limit=2", func() {})
	for i, e := range history {
		if e["seq"] != float64(i+1) {
			t.Errorf("place %d: seq %v", i, e["seq"])
		}
	}
	if len(history) != 9 {
		t.Errorf("%d events", len(history))
	}
	for range 4 {
		w.endpoint()
	}
	if list := w.pages("/v1/endpoints?limit=2", func() { w.endpoint() }); len(list) != 5 {
		t.Errorf("%d endpoints", len(list))
	}
	if list := w.pages(d+"/events?limit=9", func() { t.Error("a page more than there is") }); len(list) != 9 {
		t.Errorf("%d events", len(list))
	}
}

func TestFilters(t *testing.T) {
	t.Parallel()
	w := start(t)
	one, two := w.endpoint(), w.endpoint()
	a := w.submit(one, "x", "Waybill-Event-Type", "order.paid", "Idempotency-Key", "k")
	b := w.submit(two, "x", "Waybill-Event-Type", "order.sent")
	w.post(b+"/cancel", `{"reason":"r"}`).is(202)
	created := w.get(b).is(200).text("created_at")
	id := func(path string) string { return path[strings.LastIndex(path, "/")+1:] }
	for query, want := range map[string]string{
		"": "ba", "state=pending": "a", "state=cancelled": "b", "state=failed": "", "endpoint_id=" + id(two): "b",
		"event_type=order.paid": "a", "event_type=order": "", "idempotency_key=k": "a", "idempotency_key=none": "",
		"in_doubt=false": "ba", "in_doubt=true": "", "ever_unknown=false": "ba", "payload_erased=false": "ba", "payload_erased=true": "",
		"since=1h": "ba", "until=1h": "", "since=" + created: "b", "until=" + created: "a", "since=2001-01-01T00:00:00Z": "ba",
		"since=2001-01-01T00:00:00%2B02:00&until=2002-01-01T00:00:00Z": "", "state=pending&event_type=order.paid&in_doubt=false": "a",
	} {
		got := ""
		for _, d := range w.list("/v1/deliveries?" + query) {
			got += map[any]string{id(a): "a", id(b): "b"}[d["id"]]
		}
		if got != want {
			t.Errorf("%s: %q, want %q", query, got, want)
		}
	}
}

func TestQueriesAreRefused(t *testing.T) {
	t.Parallel()
	w := start(t)
	d := w.submit(w.endpoint(), "x")
	for _, query := range []string{
		"state=lost", "state=Pending", "endpoint_id=x", "endpoint_id=%7B01a228de-7199-7ad8-a0e9-c850f671af39%7D", "since=soon", "until=2001-01-01", "in_doubt=maybe", "in_doubt=1",
		"limit=0", "limit=501", "limit=-1", "limit=x", "limit=99999999999999999999", "cursor=x", "cursor=AAAA", "cursor=AAAAAAAAAAAAAAAAAAAAAA",
		"event_type=%00", "event_type=%ff", "idempotency_key=%00", "idempotency_key=%ff", "sort=up", "offset=5", "event_type=" + strings.Repeat("x", 256),
		"since=" + url.QueryEscape("0000-01-01T00:00:00Z"),
	} {
		w.get("/v1/deliveries?"+query).refuses(400, "invalid_request")
	}
	for _, query := range []string{"limit=0", "cursor=x", "cursor=" + strings.Repeat("A", 22), "cursor=_____w", "after=1"} {
		w.get(d+"/events?"+query).refuses(400, "invalid_request")
	}
	w.get("/v1/endpoints?cursor=AAAAAA").refuses(400, "invalid_request")
	if n := len(w.list("/v1/deliveries?limit=500")); n != 1 {
		t.Errorf("%d deliveries", n)
	}
	for _, extreme := range []string{"since=-1h", "since=2000000h", "until=0001-01-01T00:00:01Z", "until=9999-12-31T23:59:59Z", "since=9999-12-31T23:59:59.999999999%2B00:00"} {
		w.get("/v1/deliveries?" + extreme).is(200)
	}
}

func TestJSONBodiesAreRefused(t *testing.T) {
	t.Parallel()
	w := start(t)
	d := w.submit(w.endpoint(), "x")
	for _, body := range []string{
		``, `{`, `null`, `[]`, `"r"`, `{}`, `{"reason":null}`, `{"reason":""}`, `{"reason":"  "}`, `{"reason":7}`, `{"Reason":"r"}`, `{"reason":"r","why":1}`,
		`{"reason":"r","reason":"s"}`, `{"reason":"\u0000"}`, `{"reason":"\ud800"}`, "{\"reason\":\"\xff\"}", `{"reason":"` + strings.Repeat("r", 2001) + `"}`, `{"reason":"r"} x`,
	} {
		p := w.post(d+"/cancel", body).refuses(400, "invalid_request")
		if strings.Contains(p.Detail, "Go ") || strings.Contains(p.Detail, "api.") {
			t.Errorf("%s: %s", body, p.Detail)
		}
	}
	w.post(d+"/resolve", `{"reason":"r","outcome":"lost"}`).refuses(400, "invalid_request")
	w.post(d+"/resolve", `{"reason":"r"}`).refuses(400, "invalid_request")
	if n := len(w.list(d + "/events")); n != 1 {
		t.Errorf("%d events", n)
	}
	w.post(d+"/cancel", `{"reason":"😀 \ud83d\ude00 \\u0000"}`, "Content-Type", "text/plain").is(202)
	if got := w.list(d + "/events")[1]["data"].(map[string]any)["reason"]; got != `😀 😀 \u0000` {
		t.Errorf("%q", got)
	}
}
