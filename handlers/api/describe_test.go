package api_test

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"

	"waybill/domain"
	"waybill/events"
)

// contracted are the calls of the contract that this version answers, and their
// scopes.
var contracted = map[string]domain.Scope{
	"POST /v1/endpoints": "admin", "GET /v1/endpoints": "read", "GET /v1/endpoints/{id}": "read", "PATCH /v1/endpoints/{id}": "admin",
	"POST /v1/endpoints/{id}/secret/rotate": "admin", "POST /v1/endpoints/{id}/pause": "admin", "POST /v1/endpoints/{id}/resume": "admin",
	"DELETE /v1/endpoints/{id}": "admin", "POST /v1/endpoints/{id}/deliveries": "submit", "POST /v1/messages": "submit",
	"POST /v1/deliveries/batch": "submit", "GET /v1/deliveries": "read", "GET /v1/deliveries/{id}": "read", "GET /v1/deliveries/{id}/events": "read",
	"GET /v1/deliveries/{id}/payload": "audit", "GET /v1/deliveries/{id}/exchanges": "audit", "POST /v1/deliveries/{id}/replay": "operate",
	"POST /v1/deliveries/{id}/cancel": "operate", "POST /v1/deliveries/{id}/resolve": "operate", "GET /healthz": "", "GET /readyz": "", "GET /metrics": "",
	"POST /v1/claims": "claim", "POST /v1/claims/{delivery_id}/release": "claim", "POST /v1/claims/{delivery_id}/extend": "claim",
	"POST /v1/claims/{delivery_id}/result": "claim", "GET /v1/checkpoint": "audit", "GET /v1/checkpoint/consistency": "audit",
	"GET /v1/events/{position}/proof": "audit", "DELETE /v1/deliveries/{id}/payload": "audit",
	"GET /v1/audit/actions": "audit", "GET /v1/audit/attempts": "audit", "GET /v1/audit/doubts": "audit", "GET /v1/deliveries/{id}/dossier": "audit",
}

// TestDescriptionIsComplete: every call of the contract is described, with its scope,
// its problems and its headers, and nothing else is.
func TestDescriptionIsComplete(t *testing.T) {
	t.Parallel()
	w := start(t)
	got := map[string]domain.Scope{}
	for _, op := range w.operations() {
		got[op.method+" "+op.path] = op.scope
		need := []string{"400", "500", "503"}
		if op.scope != "" {
			need = append(need, "401", "403")
		}
		for _, status := range need {
			if !slices.Contains(op.responses, status) {
				t.Errorf("%s %s does not describe %s", op.method, op.path, status)
			}
		}
	}
	if !reflect.DeepEqual(got, contracted) {
		t.Errorf("described\n%v\ncontracted\n%v", got, contracted)
	}
	var doc openAPI
	a := w.get("/openapi.json").is(200).into(&doc)
	if !strings.HasPrefix(doc.OpenAPI, "3.1") || doc.Components.SecuritySchemes["key"] == nil || a.header.Get("Content-Type") != "application/openapi+json" {
		t.Errorf("OpenAPI %s, %v, %s", doc.OpenAPI, doc.Components.SecuritySchemes, a.header.Get("Content-Type"))
	}
	submit := doc.Paths["/v1/endpoints/{id}/deliveries"]["post"]
	var headers []string
	for _, p := range submit.Parameters {
		headers = append(headers, p.Name)
		if p.Description == "" {
			t.Errorf("parameter %s is not explained", p.Name)
		}
	}
	for _, name := range []string{"Idempotency-Key", "Waybill-Event-Type", "Waybill-Not-Before", "Waybill-Ordering-Key", "Waybill-Actor", "traceparent", "id"} {
		if !slices.Contains(headers, name) {
			t.Errorf("header %s is not described", name)
		}
	}
	if !strings.Contains(submit.Responses["422"].Description, "idempotency_conflict") || submit.Responses["422"].Content["application/problem+json"].Schema == nil ||
		submit.RequestBody.Content["*/*"] == nil || doc.Paths["/v1/deliveries/batch"]["post"].RequestBody.Content["application/json"] == nil {
		t.Errorf("%+v", submit)
	}
	for status, header := range map[string]string{"202": "RateLimit", "429": "Retry-After", "503": "Retry-After"} {
		r := submit.Responses[status]
		if r.Headers[header] == nil || len(r.Content) == 0 {
			t.Errorf("answer %s: %+v", status, r)
		}
	}
	w.refsResolve(a.body, doc)
}

// refsResolve fails where the description points to what it does not hold.
func (w *world) refsResolve(text []byte, doc openAPI) {
	w.t.Helper()
	for _, part := range strings.Split(string(text), `"#/components/schemas/`)[1:] {
		name, _, _ := strings.Cut(part, `"`)
		if _, ok := doc.Components.Schemas[name]; !ok {
			w.t.Errorf("schema %s is not there", name)
		}
	}
}

// TestDescriptionTellsWhatIsServed: the schemas that are written by hand have the
// members that the domain's own types have.
func TestDescriptionTellsWhatIsServed(t *testing.T) {
	t.Parallel()
	w := start(t)
	var doc openAPI
	w.get("/openapi.json").is(200).into(&doc)
	record, err := json.Marshal(events.Record{Envelope: events.Envelope{EndpointID: [16]byte{1}, TraceParent: "x"}, Data: json.RawMessage("{}")})
	if err != nil {
		t.Fatal(err)
	}
	var event map[string]any
	if err := json.Unmarshal(record, &event); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string][]string{
		"Event": keys(event), "PolicyInput": jsonNames(domain.Policy{}), "RetriesInput": jsonNames(domain.Retries{}),
	} {
		if got := keys(doc.Components.Schemas[name].Properties); !slices.Equal(got, want) {
			t.Errorf("%s has %v, want %v", name, got, want)
		}
	}
}

func keys[T any](m map[string]T) []string {
	var names []string
	for name := range m {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

func jsonNames(v any) []string {
	var names []string
	for i := range reflect.TypeOf(v).NumField() {
		name, _, _ := strings.Cut(reflect.TypeOf(v).Field(i).Tag.Get("json"), ",")
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
