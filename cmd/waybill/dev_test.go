package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/jackc/pgx/v5"
)

// developed is a waybill dev in a process of its own.
type developed struct {
	t   *testing.T
	cmd *exec.Cmd
	out *bufio.Reader
	ready
}

// develop starts it; with --json it is ready when this returns.
func develop(t *testing.T, env []string, args ...string) *developed {
	t.Helper()
	d := &developed{t: t, cmd: exec.Command("waybill", append([]string{"dev", "--listen", "127.0.0.1:0"}, args...)...)}
	d.cmd.Env, d.cmd.Stderr = env, t.Output()
	out, err := d.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := d.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.cmd.Process.Kill() })
	d.out = bufio.NewReader(out)
	if slices.Contains(args, "--json") {
		line, _ := d.out.ReadString('\n')
		if err := json.Unmarshal([]byte(line), &d.ready); err != nil {
			t.Fatalf("the first line is %q: %v", line, err)
		}
	}
	return d
}

// stop sends a signal and requires exit code 0.
func (d *developed) stop(sig syscall.Signal) {
	d.t.Helper()
	if err := d.cmd.Process.Signal(sig); err != nil {
		d.t.Fatal(err)
	}
	rest, _ := io.ReadAll(d.out)
	if err := d.cmd.Wait(); err != nil || len(rest) > 0 {
		d.t.Errorf("it ends with %v and says %q", err, rest)
	}
}

// call asks the API and returns the status and the body.
func (r ready) call(t *testing.T, method, path, contentType string, body []byte) (int, []byte) {
	t.Helper()
	q, err := http.NewRequestWithContext(t.Context(), method, r.URL+path, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	q.Header.Set("Authorization", "Bearer "+r.AdminKey)
	if contentType != "" {
		q.Header.Set("Content-Type", contentType)
	}
	answer, err := http.DefaultClient.Do(q)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, text
}

// get is call for a text member of a JSON answer with the status 2xx.
func (r ready) get(t *testing.T, member, method, path, contentType string, body []byte) string {
	t.Helper()
	status, text := r.call(t, method, path, contentType, body)
	var v map[string]any
	if err := json.Unmarshal(text, &v); err != nil || status/100 != 2 {
		t.Fatalf("%s %s: %d %s", method, path, status, text)
	}
	s, _ := v[member].(string)
	return s
}

// delivered submits bytes that are no JSON and waits until they are delivered.
func (r ready) delivered(t *testing.T, endpoint string, payload []byte) (id string) {
	t.Helper()
	id = r.get(t, "delivery_id", "POST", "/v1/endpoints/"+endpoint+"/deliveries", "application/x-odd", payload)
	within(t, "it is delivered", func() bool { return r.get(t, "state", "GET", "/v1/deliveries/"+id, "", nil) == "delivered" })
	return id
}

// names are the events of a delivery's history.
func (r ready) names(t *testing.T, id string) string {
	t.Helper()
	_, text := r.call(t, "GET", "/v1/deliveries/"+id+"/events", "", nil)
	var history struct{ Items []struct{ Name string } }
	if err := json.Unmarshal(text, &history); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	var names []string
	for _, e := range history.Items {
		names = append(names, strings.TrimPrefix(e.Name, "delivery."))
	}
	return strings.Join(names, " ")
}

// signedReceiver hands on each body whose signature is right.
func signedReceiver(t *testing.T, secret *string) (url string, bodies <-chan []byte) {
	t.Helper()
	got := make(chan []byte, 10)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		body, _ := io.ReadAll(q.Body)
		wh, err := standardwebhooks.NewWebhook(*secret)
		if err == nil {
			err = wh.Verify(body, q.Header)
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusUnauthorized)
			return
		}
		got <- body
	}))
	t.Cleanup(s.Close)
	return s.URL, got
}

