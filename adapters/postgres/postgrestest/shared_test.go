package postgrestest

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"waybill/adapters/embedded"
)

const childVariable = "WAYBILL_TEST_CHILD_ROOT"

// TestMain lets the test binary play other test processes, which can be killed.
func TestMain(m *testing.M) {
	if root := os.Getenv(childVariable); root != "" {
		playUser(root)
	}
	os.Exit(m.Run())
}

func playUser(root string) {
	url, err := join(context.Background(), root)
	if err != nil {
		fmt.Println("failed:", strings.ReplaceAll(err.Error(), "\n", " "))
		os.Exit(1)
	}
	fmt.Println(url)
	time.Sleep(time.Minute)
	os.Exit(1)
}

// user is another test process.
type user struct {
	*exec.Cmd
	said *bufio.Reader
}

func startUser(t *testing.T, root string) user {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childVariable+"="+root, urlVariable+"=")
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	u := user{cmd, bufio.NewReader(out)}
	t.Cleanup(u.kill)
	return u
}

func (u user) kill() {
	_ = u.Process.Kill()
	_ = u.Wait()
}

// url waits for the process to have its server.
func (u user) url(t *testing.T) string {
	t.Helper()
	line, _ := u.said.ReadString('\n')
	if !strings.HasPrefix(line, "postgres://") {
		t.Fatalf("a user said %q", line)
	}
	return strings.TrimSpace(line)
}

// playground is a directory for shared servers of the test's own.
func playground(t *testing.T) (root, base string) {
	t.Helper()
	temp, err := embedded.TempRoot()
	if err != nil {
		t.Fatal(err)
	}
	if root, err = os.MkdirTemp(temp, "waybill-postgrestest-"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(root) })
	if err := os.Chmod(root, dirMode()); err != nil {
		t.Fatal(err)
	}
	if base, err = baseDir(root); err != nil {
		t.Fatal(err)
	}
	return root, base
}

// await waits for something that a reaper does.
func await(t *testing.T, what string, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(15 * time.Second); !is(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("waited in vain: %s", what)
		}
	}
}

func TestServerIsSharedAndEndsWithItsLastUser(t *testing.T) {
	t.Parallel()
	root, base := playground(t)
	stale := plantStale(t, base)
	first, second := startUser(t, root), startUser(t, root)
	url := first.url(t)
	if other := second.url(t); other != url {
		t.Fatalf("two servers: %s and %s", url, other)
	}
	if _, err := os.Stat(stale.dir); !os.IsNotExist(err) {
		t.Errorf("what a crash left is still there: %v", err)
	}
	first.kill()
	killReaper(t, lodges(base)[0])
	third := startUser(t, root)
	if other := third.url(t); other != url {
		t.Fatalf("the third has its own server: %s, not %s", other, url)
	}
	second.kill()
	time.Sleep(1500 * time.Millisecond) // the reaper has looked
	if knock(t.Context(), url, knockPatience) != nil {
		t.Fatal("the server ended before its last user")
	}
	third.kill()
	await(t, "the server's end", func() bool { return len(lodges(base)) == 0 })
	if knock(t.Context(), url, knockPatience) == nil {
		t.Error("the server outlives its users")
	}
}

// plantStale makes the directory of a server that a crash of the machine ended.
func plantStale(t *testing.T, base string) lodge {
	t.Helper()
	l := lodge{filepath.Join(base, "server-stale")}
	for _, dir := range []string{l.path("users"), l.path("pg/pgdata")} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	// The number of the dead postmaster is now ours: it must not be signalled.
	for name, text := range map[string]string{
		"reaper.sh":                string(reaperScript),
		"users/999999999":          "",
		"pg/pgdata/postmaster.pid": strconv.Itoa(os.Getpid()) + "\n",
	} {
		if err := os.WriteFile(l.path(name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.publish("postgres://postgres@127.0.0.1:1/waybill"); err != nil {
		t.Fatal(err)
	}
	return l
}

func killReaper(t *testing.T, l lodge) {
	t.Helper()
	text, err := os.ReadFile(l.path("reaper"))
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil || pid <= 1 {
		t.Fatalf("reaper %q", text)
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	await(t, "the reaper's end", func() bool { return !l.watched() })
}

func TestStarterIsKilledBeforeTheServerIsUp(t *testing.T) {
	t.Parallel()
	root, base := playground(t)
	starter := startUser(t, root)
	await(t, "a server's directory", func() bool {
		all := lodges(base)
		return len(all) == 1 && all[0].watched()
	})
	starter.kill()
	await(t, "its removal", func() bool { return len(lodges(base)) == 0 })
}

func TestDirectoryOfSomebodyElseIsRefused(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	dir := filepath.Join(root, "waybill-test-"+strconv.Itoa(os.Geteuid()))
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	if _, err := baseDir(root); err == nil {
		t.Error("others can write there")
	}
}
