package embedded

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// MinimumMajor is the oldest PostgreSQL that Waybill runs on.
const MinimumMajor = 15

// BinVariable is the environment variable that names a directory of PostgreSQL's
// programs and comes before every other place.
const BinVariable = "WAYBILL_POSTGRES_BIN"

// ErrNoBinaries says that no usable PostgreSQL is installed.
var ErrNoBinaries = errors.New("no installed PostgreSQL 15 or later")

// Binaries is a directory with PostgreSQL's programs, and their major version.
type Binaries struct {
	Dir   string
	Major int
}

// installDirs is where packages put PostgreSQL's programs, as glob patterns:
// Debian, PGDG's RPMs, Fedora and Alpine, Homebrew on ARM, Intel and Linux,
// Postgres.app.
var installDirs = []string{
	"/usr/lib/postgresql/*/bin",
	"/usr/pgsql-*/bin",
	"/usr/libexec/postgresql*",
	"/opt/homebrew/opt/postgresql*/bin",
	"/usr/local/opt/postgresql*/bin",
	"/home/linuxbrew/.linuxbrew/opt/postgresql*/bin",
	"/Applications/Postgres.app/Contents/Versions/*/bin",
}

// Find returns the programs to use. A directory that was named, by the argument or
// by $WAYBILL_POSTGRES_BIN, must do; otherwise it is the one on PATH, then the
// highest version among the places where packages install. Versions before 15 are
// refused with [ErrNoBinaries], and the error lists what was looked at.
func Find(dir string) (Binaries, error) { return find(dir, 0) }

// find is [Find] for a cluster of the given major version; zero takes any.
func find(dir string, major int) (Binaries, error) {
	if dir == "" {
		dir = os.Getenv(BinVariable)
	}
	if dir != "" {
		return suitable(dir, major)
	}
	return choose(onPath(), installed(), major)
}

// choose takes the first directory if it suits, else the highest version that does.
func choose(first string, rest []string, major int) (Binaries, error) {
	best, err := suitable(first, major)
	if err == nil {
		return best, nil
	}
	refused := []error{ErrNoBinaries, err}
	for _, dir := range rest {
		b, err := suitable(dir, major)
		if err != nil {
			refused = append(refused, err)
		} else if b.Major > best.Major {
			best = b
		}
	}
	if best.Dir == "" {
		return Binaries{}, joinLine(refused)
	}
	return best, nil
}

// suitable returns the programs of a directory if they can serve the cluster.
func suitable(dir string, major int) (Binaries, error) {
	if dir == "" {
		return Binaries{}, errors.New("none on PATH")
	}
	b, err := inspect(dir)
	switch {
	case err != nil:
	case b.Major < MinimumMajor:
		err = fmt.Errorf("%s: PostgreSQL %d is too old, Waybill needs %d or later", dir, b.Major, MinimumMajor)
	case major != 0 && b.Major != major:
		err = fmt.Errorf("%s: PostgreSQL %d cannot open a cluster made by PostgreSQL %d", dir, b.Major, major)
	}
	if err != nil {
		return Binaries{}, err
	}
	return b, nil
}

// onPath is the directory of the postgres on PATH, behind its symbolic links, as
// initdb must be beside it.
func onPath() string {
	path, err := exec.LookPath("postgres")
	if err != nil {
		return ""
	}
	if path, err = filepath.EvalSymlinks(path); err != nil {
		return ""
	}
	return filepath.Dir(path)
}

// installed lists the directories of packages that hold a program named postgres.
func installed() []string {
	var dirs []string
	for _, pattern := range installDirs {
		matches, _ := filepath.Glob(filepath.Join(pattern, "postgres"))
		for _, m := range matches {
			dirs = append(dirs, filepath.Dir(m))
		}
	}
	return slices.DeleteFunc(dirs, func(dir string) bool { return dir == onPath() })
}

var versionLine = regexp.MustCompile(`\(PostgreSQL\) (\d+)`)

// inspect asks the programs in a directory for their version.
func inspect(dir string) (Binaries, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return Binaries{}, err
	}
	if _, err := os.Stat(filepath.Join(dir, "initdb")); err != nil {
		return Binaries{}, fmt.Errorf("%s: no initdb beside postgres", dir)
	}
	out, err := exec.Command(filepath.Join(dir, "postgres"), "--version").CombinedOutput()
	if err != nil {
		return Binaries{}, fmt.Errorf("%s: postgres --version: %w %s", dir, err, strings.TrimSpace(string(out)))
	}
	m := versionLine.FindSubmatch(out)
	if m == nil {
		return Binaries{}, fmt.Errorf("%s: postgres --version printed %q", dir, out)
	}
	major, err := strconv.Atoi(string(m[1]))
	return Binaries{Dir: dir, Major: major}, err
}

// joinLine is errors.Join on one line.
func joinLine(errs []error) error {
	joined := errs[0]
	for _, err := range errs[1:] {
		joined = fmt.Errorf("%w; %w", joined, err)
	}
	return joined
}
