package embedded

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	fetcher "github.com/fergusstrange/embedded-postgres"
)

const (
	fetchVersion = fetcher.V17
	mavenCentral = "https://repo1.maven.org/maven2"
	knockTimeout = 10 * time.Second
)

// MirrorVariable is the environment variable that names a Maven repository to
// fetch from, in place of Maven Central.
const MirrorVariable = "WAYBILL_POSTGRES_MIRROR"

// Download fetches PostgreSQL 17 (about 30 MB) into the user's cache, once, and
// returns the directory of its programs. The archive's checksum is verified.
func Download(ctx context.Context) (Binaries, error) {
	repository := strings.TrimSuffix(os.Getenv(MirrorVariable), "/")
	if repository == "" {
		repository = mavenCentral
	}
	cache, err := cacheDir()
	if err != nil {
		return Binaries{}, fmt.Errorf("download PostgreSQL: %w", err)
	}
	b, err := download(ctx, repository, cache)
	if err != nil {
		return Binaries{}, fmt.Errorf("download PostgreSQL %s: %w", fetchVersion, err)
	}
	return b, nil
}

// download takes from the cache what a former one left there.
func download(ctx context.Context, repository, cache string) (Binaries, error) {
	dir := filepath.Join(cache, "postgresql-"+string(fetchVersion))
	if b, err := inspect(filepath.Join(dir, "bin")); err == nil {
		return b, nil
	}
	if err := fetch(ctx, repository, dir); err != nil {
		return Binaries{}, err
	}
	return inspect(filepath.Join(dir, "bin"))
}

// cacheDir is ours to write and, when we are root, the server's user's to enter.
func cacheDir() (string, error) {
	if os.Geteuid() == 0 {
		return "/var/cache/waybill", nil
	}
	dir, err := os.UserCacheDir()
	return filepath.Join(dir, "waybill"), err
}

// fetch extracts the archive beside dir and moves it there, so that a directory
// under that name is whole. Whoever is second finds it made.
func fetch(ctx context.Context, repository, dir string) error {
	if err := knock(ctx, repository); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return err
	}
	work, err := os.MkdirTemp(filepath.Dir(dir), "fetch-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	unpacked := filepath.Join(work, "unpacked")
	if err := unpack(repository, work, unpacked); err != nil {
		return err
	}
	if err := os.Rename(unpacked, dir); err != nil && !errors.Is(err, os.ErrExist) {
		return err
	}
	return nil
}

// unpack lets the library fetch. It has no call for that alone: its Start fetches,
// extracts, and then removes a former data directory. os.RemoveAll refuses a path
// that ends in a dot, which ends Start there, before it runs anything.
func unpack(repository, work, unpacked string) error {
	port, err := freePort()
	if err != nil {
		return err
	}
	err = fetcher.NewDatabase(fetcher.DefaultConfig().
		Version(fetchVersion).
		BinaryRepositoryURL(repository).
		CachePath(filepath.Join(work, "archive")).
		RuntimePath(filepath.Join(work, "runtime")).
		BinariesPath(unpacked).
		DataPath(work + "/data/.").
		Port(uint32(port)).
		Logger(io.Discard)).Start()
	if _, missing := os.Stat(filepath.Join(unpacked, "bin", "initdb")); missing != nil {
		return fmt.Errorf("from %s: %w", repository, err)
	}
	return nil
}

// knock asks whether the repository answers at all: the library waits for ever and
// keeps the reason to itself.
func knock(ctx context.Context, repository string) error {
	ctx, cancel := context.WithTimeout(ctx, knockTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodHead, repository+"/", nil)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	return resp.Body.Close()
}
