package embedded

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

const childVariable = "WAYBILL_TEST_CHILD_DATA_DIR"

// TestMain lets the test binary play a program that starts a server and is killed.
func TestMain(m *testing.M) {
	if dir := os.Getenv(childVariable); dir != "" {
		playOwner(dir)
	}
	os.Exit(m.Run())
}

func playOwner(dir string) {
	s, err := Start(context.Background(), Config{DataDir: dir})
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println(s.PID(), s.URL())
	time.Sleep(time.Minute)
	os.Exit(1)
}

func TestServerEndsWithItsKilledOwner(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(openDir(t), "data")
	child := exec.Command(os.Args[0])
	child.Env = append(os.Environ(), childVariable+"="+dir)
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	line, _ := bufio.NewReader(out).ReadString('\n')
	var pid int
	var url string
	if _, err := fmt.Sscan(line, &pid, &url); err != nil {
		t.Fatalf("the child said %q", line)
	}
	remember(t, url)
	if err := child.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = child.Wait()

	s := startForTest(t, Config{DataDir: dir})
	awaitGone(t, pid)
	recall(t, s.URL())
}

// awaitGone waits for init to bury a process.
func awaitGone(t *testing.T, pid int) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); !errors.Is(syscall.Kill(pid, 0), syscall.ESRCH); {
		if time.Now().After(deadline) {
			t.Fatalf("process %d is still there", pid)
		}
		time.Sleep(20 * time.Millisecond)
	}
}
