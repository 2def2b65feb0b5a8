package main

import (
	"context"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5"

	"waybill/adapters/postgres/postgrestest"
)

// TestRestoredToAnOlderState: a database that was put back to what it was yesterday is
// refused by whoever has the checkpoint of today, until a person accepts it; that is an
// event, and a new epoch.
func TestRestoredToAnOlderState(t *testing.T) {
	t.Parallel()
	o := newOperator(t)
	dir := t.TempDir()
	key, kept := filepath.Join(dir, "key"), filepath.Join(dir, "checkpoint")
	o.run("keys", "signing-create", "--out", key)
	work := func() {
		t.Helper()
		s := o.serve("--signing-key", key, "--checkpoint-file", kept)
		endpoint := o.endpoint("https://example.test/hook")
		within(t, "the checkpoint outside covers the endpoint", func() bool {
			exit, _ := o.attempt("proof", "--endpoint", endpoint, "--seq", "1", "--signing-key", key)
			outside, err := os.ReadFile(kept)
			return exit == exitDone && err == nil && string(outside) == o.run("checkpoint", "--signing-key", key)+"\n"
		})
		s.signal(syscall.SIGTERM)
		if s.ended() != exitDone {
			t.Fatal(s.lines(""))
		}
	}
	work()
	older := o
	older.db = copyOf(t, o.db)
	work()
	o = older
	exit, said := o.attempt("serve", "--listen", "127.0.0.1:0", "--signing-key", key, "--checkpoint-file", kept)
	if exit != exitRefused || !strings.Contains(said, "ledger_restored") {
		t.Fatalf("exit %d: %s", exit, said)
	}
	s := o.serve("--signing-key", key, "--checkpoint-file", kept, "--accept-restore", "the disk of Monday was lost")
	s.signal(syscall.SIGTERM)
	if s.ended() != exitDone {
		t.Fatal(s.lines(""))
	}
	if said := o.run("audit", "actions", "--tenant", "system", "--json"); !strings.Contains(said, "admin.restore_accepted") || !strings.Contains(said, "the disk of Monday was lost") {
		t.Errorf("actions: %s", said)
	}
	again := o.serve("--signing-key", key, "--checkpoint-file", kept)
	again.signal(syscall.SIGTERM)
	if again.ended() != exitDone {
		t.Error(again.lines(""))
	}
}

// attempt runs a command that may fail.
func (o operatorOf) attempt(args ...string) (exit int, said string) {
	cmd := o.command(args...)
	out, _ := cmd.CombinedOutput()
	return cmd.ProcessState.ExitCode(), string(out)
}

// copyOf is a database as it is at this moment, in another of its own.
func copyOf(t *testing.T, db *postgrestest.DB) *postgrestest.DB {
	t.Helper()
	u, err := url.Parse(db.SuperURL)
	if err != nil {
		t.Fatal(err)
	}
	name, path := u.Path[1:], u.Path
	u.Path = "/postgres"
	conn, err := pgx.Connect(t.Context(), u.String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if _, err := conn.Exec(ctx, "drop database if exists "+name+"_older with (force)"); err != nil {
			t.Error(err)
		}
		_ = conn.Close(ctx)
	})
	for _, sql := range []string{
		"select pg_terminate_backend(pid) from pg_stat_activity where datname = '" + name + "'",
		"create database " + name + "_older template " + name,
	} {
		if _, err := conn.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	older := *db
	for _, u := range []*string{&older.URL, &older.OwnerURL, &older.SuperURL} {
		*u = strings.Replace(*u, path, path+"_older", 1)
	}
	return &older
}
