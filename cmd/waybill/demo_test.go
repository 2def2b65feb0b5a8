package main

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"waybill/adapters/embedded"
)

// openDir is a new directory that PostgreSQL's user may enter, also when we are root.
func openDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "waybill-demo-test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

// alone is the environment of somebody who has nothing set up: no settings, an empty
// home, and temporary files where the test can see them.
func alone(t *testing.T) (env []string, temp string) {
	t.Helper()
	temp = openDir(t)
	for _, v := range withoutOurs(os.Environ()) {
		name, _, _ := strings.Cut(v, "=")
		if !slices.Contains([]string{"HOME", "TMPDIR", "XDG_CACHE_HOME", "XDG_CONFIG_HOME"}, name) {
			env = append(env, v)
		}
	}
	for _, name := range []string{embedded.BinVariable, embedded.MirrorVariable} {
		if v, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+v)
		}
	}
	return append(env, "HOME="+t.TempDir(), "TMPDIR="+temp), temp
}

// requireNothingLeft fails if files or processes outlive the program.
func requireNothingLeft(t *testing.T, temp, output string) {
	t.Helper()
	if files, err := os.ReadDir(temp); err != nil || len(files) > 0 {
		t.Errorf("files stay behind: %v %v", files, err)
	}
	if list, err := exec.Command("ps", "-A", "-o", "args=").Output(); err != nil || bytes.Contains(list, []byte(temp+"/")) {
		t.Errorf("a process of %s stays behind: %v\n%s", temp, err, list)
	}
	m := pidText.FindStringSubmatch(output)
	if m == nil {
		t.Fatalf("the worker's pid is not told:\n%s", output)
	}
	pid, _ := strconv.Atoi(m[1])
	if err := syscall.Kill(pid, 0); !errors.Is(err, syscall.ESRCH) {
		t.Errorf("the worker's process %d: %v", pid, err)
	}
}

var pidText = regexp.MustCompile(`process of its own, pid (\d+)`)

// TestDemo: the demo ends by itself, proves its record and leaves nothing behind.
func TestDemo(t *testing.T) {
	t.Parallel()
	env, temp := alone(t)
	cmd := exec.Command("waybill", "demo")
	var stdout, stderr bytes.Buffer
	cmd.Env, cmd.Stdout, cmd.Stderr = env, &stdout, &stderr
	begun := time.Now()
	if err := cmd.Run(); err != nil || stderr.Len() > 0 {
		t.Fatalf("%v: %s\n%s", err, &stderr, &stdout)
	}
	t.Logf("took %s", time.Since(begun).Round(100*time.Millisecond))
	out := stdout.String()
	for _, want := range []string{
		`(?m)^ +verified 20 deliveries, \d+ events: ok$`,
		`3\d requests arrived, 3\d of them signed`,
		`3\d are attempts on record, 1 is the claim in doubt, 0 are unaccounted`,
		`(?m)^18 delivered, 2 failed, in \d+ s`,
		`(?s)1 .*delivery\.scheduled .*key ….*2 .*delivery\.claimed .*worker-1.*3 .*delivery\.lease_expired .*recovery.*` +
			`4 .*delivery\.retry_scheduled .*worker_lost.*5 .*delivery\.claimed .*worker-2.*` +
			`6 .*delivery\.attempted .*attempt 2 succeeded 200.*7 .*delivery\.delivered .*proven by attempt 2`,
	} {
		if !regexp.MustCompile(want).MatchString(out) {
			t.Errorf("the output lacks %s", want)
		}
	}
	if strings.ContainsAny(out, "\x1b\r") {
		t.Error("control characters although there is no terminal")
	}
	if t.Failed() {
		t.Log(out)
	}
	requireNothingLeft(t, temp, out)
}

