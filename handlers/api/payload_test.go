package api_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"waybill/handlers/api"
)

const mebibyte = 1 << 20

// hostile is case 18: JSON values that a decoder would change, as they are written.
var hostile = map[string]string{
	"NUL": `{"a":"\u0000"}`, "lone surrogates": `["\ud800","\udfff\ud800"]`, "1e400": `[1e400,-1e-400]`, "2^63+1": `{"n":9223372036854775809}`,
	"duplicate keys": `{"b":1,"a":2,"b":3}`, "order and space": "{ \"z\" :\t1 ,\r\n \"a\" : [ ] }", "escapes": `"\u0041\/\u00e9"`, "HTML": `"<&>\u2028"`,
	"null": `null`, "number": `-0`, "text": `"é😀"`, "deep": strings.Repeat("[", 500) + strings.Repeat("]", 500), "a megabyte": `"` + strings.Repeat("x", mebibyte-2) + `"`,
}

// TestPayloadsAreKeptByteForByte, of any content type or none.
func TestPayloadsAreKeptByteForByte(t *testing.T) {
	t.Parallel()
	w := start(t)
	endpoint := w.endpoint()
	all := map[string]string{"empty": "", "invalid UTF-8": "\xff\xfe\x00{", "spaces around": " {} \n", "not JSON": "{", "a byte": "\x00"}
	for name, payload := range hostile {
		all[name] = payload
	}
	for name, payload := range all {
		for _, contentType := range []string{"", "application/json", "text/html; charset=utf-8", "application/x-www-form-urlencoded"} {
			var headers []string
			if contentType != "" {
				headers = []string{"Content-Type", contentType}
			}
			got := w.get(w.submit(endpoint, payload, headers...) + "/payload").is(200)
			want := contentType
			if want == "" {
				want = "application/octet-stream"
			}
			if string(got.body) != payload || got.header.Get("Content-Type") != want {
				t.Errorf("%s as %q: got %d bytes %.80q as %q", name, contentType, len(got.body), got.body, got.header.Get("Content-Type"))
			}
			if got.header.Get("X-Content-Type-Options") != "nosniff" || got.header.Get("Content-Disposition") != "attachment" {
				t.Errorf("%s: %v", name, got.header)
			}
		}
	}
}

// TestBatchPayloadsAreKeptByteForByte: a value inside a batch's JSON is sent as it is
// written there, and base64 as what it stands for.
func TestBatchPayloadsAreKeptByteForByte(t *testing.T) {
	t.Parallel()
	w := start(t)
	id := strings.TrimPrefix(w.endpoint(), "/v1/endpoints/")
	var items, want, types []string
	for _, payload := range hostile {
		items = append(items, `{"payload" : `+payload+" \n, \"endpoint_id\":\""+id+`"}`)
		want, types = append(want, payload), append(types, "application/json")
	}
	for _, payload := range []string{"", "\xff\x00", "plain"} {
		items = append(items, `{"endpoint_id":"`+id+`","payload_base64":"`+base64.StdEncoding.EncodeToString([]byte(payload))+`"}`)
		want, types = append(want, payload), append(types, "application/octet-stream")
	}
	items = append(items, `{"endpoint_id":"`+id+`","payload":[1],"content_type":"application/cloudevents+json"}`)
	want, types = append(want, "[1]"), append(types, "application/cloudevents+json")
	for i, d := range w.batch(items...) {
		got := w.get("/v1/deliveries/" + d.DeliveryID + "/payload").is(200)
		if string(got.body) != want[i] || got.header.Get("Content-Type") != types[i] {
			t.Errorf("want %.80q as %s: got %.80q as %q", want[i], types[i], got.body, got.header.Get("Content-Type"))
		}
	}
}

// batched is what became of an item.
type batched struct {
	DeliveryID string `json:"delivery_id"`
	MessageID  string `json:"message_id"`
	State      string
	Duplicate  *bool
	Error      *api.Problem
}

func (w *world) batch(items ...string) []batched {
	w.t.Helper()
	var out struct{ Items []batched }
	w.post("/v1/deliveries/batch", `{"items":[`+strings.Join(items, ",")+`]}`).is(200).into(&out)
	if len(out.Items) != len(items) {
		w.t.Fatalf("%d results for %d items", len(out.Items), len(items))
	}
	return out.Items
}

