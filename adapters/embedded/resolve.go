package embedded

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/jackc/pgx/v5"
)

// The names of the doors that every resolver has.
const (
	DoorURL       = "url"
	DoorInstalled = "installed"
	DoorDownload  = "download"
)

// ErrNotConfigured is how a door says that nobody asked for it, which is no failure
// of its own.
var ErrNotConfigured = errors.New("not set")

// Door is one way to a database.
type Door struct {
	Name string
	Open func(context.Context) (Found, error)
}

// Found is a database to use, and how to be done with it.
type Found struct {
	URL    string
	Source string  // for people: where it came from
	Server *Server // nil unless it is ours
	stop   func() error
}

// FoundAt is for doors of callers. Stop may be nil.
func FoundAt(url, source string, stop func() error) Found {
	return Found{URL: url, Source: source, stop: stop}
}

// Stop ends what the door started.
func (f Found) Stop() error {
	if f.stop == nil {
		return nil
	}
	return f.stop()
}

// ResolveConfig says which doors to try.
type ResolveConfig struct {
	// Variable is the environment variable with a database URL.
	Variable string
	// Server configures a server of ours, installed or downloaded.
	Server Config
	// Doors are tried after installed binaries and before the download.
	Doors []Door
	// Only is the name of the one door to try. Empty: all.
	Only string
}

// Resolve returns the database behind the first door that opens: the environment
// variable, installed binaries, the caller's doors, the download. A variable that
// is set is a decision, and no other door is tried when it leads nowhere; neither is
// one when the data directory already has a server. The error names every door that
// was tried, why it stayed shut, and what to do.
func Resolve(ctx context.Context, cfg ResolveConfig) (Found, error) {
	var shut []string
	for _, door := range cfg.doors() {
		if cfg.Only != "" && cfg.Only != door.Name {
			continue
		}
		found, err := door.Open(ctx)
		if err == nil {
			return found, nil
		}
		shut = append(shut, fmt.Sprintf("  %s: %v", door.Name, err))
		if final(door, err) {
			break
		}
	}
	if len(shut) == 0 {
		return Found{}, fmt.Errorf("embedded: there is no door %q to a database", cfg.Only)
	}
	return Found{}, fmt.Errorf("no PostgreSQL to work with; tried:\n%s\ninstall PostgreSQL %d or later, or set %s to the URL of a database",
		strings.Join(shut, "\n"), MinimumMajor, cfg.Variable)
}

// final says whether another door would only hide what is wrong behind this one.
func final(door Door, err error) bool {
	return door.Name == DoorURL && !errors.Is(err, ErrNotConfigured) || errors.Is(err, ErrRunning)
}

func (cfg ResolveConfig) doors() []Door {
	doors := []Door{
		{DoorURL, cfg.openURL},
		{DoorInstalled, cfg.openInstalled},
	}
	return append(append(doors, cfg.Doors...), Door{DoorDownload, cfg.openDownload})
}

// openURL checks that the database answers.
func (cfg ResolveConfig) openURL(ctx context.Context) (Found, error) {
	url := os.Getenv(cfg.Variable)
	if url == "" {
		return Found{}, fmt.Errorf("%s: %w", cfg.Variable, ErrNotConfigured)
	}
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return Found{}, fmt.Errorf("%s: %w", cfg.Variable, err)
	}
	return Found{URL: url, Source: "$" + cfg.Variable}, conn.Close(ctx)
}

func (cfg ResolveConfig) openInstalled(ctx context.Context) (Found, error) {
	return start(ctx, cfg.Server, "installed")
}

func (cfg ResolveConfig) openDownload(ctx context.Context) (Found, error) {
	bin, err := Download(ctx)
	if err != nil {
		return Found{}, err
	}
	cfg.Server.BinDir = bin.Dir
	return start(ctx, cfg.Server, "downloaded")
}

func start(ctx context.Context, cfg Config, how string) (Found, error) {
	s, err := Start(ctx, cfg)
	if err != nil {
		return Found{}, err
	}
	source := fmt.Sprintf("%s PostgreSQL %d in %s", how, s.bin.Major, s.bin.Dir)
	return Found{URL: s.URL(), Source: source, Server: s, stop: s.Stop}, nil
}
