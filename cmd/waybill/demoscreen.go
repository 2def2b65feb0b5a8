package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// How often the board is looked at, and how often a line stands for it where there
// is no terminal.
const (
	frameEvery = 200 * time.Millisecond
	lineEvery  = 3 * time.Second
)

// The smallest terminal that the board fits into.
const (
	boardColumns = 80
	boardRows    = 20
)

// screen is where the demo is told. On a terminal the board stands below the text
// and is drawn again in place; elsewhere a line every few seconds stands for it.
type screen struct {
	out    io.Writer
	live   bool // a terminal that is large enough
	colour bool
	began  time.Time
	board  []string // as it is drawn now, below the text
	line   time.Time
	failed error // the first write that did not work
}

func newScreen(out io.Writer) *screen {
	s := &screen{out: out, began: time.Now()}
	f, ok := out.(*os.File)
	if !ok || os.Getenv("TERM") == "dumb" || os.Getenv("TERM") == "" {
		return s
	}
	size, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ)
	s.live = err == nil && size.Col >= boardColumns && size.Row >= boardRows
	s.colour = err == nil && os.Getenv("NO_COLOR") == ""
	return s
}

// elapsed is how long the demo has run.
func (s *screen) elapsed() time.Duration { return time.Since(s.began) }

// title begins an act.
func (s *screen) title(format string, args ...any) {
	s.say("\n%s", s.paint(bold, fmt.Sprintf(format, args...)))
}

// say adds text, above the board if there is one.
func (s *screen) say(format string, args ...any) {
	var b strings.Builder
	if len(s.board) > 0 {
		fmt.Fprintf(&b, "\x1b[%dA\x1b[J", len(s.board))
	}
	fmt.Fprintf(&b, format+"\n", args...)
	for _, line := range s.board {
		b.WriteString(line + "\n")
	}
	s.write(b.String())
}

// draw shows the board as it is now; without a terminal, one line now and then and
// at the last.
func (s *screen) draw(board []string, line string, last bool) {
	if !s.live {
		if last || time.Since(s.line) >= lineEvery {
			s.line = time.Now()
			s.say("   %s", line)
		}
		return
	}
	var b strings.Builder
	if len(s.board) > 0 {
		fmt.Fprintf(&b, "\x1b[%dA", len(s.board))
	}
	for _, line := range board {
		b.WriteString("\r" + line + "\x1b[K\n")
	}
	b.WriteString("\x1b[J")
	s.board = board
	s.write(b.String())
}

// leave lets the board stand as it is and goes on below it.
func (s *screen) leave() { s.board = nil }

// Write lets tables be printed.
func (s *screen) Write(b []byte) (int, error) {
	s.write(string(b))
	return len(b), s.failed
}

func (s *screen) write(text string) {
	if s.failed == nil {
		_, s.failed = io.WriteString(s.out, text)
	}
}

// Colours, as SGR parameters (ECMA-48, section 8.3.117).
const (
	bold   = "1"
	dim    = "2"
	red    = "31"
	green  = "32"
	yellow = "33"
	cyan   = "36"
)

// paint colours a text where colours are wanted.
func (s *screen) paint(colour, text string) string {
	if !s.colour || text == "" {
		return text
	}
	return "\x1b[" + colour + "m" + text + "\x1b[0m"
}
