package main

import (
	"bytes"
	"path/filepath"
	"regexp"
	"testing"

	"waybill/adapters/postgres/postgrestest"
	"waybill/adapters/secrets"
)

// TestExample runs the program on a database of its own.
func TestExample(t *testing.T) {
	t.Parallel()
	keyset := filepath.Join(t.TempDir(), "keyset")
	if _, err := secrets.LoadOrCreate(keyset); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := run(t.Context(), &out, postgrestest.New(t).URL, keyset); err != nil {
		t.Fatal(err)
	}
	want := regexp.MustCompile(`^1 delivery.scheduled system:example .*
2 delivery.claimed worker:example .*
3 delivery.attempted worker:example .*"outcome":"succeeded".*
4 delivery.delivered worker:example .*
$`)
	if !want.Match(out.Bytes()) {
		t.Errorf("the history is\n%s", out.Bytes())
	}
}
