package secrets

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

func TestSavedKeysetIsPrivateAndReadsBack(t *testing.T) {
	path := filepath.Join(t.TempDir(), "keyset.json")
	v := fresh(t)
	if err := v.Save(path); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Fatalf("got %v, %v, want mode 0600", info.Mode(), err)
	}
	again, err := FromFile(path)
	if err != nil {
		t.Fatal(err)
	}
	mustOpen(t, again, seal(t, v, []byte("x"), "c"))
	onlyFile(t, path)
}

func TestSaveReplacesNothing(t *testing.T) {
	for name, occupy := range map[string]func(path string) error{
		"a file":            func(p string) error { return os.WriteFile(p, []byte("mine"), 0o600) },
		"a directory":       func(p string) error { return os.Mkdir(p, 0o700) },
		"a link to nowhere": func(p string) error { return os.Symlink("nowhere", p) },
		"an earlier keyset": func(p string) error { return fresh(t).Save(p) },
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "keyset.json")
			if err := occupy(path); err != nil {
				t.Fatal(err)
			}
			before, _ := os.ReadFile(path)
			if err := fresh(t).Save(path); !errors.Is(err, fs.ErrExist) {
				t.Errorf("got %v, want ErrExist", err)
			}
			if after, _ := os.ReadFile(path); !bytes.Equal(before, after) {
				t.Error("the file changed")
			}
			onlyFile(t, path)
		})
	}
}

func TestSaveWhereThereIsNoDirectory(t *testing.T) {
	err := fresh(t).Save(filepath.Join(t.TempDir(), "none", "keyset.json"))
	if !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v, want ErrNotExist", err)
	}
}

func TestAFileThatOthersMayTouchIsRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "keyset.json")
	if err := fresh(t).Save(path); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(filepath.Dir(path), "link")
	if err := os.Symlink(path, link); err != nil {
		t.Fatal(err)
	}
	for mode := range fs.FileMode(0o100) {
		mode |= 0o600
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{path, link} {
			_, err := FromFile(name)
			if refused := errors.Is(err, ErrReadable); refused != (mode != 0o600) {
				t.Errorf("%s, mode %04o: %v", name, mode, err)
			}
			if err != nil && !strings.Contains(err.Error(), "chmod 600") {
				t.Errorf("mode %04o: the error gives no way out: %v", mode, err)
			}
		}
	}
	if err := os.Chmod(path, 0o640); err != nil {
		t.Fatal(err)
	}
	if _, err := LoadOrCreate(path); !errors.Is(err, ErrReadable) {
		t.Errorf("LoadOrCreate: got %v, want ErrReadable", err)
	}
}

func TestReadOnlyFileIsFine(t *testing.T) {
	path := filepath.Join(t.TempDir(), "keyset.json")
	if err := fresh(t).Save(path); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, 0o400); err != nil {
		t.Fatal(err)
	}
	if _, err := FromFile(path); err != nil {
		t.Error(err)
	}
}

func TestFaultsOfFilesNameTheFileAndNoKey(t *testing.T) {
	dir := t.TempDir()
	key := keyMaterial(t, fresh(t))
	broken := filepath.Join(dir, "broken.json")
	if err := os.WriteFile(broken, []byte(`{"key":"`+key+`"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]error{
		broken:                      ErrKeyset,
		filepath.Join(dir, "none"):  fs.ErrNotExist,
		dir:                         nil, // reading it fails
		filepath.Join(broken, "in"): nil, // not a directory
	} {
		_, err := FromFile(path)
		switch {
		case err == nil:
			t.Errorf("%s: no error", path)
		case want != nil && !errors.Is(err, want):
			t.Errorf("%s: got %v, want %v", path, err, want)
		case !strings.Contains(err.Error(), path) || strings.Contains(err.Error(), key[:8]):
			t.Errorf("%s: %v", path, err)
		}
	}
}

func TestLoadOrCreateKeepsWhatItFindsAndMendsNothing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "keyset.json")
	first, err := LoadOrCreate(path)
	if err != nil {
		t.Fatal(err)
	}
	second, err := LoadOrCreate(path)
	if err != nil {
		t.Fatal(err)
	}
	mustOpen(t, second, seal(t, first, []byte("x"), "c"))
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := LoadOrCreate(path); !errors.Is(err, ErrKeyset) {
		t.Errorf("an empty file: got %v, want ErrKeyset", err)
	}
}

func TestAllThatStartAtOnceShareOneKeyset(t *testing.T) {
	for range 20 {
		path := filepath.Join(t.TempDir(), "keyset.json")
		vaults := make([]*Vault, 8)
		start := make(chan struct{})
		var wg sync.WaitGroup
		for i := range vaults {
			wg.Go(func() {
				<-start
				v, err := LoadOrCreate(path)
				if err != nil {
					t.Error(err)
				}
				vaults[i] = v
			})
		}
		close(start)
		wg.Wait()
		if t.Failed() {
			return
		}
		for _, v := range vaults {
			mustOpen(t, v, seal(t, vaults[0], []byte("x"), "c"))
		}
		onlyFile(t, path)
	}
}

// childPath makes this test binary the child of TestProcessesThatStartAtOnceShareOneKeyset.
const childPath = "WAYBILL_TEST_KEYSET"

func TestProcessesThatStartAtOnceShareOneKeyset(t *testing.T) {
	if path := os.Getenv(childPath); path != "" {
		v, err := LoadOrCreate(path)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = os.Stdout.WriteString(v.String() + "\n")
		return
	}
	path := filepath.Join(t.TempDir(), "keyset.json")
	said := make([]string, 6)
	var wg sync.WaitGroup
	for i := range said {
		wg.Go(func() {
			c := exec.Command(os.Args[0], "-test.run=^TestProcessesThatStartAtOnceShareOneKeyset$")
			c.Env = append(os.Environ(), childPath+"="+path)
			out, err := c.CombinedOutput()
			if err != nil {
				t.Errorf("child: %v\n%s", err, out)
			}
			said[i], _, _ = strings.Cut(string(out), "\n")
		})
	}
	wg.Wait()
	for _, s := range said {
		if s != said[0] || !strings.HasPrefix(s, "vault of 1 keys") {
			t.Errorf("one child has %q, another %q", s, said[0])
		}
	}
	onlyFile(t, path)
}

// onlyFile fails where something beside path was left behind.
func onlyFile(t *testing.T, path string) {
	t.Helper()
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil || len(entries) != 1 {
		t.Errorf("left behind: %v, %v", entries, err)
	}
}
