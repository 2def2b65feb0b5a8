package embedded

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
)

// account is the user that the server runs as. Its zero value is ourselves.
type account struct {
	name string
	cred *syscall.Credential
}

// serverAccount is ourselves unless we are root, which PostgreSQL refuses: then
// the owner of the cluster if there is one, else postgres, else nobody.
func serverAccount(pgdata string) (account, error) {
	if os.Geteuid() != 0 {
		return account{}, nil
	}
	if uid, gid := ownerOf(pgdata); uid != 0 {
		return account{fmt.Sprintf("uid %d", uid), &syscall.Credential{Uid: uid, Gid: gid}}, nil
	}
	for _, name := range []string{"postgres", "nobody"} {
		if u, err := user.Lookup(name); err == nil {
			return accountOf(u)
		}
	}
	return account{}, errors.New("embedded: PostgreSQL does not run as root, and there is no user postgres or nobody to run it as")
}

func accountOf(u *user.User) (account, error) {
	uid, err1 := strconv.ParseUint(u.Uid, 10, 32)
	gid, err2 := strconv.ParseUint(u.Gid, 10, 32)
	cred := &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
	return account{u.Username, cred}, errors.Join(err1, err2)
}

// own makes a file or directory the account's.
func (a account) own(path string) error {
	if a.cred == nil {
		return nil
	}
	return os.Lchown(path, int(a.cred.Uid), int(a.cred.Gid))
}

// adopt makes a cluster the account's that root has as a copy of another's. One
// that is somebody's already may still be in use by a server on its way out.
func (a account) adopt(pgdata string) error {
	if uid, _ := ownerOf(pgdata); a.cred == nil || uid != 0 {
		return nil
	}
	return filepath.WalkDir(pgdata, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return a.own(path)
	})
}

// ownerOf is who a file belongs to: root, if it is not there.
func ownerOf(path string) (uid, gid uint32) {
	info, err := os.Stat(path)
	if err != nil {
		return 0, 0
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, 0
	}
	return st.Uid, st.Gid
}

// homeMode keeps others out of a data directory, but lets the server's user
// through when it is not us.
func (a account) homeMode() os.FileMode {
	if a.cred != nil {
		return 0o711
	}
	return 0o700
}

// mustEnter fails with advice if the account cannot get into a directory. It is
// tried, not computed from mode bits, so that ACLs and mounts count.
func (a account) mustEnter(dir string) error {
	if a.cred == nil || a.canEnter(dir) {
		return nil
	}
	blocked := dir
	for at := dir; at != "/"; at = filepath.Dir(at) {
		if !a.canEnter(at) {
			blocked = at
		}
	}
	return fmt.Errorf("embedded: as root the server runs as user %s, who cannot enter %s: "+
		"choose a directory elsewhere (such as /var/lib/waybill), or run `chmod o+x %s`", a.name, blocked, blocked)
}

func (a account) canEnter(dir string) bool {
	cmd := exec.Command("/bin/sh", "-c", `cd -- "$1"`, "sh", dir)
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: a.cred}
	return cmd.Run() == nil
}

// TempRoot is where temporary data directories go: os.TempDir, or /tmp if the
// server's user cannot enter that.
func TempRoot() (string, error) {
	a, err := serverAccount("")
	if err != nil {
		return "", err
	}
	dir := os.TempDir()
	if a.cred != nil && !a.canEnter(dir) {
		dir = "/tmp"
	}
	return dir, nil
}
