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
	closed := t.TempDir() // of mode 0700
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
	want := closed
	if os.Geteuid() == 0 {
		want = "/tmp"
	}
	if got, err := TempRoot(); err != nil || got != want {
		t.Errorf("temporary directories go to %s (%v), want %s", got, err, want)
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
