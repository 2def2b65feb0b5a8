package embedded

import (
	"os"
	"path/filepath"
	"syscall"
	"time"
)

const (
	tempPrefix = "waybill-postgres-"
	tempAge    = time.Minute // younger ones may not have their lock yet
)

// flock takes an exclusive lock without waiting. Closing the file frees it.
func flock(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		_ = f.Close()
		return nil, err
	}
	return f, nil
}

// sweep removes temporary directories whose owners were killed. It is best effort:
// what it cannot remove belongs to somebody else.
func sweep(root string) {
	homes, _ := filepath.Glob(filepath.Join(root, tempPrefix+"*"))
	for _, home := range homes {
		info, err := os.Lstat(home)
		if err != nil || !info.IsDir() || time.Since(info.ModTime()) < tempAge {
			continue
		}
		st, ok := info.Sys().(*syscall.Stat_t)
		if !ok || int(st.Uid) != os.Geteuid() {
			continue
		}
		if f, err := flock(filepath.Join(home, "lock")); err == nil {
			_ = os.RemoveAll(home)
			_ = f.Close()
		}
	}
}
