package main

import (
	"strings"
	"testing"
	"time"

	"waybill/projections"
)

// TestDoctor: a sound ledger is fine; each fault is found, and by itself.
func TestDoctor(t *testing.T) {
	t.Parallel()
	o := newOperator(t)
	o.doctor(0, "--json")
	super := o.db.Super()
	for _, c := range []struct{ fault, cure, says string }{
		{"insert into waybill.outbox (payload, error) values ('', 'endpoint_not_found'), ('', 'endpoint_not_found')",
			"delete from waybill.outbox", `"check":"outbox","ok":false,"says":"2 rows refused as endpoint_not_found, the oldest has id 1"`},
		{"insert into waybill.outbox (payload, created_at) values ('', now() - interval '2 hours')",
			"delete from waybill.outbox", `"check":"outbox","ok":false,"says":"1 rows wait, the oldest (id 3) for 2h0m`},
		{"insert into waybill.claims (token, worker, lease_until, delivery_ids) values (gen_random_uuid(), 'w', now() - interval '2 minutes', '{}')",
			"delete from waybill.claims", `"check":"claims","ok":false,"says":"1 ran out and nobody ended them, the oldest 2m`},
		{"grant delete on waybill.events_admin to waybill_test_app",
			"revoke delete on waybill.events_admin from waybill_test_app", `"check":"role","ok":false,"says":"waybill_test_app may update`},
		{"do $$ begin execute 'alter table waybill.events_delivery_' || to_char(date_trunc('month', now() at time zone 'UTC') + interval '1 month', 'YYYY_MM') || ' rename to later'; end $$",
			"do $$ begin execute 'alter table waybill.later rename to events_delivery_' || to_char(date_trunc('month', now() at time zone 'UTC') + interval '1 month', 'YYYY_MM'); end $$",
			`"check":"partitions","ok":false,"says":"the log has none for the next month`},
		{"insert into waybill.archives (month, low, high, stage, reason, actor) values ('2025-03-01', gen_random_uuid(), gen_random_uuid(), 'kept', '', 'a')",
			"delete from waybill.archives", `"check":"archives","ok":false,"says":"2025-03 is kept since `},
		{"insert into waybill.events (tenant, stream, stream_id, seq, name, version, recorded_at, actor, data, hash) " +
			"values ('default', 'admin', gen_random_uuid(), 1, 'n', 1, now() - interval '3 minutes', 'a', '{}', '')",
			"update waybill.ledger_head set last = (select last_value from waybill.events_position)",
			`"check":"horizon","ok":false,"says":"1 positions wait above 0, the first event since 3m`},
		{"do $$ begin execute 'alter table waybill.events_delivery_' || to_char(now() at time zone 'UTC', 'YYYY_MM') || ' rename to kept'; end $$",
			"", `"check":"partitions","ok":false,"says":"the log has none for this month`},
	} {
		if _, err := super.Exec(t.Context(), c.fault); err != nil {
			t.Fatal(err)
		}
		if out := o.doctor(1, "--json"); !strings.Contains(out, c.says) || strings.Count(out, `"ok":false`) != 1 {
			t.Errorf("want %s, got\n%s", c.says, out)
		}
		if _, err := super.Exec(t.Context(), c.cure); err != nil {
			t.Fatal(err)
		}
	}
	for url, says := range map[string]string{
		o.db.OwnerURL: "owns the log", o.db.SuperURL: "is a superuser",
	} {
		if out := o.doctor(1, "--database-url", url); !strings.Contains(out, says) {
			t.Errorf("as another role:\n%s", out)
		}
	}
	if out := o.doctor(1, "--schema", "apart"); !strings.Contains(out, "holds no ledger") {
		t.Errorf("without a ledger:\n%s", out)
	}
}

// TestDoctorNamesWhoHoldsTheHorizon: a session, or a prepared transaction, which has none.
func TestDoctorNamesWhoHoldsTheHorizon(t *testing.T) {
	t.Parallel()
	h := horizon{head: projections.Head{Last: 10, Blocks: 2}, drawn: 12}
	for _, c := range []struct {
		holder projections.Appender
		waited time.Duration
		ok     bool
		says   string
	}{
		{projections.Appender{Transaction: "3/7", PID: 42, Age: time.Second}, time.Second, true, "sealed up to position 10 in 2 blocks, 2 behind"},
		{projections.Appender{Transaction: "3/7", PID: 42, Application: "psql", State: "idle in transaction", Age: time.Hour}, time.Hour, false,
			"2 positions wait above 10: backend 42 (psql, idle in transaction) has held the log for 1h0m0s; end it: select pg_terminate_backend(42)"},
		{projections.Appender{Transaction: "-1/99", State: "prepared", Age: time.Hour}, 0, false,
			"2 positions wait above 10: a prepared transaction (-1/99) has held the log for 1h0m0s; commit or roll it back, pg_prepared_xacts names it"},
	} {
		h.holders, h.waited = []projections.Appender{c.holder}, c.waited
		if f := h.finding(); f.OK != c.ok || f.Says != c.says {
			t.Errorf("%+v", f)
		}
	}
}

// doctor runs it and demands the exit code.
func (o operatorOf) doctor(code int, args ...string) string {
	o.t.Helper()
	cmd := o.command(append([]string{"doctor"}, args...)...)
	out, _ := cmd.Output() // the exit code is looked at
	if got := cmd.ProcessState.ExitCode(); got != code {
		o.t.Errorf("doctor %v: exit code %d, want %d:\n%s", args, got, code, out)
	}
	return string(out)
}
