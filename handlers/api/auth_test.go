package api_test

import (
	"slices"
	"strings"
	"testing"

	"waybill/domain"
)

// described is an operation as /openapi.json describes it.
type described struct {
	method, path string
	scope        domain.Scope // empty: no key is needed
	responses    []string
}

type openAPI struct {
	OpenAPI string
	Paths   map[string]map[string]struct {
		OperationID string
		Security    []map[string][]string
		Parameters  []struct{ Name, In, Description string }
		RequestBody *struct{ Content map[string]any }
		Responses   map[string]struct {
			Description string
			Content     map[string]struct{ Schema map[string]any }
			Headers     map[string]any
		}
	}
	Components struct {
		Schemas         map[string]struct{ Properties map[string]map[string]any }
		SecuritySchemes map[string]any
	}
}

// operations are all that are registered.
func (w *world) operations() []described {
	w.t.Helper()
	var doc openAPI
	w.get("/openapi.json").is(200).into(&doc)
	var list []described
	for path, methods := range doc.Paths {
		for method, op := range methods {
			d := described{method: strings.ToUpper(method), path: path}
			for _, requirement := range op.Security {
				d.scope = domain.Scope(requirement["key"][0])
			}
			for status := range op.Responses {
				d.responses = append(d.responses, status)
			}
			list = append(list, d)
		}
	}
	return list
}

// TestEveryOperationNeedsItsScope walks whatever is registered: without a key 401,
// with every other scope 403, with its own scope something else.
func TestEveryOperationNeedsItsScope(t *testing.T) {
	t.Parallel()
	w := start(t)
	keys, walked := map[domain.Scope]string{}, 0
	for _, s := range domain.Scopes {
		keys[s] = w.newKey(domain.DefaultTenant, s)
	}
	for _, op := range w.operations() {
		path := strings.ReplaceAll(op.path, "{id}", "01a228de-7199-7ad8-a0e9-c850f671af39")
		if op.scope == "" {
			if strings.HasPrefix(op.path, "/v1/") {
				t.Errorf("%s %s needs no key", op.method, op.path)
			}
			continue
		}
		walked++
		w.with("", func(w *world) {
			if a := w.call(op.method, path, nil); a.header.Get("Www-Authenticate") != "Bearer" {
				t.Errorf("%s: %v", a.what, a.header)
			} else {
				a.refuses(401, "unauthorized")
			}
		})
		for _, s := range domain.Scopes {
			w.with(keys[s], func(w *world) {
				a := w.call(op.method, path, nil)
				if s != op.scope {
					a.refuses(403, "scope_missing")
				} else if a.status == 401 || a.status == 403 || a.status >= 500 {
					t.Errorf("%s with scope %s: %d %s", a.what, s, a.status, a.body)
				}
			})
		}
	}
	if walked < 17 {
		t.Errorf("only %d operations were walked", walked)
	}
}

func TestBearerTokens(t *testing.T) {
	t.Parallel()
	w := start(t)
	good := w.key
	w.with("", func(w *world) {
		for _, value := range []string{"Bearer", "Bearer ", "Basic " + good, good, "Bearer " + good + "x", "Bearer wbk_" + strings.Repeat("A", 43), "Bearer \xff"} {
			w.call("GET", "/v1/endpoints", nil, "Authorization", value).refuses(401, "unauthorized")
		}
		w.call("GET", "/v1/endpoints", nil, "Authorization", "Bearer "+good, "Authorization", "Bearer "+good).refuses(401, "unauthorized")
		w.call("GET", "/v1/endpoints", nil, "Authorization", "bearer  "+good).is(200)
	})
	if _, err := w.db.App.Exec(t.Context(), `update waybill.api_keys set revoked_at = now()`); err != nil {
		t.Fatal(err)
	}
	w.get("/v1/endpoints").refuses(401, "unauthorized")
	if strings.Contains(w.log.String(), "wbk_") {
		t.Error("the log holds a key")
	}
}

