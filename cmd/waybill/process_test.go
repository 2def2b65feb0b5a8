package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"waybill/adapters/postgres/postgrestest"
)

// patience is how long a test waits for what is bound to come.
const patience = 20 * time.Second

// operatorOf runs commands against one ledger.
type operatorOf struct {
	t      *testing.T
	db     *postgrestest.DB
	keyset string
}

func newOperator(t *testing.T) operatorOf {
	t.Helper()
	o := operatorOf{t, postgrestest.New(t), filepath.Join(t.TempDir(), "keyset")}
	o.run("keyset", "create", "--out", o.keyset)
	return o
}

func (o operatorOf) command(args ...string) *exec.Cmd {
	cmd := exec.Command("waybill", args...)
	cmd.Env = append(os.Environ(), "WAYBILL_DATABASE_URL="+o.db.URL, "WAYBILL_KEYSET_FILE="+o.keyset)
	return cmd
}

// run returns a command's standard output.
func (o operatorOf) run(args ...string) string {
	o.t.Helper()
	cmd := o.command(args...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		o.t.Fatalf("waybill %s: %v: %s", strings.Join(args, " "), err, &stderr)
	}
	return strings.TrimSpace(string(out))
}

// get returns a member of the JSON object that a command prints.
func (o operatorOf) get(member string, args ...string) string {
	o.t.Helper()
	var v map[string]any
	if err := json.Unmarshal([]byte(o.run(append(args, "--json")...)), &v); err != nil {
		o.t.Fatal(err)
	}
	s, _ := v[member].(string)
	return s
}

// within waits until a condition holds.
func within(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !holds(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%s: not within %s", what, patience)
		}
	}
}

// served is a waybill serve of a process of its own.
type served struct {
	t    *testing.T
	cmd  *exec.Cmd
	addr string
	exit chan error

	mu  sync.Mutex
	log []map[string]any
}

// serve starts a process and returns once it says that it is ready.
func (o operatorOf) serve(args ...string) *served {
	o.t.Helper()
	s := &served{t: o.t, exit: make(chan error, 1)}
	s.cmd = o.command(append([]string{"serve", "--listen", "127.0.0.1:0"}, args...)...)
	stderr, err := s.cmd.StderrPipe()
	if err != nil {
		o.t.Fatal(err)
	}
	if err := s.cmd.Start(); err != nil {
		o.t.Fatal(err)
	}
	o.t.Cleanup(func() { _ = s.cmd.Process.Kill() })
	ready := make(chan string, 8)
	go func() {
		s.read(stderr, ready)
		s.exit <- s.cmd.Wait()
	}()
	select {
	case s.addr = <-ready:
	case err := <-s.exit:
		o.t.Fatalf("serve has ended: %v: %v", err, s.lines(""))
	case <-time.After(patience):
		o.t.Fatalf("serve is not ready: %v", s.lines(""))
	}
	return s
}

// read takes log lines until the process closes its standard error.
func (s *served) read(stderr io.Reader, ready chan<- string) {
	lines := bufio.NewScanner(stderr)
	for lines.Scan() {
		var v map[string]any
		if json.Unmarshal(lines.Bytes(), &v) != nil {
			v = map[string]any{"msg": lines.Text()}
		}
		s.mu.Lock()
		s.log = append(s.log, v)
		s.mu.Unlock()
		if v["msg"] == "ready" {
			addr, _ := v["listen"].(string)
			ready <- addr
		}
	}
}

// lines returns the log lines of one message, or all of them.
func (s *served) lines(message string) (found []map[string]any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, v := range s.log {
		if text, _ := v["msg"].(string); message == "" || strings.Contains(text, message) {
			found = append(found, v)
		}
	}
	return found
}

// get makes a request of the process and returns the answer's status and body.
func (s *served) get(path string) (status int, body string) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), patience)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+s.addr+path, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		s.t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return resp.StatusCode, string(text)
}

// metric returns a number that the process says of itself; -1 if it does not.
func (s *served) metric(name string) float64 {
	s.t.Helper()
	_, text := s.get("/metrics")
	for line := range strings.Lines(text) {
		if key, value, _ := strings.Cut(strings.TrimSpace(line), " "); key == name {
			n, err := strconv.ParseFloat(value, 64)
			if err != nil {
				s.t.Fatal(err)
			}
			return n
		}
	}
	return -1
}

func (s *served) signal(sig syscall.Signal) {
	s.t.Helper()
	if err := s.cmd.Process.Signal(sig); err != nil {
		s.t.Fatal(err)
	}
}

// ended waits for the process and returns its exit code; -1 if a signal ended it.
func (s *served) ended() int {
	s.t.Helper()
	select {
	case <-s.exit:
	case <-time.After(patience):
		s.t.Fatalf("serve does not end: %v", s.lines(""))
	}
	return s.cmd.ProcessState.ExitCode()
}
