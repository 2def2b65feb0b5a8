package main

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"
)

// subject is a process of the product that is killed and started again for as long as
// the run lasts: this program once more, as `waybill serve`.
type subject struct {
	name    string
	program string
	args    []string
	env     func() []string // of its next life
	pause   func() time.Duration
	notice  func(what string) // of what happens to it
	fault   func(what string) // of what must not

	mu      sync.Mutex
	process *os.Process // nil between two lives
	killed  bool        // by us, in this life
	asked   int         // to end, in this life: a second time means at once
	leaving bool        // it is told to end
	ended   chan struct{}
}

// start gives the subject its first life.
func (s *subject) start() {
	s.ended = make(chan struct{})
	go func() {
		defer close(s.ended)
		// The kernel tells a child of its parent's death when the thread that forked
		// it ends.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		for !s.isLeaving() {
			s.live()
			if !s.isLeaving() {
				time.Sleep(s.pause())
			}
		}
	}()
}

func (s *subject) isLeaving() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.leaving
}

// noStart is a life that ended before it began: there was no database to begin on.
const noStart = "no start, as the database was away"

// live is one life.
func (s *subject) live() {
	said := &testimony{}
	cmd := exec.Command(s.program, s.args...)
	cmd.Env = append(withoutOurs(os.Environ()), s.env()...)
	cmd.Stderr = said
	cmd.SysProcAttr = dieWithParent()
	s.mu.Lock()
	if s.leaving {
		s.mu.Unlock()
		return
	}
	err := cmd.Start()
	s.process, s.killed, s.asked = cmd.Process, false, 0
	s.mu.Unlock()
	if err != nil {
		s.fault("cannot be started: " + err.Error())
		return
	}
	_ = cmd.Wait()
	s.mu.Lock()
	s.process = nil
	killed, asked := s.killed, s.asked
	s.mu.Unlock()
	s.judge(cmd.ProcessState, said, killed, asked)
}

// judge says how a life ended. To end by itself is allowed before it was ready, as
// there may be no database to start on; to end with results that could not be recorded
// when it was asked to and there was none.
func (s *subject) judge(state *os.ProcessState, said *testimony, killed bool, asked int) {
	point, self := said.crash()
	switch {
	case self:
		s.notice("kill -9 at " + point)
	case killed:
	case asked > 1 && state.ExitCode() < 0:
	case asked > 0 && (state.Success() || !said.ready() || strings.Contains(said.String(), "could not be recorded")):
	case asked > 0:
		s.fault("was told to end and ended with " + state.String() + ": " + said.String())
	case said.ready() || strings.Contains(said.String(), "this is a bug"):
		s.fault("ended by itself with " + state.String() + ": " + said.String())
	default:
		s.notice(noStart)
	}
}

// signal sends a signal to the present life, if there is one.
func (s *subject) signal(sig syscall.Signal) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.process == nil {
		return false
	}
	s.killed = s.killed || sig == syscall.SIGKILL
	if sig == syscall.SIGTERM {
		s.asked++
	}
	return s.process.Signal(sig) == nil
}

// stop lets the subject finish and end, and waits for that at most so long.
func (s *subject) stop(patience time.Duration) error {
	s.mu.Lock()
	s.leaving = true
	s.mu.Unlock()
	s.signal(syscall.SIGCONT)
	s.signal(syscall.SIGTERM)
	select {
	case <-s.ended:
		return nil
	case <-time.After(patience):
		s.signal(syscall.SIGKILL)
		<-s.ended
		return errors.New(s.name + " did not end when it was told to")
	}
}

// testimony is the end of what a process wrote to standard error, and whether it said
// that it was ready or about to kill itself.
type testimony struct {
	lastWords
	mu      sync.Mutex
	isReady bool
	point   string
}

// Write takes all of b.
func (t *testimony) Write(b []byte) (int, error) {
	t.mu.Lock()
	t.isReady = t.isReady || bytes.Contains(b, []byte(`"msg":"ready"`))
	if _, rest, found := bytes.Cut(b, []byte(crashSaid)); found {
		line, _, _ := bytes.Cut(rest, []byte("\n"))
		t.point = string(line)
	}
	t.mu.Unlock()
	return t.lastWords.Write(b)
}

func (t *testimony) ready() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.isReady
}

func (t *testimony) crash() (point string, self bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.point, t.point != ""
}
