package api_test

import (
	"net/url"
	"strings"
	"testing"
)

// TestThePast: deliveries and endpoints are answered as they were, with what the answer
// rests on; a time that is none, or not yet, is refused.
func TestThePast(t *testing.T) {
	t.Parallel()
	w := start(t)
	e := w.endpoint()
	d := w.submit(e, "x")
	w.post(d+"/cancel", `{"reason":"r"}`).is(202)
	history := w.list(d + "/events")
	first := url.QueryEscape(history[0]["recorded_at"].(string))
	last := url.QueryEscape(history[1]["recorded_at"].(string))
	for query, want := range map[string]string{"?at_seq=1": "pending", "?at_seq=2": "cancelled", "?as_of=" + first: "pending", "?as_of=" + last: "cancelled"} {
		got := w.get(d + query).is(200).object()
		if got["state"] != want || got["as_of_seq"] != got["version"] || got["final"] != false || got["horizon"] != 0.0 {
			t.Errorf("%s: %v", query, got)
		}
	}
	if got := w.get(d).is(200).object(); got["as_of_seq"] != nil || got["final"] != nil {
		t.Errorf("the present: %v", got)
	}
	w.seal()
	if got := w.get(d + "?at_seq=1").is(200).object(); got["final"] != true {
		t.Errorf("sealed: %v", got)
	}
	if got := w.get(d + "?as_of=" + first).is(200).object(); got["final"] != true {
		t.Errorf("what followed is sealed: %v", got)
	}
	for query, want := range map[string]int{"as_of=" + first: 1, "as_of=" + first + "&state=cancelled": 0, "as_of=" + last + "&state=cancelled": 1, "as_of=1h": 0} {
		if list := w.list("/v1/deliveries?" + query); len(list) != want || want > 0 && list[0]["as_of_seq"] == nil {
			t.Errorf("%s: %v", query, list)
		}
	}
	w.get(d+"?at_seq=3").refuses(404, "delivery_not_yet")
	w.get(d+"?as_of=1h").refuses(404, "delivery_not_yet")
	w.get(e+"?as_of=1h").refuses(404, "endpoint_not_yet")
	w.get(e+"?at_seq=2").refuses(404, "endpoint_not_yet")
	w.patch(e, `{"description":"later"}`).is(200)
	if got := w.get(e + "?at_seq=1").is(200).object(); got["description"] != "" || got["as_of_seq"] != 1.0 {
		t.Errorf("%v", got)
	}
	unknown := "/" + strings.Repeat("0", 8) + "-0000-7000-8000-000000000001"
	for _, path := range []string{d, e, "/v1/deliveries"} {
		w.get(path+"?as_of=-1h").refuses(400, "as_of_in_future")
		w.get(path+"?as_of=tuesday").refuses(400, "invalid_request")
	}
	for _, path := range []string{d, e} {
		w.get(path+"?at_seq=0").refuses(400, "invalid_request")
		w.get(path+"?at_seq=1&as_of=1h").refuses(400, "invalid_request")
	}
	w.get("/v1/deliveries"+unknown+"?at_seq=1").refuses(404, "delivery_not_found")
	w.get("/v1/endpoints"+unknown+"?at_seq=1").refuses(404, "endpoint_not_found")
}
