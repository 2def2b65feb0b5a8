package embedded

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"time"
)

// process is a postmaster that we started.
type process struct {
	pid      int
	detached bool
	done     chan struct{} // closed once it was waited for
}

// launch starts a command in a session of its own.
//
// The kernel sends the signal of a parent's death when the *thread* that forked
// ends, so an attached child is started and waited for on one locked thread. A
// detached one gets no such signal and no goroutine, which would outlast the tests
// that count theirs.
func launch(cmd *exec.Cmd, detached bool) (*process, error) {
	cmd.SysProcAttr.Setsid = true
	p := &process{detached: detached, done: make(chan struct{})}
	if detached {
		if err := cmd.Start(); err != nil {
			return nil, err
		}
		p.pid = cmd.Process.Pid
		return p, nil
	}
	dieWithParent(cmd.SysProcAttr)
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		defer close(p.done)
		err := cmd.Start()
		if err != nil {
			started <- err
			return
		}
		p.pid = cmd.Process.Pid
		started <- nil
		_ = cmd.Wait()
	}()
	if err := <-started; err != nil {
		<-p.done
		return nil, err
	}
	return p, nil
}

// exited says whether the process is gone. A nil process is.
func (p *process) exited() bool {
	if p == nil {
		return true
	}
	if p.detached {
		pid, err := syscall.Wait4(p.pid, nil, syscall.WNOHANG, nil)
		return pid == p.pid || errors.Is(err, syscall.ECHILD)
	}
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// end signals the process and waits for it to go.
func (p *process) end(sig syscall.Signal, patience time.Duration) error {
	if p.exited() {
		return nil
	}
	if err := syscall.Kill(p.pid, sig); err != nil && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("signal postmaster %d: %w", p.pid, err)
	}
	for deadline := time.Now().Add(patience); !p.exited(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			return fmt.Errorf("postmaster %d did not end within %s of %s: %w", p.pid, patience, sig, os.ErrDeadlineExceeded)
		}
	}
	return nil
}

// quit is an immediate shutdown. The postmaster itself kills children that do not
// follow within 5 seconds.
func (p *process) quit() error {
	if err := p.end(syscall.SIGQUIT, stopGrace); err != nil {
		return errors.Join(err, p.end(syscall.SIGKILL, stopGrace))
	}
	return nil
}
