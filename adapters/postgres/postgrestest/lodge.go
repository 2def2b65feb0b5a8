package postgrestest

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
)

//go:embed reaper.sh
var reaperScript []byte

const knockPatience = 10 * time.Second // for a server that runs, on a busy machine

// lodge is the directory of one shared server:
//
//	users/PID   those who use it
//	ready       the marker, there while newcomers may join
//	reaper      the process id of its reaper
//	pg/         the embedded server's own directory
//	container   the name of a Docker container, in place of pg/
type lodge struct{ dir string }

// marker is what newcomers need to know.
type marker struct{ URL, Wanted string }

func (l lodge) path(name string) string { return filepath.Join(l.dir, name) }

// lodges lists those under a directory.
func lodges(base string) []lodge {
	dirs, _ := filepath.Glob(filepath.Join(base, "server-*"))
	all := make([]lodge, len(dirs))
	for i, dir := range dirs {
		all[i] = lodge{dir}
	}
	return all
}

// newLodge makes one, with us in it and watched.
func newLodge(base string) (lodge, error) {
	dir, err := os.MkdirTemp(base, "server-")
	if err != nil {
		return lodge{}, err
	}
	l := lodge{dir}
	err = errors.Join(
		os.Chmod(dir, dirMode()),
		os.Mkdir(l.path("users"), 0o700),
		os.WriteFile(l.path("reaper.sh"), reaperScript, 0o700),
		l.register(),
		l.watch(),
	)
	return l, err
}

// enter joins the server if it is there, wanted and answers.
func (l lodge) enter(ctx context.Context) (string, bool) {
	if m, ok := l.marker(); !ok || m.Wanted != wanted() {
		return "", false
	}
	if err := l.register(); err != nil {
		return "", false
	}
	m, ok := l.marker()
	if ok && knock(ctx, m.URL, knockPatience) == nil && (l.watched() || l.watch() == nil) {
		return m.URL, true
	}
	l.unregister()
	if !l.inhabited() {
		l.end(ctx)
	}
	return "", false
}

// knock asks a server for an answer.
func knock(ctx context.Context, url string, patience time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return as(ctx, url, func(conn *pgx.Conn) error { return conn.Ping(ctx) })
}

func (l lodge) marker() (m marker, ok bool) {
	text, err := os.ReadFile(l.path("ready"))
	return m, err == nil && json.Unmarshal(text, &m) == nil
}

// publish lets newcomers join.
func (l lodge) publish(url string) error {
	text, err := json.Marshal(marker{URL: url, Wanted: wanted()})
	if err != nil {
		return err
	}
	draft := l.path("ready.new")
	if err := os.WriteFile(draft, text, 0o600); err != nil {
		return err
	}
	return os.Rename(draft, l.path("ready"))
}

// residents are the processes to register: ours, and the `go test` that runs us, so
// that the server lasts while it builds the next package's tests.
func residents() []int {
	pids := []int{os.Getpid()}
	parent := os.Getppid()
	name, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", parent))
	if err != nil {
		name, _ = exec.Command("ps", "-o", "comm=", "-p", strconv.Itoa(parent)).Output()
	}
	if filepath.Base(strings.TrimSpace(string(name))) == "go" {
		pids = append(pids, parent)
	}
	return pids
}

func (l lodge) register() error {
	for _, pid := range residents() {
		if err := os.WriteFile(l.path("users/"+strconv.Itoa(pid)), nil, 0o600); err != nil {
			return err
		}
	}
	return nil
}

func (l lodge) unregister() {
	for _, pid := range residents() {
		_ = os.Remove(l.path("users/" + strconv.Itoa(pid)))
	}
}

// inhabited says whether any user lives.
func (l lodge) inhabited() bool {
	users, _ := os.ReadDir(l.path("users"))
	for _, u := range users {
		if alive(u.Name()) {
			return true
		}
	}
	return false
}

// watched says whether the reaper lives.
func (l lodge) watched() bool {
	pid, err := os.ReadFile(l.path("reaper"))
	return err == nil && alive(strings.TrimSpace(string(pid)))
}

func alive(pid string) bool {
	n, err := strconv.Atoi(pid)
	return err == nil && n > 0 && syscall.Kill(n, 0) == nil
}

// watch starts the reaper in a session of its own, a grandchild that nobody needs
// to wait for.
func (l lodge) watch() error {
	cmd := exec.Command("/bin/sh", "-c", `/bin/sh "$1" "$2" &`, "sh", l.path("reaper.sh"), l.dir)
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	return cmd.Run()
}

// end stops the server, if there is one, and removes the directory.
func (l lodge) end(ctx context.Context) {
	script := l.path("reaper.sh")
	if _, err := os.Stat(script); errors.Is(err, fs.ErrNotExist) {
		_ = os.RemoveAll(l.dir)
		return
	}
	_ = exec.CommandContext(ctx, "/bin/sh", script, l.dir, "now").Run()
}
