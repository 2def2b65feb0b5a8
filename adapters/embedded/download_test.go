package embedded

import (
	"archive/zip"
	"bytes"
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// wrappers is what the repository's archives hold, with scripts that run the
// installed programs in their place:
//
//	tar -c bin/initdb bin/postgres | xz
//
//go:embed testdata/wrappers.txz
var wrappers []byte

// mirror is a Maven repository with one archive under every name.
func mirror(t *testing.T, checksum func(jar []byte) string) *httptest.Server {
	t.Helper()
	t.Setenv("TMPDIR", t.TempDir()) // where the library leaves an empty log
	var jar bytes.Buffer
	w := zip.NewWriter(&jar)
	f, err := w.Create("postgres.txz")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Write(wrappers); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, ".sha256") {
			_, _ = w.Write([]byte(checksum(jar.Bytes())))
			return
		}
		_, _ = w.Write(jar.Bytes())
	}))
	t.Cleanup(server.Close)
	return server
}

func sum(jar []byte) string {
	digest := sha256.Sum256(jar)
	return hex.EncodeToString(digest[:])
}

func TestDownloadedServerRuns(t *testing.T) {
	cache := openDir(t)
	repository := mirror(t, sum)
	bin, err := download(t.Context(), repository.URL, cache)
	if err != nil {
		t.Fatal(err)
	}
	s := startForTest(t, Config{BinDir: bin.Dir})
	if got := ask(t, s.URL(), "SELECT current_database()"); got != Database {
		t.Errorf("current_database() = %s", got)
	}
	repository.Close()
	if again, err := download(t.Context(), repository.URL, cache); err != nil || again != bin {
		t.Errorf("the second download did not come from the cache: %v, %v", again, err)
	}
}

func TestDownloadSaysWhyItFailed(t *testing.T) {
	closed := httptest.NewServer(http.NotFoundHandler())
	closed.Close()
	empty := httptest.NewServer(http.NotFoundHandler())
	defer empty.Close()
	forged := mirror(t, func([]byte) string { return sum(nil) })
	for url, want := range map[string]string{
		closed.URL: "connection refused",
		empty.URL:  "no version found matching 17",
		forged.URL: "checksums do not match",
	} {
		_, err := download(t.Context(), url, t.TempDir())
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := download(gone, empty.URL, t.TempDir()); err == nil {
		t.Error("went on after it was cancelled")
	}
}
