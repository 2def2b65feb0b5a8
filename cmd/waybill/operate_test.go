package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestHeldIsResolved walks a call that may have been received, under the policy hold,
// to the word of a person.
func TestHeldIsResolved(t *testing.T) {
	t.Parallel()
	o := newOperator(t)
	to := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		c, _, err := w.(http.Hijacker).Hijack()
		if err == nil {
			_ = c.Close() // received, and never answered
		}
	}))
	defer to.Close()
	s := o.serve("--allow-networks", loopback, "--no-api")
	e := o.get("id", "endpoints", "create", "--url", to.URL, "--allow-networks", loopback, "--policy", `{"on_unknown_outcome":"hold"}`)
	d := o.submit(e, "{}")
	within(t, "it is held", func() bool { return o.state(d) == "held" })
	if list := o.run("deliveries", "list", "--in-doubt"); !strings.Contains(list, d) || !strings.Contains(list, "held in doubt") {
		t.Errorf("not listed as in doubt:\n%s", list)
	}
	if got := o.run("deliveries", "resolve", d, "--outcome", "retry", "--reason", "not there"); got != d+" pending in doubt" {
		t.Errorf("resolve prints %q", got)
	}
	within(t, "it is held again", func() bool { return o.state(d) == "held" })
	o.run("deliveries", "resolve", d, "--outcome", "delivered", "--reason", "it is there")
	history := o.run("deliveries", "events", d)
	for _, want := range []string{
		"attempt 1 (cycle 1, 1), lease until ", "attempt 1 unknown (reset)", "outcome_unknown: waits for a person",
		"retry: not there", "attempt 2 (cycle 2, 1)", "delivered: it is there",
	} {
		if !strings.Contains(history, want) {
			t.Errorf("the history lacks %q:\n%s", want, history)
		}
	}
	s.signal(syscall.SIGTERM)
	s.ended()
}

// TestExchangesAreEscaped: what a receiver answers moves no cursor.
func TestExchangesAreEscaped(t *testing.T) {
	t.Parallel()
	o := newOperator(t)
	to := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "3600")
		w.WriteHeader(http.StatusServiceUnavailable)
		_, _ = w.Write([]byte("\x1b[2J no\n\xff \"now\""))
	}))
	defer to.Close()
	s := o.serve("--allow-networks", loopback, "--no-api")
	d := o.submit(o.endpoint(to.URL), "{}")
	within(t, "it was answered", func() bool { return o.get("last_outcome", "deliveries", "show", d) == "refused" })
	if got, want := o.run("deliveries", "exchanges", d), `\x1b[2J no\n\xff "now"`; !strings.Contains(got, want) {
		t.Errorf("%q does not contain %s", got, want)
	}
	if got := o.get("excerpt_base64", "deliveries", "exchanges", d); got != "G1sySiBubwr/ICJub3ci" {
		t.Errorf("excerpt %q", got)
	}
	if history := o.run("deliveries", "events", d); !strings.Contains(history, "attempt 1 refused 503 (http_status)") ||
		!strings.Contains(history, "asks for 3600 s") {
		t.Errorf("the history does not say what was answered:\n%s", history)
	}
	s.signal(syscall.SIGTERM)
	s.ended()
}

// TestRequestInFlightIsAnswered: a signal while a submission arrives does not cut it
// off; keys made and revoked on the command line hold for the API at once.
func TestRequestInFlightIsAnswered(t *testing.T) {
	t.Parallel()
	o := newOperator(t)
	s := o.serve("--no-worker")
	e := o.endpoint("https://127.0.0.1:1/hook")
	key, id := o.newKey()
	body, more := io.Pipe()
	answer, begun := make(chan string, 1), make(chan struct{})
	trace := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{Got100Continue: func() { close(begun) }})
	go func() { answer <- post(trace, s.addr, e, key, body) }()
	select {
	case <-begun: // the handler reads
	case <-time.After(patience):
		t.Fatal("the submission is not read")
	}
	if _, err := more.Write([]byte("first half, ")); err != nil {
		t.Fatal(err)
	}
	s.signal(syscall.SIGTERM)
	within(t, "it accepts nothing more", func() bool {
		c, err := net.Dial("tcp", s.addr)
		if err == nil {
			_ = c.Close()
		}
		return err != nil
	})
	_, _ = more.Write([]byte("second half"))
	_ = more.Close()
	if got := <-answer; got != "202" {
		t.Errorf("the submission in flight got %s", got)
	}
	if code := s.ended(); code != exitDone {
		t.Errorf("exit code %d: %v", code, s.lines(""))
	}
	again := o.serve("--no-worker")
	o.run("keys", "revoke", id)
	if got := post(t.Context(), again.addr, e, key, strings.NewReader("{}")); got != "401" {
		t.Errorf("a revoked key got %s", got)
	}
}

// newKey makes a key and returns it with its id.
func (o operatorOf) newKey() (key, id string) {
	o.t.Helper()
	for line := range strings.Lines(o.run("keys", "create", "--name", "n", "--scope", "submit")) {
		switch f := strings.Fields(line); f[0] {
		case "key":
			key = f[1]
		case "id":
			id = f[1]
		}
	}
	return key, id
}

// post submits once the server asks for the body, and returns the status, or what went
// wrong.
func post(ctx context.Context, addr, endpoint, key string, body io.Reader) string {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+addr+"/v1/endpoints/"+endpoint+"/deliveries", body)
	if err != nil {
		return err.Error()
	}
	req.Header.Set("Authorization", "Bearer "+key)
	req.Header.Set("Expect", "100-continue")
	client := http.Client{Transport: &http.Transport{ExpectContinueTimeout: patience, DisableKeepAlives: true}}
	resp, err := client.Do(req)
	if err != nil {
		return err.Error()
	}
	defer func() { _ = resp.Body.Close() }()
	return strings.Fields(resp.Status)[0]
}

type brokenReader struct{}

// Read panics.
func (brokenReader) Read([]byte) (int, error) { panic("postgres://u:5ecret@h is broken") }

type brokenWriter struct{}

// Write fails.
func (brokenWriter) Write([]byte) (int, error) { return 0, errors.New("no space left") }

// TestNoPanicReachesAUser: a bug is one line, and an output that cannot be written
// is a failure.
func TestNoPanicReachesAUser(t *testing.T) {
	t.Parallel()
	var stderr bytes.Buffer
	exit := run([]string{"submit", "--endpoint", "0198c1d2-0000-7000-8000-000000000000", "-"}, streams{brokenReader{}, io.Discard, &stderr})
	if got := stderr.String(); exit != exitFailed || strings.Count(got, "\n") != 1 || !strings.Contains(got, "this is a bug") || strings.Contains(got, "5ecret") {
		t.Errorf("exit code %d: %s", exit, got)
	}
	for _, args := range [][]string{{"version"}, {"version", "--json"}, {"help"}, {"help", "api"}} {
		if exit := run(args, streams{strings.NewReader(""), brokenWriter{}, io.Discard}); exit != exitFailed {
			t.Errorf("%v: exit code %d although nothing could be written", args, exit)
		}
	}
}