// TestPayloadLimit: exactly the limit is taken; a byte more is refused, whether the
// length is announced or not, and a large one before it is read.
func TestPayloadLimit(t *testing.T) {
	t.Parallel()
	w := start(t)
	endpoint := w.endpoint()
	for _, path := range []string{endpoint + "/deliveries", "/v1/messages"} {
		exact := bytes.Repeat([]byte("x"), mebibyte)
		w.call("POST", path, exact, "Waybill-Event-Type", "a").is(202)
		w.call("POST", path, append(exact, 'x'), "Waybill-Event-Type", "a").refuses(413, "payload_too_large")
		w.chunked(path, bytes.NewReader(exact)).is(202)
		w.chunked(path, bytes.NewReader(append(exact, 'x'))).refuses(413, "payload_too_large")
		w.announced(path, 1<<40).refuses(413, "payload_too_large")
		w.chunked(path, strings.NewReader("")).is(202)
	}
	big := `"` + strings.Repeat("x", mebibyte-1) + `"`
	id := strings.TrimPrefix(endpoint, "/v1/endpoints/")
	got := w.batch(`{"endpoint_id":"`+id+`","payload":`+big+`}`, `{"endpoint_id":"`+id+`","payload":1}`)
	if got[0].Error == nil || got[0].Error.Code != "payload_too_large" || got[1].Error != nil {
		t.Errorf("%+v", got)
	}
	w.announced("/v1/deliveries/batch", 16<<20+1).refuses(413, "payload_too_large")
	w.post("/v1/deliveries/01a228de-7199-7ad8-a0e9-c850f671af39/cancel", `{"reason":"`+strings.Repeat("x", mebibyte)+`"}`).refuses(413, "payload_too_large")
}

// chunked sends a body of unknown length.
func (w *world) chunked(path string, body io.Reader) answer {
	w.t.Helper()
	r, err := http.NewRequestWithContext(w.t.Context(), http.MethodPost, w.url+path, struct{ io.Reader }{body})
	if err != nil {
		w.t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+w.key)
	r.Header.Set("Waybill-Event-Type", "a")
	return w.send(r)
}

// announced says a length and waits for the answer before it sends any of it.
func (w *world) announced(path string, length int64) answer {
	w.t.Helper()
	body, writer := io.Pipe()
	defer func() { _ = writer.Close() }()
	r, err := http.NewRequestWithContext(w.t.Context(), http.MethodPost, w.url+path, body)
	if err != nil {
		w.t.Fatal(err)
	}
	r.ContentLength = length
	r.Header.Set("Authorization", "Bearer "+w.key)
	r.Header.Set("Waybill-Event-Type", "a")
	return w.send(r)
}

// TestReadingAPayloadIsRecorded, with who it was and from where.
func TestReadingAPayloadIsRecorded(t *testing.T) {
	t.Parallel()
	w := start(t)
	d := w.submit(w.endpoint(), "secret")
	w.call("GET", d+"/payload", nil, "Waybill-Actor", "auditor").is(200)
	var data []byte
	err := w.db.App.QueryRow(t.Context(), `select data from waybill.events where name = 'admin.payload_read'`).Scan(&data)
	var read map[string]string
	if err != nil || json.Unmarshal(data, &read) != nil || read["delivery_id"] != strings.TrimPrefix(d, "/v1/deliveries/") ||
		read["from"] != "127.0.0.1" || read["on_behalf_of"] != "auditor" {
		t.Errorf("%s: %v", data, err)
	}
	if _, err := w.db.Super().Exec(t.Context(), `update waybill.messages set payload = null, salt = null`); err != nil {
		t.Fatal(err)
	}
	w.get(d+"/payload").refuses(410, "payload_erased")
}

// TestErasePayload walks an erasure over HTTP.
func TestErasePayload(t *testing.T) {
	t.Parallel()
	w := start(t)
	d := w.submit(w.endpoint(), `{"secret":1}`, "Idempotency-Key", "k")
	erase := func(body string) answer { return w.call("DELETE", d+"/payload", []byte(body)) }
	erase(`{"reason":"asked for"}`).refuses(409, "delivery_not_settled")
	w.post(d+"/cancel", `{"reason":"r"}`).is(202)
	erase(`{}`).refuses(400, "invalid_request")
	erase(`{"reason":" "}`).refuses(400, "invalid_request")
	if a := erase(`{"reason":"asked for","legal_basis":"GDPR art. 17"}`).is(202); a.object()["payload_erased"] != true {
		t.Errorf("%s", a.body)
	}
	w.get(d+"/payload").refuses(410, "payload_erased")
	w.post(d+"/replay", `{"reason":"r","force":true}`).refuses(410, "payload_erased")
	erase(`{"reason":"asked for"}`).refuses(410, "payload_erased")
	if items := w.get("/v1/deliveries?payload_erased=true").is(200).object()["items"].([]any); len(items) != 1 {
		t.Errorf("%v", items)
	}
	w.call("DELETE", "/v1/deliveries/0198c1d2-0000-7000-8000-000000000000/payload", []byte(`{"reason":"r"}`)).refuses(404, "delivery_not_found")
}
