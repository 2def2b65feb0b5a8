package postgres_test

import (
	"errors"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"waybill/adapters/postgres"
	"waybill/domain"
	"waybill/projections"
)

// keeperRole keeps the projections in the tests that want one apart. Like the other roles
// of tests it stays.
const keeperRole = "waybill_test_keeper"

// keeper makes the role the owner of the projections and returns its URL.
func (f fixture) keeper() string {
	f.t.Helper()
	u, err := url.Parse(f.db.OwnerURL)
	if err != nil {
		f.t.Fatal(err)
	}
	password, _ := u.User.Password()
	u.User = url.UserPassword(keeperRole, password)
	ready := `do $$ begin
		perform pg_advisory_xact_lock(4711);
		if not exists (select from pg_roles where rolname = '` + keeperRole + `') then create role ` + keeperRole + `; end if;
		alter role ` + keeperRole + ` login password '` + password + `';
		grant ` + keeperRole + ` to waybill_test_owner;
	end $$`
	if _, err := f.db.Super().Exec(f.t.Context(), ready); err != nil {
		f.t.Fatal(err)
	}
	if err := postgres.Migrate(f.t.Context(), f.db.OwnerURL, postgres.MigrateOptions{AppRole: "waybill_test_app", ProjectionRole: keeperRole}); err != nil {
		f.t.Fatal(err)
	}
	return u.String()
}

// TestTheKeeperOfProjectionsRebuilds without any right to change the log.
func TestTheKeeperOfProjectionsRebuilds(t *testing.T) {
	t.Parallel()
	f := open(t)
	e := f.endpoint()
	f.schedule(e.ID, 20)
	if _, err := f.db.Owner().Exec(t.Context(), "create view waybill.waiting as select d.id, m.commitment from waybill.deliveries d join waybill.messages m on m.id = d.message_id"); err != nil {
		t.Fatal(err)
	}
	keeper := f.keeper()
	before := f.catalogue()
	for _, p := range projections.Projections {
		if r, err := postgres.Rebuild(t.Context(), keeper, f.Schema, p, postgres.RebuildOptions{}); err != nil || r.Differing != 0 {
			t.Fatalf("%+v %v", r, err)
		}
	}
	if after := f.catalogue(); strings.Join(before, "\n") != strings.Join(after, "\n") {
		t.Errorf("before\n%s\nafter\n%s", strings.Join(before, "\n"), strings.Join(after, "\n"))
	}
	f.deliver(e.ID, 5, domain.Succeeded)
	f.verify()
	conn, err := pgx.Connect(t.Context(), keeper)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(t.Context()) }()
	for _, sql := range []string{
		"insert into waybill.events (tenant) values ('')", "delete from waybill.events", "select payload from waybill.messages",
		"select sealed from waybill.endpoint_secrets", "select digest from waybill.api_keys", "update waybill.ledger_head set last = 0",
	} {
		if _, err := conn.Exec(t.Context(), sql); err == nil || !strings.Contains(err.Error(), "permission denied") {
			t.Errorf("%s: %v", sql, err)
		}
	}
	var n int
	if err := f.db.Owner().QueryRow(t.Context(), "select count(*) from waybill.waiting").Scan(&n); err != nil || n != 20 {
		t.Error(n, err)
	}
}

// TestWhatASwapCannotCarry refuses to begin, and says what it is.
func TestWhatASwapCannotCarry(t *testing.T) {
	t.Parallel()
	f := open(t)
	p, _ := projections.FindProjection("deliveries")
	for what, sql := range map[string]string{
		"materialized view": "create materialized view waybill.m as select id from waybill.deliveries",
		"foreign key":       "create table waybill.t (d uuid constraint of_mine references waybill.deliveries)",
		"policy":            "create policy mine on waybill.deliveries using (true)",
		"function":          "create function waybill.f() returns bigint language sql begin atomic select count(*) from waybill.deliveries; end",
	} {
		tx := begin(t, f.db.Owner())
		if _, err := tx.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
		if err := tx.Commit(t.Context()); err != nil {
			t.Fatal(err)
		}
		_, err := postgres.Rebuild(t.Context(), f.db.OwnerURL, f.Schema, p, postgres.RebuildOptions{Patience: time.Second})
		if !errors.Is(err, domain.ErrProjectionDependents) || !strings.Contains(err.Error(), what) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// TestOneRebuildAtATime refuses the second, and gives up on a table that is never free.
func TestOneRebuildAtATime(t *testing.T) {
	t.Parallel()
	f := open(t)
	e := f.endpoint()
	f.schedule(e.ID, 1)
	p, _ := projections.FindProjection("deliveries")
	tx := begin(t, f.db.App)
	if _, err := tx.Exec(t.Context(), "select id from waybill.deliveries for update"); err != nil {
		t.Fatal(err)
	}
	_, err := postgres.Rebuild(t.Context(), f.db.OwnerURL, f.Schema, p, postgres.RebuildOptions{Patience: time.Millisecond})
	if !errors.Is(err, domain.ErrProjectionBusy) || !strings.Contains(err.Error(), "(waybill, ") {
		t.Error(err)
	}
	var second error
	asked := false
	_, err = postgres.Rebuild(t.Context(), f.db.OwnerURL, f.Schema, p, postgres.RebuildOptions{Waiting: func(string) {
		if !asked {
			asked = true
			_, second = postgres.Rebuild(t.Context(), f.db.OwnerURL, f.Schema, p, postgres.RebuildOptions{})
			if err := tx.Rollback(t.Context()); err != nil {
				t.Error(err)
			}
		}
	}})
	if err != nil || !errors.Is(second, domain.ErrRebuildRunning) {
		t.Error(err, second)
	}
	f.verify()
	if left := f.catalogue(); strings.Contains(strings.Join(left, "\n"), "left over") {
		t.Error(left)
	}
}

// TestARebuildBringsBackNoArchivedMonth has an archive that rests between deleting a
// month's rows and detaching its events, and one that has deleted a part of them.
func TestARebuildBringsBackNoArchivedMonth(t *testing.T) {
	t.Parallel()
	for _, stage := range []string{"kept", "cleared"} {
		f := open(t)
		rows := f.schedule(f.endpoint().ID, 10)
		for _, sql := range []string{
			`insert into waybill.archives (month, low, high, stage, reason, actor) values (date_trunc('month', now()),
				waybill.uuid_floor(now() - interval '1 day'), waybill.uuid_floor(now() + interval '1 day'), '` + stage + `', 'r', 'a')`,
			"delete from waybill.deliveries where id = any ($1)",
		} {
			var a []any
			if strings.Contains(sql, "$1") {
				a = append(a, []string{rows[0].ID.String(), rows[1].ID.String(), rows[2].ID.String()})
			}
			if _, err := f.db.Super().Exec(t.Context(), sql, a...); err != nil {
				t.Fatal(err)
			}
		}
		for _, dry := range []bool{true, false, false} {
			if r := f.rebuild("deliveries", postgres.RebuildOptions{DryRun: dry}); r.Differing != 0 || r.Rows != 7 {
				t.Errorf("%s: %+v", stage, r)
			}
		}
		var n int
		if err := f.db.App.QueryRow(t.Context(), "select count(*) from waybill.deliveries").Scan(&n); err != nil || n != 7 {
			t.Errorf("%s: %d rows: %v", stage, n, err)
		}
	}
}
