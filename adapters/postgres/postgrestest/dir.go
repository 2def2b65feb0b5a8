package postgrestest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"waybill/adapters/embedded"
)

const (
	memoryDir  = "/dev/shm"
	memoryRoom = 2 << 30
)

var errForeign = errors.New("is not a directory that only we may write: remove it, or set TMPDIR")

// sharedRoot is where shared servers live: in memory where Linux has room for them,
// as making and dropping databases is mostly making and dropping files, several
// times slower on a disk. A TMPDIR that is set comes first.
func sharedRoot() (string, error) {
	var fs syscall.Statfs_t
	if os.Getenv("TMPDIR") == "" && syscall.Statfs(memoryDir, &fs) == nil && uint64(fs.Bavail)*uint64(fs.Bsize) > memoryRoom {
		return memoryDir, nil
	}
	return embedded.TempRoot()
}

// dirMode keeps others out. When we are root the server is another user, who must
// get through to its files.
func dirMode() os.FileMode {
	if os.Geteuid() == 0 {
		return 0o711
	}
	return 0o700
}

// baseDir is where a user's shared servers live. Its name can be guessed, so it is
// used only if nobody else can have put anything there.
func baseDir(root string) (string, error) {
	dir := filepath.Join(root, "waybill-test-"+strconv.Itoa(os.Geteuid()))
	if err := os.Mkdir(dir, dirMode()); err != nil && !errors.Is(err, os.ErrExist) {
		return "", err
	}
	info, err := os.Lstat(dir)
	if err != nil {
		return "", err
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok || !info.IsDir() || int(st.Uid) != os.Geteuid() || info.Mode().Perm()&0o022 != 0 {
		return "", fmt.Errorf("%s %w", dir, errForeign)
	}
	return dir, nil
}

// lockDir waits for its turn. The lock ends with us, however we end.
func lockDir(ctx context.Context, base string) (unlock func(), err error) {
	f, err := os.OpenFile(filepath.Join(base, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	for {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return func() { _ = f.Close() }, nil
		}
		if ctx.Err() != nil || !errors.Is(err, syscall.EWOULDBLOCK) && !errors.Is(err, syscall.EINTR) {
			return nil, errors.Join(fmt.Errorf("wait for the tests' server: %w", err), ctx.Err(), f.Close())
		}
		time.Sleep(20 * time.Millisecond)
	}
}