// TestDemoInterrupted: a signal half-way ends it with 1, and all that it started.
func TestDemoInterrupted(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		at     string // the line after which the signal comes
		signal syscall.Signal
	}{
		"with one worker":  {"2  Submit", syscall.SIGINT},
		"with the other":   {"5  A person decides", syscall.SIGTERM},
		"by a reader gone": {"2  Submit", 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			env, temp := alone(t)
			cmd := exec.Command("waybill", "demo")
			var stderr bytes.Buffer
			cmd.Env, cmd.Stderr = env, &stderr
			stdout, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = cmd.Process.Kill() })
			said := readUntil(stdout, c.at)
			if c.signal == 0 {
				_ = stdout.Close()
			} else {
				_ = cmd.Process.Signal(c.signal)
				_, _ = io.Copy(io.Discard, stdout)
			}
			_ = cmd.Wait()
			want := "waybill: interrupted: "
			if c.signal == 0 {
				want = "waybill: failed: write "
			}
			if code := cmd.ProcessState.ExitCode(); code != exitFailed || !strings.HasPrefix(stderr.String(), want) {
				t.Errorf("exit code %d: %s", code, &stderr)
			}
			requireNothingLeft(t, temp, said)
		})
	}
}

// readUntil returns what is written up to the line that contains the text.
func readUntil(r io.Reader, text string) string {
	var said strings.Builder
	for lines := bufio.NewReader(r); ; {
		line, err := lines.ReadString('\n')
		said.WriteString(line)
		if err != nil || strings.Contains(line, text) {
			return said.String()
		}
	}
}

// TestDemoFaults: whatever does not fit is a fault, and faults have an exit code of
// their own.
func TestDemoFaults(t *testing.T) {
	t.Parallel()
	attempt := func(n string) arrival { return arrival{"d", n} }
	for name, c := range map[string]struct {
		arrivals map[arrival]int
		signed   int
		want     string // empty: no fault
	}{
		"all on record":  {map[arrival]int{attempt("1"): 1, attempt("2"): 1}, 2, ""},
		"one unrecorded": {map[arrival]int{attempt("3"): 1}, 1, "attempt 3 arrived and is not on record"},
		"one sent twice": {map[arrival]int{attempt("1"): 2}, 2, "attempt 1 arrived 2 times"},
		"one unsigned":   {map[arrival]int{attempt("1"): 1}, 0, "1 of 1 requests were not signed"},
	} {
		d := &demo{screen: newScreen(io.Discard), receivers: &receivers{arrivals: c.arrivals, signed: c.signed}}
		found := d.compare(recorded{
			attempts: map[arrival]bool{attempt("1"): true}, doubts: map[arrival]bool{attempt("2"): true},
		})
		if c.want == "" && len(found) > 0 || c.want != "" && (len(found) != 1 || !strings.Contains(found[0], c.want)) {
			t.Errorf("%s: %q", name, found)
		}
	}
	if exit, code, _ := verdict(errors.Join(errFaulty)); exit != 4 || code != "verification_failed" {
		t.Errorf("faults are %s, exit code %d", code, exit)
	}
}

// TestBoardFits: the board has less than 80 columns and is drawn in place, below what
// is said.
func TestBoardFits(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	d := &demo{screen: newScreen(&out), cast: newCast()}
	d.screen.live = true
	d.show(standing{}, false)
	for line := range strings.Lines(out.String()) {
		if n := len([]rune(strings.NewReplacer("\x1b[K", "", "\x1b[J", "").Replace(strings.Trim(line, "\r\n")))); n >= boardColumns {
			t.Errorf("%d columns: %q", n, line)
		}
	}
	d.screen.say("above")
	if got := lastScreen(out.String()); !strings.HasPrefix(got, "above\n\n   WHO ") || strings.Count(got, "WHO") != 1 || strings.Count(got, "gone") != 1 {
		t.Errorf("the screen shows\n%s", got)
	}
}

var cursorUp = regexp.MustCompile(`\x1b\[(\d+)A`)

// lastScreen is what a terminal shows after these bytes: of its language it knows
// cursor up, erase to the end of the line and of the screen, and both line ends.
func lastScreen(bytes string) string {
	var lines []string
	at := 0
	for line := range strings.Lines(bytes) {
		if m := cursorUp.FindStringSubmatch(line); m != nil {
			n, _ := strconv.Atoi(m[1])
			at -= n
		}
		text := cursorUp.ReplaceAllString(line, "")
		if strings.HasPrefix(text, "\x1b[J") {
			lines = lines[:at]
		}
		text = strings.NewReplacer("\x1b[J", "", "\x1b[K", "", "\r", "").Replace(text)
		lines = append(lines[:at], append([]string{text}, lines[min(at+1, len(lines)):]...)...)
		at++
	}
	return strings.Join(lines, "")
}
