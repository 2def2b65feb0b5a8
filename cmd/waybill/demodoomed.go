package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"

	"waybill/handlers/worker"
)

// doomed is a worker in a process of its own: this program once more, as
// `waybill serve`, to be killed.
type doomed struct {
	pid   int
	cmd   *exec.Cmd
	said  lastWords
	ended chan struct{}
}

// startDoomed starts the worker.
//
// The kernel tells a child of its parent's death when the *thread* that forked it
// ends, so it is started and waited for on one locked thread.
func startDoomed(name string, p *place) (*doomed, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find this program: %w", err)
	}
	w := &doomed{ended: make(chan struct{})}
	w.cmd = exec.Command(program, "serve", "--api=false", "--worker-name", name, "--concurrency", "16",
		"--lease", worker.MinLease.String(), "--allow-networks", loopbacks[0].String())
	w.cmd.Env = append(withoutOurs(os.Environ()), "WAYBILL_DATABASE_URL="+p.URL, "WAYBILL_KEYSET_FILE="+p.KeysetFile)
	w.cmd.Stderr = &w.said
	w.cmd.SysProcAttr = dieWithParent()
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		defer close(w.ended)
		err := w.cmd.Start()
		started <- err
		if err == nil {
			_ = w.cmd.Wait()
		}
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("start a worker: %w", err)
	}
	w.pid = w.cmd.Process.Pid
	return w, nil
}

// withoutOurs is an environment without settings of Waybill's, which were meant for
// another command.
func withoutOurs(environment []string) (rest []string) {
	for _, v := range environment {
		if !strings.HasPrefix(v, "WAYBILL_") {
			rest = append(rest, v)
		}
	}
	return rest
}

// kill is kill -9, and waits until the process is gone. Killing it twice is no error.
func (w *doomed) kill() error {
	err := w.cmd.Process.Kill()
	<-w.ended
	if errors.Is(err, os.ErrProcessDone) {
		return nil
	}
	return err
}

// check fails if the worker has ended by itself.
func (w *doomed) check() error {
	select {
	case <-w.ended:
		return fmt.Errorf("the worker's process ended by itself: %s", w.said.String())
	default:
		return nil
	}
}

// maxWords is how much of what a process said is kept.
const maxWords = 2000

// lastWords keeps the end of what is written to it.
type lastWords struct {
	mu   sync.Mutex
	text []byte
}

// Write takes all of b.
func (t *lastWords) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = append(t.text, b...)
	t.text = t.text[max(0, len(t.text)-maxWords):]
	return len(b), nil
}

// String is what was kept.
func (t *lastWords) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.text)
}
