package api_test

import (
	"bytes"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"testing"

	"waybill/adapters/postgres"
	"waybill/adapters/postgres/postgrestest"
	"waybill/adapters/secrets"
	"waybill/adapters/webhook"
	"waybill/domain"
	"waybill/handlers/api"
	"waybill/handlers/command"
)

// rules is what cmd wires: the webhook package's functions under one roof.
type rules struct{ allow []netip.Prefix }

func (r rules) CheckURL(url string) error            { return webhook.CheckURL(url, r.allow) }
func (rules) RedactURL(url string) string            { return webhook.RedactURL(url) }
func (rules) CheckHeaders(h map[string]string) error { return webhook.CheckHeaders(h) }
func (rules) NewSecret() (string, error)             { return webhook.NewSecret() }
func (w *world) caller(tenant string) command.Caller {
	return command.Caller{Tenant: tenant, Actor: "operator:test@host"}
}
func (w *world) with(key string, do func(w *world)) { v := *w; v.key = key; do(&v) }
func (w *world) as(tenant string, s ...domain.Scope) *world {
	v := *w
	v.key = w.newKey(tenant, s...)
	return &v
}

// world is a running API over a database of its own.
type world struct {
	t      testing.TB
	url    string
	key    string // what requests are made with
	db     *postgrestest.DB
	ledger *postgres.Ledger
	config api.Config
	log    *journal
}

// journal keeps what was logged.
type journal struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (j *journal) Write(b []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.Write(b)
}

func (j *journal) String() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.String()
}

// start runs the API with a key of tenant default that has every scope.
func start(t testing.TB, change ...func(*api.Config)) *world {
	t.Helper()
	db := postgrestest.New(t)
	vault, err := secrets.New()
	if err != nil {
		t.Fatal(err)
	}
	ledger := postgres.Open(db.App, postgres.Config{Vault: vault})
	submitter := command.NewSubmitter(ledger, command.SubmitOptions{})
	t.Cleanup(submitter.Close)
	w := &world{t: t, db: db, ledger: ledger, log: &journal{}}
	w.config = api.Config{
		Submitter: submitter, Operations: command.Operations{Ledger: ledger}, Eraser: command.Eraser{Ledger: ledger},
		Remote:    command.Remote{Ledger: ledger},
		Endpoints: command.Endpoints{Ledger: ledger, Rules: rules{[]netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}},
		Keys:      command.Keys{Ledger: ledger}, Ledger: ledger, Ready: ledger, Proofs: ledger, Transient: postgres.Transient,
		Log: slog.New(slog.NewTextHandler(w.log, nil)), Version: "test",
	}
	for _, c := range change {
		c(&w.config)
	}
	server := httptest.NewServer(api.New(w.config))
	t.Cleanup(server.Close)
	w.url = server.URL
	w.key = w.newKey(domain.DefaultTenant, domain.Scopes...)
	return w
}

func (w *world) newKey(tenant string, scopes ...domain.Scope) string {
	w.t.Helper()
	_, token, err := command.Keys{Ledger: w.ledger}.Create(w.t.Context(), w.caller(tenant), "test", scopes, domain.Rate{})
	if err != nil {
		w.t.Fatal(err)
	}
	return token
}

func (w *world) newTenant(name string) {
	w.t.Helper()
	if _, err := w.ledger.CreateTenant(w.t.Context(), name, "operator:test@host"); err != nil {
		w.t.Fatal(err)
	}
}

// answer is what a request got.
type answer struct {
	t      testing.TB
	what   string
	status int
	header http.Header
	body   []byte
}

// call makes a request; headers are names and values in turn.
func (w *world) call(method, path string, body []byte, headers ...string) answer {
	w.t.Helper()
	r, err := http.NewRequestWithContext(w.t.Context(), method, w.url+path, bytes.NewReader(body))
	if err != nil {
		w.t.Fatal(err)
	}
	if w.key != "" {
		r.Header.Set("Authorization", "Bearer "+w.key)
	}
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Add(headers[i], headers[i+1])
	}
	return w.send(r)
}

func (w *world) send(r *http.Request) answer {
	w.t.Helper()
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		w.t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		w.t.Fatal(err)
	}
	return answer{t: w.t, what: r.Method + " " + r.URL.RequestURI(), status: res.StatusCode, header: res.Header, body: body}
}

func (w *world) get(path string) answer { w.t.Helper(); return w.call("GET", path, nil) }

func (w *world) post(path, body string, headers ...string) answer {
	w.t.Helper()
	return w.call("POST", path, []byte(body), headers...)
}

func (w *world) patch(path, body string, headers ...string) answer {
	w.t.Helper()
	return w.call("PATCH", path, []byte(body), headers...)
}

// is fails the test unless the answer has the status.
func (a answer) is(status int) answer {
	a.t.Helper()
	if a.status != status {
		a.t.Fatalf("%s: got %d, want %d: %s", a.what, a.status, status, a.body)
	}
	return a
}

// refuses fails the test unless the answer is a problem of that status and code.
func (a answer) refuses(status int, code string) api.Problem {
	a.t.Helper()
	var p api.Problem
	a.is(status).into(&p)
	if a.header.Get("Content-Type") != "application/problem+json" || p.Type != "about:blank" || p.Title == "" ||
		p.Status != status || p.Detail == "" || p.Code != code {
		a.t.Fatalf("%s: not the problem %q: %s: %s", a.what, code, a.header.Get("Content-Type"), a.body)
	}
	return p
}

func (a answer) into(v any) answer {
	a.t.Helper()
	if err := json.Unmarshal(a.body, v); err != nil {
		a.t.Fatalf("%s: %v: %s", a.what, err, a.body)
	}
	return a
}

// object returns the answer's body.
func (a answer) object() map[string]any {
	a.t.Helper()
	var v map[string]any
	a.into(&v)
	return v
}

// text returns a member of the answer's body that is a text.
func (a answer) text(member string) string {
	a.t.Helper()
	s, _ := a.object()[member].(string)
	return s
}

// endpoint makes an endpoint and returns its path.
func (w *world) endpoint(more ...string) string {
	w.t.Helper()
	body := `{"url":"https://example.com/hook"` + strings.Join(more, "") + `}`
	return "/v1/endpoints/" + w.post("/v1/endpoints", body).is(201).text("id")
}

// submit hands in a message and returns its delivery's path.
func (w *world) submit(endpoint, payload string, headers ...string) string {
	w.t.Helper()
	return "/v1/deliveries/" + w.post(endpoint+"/deliveries", payload, headers...).is(202).text("delivery_id")
}
