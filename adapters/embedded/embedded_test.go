package embedded

import (
	"context"
	"errors"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"go.uber.org/goleak"
)

// ask runs a query that returns one text.
func ask(t *testing.T, url, query string, args ...any) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(ctx)
	var answer string
	if err := conn.QueryRow(ctx, query, args...).Scan(&answer); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return answer
}

// openDir is a temporary directory that the server's user can enter, which that of
// testing is not when we are root.
func openDir(t *testing.T) string {
	t.Helper()
	root, err := TempRoot()
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp(root, "waybill-embedded-test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o711); err != nil {
		t.Fatal(err)
	}
	return dir
}

// remember and recall leave something in a database and look for it.
func remember(t *testing.T, url string) {
	t.Helper()
	ask(t, url, "SELECT lo_from_bytea(4711, 'still here')::text")
}

func recall(t *testing.T, url string) {
	t.Helper()
	if got := ask(t, url, "SELECT convert_from(lo_get(4711), 'UTF8')"); got != "still here" {
		t.Errorf("the database says %q", got)
	}
}

// startForTest starts a server that ends with the test.
func startForTest(t *testing.T, cfg Config) *Server {
	t.Helper()
	s, err := Start(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Stop(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func TestServerFromNothing(t *testing.T) {
	defer goleak.VerifyNone(t)
	s, err := Start(t.Context(), Config{Settings: map[string]string{"max_connections": "7"}})
	if err != nil {
		t.Fatal(err)
	}
	for query, want := range map[string]string{
		"SELECT current_database()":    Database,
		"SHOW server_encoding":         "UTF8",
		"SHOW listen_addresses":        "127.0.0.1",
		"SHOW unix_socket_directories": "",
		"SHOW max_connections":         "7",
		"SHOW is_superuser":            "on",
		"SELECT string_agg(DISTINCT auth_method, ' ') FROM pg_hba_file_rules": "scram-sha-256",
	} {
		if got := ask(t, s.URL(), query); got != want {
			t.Errorf("%s = %q, want %q", query, got, want)
		}
	}
	wrong := strings.Replace(s.URL(), s.password, "guess", 1)
	if _, err := pgx.Connect(t.Context(), wrong); err == nil {
		t.Error("a wrong password got in")
	}
	home, pid := s.DataDir(), s.PID()
	if group, err := syscall.Getpgid(pid); err != nil || group == syscall.Getpgrp() {
		t.Errorf("the server is in process group %d (%v), where Ctrl-C would reach it", group, err)
	}
	if err := s.Stop(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(home); !os.IsNotExist(err) {
		t.Errorf("%s is still there", home)
	}
	if err := syscall.Kill(pid, 0); !errors.Is(err, syscall.ESRCH) {
		t.Errorf("process %d is still there", pid)
	}
	if err := errors.Join(s.Stop(), s.StopImmediate()); err != nil {
		t.Errorf("stopping again: %v", err)
	}
}