// TestDev goes round once through the API, as the product's role, and again after a
// restart on the same data directory.
func TestDev(t *testing.T) {
	t.Parallel()
	env, temp := alone(t)
	data := filepath.Join(openDir(t), "data")
	d := develop(t, env, "--json", "--data-dir", data)
	var secret string
	url, bodies := signedReceiver(t, &secret)
	status, text := d.call(t, "POST", "/v1/endpoints", "application/json", []byte(`{"url":"`+url+`/hook"}`))
	var endpoint struct{ ID, Secret string }
	if err := json.Unmarshal(text, &endpoint); err != nil || status != http.StatusCreated {
		t.Fatalf("%d %s", status, text)
	}
	secret = endpoint.Secret
	payload := make([]byte, 256)
	for i := range payload {
		payload[i] = byte(255 - i)
	}
	first := d.delivered(t, endpoint.ID, payload)
	if got := <-bodies; !bytes.Equal(got, payload) {
		t.Errorf("received %q", got)
	}
	if _, got := d.call(t, "GET", "/v1/deliveries/"+first+"/payload", "", nil); !bytes.Equal(got, payload) {
		t.Errorf("read back %q", got)
	}
	if got := d.names(t, first); got != "scheduled claimed attempted delivered" {
		t.Errorf("history: %s", got)
	}
	requireNoPower(t, d.DatabaseURL)
	d.stop(syscall.SIGTERM)

	again := develop(t, env, "--json", "--data-dir", data)
	if status, _ := (ready{URL: again.URL, AdminKey: d.AdminKey}).call(t, "GET", "/v1/endpoints", "", nil); status != http.StatusUnauthorized {
		t.Errorf("the former key is answered with %d", status)
	}
	if got := again.names(t, first); got != "scheduled claimed attempted delivered" {
		t.Errorf("history after a restart: %s", got)
	}
	again.delivered(t, endpoint.ID, []byte("again")) // the keyset opens the secret
	if got := <-bodies; string(got) != "again" {
		t.Errorf("received %q", got)
	}
	again.stop(syscall.SIGINT)
	if list, err := exec.Command("ps", "-A", "-o", "args=").Output(); err != nil || bytes.Contains(list, []byte(data)) {
		t.Errorf("a process of %s stays behind: %v", data, err)
	}
	if files, _ := filepath.Glob(filepath.Join(temp, "*")); len(files) > 0 {
		t.Errorf("files stay behind: %v", files)
	}
}

// requireNoPower fails unless the role is one that cannot change the log.
func requireNoPower(t *testing.T, databaseURL string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), databaseURL)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(t.Context()) }()
	var super bool
	if err := conn.QueryRow(t.Context(), "select usesuper from pg_user where usename = current_user").Scan(&super); err != nil || super {
		t.Errorf("the product runs as a superuser: %v, %v", super, err)
	}
	for _, statement := range []string{"update waybill.events set name = name", "delete from waybill.events", "truncate waybill.events"} {
		if _, err := conn.Exec(t.Context(), statement); err == nil || !strings.Contains(err.Error(), "permission denied") {
			t.Errorf("%s: %v", statement, err)
		}
	}
}

// TestDevForPeople: without --json there is something to paste, and nothing stays.
func TestDevForPeople(t *testing.T) {
	t.Parallel()
	env, temp := alone(t)
	d := develop(t, env)
	said := readUntil(d.out, "waybill deliveries list")
	m := regexp.MustCompile(`(?m)^  W=(\S+) KEY=(\S+)$`).FindStringSubmatch(said)
	if m == nil || !strings.Contains(said, "--data-dir keeps it") {
		t.Fatalf("it says\n%s", said)
	}
	r := ready{URL: m[1], AdminKey: m[2]}
	if status, text := r.call(t, "GET", "/v1/endpoints", "", nil); status != http.StatusOK {
		t.Errorf("%d %s", status, text)
	}
	d.stop(syscall.SIGINT)
	if files, _ := filepath.Glob(filepath.Join(temp, "*")); len(files) > 0 {
		t.Errorf("files stay behind: %v", files)
	}
}

// TestDevKeepsItsKeyset: what stays on a named server is not sealed with a keyset that
// goes.
func TestDevKeepsItsKeyset(t *testing.T) {
	t.Parallel()
	env, _ := alone(t)
	o := newOperator(t)
	cmd := exec.Command("waybill", "dev", "--listen", "127.0.0.1:0")
	cmd.Env = append(env, placeVariable+"="+o.db.SuperURL)
	out, err := cmd.CombinedOutput()
	if cmd.ProcessState.ExitCode() != exitUsage || !strings.Contains(string(out), "--data-dir") {
		t.Errorf("%v: %s", err, out)
	}
}