// TestTenantsSeeNothingOfEachOther is case 29, for every operation that names a thing.
func TestTenantsSeeNothingOfEachOther(t *testing.T) {
	t.Parallel()
	w := start(t)
	endpoint := w.endpoint()
	delivery := w.submit(endpoint, "x", "Idempotency-Key", "k")
	w.newTenant("other")
	other := w.as("other", domain.Scopes...)
	const token = "01890a5d-ac96-774b-bcce-b302099a8057"
	bodies := map[string]string{
		"PATCH": `{"description":"mine"}`, "payload": `{"reason":"r"}`, "replay": `{"reason":"r","force":true}`, "cancel": `{"reason":"r"}`, "resolve": `{"reason":"r","outcome":"failed"}`,
		"release": `{"claim_token":"` + token + `"}`, "extend": `{"claim_token":"` + token + `","lease_seconds":10}`, "result": `{"claim_token":"` + token + `","outcome":"succeeded"}`,
	}
	walked := 0
	for _, op := range w.operations() {
		_, rest, names := strings.Cut(strings.Replace(op.path, "{delivery_id}", "{id}", 1), "{id}")
		if !names {
			continue
		}
		thing, code := endpoint, "endpoint_not_found"
		switch {
		case strings.HasPrefix(op.path, "/v1/deliveries/"):
			thing, code = delivery, "delivery_not_found"
		case strings.HasPrefix(op.path, "/v1/claims/"):
			thing, code = strings.Replace(delivery, "/deliveries/", "/claims/", 1), "delivery_not_found"
		}
		body := bodies[op.method] + bodies[strings.TrimPrefix(rest, "/")]
		other.call(op.method, thing+rest, []byte(body)).refuses(404, code)
		walked++
		if !slices.Contains(op.responses, "404") {
			t.Errorf("%s %s does not describe its 404", op.method, op.path)
		}
	}
	if walked < 14 {
		t.Errorf("only %d operations were walked", walked)
	}
	for _, list := range []string{"/v1/deliveries", "/v1/endpoints", "/v1/deliveries?endpoint_id=" + endpoint[len("/v1/endpoints/"):], "/v1/deliveries?idempotency_key=k"} {
		if items := other.get(list).is(200).object()["items"].([]any); len(items) != 0 {
			t.Errorf("%s: %v", list, items)
		}
	}
	var batch struct {
		Items []struct{ Error *struct{ Code string } }
	}
	other.post("/v1/deliveries/batch", `{"items":[{"endpoint_id":"`+endpoint[len("/v1/endpoints/"):]+`","payload":1}]}`).is(200).into(&batch)
	if batch.Items[0].Error == nil || batch.Items[0].Error.Code != "endpoint_not_found" {
		t.Errorf("%+v", batch)
	}
	if fan := other.post("/v1/messages", "x", "Waybill-Event-Type", "a").is(202); len(fan.object()["deliveries"].([]any)) != 0 {
		t.Errorf("%s", fan.body)
	}
	if got := w.get(delivery).is(200); got.text("state") != "pending" {
		t.Errorf("%s", got.body)
	}
	if got := w.get(endpoint).is(200); got.text("status") != "active" || got.text("description") != "" {
		t.Errorf("%s", got.body)
	}
}

func TestActorIsAClaim(t *testing.T) {
	t.Parallel()
	w := start(t)
	w.call("GET", "/v1/endpoints", nil, "Waybill-Actor", strings.Repeat("é", 200)).is(200)
	w.call("GET", "/v1/endpoints", nil, "Waybill-Actor", strings.Repeat("é", 201)).refuses(400, "invalid_request")
	w.call("GET", "/v1/endpoints", nil, "Waybill-Actor", "\xff").refuses(400, "invalid_request")
	w.call("GET", "/v1/endpoints", nil, "Waybill-Actor", "a", "Waybill-Actor", "b").refuses(400, "invalid_request")
}
