package embedded

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// fakeBinaries makes a directory whose postgres claims to be of a version.
func fakeBinaries(t *testing.T, version string) string {
	t.Helper()
	dir := t.TempDir()
	script := fmt.Sprintf("#!/bin/sh\necho 'postgres (PostgreSQL) %s'\n", version)
	for _, name := range []string{"postgres", "initdb"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(script), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestChooseBinaries(t *testing.T) {
	old := fakeBinaries(t, "14.11 (Debian 14.11-1)")
	fifteen := fakeBinaries(t, "15.6")
	seventeen := fakeBinaries(t, "17.0")
	beta := fakeBinaries(t, "18beta1")
	odd := fakeBinaries(t, "unknown")
	bare := t.TempDir()
	for _, tt := range []struct {
		name    string
		first   string
		rest    []string
		cluster int
		want    string
		refusal string
	}{
		{name: "PATH comes first", first: fifteen, rest: []string{seventeen}, want: fifteen},
		{name: "then the highest version", rest: []string{fifteen, beta, seventeen}, want: beta},
		{name: "one on PATH that is too old is passed over", first: old, rest: []string{fifteen}, want: fifteen},
		{name: "a cluster needs its own version", first: seventeen, rest: []string{fifteen, beta}, cluster: 15, want: fifteen},
		{name: "too old", first: old, refusal: "PostgreSQL 14 is too old, Waybill needs 15 or later"},
		{name: "no version for the cluster", first: seventeen, cluster: 16, refusal: "PostgreSQL 17 cannot open a cluster made by PostgreSQL 16"},
		{name: "no initdb", first: bare, refusal: "no initdb beside postgres"},
		{name: "no version", first: odd, refusal: "postgres --version printed"},
		{name: "nothing", refusal: "no installed PostgreSQL 15 or later; none on PATH"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := choose(tt.first, tt.rest, tt.cluster)
			if tt.refusal != "" {
				if !errors.Is(err, ErrNoBinaries) || !strings.Contains(err.Error(), tt.refusal) {
					t.Errorf("error %v, want %q", err, tt.refusal)
				}
				return
			}
			if err != nil || got.Dir != tt.want {
				t.Errorf("got %s, %v; want %s", got.Dir, err, tt.want)
			}
		})
	}
}

func TestNamedBinariesMustDo(t *testing.T) {
	old := fakeBinaries(t, "9.6")
	t.Setenv(BinVariable, old)
	if _, err := Find(""); err == nil || !strings.Contains(err.Error(), "PostgreSQL 9 is too old") {
		t.Errorf("through the environment: %v", err)
	}
	newer := fakeBinaries(t, "16.2")
	if b, err := Find(newer); err != nil || b.Major != 16 {
		t.Errorf("the argument comes before the environment: %v, %v", b, err)
	}
}

func TestFindOnPath(t *testing.T) {
	real := fakeBinaries(t, "16.2")
	links := t.TempDir()
	if err := os.Symlink(filepath.Join(real, "postgres"), filepath.Join(links, "postgres")); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", links)
	t.Setenv(BinVariable, "")
	want, err := filepath.EvalSymlinks(real)
	if err != nil {
		t.Fatal(err)
	}
	if b, err := Find(""); err != nil || b.Dir != want {
		t.Errorf("found %v, %v; want %s, where the link leads", b, err, want)
	}
}
