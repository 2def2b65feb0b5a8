package api_test

import (
	"fmt"
	"strings"
	"testing"
)

// forbiddenURLs is cases 25 and 26.
var forbiddenURLs = []string{
	"http://169.254.169.254/", "https://169.254.169.254/latest", "http://[::ffff:10.0.0.1]/", "https://[::ffff:10.0.0.1]/", "http://2130706433/", "https://2130706433/",
	"http://0x7f.1/", "https://0x7f.1/", "https://10.0.0.1/", "https://user:pw@example.com/", "file:///etc/passwd", "ftp://example.com/", "example.com/hook",
	"http://example.com/", "https://example.com/#f", "", "https://", "https://example.com:99999/",
}

func TestURLsAreCheckedWhenTheyAreMadeAndChanged(t *testing.T) {
	t.Parallel()
	w := start(t)
	endpoint := w.endpoint()
	for _, url := range forbiddenURLs {
		status, code := 422, "url_not_allowed"
		if url == "" {
			status, code = 400, "invalid_request"
		}
		for _, p := range []string{
			w.post("/v1/endpoints", `{"url":"`+url+`"}`).refuses(status, code).Detail,
			w.patch(endpoint, `{"url":"`+url+`"}`).refuses(status, code).Detail,
		} {
			if strings.Contains(p, "pw") {
				t.Errorf("%s: %s", url, p)
			}
		}
	}
	w.patch(endpoint, `{"url":null}`).refuses(400, "invalid_request")
	if got := w.get(endpoint).is(200); got.text("url") != "https://example.com/hook" || got.header.Get("ETag") != `"1"` {
		t.Errorf("%s", got.body)
	}
	w.post("/v1/endpoints", `{"url":"http://127.0.0.1:8080/hook"}`).is(201) // the test's rules allow it
}

// TestHeaderRules is case 27; the answer never repeats a value.
func TestHeaderRules(t *testing.T) {
	t.Parallel()
	w := start(t)
	endpoint := w.endpoint()
	for _, headers := range []string{
		`{"X-A":"s3cret\r\nX-B: b"}`, `{"X-A":"s3cret\n"}`, `{"X A":"s3cret"}`, `{"":"s3cret"}`, `{"X-A:":"s3cret"}`, `{"Webhook-Id":"s3cret"}`, `{"Host":"s3cret"}`, `{"X-A":"s3cret","x-a":"s3cret"}`,
	} {
		for _, a := range []answer{
			w.post("/v1/endpoints", `{"url":"https://example.com/","policy":{"headers":`+headers+`}}`),
			w.patch(endpoint, `{"policy":{"headers":`+headers+`}}`),
		} {
			if p := a.refuses(422, "header_not_allowed"); strings.Contains(p.Detail, "s3cret") {
				t.Errorf("%s: %s", headers, p.Detail)
			}
		}
	}
	for _, headers := range []string{`{"X-A":1}`, `["s3cret"]`, `"s3cret"`, `{"X-A":"\u0000"}`, `{"X-A":"\ud800"}`, `{"X-A":"a","X-A":"s3cret"}`} {
		if a := w.patch(endpoint, `{"policy":{"headers":`+headers+`}}`); strings.Contains(string(a.body), "s3cret") {
			t.Errorf("%s: %s", headers, a.body)
		} else {
			a.refuses(400, "invalid_request")
		}
	}
	made := w.patch(endpoint, `{"policy":{"headers":{"X-A":"s3cret","X-B":"other"}}}`).is(200)
	w.patch(endpoint, `{"policy":{"headers":{"X-B":null,"X-C":"third"}}}`).is(200)
	shown := w.get(endpoint).is(200)
	headers := shown.object()["policy"].(map[string]any)["headers"].(map[string]any)
	a, _ := headers["X-A"].(string)
	if len(headers) != 2 || !strings.HasPrefix(a, "hmac-sha256:") || headers["X-C"] == nil || strings.Contains(string(made.body)+string(shown.body), "s3cret") {
		t.Errorf("%s", shown.body)
	}
}

