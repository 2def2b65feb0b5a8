package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"waybill/domain"
)

// program is an example that runs in a process of its own.
type program struct {
	t   *testing.T
	cmd *exec.Cmd

	mu    sync.Mutex
	lines []string
	ended chan struct{}
}

// startProgram starts an example, whose lines are kept.
func startProgram(t *testing.T, env []string, args ...string) *program {
	t.Helper()
	p := &program{t: t, cmd: exec.Command(args[0], args[1:]...), ended: make(chan struct{})}
	p.cmd.Env = append(os.Environ(), append(env, "no_proxy=*", "PYTHONDONTWRITEBYTECODE=1")...)
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	p.cmd.Stderr = t.Output()
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(p.ended)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			p.mu.Lock()
			p.lines = append(p.lines, lines.Text())
			p.mu.Unlock()
		}
		_ = p.cmd.Wait()
	}()
	t.Cleanup(p.kill)
	return p
}

// python runs one of the examples; a machine without python3 fails the test.
func python(t *testing.T, env []string, script string, args ...string) *program {
	t.Helper()
	return startProgram(t, env, append([]string{"python3", filepath.Join("examples", script)}, args...)...)
}

func (p *program) kill() {
	_ = p.cmd.Process.Signal(syscall.SIGCONT)
	_ = p.cmd.Process.Kill()
	<-p.ended
}

// count is how many lines begin so.
func (p *program) count(prefix string) (n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, line := range p.lines {
		if strings.HasPrefix(line, prefix) {
			n++
		}
	}
	return n
}

// after waits for the line that begins so and returns its rest.
func (p *program) after(prefix string) (rest string) {
	p.t.Helper()
	within(p.t, prefix, func() bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		for _, line := range p.lines {
			if after, ok := strings.CutPrefix(line, prefix); ok {
				rest = after
				return true
			}
		}
		return false
	})
	return rest
}

// TestReceivers: either example handles each message once, over deliveries, replays and
// a restart, and takes nothing that is forged or old.
func TestReceivers(t *testing.T) {
	t.Parallel()
	binary := filepath.Join(t.TempDir(), "receiver")
	if out, err := exec.Command("go", "build", "-o", binary, "./examples/receiver").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for name, run := range map[string][]string{"python": {"python3", "examples/receiver.py"}, "go": {binary}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			secrets := filepath.Join(dir, "secrets")
			run := append(run, "--listen", "127.0.0.1:0", "--secrets", secrets, "--db", filepath.Join(dir, "seen"))
			receives(t, secrets, func() *program { return startProgram(t, nil, run...) })
		})
	}
}

