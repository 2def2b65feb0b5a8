package postgrestest

import (
	"context"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"waybill/adapters/embedded"
)

// One server serves a whole run of tests. Each process that uses it leaves a file
// named for its process id in the server's directory, and a shell script of ours
// looks once a second whether any of these processes lives. A process need not say
// goodbye, so one that was killed counts as gone too. When none is left:
//
//	user                              reaper
//	1 writes its file                 1 takes the marker `ready` away
//	2 reads the marker `ready`        2 looks for files of living users
//	  none: tries from scratch          any: goes on watching
//	  there: connects                   none: ends the server
//
// Each side writes before it reads, so one of them sees the other, and no user is
// left with a server that is about to end. A server whose marker is gone serves
// those it has; others start the next one. Users take turns by a file lock, so one
// starts a server while the others wait for it.

const (
	urlVariable   = "WAYBILL_TEST_DATABASE_URL"
	doorVariable  = "WAYBILL_TEST_DOOR"
	imageVariable = "WAYBILL_TEST_POSTGRES_IMAGE"

	joinPatience = 5 * time.Minute // to pull an image, or wait for one who does
)

// settings of a server whose data need not outlive it. Commits stay synchronous, so
// that what they promise is what tests see.
var settings = map[string]string{
	"jit":                       "off",
	"max_connections":           "300",
	"max_prepared_transactions": "20",
	"max_wal_size":              "256MB",
	"shared_buffers":            "256MB",
}

// shared is the one thing here that a process keeps: where its server is.
var shared = sync.OnceValues(func() (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), joinPatience)
	defer cancel()
	root, err := sharedRoot()
	if err != nil {
		return "", err
	}
	return join(ctx, root)
})

// sharedURL is a superuser's URL of the server that all tests share.
func sharedURL(t testing.TB) string {
	t.Helper()
	url, err := shared()
	if err != nil {
		t.Fatalf("postgrestest: %v", err)
	}
	return url
}

// join returns the URL of the run's server and starts it if there is none.
func join(ctx context.Context, root string) (string, error) {
	door := os.Getenv(doorVariable)
	if door == embedded.DoorURL || door == "" && os.Getenv(urlVariable) != "" {
		found, err := resolve(ctx, lodge{}, embedded.DoorURL)
		return found.URL, err
	}
	base, err := baseDir(root)
	if err != nil {
		return "", err
	}
	unlock, err := lockDir(ctx, base)
	if err != nil {
		return "", err
	}
	defer unlock()
	if url, ok := enterAny(ctx, base); ok {
		return url, nil
	}
	return open(ctx, base, door)
}

// enterAny joins a server that runs, and clears away those that nobody watches.
func enterAny(ctx context.Context, base string) (string, bool) {
	for _, l := range lodges(base) {
		if !l.watched() && !l.inhabited() {
			l.end(ctx)
			continue
		}
		if url, ok := l.enter(ctx); ok {
			return url, true
		}
	}
	return "", false
}

// open starts a server. Its reaper comes first, so that no moment is unwatched.
func open(ctx context.Context, base, door string) (string, error) {
	l, err := newLodge(base)
	if err != nil {
		return "", err
	}
	found, err := resolve(ctx, l, door)
	if err == nil {
		err = l.publish(found.URL)
	}
	if err != nil {
		l.end(ctx)
		return "", err
	}
	return found.URL, nil
}

// resolve walks the doors, with a server's directory for those that start one.
func resolve(ctx context.Context, l lodge, door string) (embedded.Found, error) {
	return embedded.Resolve(ctx, embedded.ResolveConfig{
		Variable: urlVariable,
		Server:   embedded.Config{DataDir: l.path("pg"), Settings: settings, Detached: true},
		Doors:    []embedded.Door{dockerDoor(l)},
		Only:     door,
	})
}

// wanted tells servers apart that the environment asked for differently.
func wanted() string {
	return fmt.Sprintf("door=%s image=%s bin=%s",
		os.Getenv(doorVariable), os.Getenv(imageVariable), os.Getenv(embedded.BinVariable))
}