func TestPatchOverHTTP(t *testing.T) {
	t.Parallel()
	w := start(t)
	endpoint := w.endpoint(`,"policy":{"timeout":"3s"}`)
	if got := w.patch(endpoint, `{"description":"d","policy":{"on_unknown_outcome":"hold"}}`).is(200); got.header.Get("ETag") != `"2"` ||
		got.text("description") != "d" || got.text("secret") != "" || got.object()["policy"].(map[string]any)["timeout"] != "3s" {
		t.Errorf("%s", got.body)
	}
	for _, c := range []struct {
		status      int
		code, patch string
	}{
		{400, "invalid_request", `{"policy":{"unknown":1}}`}, {400, "invalid_request", `{"secret":"x"}`}, {400, "invalid_request", `{"policy":{"timeout":"1h"}}`},
		{400, "invalid_request", `{"policy":{"timeout":5}}`}, {400, "invalid_request", `{"policy":{"ordering":"sorted"}}`}, {400, "invalid_request", `{"policy":{"jitter":2}}`},
		{400, "invalid_request", `{"policy":{"retries":{"delays":["1s"],"attempts":3}}}`}, {400, "invalid_request", `{"mode":"smtp"}`}, {400, "invalid_request", `{"event_types":["a b"]}`},
		{400, "invalid_request", `{"description":"\u0000"}`}, {400, "invalid_request", ``}, {400, "invalid_request", `null`}, {400, "invalid_request", `[]`},
		{422, "unsupported_policy", `{"policy":{"ordering":"block"}}`}, {422, "unsupported_policy", `{"policy":{"rate_per_second":5}}`},
		{400, "invalid_request", `{"policy":{"submit_rate":"many"}}`}, {422, "unsupported_policy", `{"policy":{"expire_after":"1h"}}`}, {422, "unsupported_policy", `{"policy":{"disable_after":"1h"}}`},
	} {
		w.patch(endpoint, c.patch).refuses(c.status, c.code)
		if c.patch != "" && c.patch[0] == '{' {
			w.post("/v1/endpoints", `{"url":"https://example.com/",`+c.patch[1:]).refuses(c.status, c.code)
		}
	}
	for body, code := range map[string]string{
		`{"mode":"remote","url":"https://example.com/"}`:                      "400 invalid_request",
		`{"mode":"remote","policy":{"max_in_flight":3}}`:                      "422 unsupported_policy",
		`{"mode":"remote","policy":{"headers":{"X-A":"b"}}}`:                  "422 unsupported_policy",
		`{"mode":"remote","policy":{"idempotency_header":"Idempotency-Key"}}`: "422 unsupported_policy",
	} {
		var status int
		_, _ = fmt.Sscan(code[:3], &status)
		w.post("/v1/endpoints", body).refuses(status, code[4:])
	}
	if got := w.patch(endpoint, `{"policy":{"ordering":null,"rate_per_second":null},"description":null}`).is(200); got.text("description") != "" || got.header.Get("ETag") != `"3"` {
		t.Errorf("%s", got.body)
	}
	moved := w.patch(endpoint, `{"url":"https://example.com/other"}`).is(200)
	if !strings.HasPrefix(moved.text("secret"), "whsec_") || moved.text("url") != "https://example.com/other" {
		t.Errorf("%s", moved.body)
	}
}

func TestETagsOfEndpoints(t *testing.T) {
	t.Parallel()
	w := start(t)
	endpoint := w.endpoint()
	w.patch(endpoint, `{"description":"a"}`, "If-Match", `"2"`).refuses(412, "version_mismatch")
	for _, none := range []string{`W/"1"`, `1`, `"1`} {
		w.patch(endpoint, `{"description":"a"}`, "If-Match", none).refuses(400, "invalid_request")
	}
	for _, other := range []string{`"x"`, `"01"`, `"0"`, `"-1"`, `""`, `"1", "2"`} {
		w.patch(endpoint, `{"description":"a"}`, "If-Match", other).refuses(412, "version_mismatch")
	}
	w.patch(endpoint, `{"description":"a"}`, "If-Match", `"1"`).is(200)
	w.patch(endpoint, `{"description":"b"}`, "If-Match", `*`).is(200)
	w.post(endpoint+"/pause", "", "If-Match", `"2"`).refuses(412, "version_mismatch")
	if p := w.post(endpoint+"/pause", "", "If-Match", `"3"`).is(200); p.text("status") != "paused" || p.header.Get("ETag") != `"4"` {
		t.Errorf("%s", p.body)
	}
	if r := w.post(endpoint+"/resume", "{}").is(200); r.text("status") != "active" {
		t.Errorf("%s", r.body)
	}
	w.call("DELETE", endpoint, nil, "If-Match", `"1"`).refuses(412, "version_mismatch")
	if d := w.call("DELETE", endpoint, nil).is(200); d.text("status") != "archived" {
		t.Errorf("%s", d.body)
	}
	w.patch(endpoint, `{"description":"c"}`).refuses(409, "endpoint_archived")
	w.get(endpoint).is(200)
}

// TestRotationOverHTTP is case 28; what signs when is tested with the use case.
func TestRotationOverHTTP(t *testing.T) {
	t.Parallel()
	w := start(t)
	endpoint := w.endpoint()
	seen := map[string]bool{}
	for _, body := range []string{``, `{}`, `{"overlap":"0s"}`, `{"overlap":"168h"}`} {
		a := w.post(endpoint+"/secret/rotate", body).is(200)
		if s := a.text("secret"); !strings.HasPrefix(s, "whsec_") || seen[s] {
			t.Errorf("%s: %s", body, a.body)
		} else {
			seen[s] = true
		}
	}
	for _, body := range []string{`{"overlap":"169h"}`, `{"overlap":"-1s"}`, `{"overlap":"a day"}`, `{"overlap":5}`, `{"overlaps":"1h"}`} {
		w.post(endpoint+"/secret/rotate", body).refuses(400, "invalid_request")
	}
	if got := w.get(endpoint).is(200); got.header.Get("ETag") != `"5"` || got.text("secret") != "" {
		t.Errorf("%s", got.body)
	}
}
