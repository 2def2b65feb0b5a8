package embedded

import (
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

func TestRestartKeepsDataAndPort(t *testing.T) {
	t.Parallel()
	s := startForTest(t, Config{})
	remember(t, s.URL())
	url, pid := s.URL(), s.PID()
	if err := s.StopImmediate(); err != nil {
		t.Fatal(err)
	}
	if got := s.PID(); got != 0 {
		t.Errorf("PID = %d of a stopped server", got)
	}
	for _, from := range []string{"crashed", "running"} {
		if err := s.Restart(t.Context()); err != nil {
			t.Fatalf("from %s: %v", from, err)
		}
		if s.URL() != url || s.PID() == pid || s.PID() == 0 {
			t.Errorf("from %s: URL %s, process %d; were %s, %d", from, s.URL(), s.PID(), url, pid)
		}
		recall(t, url)
	}
}

func TestDataDirectoryIsReopened(t *testing.T) {
	t.Parallel()
	cfg := Config{DataDir: filepath.Join(openDir(t), "new", "data"), Fsync: true}
	first := startForTest(t, cfg)
	remember(t, first.URL())
	if _, err := Start(t.Context(), cfg); !errors.Is(err, ErrRunning) {
		t.Errorf("a second server on the same directory: %v", err)
	}
	if err := first.Stop(); err != nil {
		t.Fatal(err)
	}
	if err := first.Restart(t.Context()); err == nil {
		t.Error("restarted after Stop, when the directory is no longer ours")
	}
	if os.Geteuid() == 0 { // as a backup that root unpacked would be
		if err := exec.Command("chown", "-R", "0:0", filepath.Join(cfg.DataDir, "pgdata")).Run(); err != nil {
			t.Fatal(err)
		}
	}
	again := startForTest(t, cfg)
	recall(t, again.URL())
	info, err := os.Stat(filepath.Join(cfg.DataDir, "password"))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("password file: %v, %v", info.Mode(), err)
	}
}

func TestStartSaysWhyItFailed(t *testing.T) {
	t.Parallel()
	taken, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	here, err := Find("")
	if err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		cfg  Config
		want string
	}{
		"a port that is taken":  {Config{Port: taken.Addr().(*net.TCPAddr).Port}, "the port is taken"},
		"a wrong setting":       {Config{Settings: map[string]string{"max_connections": "many"}}, `invalid value for parameter "max_connections": "many"`},
		"a cluster of tomorrow": {Config{DataDir: clusterOf(t, "99")}, "cannot open a cluster made by PostgreSQL 99"},
		"a lost password":       {Config{DataDir: clusterOf(t, strconv.Itoa(here.Major))}, "the cluster's password"},
		"nobody to remove it":   {Config{Detached: true}, "needs a data directory"},
	} {
		if _, err := Start(t.Context(), tt.cfg); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// clusterOf is a data directory with no more of a cluster than its version.
func clusterOf(t *testing.T, major string) string {
	t.Helper()
	dir := openDir(t)
	if err := os.Mkdir(filepath.Join(dir, "pgdata"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "pgdata", "PG_VERSION"), []byte(major+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}
