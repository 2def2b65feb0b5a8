package main

import (
	"os"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
)

// TestAKilledRebuildLeavesTheTableAlone kills the process at each of its phases. The live
// table stays what it was, file and rows; the next rebuild begins anew and ends.
func TestAKilledRebuildLeavesTheTableAlone(t *testing.T) {
	t.Parallel()
	o := newOperator(t)
	e := o.get("id", "endpoints", "create", "--url", "https://receiver.example/a")
	for range 3 {
		o.submit(e, `{"n":1}`)
	}
	conn, err := pgx.Connect(t.Context(), o.db.SuperURL)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(t.Context()) }()
	look := func() (seen string) {
		t.Helper()
		const sql = `select concat_ws(' ', 'waybill.deliveries'::regclass::oid, pg_relation_filenode('waybill.deliveries'),
			(select string_agg(d::text, ' ' order by id) from waybill.deliveries d))`
		if err := conn.QueryRow(t.Context(), sql).Scan(&seen); err != nil {
			t.Fatal(err)
		}
		return seen
	}
	before := look()
	for _, hold := range []string{
		"lock table waybill.events in access exclusive mode", // in the copy, which reads it
		"lock table waybill.deliveries in access share mode", // in the swap, which must have it alone
	} {
		tx, err := conn.Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := tx.Exec(t.Context(), hold); err != nil {
			t.Fatal(err)
		}
		o.killRebuild(tx)
		if err := tx.Rollback(t.Context()); err != nil {
			t.Fatal(err)
		}
		if now := look(); now != before {
			t.Errorf("killed after %s: %s, not %s", hold, now, before)
		}
	}
	var out []byte
	within(t, "the killed one's right to rebuild ends", func() bool {
		cmd := o.command("rebuild", "deliveries")
		cmd.Env = append(cmd.Env, "WAYBILL_PROJECTION_URL="+o.db.OwnerURL)
		out, err = cmd.CombinedOutput()
		return !strings.Contains(string(out), "rebuild_running")
	})
	if err != nil || !strings.Contains(string(out), "every row was as the log says") {
		t.Fatalf("%v: %s", err, out)
	}
	var left int
	const leftOver = "select count(*) from pg_class where relnamespace = 'waybill'::regnamespace and relname ~ 'shadow|differ|replaced'"
	if err := conn.QueryRow(t.Context(), leftOver).Scan(&left); err != nil || left != 0 {
		t.Errorf("%d tables are left over, %v", left, err)
	}
}

// killRebuild kills a rebuild once it waits for a lock.
func (o operatorOf) killRebuild(look pgx.Tx) {
	o.t.Helper()
	cmd := o.command("rebuild", "deliveries")
	cmd.Env = append(cmd.Env, "WAYBILL_PROJECTION_URL="+o.db.OwnerURL)
	if err := cmd.Start(); err != nil {
		o.t.Fatal(err)
	}
	const waits = `select exists (select from pg_stat_activity where application_name = 'waybill-rebuild'
		and wait_event_type = 'Lock' and datname = current_database())`
	within(o.t, "the rebuild waits for the lock", func() (there bool) {
		if _, err := look.Exec(o.t.Context(), "select pg_stat_clear_snapshot()"); err != nil {
			o.t.Fatal(err)
		}
		if err := look.QueryRow(o.t.Context(), waits).Scan(&there); err != nil {
			o.t.Fatal(err)
		}
		return there
	})
	if err := cmd.Process.Signal(os.Kill); err != nil {
		o.t.Error(err)
	}
	_ = cmd.Wait() // killed
}