func receives(t *testing.T, secrets string, start func() *program) {
	rc := start()
	url := rc.after("listening on ")
	o := newOperator(t)
	secret := o.get("secret", "endpoints", "create", "--url", url, "--allow-networks", loopback)
	if err := os.WriteFile(secrets, []byte("whsec_b2xk\n"+secret+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	o.serve("--no-api", "--allow-networks", loopback)
	d := o.submit(o.get("id", "endpoints", "list"), `{"paid":13}`)
	within(t, "it is delivered", func() bool { return o.state(d) == "delivered" })
	o.run("deliveries", "replay", d, "--force", "--reason", "once more")
	within(t, "it comes again", func() bool { return rc.count("duplicate ") == 1 })
	within(t, "it is delivered again", func() bool { return o.state(d) == "delivered" })
	if rc.count("handled ") != 1 {
		t.Error("it was not handled once")
	}

	now := time.Now()
	for what, c := range map[string]struct {
		secret, signed, sent string
		at                   time.Time
	}{
		"another's secret": {"whsec_" + base64.StdEncoding.EncodeToString([]byte("x")), "a", "a", now},
		"another body":     {secret, "a", "b", now},
		"too old":          {secret, "a", "a", now.Add(-time.Hour)},
		"too early":        {secret, "a", "a", now.Add(time.Hour)},
	} {
		if status := postSigned(t, url, c.secret, "forged", c.signed, c.sent, c.at); status != http.StatusUnauthorized {
			t.Errorf("%s: %d", what, status)
		}
	}
	for range 2 {
		if status := postSigned(t, url, secret, "m1", "a", "a", now); status != http.StatusNoContent {
			t.Errorf("a good one: %d", status)
		}
	}
	within(t, "both are seen", func() bool { return rc.count("handled m1") == 1 && rc.count("duplicate m1") == 1 })
	rc.kill()
	rc = start()
	postSigned(t, rc.after("listening on "), secret, "m1", "a", "a", now)
	within(t, "it is known after a restart", func() bool { return rc.count("duplicate m1") == 1 })
}

// postSigned signs one body as Standard Webhooks says, and sends another.
func postSigned(t *testing.T, url, secret, id, signed, sent string, at time.Time) int {
	t.Helper()
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_"))
	if err != nil {
		t.Fatal(err)
	}
	mac := hmac.New(sha256.New, key)
	_, _ = fmt.Fprintf(mac, "%s.%d.%s", id, at.Unix(), signed)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(sent))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("webhook-id", id)
	req.Header.Set("webhook-timestamp", fmt.Sprint(at.Unix()))
	req.Header.Set("webhook-signature", "v1,bm9uc2Vuc2U= v1,"+base64.StdEncoding.EncodeToString(mac.Sum(nil)))
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	return resp.StatusCode
}

// TestOutboxFromPython: the order and its message commit together or not at all, and
// the message is delivered as it was written.
func TestOutboxFromPython(t *testing.T) {
	t.Parallel()
	o, to := newOperator(t), newReceiver(t)
	close(to.gate)
	if _, err := o.db.Super().Exec(t.Context(), `create table orders (id int primary key, customer text);
		grant select, insert on orders to waybill_test_app`); err != nil {
		t.Fatal(err)
	}
	e := o.endpoint(to.URL)
	run := func(args ...string) error {
		cmd := exec.Command("python3", append([]string{"examples/outbox_django.py", "--endpoint", e}, args...)...)
		cmd.Env = append(os.Environ(), "APP_DATABASE_URL="+o.db.URL, "PYTHONDONTWRITEBYTECODE=1")
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		err := cmd.Run()
		t.Logf("%v: %s", args, &stderr)
		return err
	}
	if err := run("--order", "1"); err != nil {
		t.Fatal(err)
	}
	if run("--order", "2", "--fail") == nil || run("--order", "1") == nil {
		t.Error("a failed transaction is said to be none")
	}
	var orders, waiting int
	var payload, customer string
	err := o.db.App.QueryRow(t.Context(), `select (select count(*) from orders), count(*), min(convert_from(payload, 'UTF8')),
		(select min(customer) from orders) from waybill.outbox`).Scan(&orders, &waiting, &payload, &customer)
	if err != nil || orders != 1 || waiting != 1 || payload != `{"order": 1, "by": "O'Hara"}` || customer != "O'Hara" {
		t.Fatalf("%d orders of %s, %d messages %s: %v", orders, customer, waiting, payload, err)
	}
	o.serve("--no-api", "--allow-networks", loopback)
	within(t, "it is delivered", func() bool {
		return strings.Contains(o.run("deliveries", "list", "--idempotency-key", "order-1-paid", "--json"), `"state":"delivered"`)
	})
}

// TestPythonWorker: it says of each call what it knows and no more, and stops when told.
func TestPythonWorker(t *testing.T) {
	t.Parallel()
	o, hang := newOperator(t), make(chan struct{})
	provider := newProvider(t, func(_ context.Context, body string) int {
		switch body {
		case "hang":
			<-hang
		case "no":
			return http.StatusTeapot
		case "elsewhere":
			return http.StatusFound
		}
		return http.StatusOK
	})
	t.Cleanup(func() { close(hang) })
	s := o.serve("--allow-networks", loopback)
	e := o.get("id", "endpoints", "create", "--mode", "remote", "--policy", `{"on_unknown_outcome":"hold","retries":{"delays":["0s"]}}`)
	want := map[string]string{"yes": "delivered succeeded", "no": "failed refused", "elsewhere": "failed refused", "hang": "held unknown"}
	ids := map[string]string{}
	for body := range want {
		ids[body] = o.submit(e, body)
	}
	w := o.worker(s, o.claimKey(), "py", provider.URL, "LEASE=30", "TIMEOUT=5")
	for body, then := range want {
		within(t, body+" is "+then, func() bool {
			d := ids[body]
			return o.state(d)+" "+o.get("last_outcome", "deliveries", "show", d) == then
		})
	}
	if err := w.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	select {
	case <-w.ended:
	case <-time.After(patience):
		t.Fatal("it does not stop")
	}
	if code := w.cmd.ProcessState.ExitCode(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	history := o.run("deliveries", "events", ids["hang"])
	if !strings.Contains(history, "(timeout)") || strings.Contains(history, string(domain.Unreached)) {
		t.Errorf("what is on record of a timeout:\n%s", history)
	}
}

// claimKey is an API key for remote workers.
func (o operatorOf) claimKey() string {
	o.t.Helper()
	return o.get("key", "keys", "create", "--name", "workers", "--scope", "claim")
}

// worker starts the Python worker.
func (o operatorOf) worker(s *served, key, name, provider string, more ...string) *program {
	o.t.Helper()
	env := append([]string{"WAYBILL_API=http://" + s.addr + "/v1", "WAYBILL_KEY=" + key, "PROVIDER_URL=" + provider,
		"WORKER_NAME=" + name, "CONCURRENCY=4", "LEASE=10", "WAIT=1"}, more...)
	return python(o.t, env, "worker.py")
}
