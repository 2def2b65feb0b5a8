package embedded

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// A directory that only we can enter is no trouble unless we are root, when the
// server is somebody else.
func TestDataDirectoryBehindAClosedDoor(t *testing.T) {
	t.Parallel()
	closed := t.TempDir()
	if err := os.Chmod(closed, 0o700); err != nil {
		t.Fatal(err)
	}
	s, err := Start(t.Context(), Config{DataDir: filepath.Join(closed, "data")})
	if err == nil {
		err = s.Stop()
	} else if os.Geteuid() == 0 && strings.Contains(err.Error(), "chmod o+x ") {
		err = nil
	}
	if err != nil {
		t.Error(err)
	}
}

func TestTemporaryDirectoryBehindAClosedDoor(t *testing.T) {
	closed := t.TempDir()
	t.Setenv("TMPDIR", closed)
	s := startForTest(t, Config{})
	if inside := strings.HasPrefix(s.DataDir(), closed); inside == (os.Geteuid() == 0) {
		t.Errorf("data directory %s, temporary directory %s", s.DataDir(), closed)
	}
}

func TestSweepRemovesWhatTheDeadLeft(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	long := time.Now().Add(-time.Hour)
	homes := map[string]string{}
	for _, name := range []string{"dead", "young", "owned"} {
		homes[name] = filepath.Join(root, tempPrefix+name)
		if err := os.Mkdir(homes[name], 0o700); err != nil {
			t.Fatal(err)
		}
	}
	lock, err := flock(filepath.Join(homes["owned"], "lock"))
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	for _, name := range []string{"dead", "owned"} {
		if err := os.Chtimes(homes[name], long, long); err != nil {
			t.Fatal(err)
		}
	}
	sweep(root)
	for name, home := range homes {
		if _, err := os.Stat(home); os.IsNotExist(err) != (name == "dead") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
