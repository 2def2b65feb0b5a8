package postgres_test

import (
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"waybill/adapters/postgres"
	"waybill/domain"
	"waybill/projections"
)

const auditorRole = "waybill_test_auditor"

// auditor grants a role what auditors may do and connects as it.
func (f fixture) auditor() *pgx.Conn {
	f.t.Helper()
	u, err := url.Parse(f.db.OwnerURL)
	if err != nil {
		f.t.Fatal(err)
	}
	password, _ := u.User.Password()
	u.User = url.UserPassword(auditorRole, password)
	ready := `do $$ begin
		perform pg_advisory_xact_lock(4712);
		if not exists (select from pg_roles where rolname = '` + auditorRole + `') then create role ` + auditorRole + `; end if;
		alter role ` + auditorRole + ` login password '` + password + `';
		execute format('grant connect on database %I to ` + auditorRole + `', current_database());
	end $$`
	if _, err := f.db.Super().Exec(f.t.Context(), ready); err != nil {
		f.t.Fatal(err)
	}
	if err := postgres.Migrate(f.t.Context(), f.db.OwnerURL, postgres.MigrateOptions{AppRole: "waybill_test_app", AuditorRole: auditorRole}); err != nil {
		f.t.Fatal(err)
	}
	conn, err := pgx.Connect(f.t.Context(), u.String())
	if err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(func() { _ = conn.Close(f.t.Context()) })
	return conn
}

// TestAnAuditorReadsTheViewsAndNothingElse tries every relation of the schema.
func TestAnAuditorReadsTheViewsAndNothingElse(t *testing.T) {
	t.Parallel()
	f := open(t)
	e := f.endpoint()
	f.schedule(e.ID, 1)
	b := f.claim(e.ID, 1, time.Minute)
	facts, err := b.Taken[0].Delivery.Cancel("a typo", "somebody")
	if err != nil {
		t.Fatal(err)
	}
	c, err := b.Taken[0].Delivery.Advance("operator:o@h", f.now(), facts...)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Append(t.Context(), []projections.DeliveryChange{c}); err != nil {
		t.Fatal(err)
	}
	conn := f.auditor()
	rows, _ := f.db.Super().Query(t.Context(), "select relname from pg_class where relnamespace = 'waybill'::regnamespace and relkind in ('r','p','v','m','S')")
	all, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil || len(all) < 20 {
		t.Fatal(all, err)
	}
	for _, name := range all {
		var n int
		err := conn.QueryRow(t.Context(), "select count(*) from waybill."+name).Scan(&n)
		if may := strings.HasPrefix(name, "audit_"); may != (err == nil) {
			t.Errorf("%s: %v", name, err)
		}
	}
	var action, why, claimed, doubt string
	err = conn.QueryRow(t.Context(), "select action, reason, on_behalf_of from waybill.audit_actions where stream = 'delivery'").Scan(&action, &why, &claimed)
	if err != nil || action != "delivery.cancelled" || why != "a typo" || claimed != "somebody" {
		t.Error(action, why, claimed, err)
	}
	if err := conn.QueryRow(t.Context(), "select reason from waybill.audit_doubts where attempt = 1").Scan(&doubt); err != nil || doubt != "cancelled" {
		t.Error("a cancelled claim is no doubt: ", doubt, err)
	}
	f.lateAttempt(b, c.After)
	for _, role := range []string{"waybill_test_app", "waybill_test_owner"} {
		err := postgres.Migrate(t.Context(), f.db.OwnerURL, postgres.MigrateOptions{AppRole: "waybill_test_app", AuditorRole: role})
		if err == nil {
			t.Errorf("%s became an auditor", role)
		}
	}
}

// lateAttempt reports on a claim that a cancel has ended, and looks for it.
func (f fixture) lateAttempt(b projections.Batch, after projections.Delivery) {
	f.t.Helper()
	late, err := b.Taken[0].Delivery.Record(domain.Report{Token: b.Token, Result: domain.Result{Outcome: domain.Unknown,
		URL: "https://Example.TEST:8443/hook", StartedAt: b.Now.Time}}, domain.Retry{Policy: domain.DefaultPolicy()})
	if err != nil {
		f.t.Fatal(err)
	}
	c, err := after.Advance("worker:w", f.now(), late[0])
	if err == nil {
		_, err = f.Append(f.t.Context(), []projections.DeliveryChange{c})
	}
	if err != nil {
		f.t.Fatal(err)
	}
	attempts, err := f.Attempts(f.t.Context(), domain.DefaultTenant, projections.AuditFilter{Host: "example.test"}, 0, 10)
	if err != nil || len(attempts) != 1 || attempts[0].Outcome != domain.Unknown || attempts[0].Attempt != 1 {
		f.t.Error(attempts, err)
	}
	doubts, err := f.Doubts(f.t.Context(), domain.DefaultTenant, projections.AuditFilter{}, 0, 10)
	if err != nil || len(doubts) != 2 {
		f.t.Error(doubts, err)
	}
}

// TestAuditQuestionsUseTheirIndexes: with traffic around them, actions, doubts and the
// attempts of a period are found without reading the whole log.
func TestAuditQuestionsUseTheirIndexes(t *testing.T) {
	t.Parallel()
	f := open(t)
	d := f.schedule(f.endpoint().ID, 1)[0]
	fill := `insert into waybill.events (tenant, stream, stream_id, seq, name, version, recorded_at, actor, endpoint_id, data, hash)
		select 'default', 'delivery', waybill.uuid_floor(now() + n * interval '1 ms'), 1, 'delivery.attempted', 1, now() - interval '1 day' + n * interval '1 s', 'w',
			$1, '{"attempt":1,"outcome":"succeeded","url":"https://a.example/x"}', '\x00'
		from generate_series(1, 60000) n`
	for _, sql := range []string{fill, "analyze waybill.events"} {
		args := []any{}
		if sql == fill {
			args = append(args, d.EndpointID)
		}
		if _, err := f.db.Super().Exec(t.Context(), sql, args...); err != nil {
			t.Fatal(err)
		}
	}
	for _, sql := range []string{
		"select action, reason from waybill.audit_actions where tenant = 'default' and position < 1000000 order by position desc limit 50",
		"select delivery_id, seq from waybill.audit_doubts where tenant = 'default' and position < 1000000 order by position desc limit 50",
		"select delivery_id from waybill.audit_attempts where tenant = 'default' and host = 'b.example' and recorded_at >= now() - interval '23 hours' and recorded_at < now() - interval '22 hours 55 minutes'",
	} {
		rows, _ := f.db.Super().Query(t.Context(), "explain "+sql)
		plan, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil {
			t.Fatal(err)
		}
		month := domain.Instant{Time: d.CreatedAt.Time}.Format("events_delivery_2006_01")
		if text := strings.Join(plan, "\n"); strings.Contains(text, "Seq Scan on "+month) {
			t.Errorf("reads the whole log: %s\n%s", sql, text)
		}
	}
}
