package api_test

import (
	"strings"
	"testing"
)

// TestAuditQuestions: what was done is answered page by page, with who and why, to keys of
// the scope audit and of the tenant alone.
func TestAuditQuestions(t *testing.T) {
	t.Parallel()
	w := start(t)
	e := w.endpoint()
	d := w.submit(e, "s3cret")
	w.post(d+"/cancel", `{"reason":"a typo"}`, "Waybill-Actor", "somebody").is(202)
	w.post(d+"/replay", `{"reason":"was right","force":true}`).is(202)
	list := w.pages("/v1/audit/actions?limit=1", func() { w.patch(e, `{"description":"x"}`) })
	if len(list) < 3 || list[0]["action"] != "delivery.replayed" || list[0]["reason"] != "was right" || list[1]["on_behalf_of"] != "somebody" {
		t.Errorf("%v", list)
	}
	actor := list[0]["actor"].(string)
	for query, want := range map[string]int{
		"type=delivery.cancelled": 1, "type=none": 0, "until=1h": 0, "actor=nobody": 0,
		"type=delivery.cancelled&since=1h&actor=" + actor + "&endpoint_id=" + strings.TrimPrefix(e, "/v1/endpoints/"): 1,
	} {
		if got := w.list("/v1/audit/actions?" + query); len(got) != want {
			t.Errorf("%s: %v", query, got)
		}
	}
	for _, path := range []string{"/v1/audit/attempts?host=example.com", "/v1/audit/doubts?since=1h"} {
		if got := w.list(path); len(got) != 0 {
			t.Errorf("%s: %v", path, got)
		}
	}
	dossier := w.get(d + "/dossier").is(200)
	if v := dossier.object(); v["chain"].(map[string]any)["intact"] != true || len(v["events"].([]any)) != 3 || strings.Contains(string(dossier.body), "s3cret") {
		t.Errorf("%s", dossier.body)
	}
	for _, path := range []string{"/v1/audit/actions?cursor=x", "/v1/audit/doubts?since=soon", "/v1/audit/attempts?host=%00"} {
		w.get(path).refuses(400, "invalid_request")
	}
	w.get(e + "/dossier").is(404)
	w.newTenant("other")
	if got := w.as("other", "audit").list("/v1/audit/actions"); len(got) != 1 || got[0]["action"] != "admin.key_created" {
		t.Errorf("%v", got)
	}
	w.as("other", "audit").get(d+"/dossier").refuses(404, "delivery_not_found")
	w.as("default", "read").get("/v1/audit/actions").refuses(403, "scope_missing")
}
