// Package embedded runs a PostgreSQL server where nothing has been set up: for
// `waybill demo`, for `waybill dev` and for tests.
//
// The server is one that is installed ([Find]), or one that is fetched
// ([Download]). [Resolve] chooses between these and a database that the
// environment names, and says why each door that it tried stayed shut.
//
// A server owns one directory:
//
//	DataDir/
//	  pgdata/     the cluster, readable by the server's user only
//	  password    the superuser's, 0600, so that the cluster can be opened again
//	  server.log  what the server has said
//	  lock        held while a process owns the directory
//
// It listens on 127.0.0.1 alone, has no Unix socket, and asks for a password that
// was drawn at random, so other users of the machine cannot get in. PostgreSQL
// refuses to run as root: a process that is root hands the cluster to the user
// postgres, or nobody, and runs the server as that user.
//
// The server is our child in a session of its own, so Ctrl-C on the terminal
// reaches us and not it: we drain first and stop it last. On Linux it gets SIGINT
// from the kernel should we die without stopping it. Elsewhere it stays, and the
// next Start in the same directory answers [ErrRunning].
//
// This is no way to run production: there is no backup, no replica and no TLS.
package embedded

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"
)

// Database is the database that [Server.URL] leads to.
const Database = "waybill"

const (
	superuser    = "postgres"
	stopGrace    = 15 * time.Second // a fast shutdown may write a large checkpoint
	startTimeout = 30 * time.Second
)

// ErrRunning says that a live server already owns the data directory.
var ErrRunning = errors.New("embedded: a server is already running in this data directory")

// Config says what to start. Its zero value is a server in a temporary directory
// on a free port.
type Config struct {
	// DataDir holds the cluster and survives Stop. Empty: a temporary directory,
	// removed by Stop.
	DataDir string
	// Port on 127.0.0.1. Zero: any that is free.
	Port int
	// BinDir holds postgres and initdb. Empty: $WAYBILL_POSTGRES_BIN, or see [Find].
	BinDir string
	// Fsync makes commits survive a crash of the machine. Without it they survive
	// a crash of the server only, and everything is much faster.
	Fsync bool
	// Settings are given to the server on its command line, and so win over
	// ALTER SYSTEM.
	Settings map[string]string
	// Detached lets the server outlive this process. Somebody else must end it.
	Detached bool
}

// Server is a running PostgreSQL.
type Server struct {
	cfg       Config
	bin       Binaries
	account   account
	home      string
	temporary bool
	password  string
	lock      *os.File

	mu   sync.Mutex // guards what follows
	port int
	proc *process
}

// Start makes the cluster if there is none, starts a server on it and returns once
// it answers, at most 30 seconds later. The context bounds the start alone.
func Start(ctx context.Context, cfg Config) (*Server, error) {
	s, err := prepare(ctx, cfg)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.boot(ctx); err != nil {
		return nil, errors.Join(err, s.release())
	}
	return s, nil
}

// URL leads to the database "waybill" as superuser. It contains the password.
func (s *Server) URL() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.url(Database)
}

func (s *Server) url(database string) string {
	u := url.URL{
		Scheme:   "postgres",
		User:     url.UserPassword(superuser, s.password),
		Host:     "127.0.0.1:" + strconv.Itoa(s.port),
		Path:     "/" + database,
		RawQuery: "sslmode=disable",
	}
	return u.String()
}

// DataDir is the directory that holds the cluster, see the package comment.
func (s *Server) DataDir() string { return s.home }

// BinDir is where the server's programs are.
func (s *Server) BinDir() string { return s.bin.Dir }

// LogPath is the file that the server writes its log to.
func (s *Server) LogPath() string { return filepath.Join(s.home, "server.log") }

func (s *Server) pgdata() string { return filepath.Join(s.home, "pgdata") }

// PID is the process id of the postmaster, 0 while it is stopped.
func (s *Server) PID() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.proc == nil || s.proc.exited() {
		return 0
	}
	return s.proc.pid
}

// Stop ends the server: a fast shutdown, which breaks off open transactions, and
// after 15 seconds an immediate one, which is reported as an error. A temporary
// directory is removed. Stopping a stopped server does nothing.
func (s *Server) Stop() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return errors.Join(s.halt(), s.release())
}

// StopImmediate ends the server as a crash would (pg_ctl stop -m immediate) and
// keeps the directory. [Server.Restart] then recovers from the log.
func (s *Server) StopImmediate() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.proc.quit()
}

// Restart starts the server again on the same port, so that the URL stays true,
// after a fast shutdown if it runs.
func (s *Server) Restart(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lock == nil {
		return errors.New("embedded: restart: the server was stopped for good")
	}
	if err := s.halt(); err != nil {
		return fmt.Errorf("embedded: restart: %w", err)
	}
	s.cfg.Port = s.port
	return s.boot(ctx)
}

// release gives the directory up, and removes it if it was temporary.
func (s *Server) release() error {
	if s.lock == nil {
		return nil
	}
	var err error
	if s.temporary {
		err = os.RemoveAll(s.home)
	}
	err = errors.Join(err, s.lock.Close())
	s.lock = nil
	return err
}
