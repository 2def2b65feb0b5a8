package embedded

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
)

const (
	portTries  = 5
	retryPause = 50 * time.Millisecond
	readyPause = 10 * time.Millisecond
)

var errPortTaken = errors.New("the port is taken")

// boot starts the server. Another program may be quicker to take a free port, and
// the server of a killed owner may still be on its way out: both are tried again.
func (s *Server) boot(ctx context.Context) (err error) {
	deadline := time.Now().Add(stopGrace)
	for ports := 1; ; time.Sleep(retryPause) {
		if s.port = s.cfg.Port; s.port == 0 {
			if s.port, err = freePort(); err != nil {
				return fmt.Errorf("embedded: find a port: %w", err)
			}
		}
		err = s.bootOnce(ctx)
		switch {
		case err == nil:
			return nil
		case errors.Is(err, errPortTaken) && s.cfg.Port == 0 && ports < portTries:
			ports++
		case errors.Is(err, ErrRunning) && time.Now().Before(deadline):
		default:
			return fmt.Errorf("embedded: start PostgreSQL %d from %s on port %d: %w", s.bin.Major, s.bin.Dir, s.port, err)
		}
	}
}

func freePort() (int, error) {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	return l.Addr().(*net.TCPAddr).Port, l.Close()
}

// bootOnce starts the server and waits until it serves our database.
func (s *Server) bootOnce(ctx context.Context) error {
	log, err := os.OpenFile(s.LogPath(), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	before, err := log.Stat()
	if err != nil {
		return err
	}
	cmd := exec.Command(filepath.Join(s.bin.Dir, "postgres"), s.arguments()...)
	cmd.Stdout, cmd.Stderr = log, log
	s.dress(cmd)
	if s.proc, err = launch(cmd, s.cfg.Detached); err != nil {
		return err
	}
	if err := s.waitReady(ctx); err != nil {
		_ = s.proc.quit()
		return s.explain(err, before.Size())
	}
	return nil
}

// explain adds what the server had to say to an error of its start.
func (s *Server) explain(err error, since int64) error {
	text, _ := os.ReadFile(s.LogPath())
	said := string(text[min(since, int64(len(text))):])
	switch {
	case strings.Contains(said, "could not bind"):
		err = errPortTaken
	case strings.Contains(said, `"postmaster.pid" already exists`),
		strings.Contains(said, "pre-existing shared memory block"):
		err = ErrRunning
	}
	return fmt.Errorf("%w; the server said:\n%s", err, lastLines(said))
}

// lastLines is the end of a program's output, short enough for an error.
func lastLines(text string) string {
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	return strings.Join(lines[max(0, len(lines)-15):], "\n")
}

// arguments is the server's command line.
func (s *Server) arguments() []string {
	onOff := map[bool]string{true: "on", false: "off"}[s.cfg.Fsync]
	settings := map[string]string{
		"listen_addresses":        "127.0.0.1",
		"unix_socket_directories": "", // their paths are limited to about 100 bytes
		"fsync":                   onOff,
		"full_page_writes":        onOff,
	}
	for name, value := range s.cfg.Settings {
		settings[name] = value
	}
	settings["port"] = strconv.Itoa(s.port)
	args := []string{"-D", s.pgdata()}
	for name, value := range settings {
		args = append(args, "--"+name+"="+value)
	}
	slices.Sort(args[2:])
	return args
}

// dress gives a program of PostgreSQL the account, directory and environment to run
// in. Ours may hold secrets and PG* variables, so little of it is passed on.
func (s *Server) dress(cmd *exec.Cmd) {
	cmd.Dir = "/"
	cmd.Env = []string{"LC_ALL=C"}
	for _, name := range []string{"PATH", "TZ", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH"} {
		if value, ok := os.LookupEnv(name); ok {
			cmd.Env = append(cmd.Env, name+"="+value)
		}
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: s.account.cred}
}

// waitReady returns once our database is there. It knocks only when the server says
// that it is ready: until then another program may have the port.
func (s *Server) waitReady(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	for !s.saysReady() {
		if s.proc.exited() {
			return errors.New("the server ended at once")
		}
		if ctx.Err() != nil {
			return fmt.Errorf("not ready: %w", ctx.Err())
		}
		time.Sleep(readyPause)
	}
	if err := s.ensureDatabase(ctx); err != nil {
		return fmt.Errorf("create database: %w", err)
	}
	return nil
}

// saysReady reads postmaster.pid, where the first line is the process id and the
// eighth the status.
func (s *Server) saysReady() bool {
	text, err := os.ReadFile(filepath.Join(s.pgdata(), "postmaster.pid"))
	lines := strings.Split(string(text), "\n")
	return err == nil && len(lines) >= 8 &&
		lines[0] == strconv.Itoa(s.proc.pid) && strings.TrimSpace(lines[7]) == "ready"
}

// ensureDatabase connects and creates our database if it is missing.
func (s *Server) ensureDatabase(ctx context.Context) error {
	conn, err := pgx.Connect(ctx, s.url("postgres"))
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	var there bool
	err = conn.QueryRow(ctx, "SELECT EXISTS (SELECT FROM pg_database WHERE datname = $1)", Database).Scan(&there)
	if err != nil || there {
		return err
	}
	_, err = conn.Exec(ctx, "CREATE DATABASE "+pgx.Identifier{Database}.Sanitize())
	return err
}

// halt is a fast shutdown, then an immediate one.
func (s *Server) halt() error {
	if err := s.proc.end(syscall.SIGINT, stopGrace); err != nil {
		return errors.Join(err, s.proc.quit())
	}
	return nil
}
