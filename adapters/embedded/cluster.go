package embedded

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// prepare finds the programs, takes the directory and makes the cluster.
func prepare(ctx context.Context, cfg Config) (*Server, error) {
	if cfg.Detached && cfg.DataDir == "" {
		return nil, errors.New("embedded: a detached server needs a data directory: nobody would remove a temporary one")
	}
	s := &Server{cfg: cfg}
	if err := s.makeHome(); err != nil {
		return nil, err
	}
	if err := s.takeLock(); err != nil {
		return nil, err
	}
	if err := s.makeCluster(ctx); err != nil {
		return nil, errors.Join(err, s.release())
	}
	return s, nil
}

// makeHome makes the directory that holds the cluster.
func (s *Server) makeHome() (err error) {
	if s.cfg.DataDir == "" {
		return s.makeTemporaryHome()
	}
	if s.home, err = filepath.Abs(s.cfg.DataDir); err != nil {
		return fmt.Errorf("embedded: data directory: %w", err)
	}
	if s.account, err = serverAccount(s.pgdata()); err != nil {
		return err
	}
	if err := os.MkdirAll(s.home, s.account.homeMode()); err != nil {
		return fmt.Errorf("embedded: data directory: %w", err)
	}
	return s.account.mustEnter(s.home)
}

func (s *Server) makeTemporaryHome() (err error) {
	root, err := TempRoot()
	if err != nil {
		return err
	}
	sweep(root)
	if s.account, err = serverAccount(""); err != nil {
		return err
	}
	if s.home, err = os.MkdirTemp(root, tempPrefix); err != nil {
		return fmt.Errorf("embedded: temporary directory: %w", err)
	}
	s.temporary = true
	return os.Chmod(s.home, s.account.homeMode())
}

// takeLock makes us the directory's only owner until release, or our death.
func (s *Server) takeLock() error {
	f, err := flock(filepath.Join(s.home, "lock"))
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return fmt.Errorf("%w: %s", ErrRunning, s.home)
	}
	if err != nil {
		return fmt.Errorf("embedded: lock data directory: %w", err)
	}
	s.lock = f
	return nil
}

// makeCluster runs initdb unless there is a cluster. A cluster appears under its
// name when it is whole, so a killed initdb leaves nothing that looks like one.
func (s *Server) makeCluster(ctx context.Context) (err error) {
	major := s.clusterMajor()
	if s.bin, err = find(s.cfg.BinDir, major); err != nil {
		return fmt.Errorf("embedded: %w", err)
	}
	if err := s.account.mustEnter(s.bin.Dir); err != nil {
		return err
	}
	if major != 0 {
		return s.reopen()
	}
	s.password = rand.Text()
	raw := filepath.Join(s.home, "pgdata.new")
	if err := s.initdb(ctx, raw); err != nil {
		return fmt.Errorf("embedded: make cluster: %w", err)
	}
	if err := os.WriteFile(s.passwordPath(), []byte(s.password), 0o600); err != nil {
		return fmt.Errorf("embedded: keep password: %w", err)
	}
	return os.Rename(raw, s.pgdata())
}

// clusterMajor is the version that made the cluster, 0 if there is none.
func (s *Server) clusterMajor() int {
	text, err := os.ReadFile(filepath.Join(s.pgdata(), "PG_VERSION"))
	if err != nil {
		return 0
	}
	major, _ := strconv.Atoi(strings.TrimSpace(string(text)))
	return major
}

func (s *Server) passwordPath() string { return filepath.Join(s.home, "password") }

// reopen reads what a former Start left.
func (s *Server) reopen() error {
	password, err := os.ReadFile(s.passwordPath())
	if err != nil {
		return fmt.Errorf("embedded: the cluster's password: %w", err)
	}
	s.password = string(password)
	return s.account.adopt(s.pgdata())
}

// initdb makes a UTF-8 cluster without syncing it: what a crash of the machine
// would break here can be made again.
func (s *Server) initdb(ctx context.Context, dir string) error {
	pwfile := filepath.Join(s.home, "pwfile")
	defer os.Remove(pwfile)
	err := errors.Join(
		os.RemoveAll(dir),
		os.Mkdir(dir, 0o700),
		os.WriteFile(pwfile, []byte(s.password), 0o600),
		s.account.own(dir),
		s.account.own(pwfile),
	)
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, filepath.Join(s.bin.Dir, "initdb"), "--pgdata="+dir,
		"--username="+superuser, "--pwfile="+pwfile, "--encoding=UTF8", "--locale=C", "--no-sync",
		"--auth-host=scram-sha-256", "--auth-local=scram-sha-256")
	s.dress(cmd)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("initdb: %w\n%s", err, lastLines(string(out)))
	}
	return nil
}
