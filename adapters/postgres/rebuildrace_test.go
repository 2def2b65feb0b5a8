package postgres_test

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"waybill/adapters/postgres"
	"waybill/domain"
	"waybill/projections"
)

// TestSwapsWhileOthersAppend swaps again and again under writers that submit, claim,
// record and configure without a pause, on pools whose prepared statements outlive every
// swap. None of them may see an error, and in the end rebuilt = live = fold.
func TestSwapsWhileOthersAppend(t *testing.T) {
	t.Parallel()
	f := open(t)
	over, stop := context.WithCancel(t.Context())
	var writers sync.WaitGroup
	var appended atomic.Int64
	for range 4 {
		e := f.endpoint()
		writers.Go(func() {
			for n := 0; over.Err() == nil && !t.Failed(); n++ {
				f.schedule(e.ID, 5)
				as := []domain.Outcome{domain.Succeeded, domain.Refused}[n%2]
				appended.Add(int64(f.deliver(e.ID, 5, as)))
			}
		})
		writers.Go(func() { // the events of an endpoint go in before its row is touched
			for over.Err() == nil && !t.Failed() {
				f.endpoint()
				_, err := f.ChangeEndpointStatus(t.Context(), e.Tenant, e.ID, func(p projections.Endpoint) (projections.EndpointDecision, error) {
					facts := []domain.Event{domain.EndpointPaused{}, domain.EndpointResumed{}}
					c, err := p.Advance("operator:t@t", p.UpdatedAt, facts...)
					return projections.EndpointDecision{Change: c}, err
				})
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	for n := range 12 {
		for _, name := range []string{"deliveries", "endpoints"} {
			if r := f.rebuild(name, postgres.RebuildOptions{Workers: 2, DryRun: n%4 == 3}); r.Differing != 0 {
				t.Errorf("%d: %+v", n, r)
			}
		}
	}
	stop()
	writers.Wait()
	f.verify()
	if r := f.rebuild("deliveries", postgres.RebuildOptions{}); r.Differing != 0 {
		t.Errorf("%+v", r)
	}
	if appended.Load() == 0 {
		t.Error("nobody appended")
	}
	t.Log(appended.Load(), "results")
}

// TestAnAppendStraddlesTheSwap has one append that began before the swap and touches the
// table after it, and one that touched it before and commits while the swap waits.
func TestAnAppendStraddlesTheSwap(t *testing.T) {
	t.Parallel()
	f := open(t)
	e := f.endpoint()
	rows := f.schedule(e.ID, 2)
	early, late := begin(t, f.db.App), begin(t, f.db.App)
	const touch = "update waybill.deliveries set updated_at = updated_at where id = $1"
	if _, err := early.Exec(t.Context(), touch, rows[0].ID); err != nil {
		t.Fatal(err)
	}
	// The late one has drawn a position and holds its place in the log, no more.
	if _, err := late.Exec(t.Context(), `insert into waybill.events (tenant, stream, stream_id, seq, name, version,
		recorded_at, actor, data, hash) select '', 'delivery', gen_random_uuid(), 1, '', 1, now(), '', '{}', '' where false`); err != nil {
		t.Fatal(err)
	}
	if _, err := late.Exec(t.Context(), "select nextval('waybill.events_position')"); err != nil {
		t.Fatal(err)
	}
	waiting := make(chan struct{}, 100)
	done := make(chan projections.Rebuilt, 1)
	go func() {
		done <- f.rebuild("deliveries", postgres.RebuildOptions{Waiting: func(string) { waiting <- struct{}{} }})
	}()
	<-waiting
	// While it waits for the early one, others are served: nobody queues for long.
	for range 5 {
		began := time.Now()
		f.schedule(e.ID, 1)
		if took := time.Since(began); took > 2*time.Second {
			t.Errorf("an append took %s behind a swap that waits", took)
		}
	}
	if err := early.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if r := <-done; r.Differing != 0 || r.Swaps < 2 {
		t.Errorf("%+v", r)
	}
	if _, err := late.Exec(t.Context(), touch, rows[1].ID); err != nil {
		t.Error(err)
	}
	if err := late.Commit(t.Context()); err != nil {
		t.Error(err)
	}
	f.verify()
}

func begin(t *testing.T, pool *pgxpool.Pool) pgx.Tx {
	t.Helper()
	tx, err := pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tx.Rollback(context.Background()) })
	return tx
}

// catalogue is what a swap must leave as it was.
const catalogue = `
select 'table', c.relname::text, concat_ws(' ', c.relowner::regrole, c.reloptions::text, c.relpersistence, c.relreplident,
	(select string_agg(x::text, ',' order by x::text) from unnest(coalesce(c.relacl, acldefault('r', c.relowner))) x),
	obj_description(c.oid, 'pg_class'))
from pg_class c where c.oid = 'waybill.deliveries'::regclass
union all
select 'column', a.attname, concat_ws(' ', a.attnum, format_type(a.atttypid, a.atttypmod), a.attnotnull, a.attstorage, a.attstattarget,
	a.attacl::text, a.attoptions::text, a.attgenerated, col_description(a.attrelid, a.attnum),
	(select pg_get_expr(adbin, adrelid) from pg_attrdef d where d.adrelid = a.attrelid and d.adnum = a.attnum))
from pg_attribute a where a.attrelid = 'waybill.deliveries'::regclass and a.attnum > 0 and not a.attisdropped
union all
select 'index', c.relname, concat_ws(' ', pg_get_indexdef(c.oid), c.relowner::regrole, x.indisprimary, x.indisvalid, x.indisreplident)
from pg_index x join pg_class c on c.oid = x.indexrelid where x.indrelid = 'waybill.deliveries'::regclass
union all
select 'constraint', conname, pg_get_constraintdef(oid) from pg_constraint where conrelid = 'waybill.deliveries'::regclass
union all
select 'trigger', tgname, concat_ws(' ', pg_get_triggerdef(oid), tgenabled) from pg_trigger where tgrelid = 'waybill.deliveries'::regclass
union all
select 'view', c.relname, concat_ws(' ', pg_get_viewdef(c.oid), c.oid, c.relowner::regrole, c.reloptions::text, c.relacl::text)
from pg_class c where c.relkind = 'v' and c.relnamespace = 'waybill'::regnamespace
union all
select 'left over', c.relname, '' from pg_class c where c.relnamespace = 'waybill'::regnamespace and c.relname ~ 'shadow|replaced|differ'
order by 1, 2`

func (f fixture) catalogue() []string {
	f.t.Helper()
	rows, err := f.db.Super().Query(f.t.Context(), catalogue)
	if err != nil {
		f.t.Fatal(err)
	}
	list, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (string, error) {
		var kind, name, text string
		err := row.Scan(&kind, &name, &text)
		return kind + " " + name + ": " + text, err
	})
	if err != nil {
		f.t.Fatal(err)
	}
	return list
}

// TestTheCatalogueStaysAsItWas gives the table one of everything that a swap carries over.
func TestTheCatalogueStaysAsItWas(t *testing.T) {
	t.Parallel()
	f := open(t)
	e := f.endpoint()
	f.schedule(e.ID, 10)
	for _, sql := range []string{
		"grant select on waybill.deliveries to public",
		"grant select (id, state) on waybill.deliveries to waybill_test_app with grant option",
		"create index odd on waybill.deliveries (lower(event_type) desc) include (state) with (fillfactor = 60) where state = 'pending'",
		"alter table waybill.deliveries add constraint sane check (version > 0)",
		"alter table waybill.deliveries add constraint once unique (message_id, endpoint_id)",
		"alter table waybill.deliveries alter column state set statistics 500",
		"alter table waybill.deliveries alter column tenant set (n_distinct = 3)",
		"comment on table waybill.deliveries is 'it''s the queue'",
		"comment on column waybill.deliveries.state is 'where it stands'",
		"alter table waybill.deliveries replica identity using index deliveries_pkey",
		"create function waybill.nothing() returns trigger language plpgsql as 'begin return new; end'",
		"create trigger quiet before update on waybill.deliveries for each row when (old.state <> new.state) execute function waybill.nothing()",
		"alter table waybill.deliveries enable always trigger quiet",
		"create view waybill.waiting with (security_barrier) as select id, deliveries.state from waybill.deliveries where due_at is not null",
		"create view waybill.counted as select count(*) from waybill.waiting",
		"grant select on waybill.waiting to waybill_test_app",
	} {
		if _, err := f.db.Owner().Exec(t.Context(), sql); err != nil {
			t.Fatal(sql, err)
		}
	}
	before := f.catalogue()
	f.rebuild("deliveries", postgres.RebuildOptions{DryRun: true})
	f.rebuild("deliveries", postgres.RebuildOptions{})
	f.rebuild("deliveries", postgres.RebuildOptions{})
	after := f.catalogue()
	for i := range max(len(before), len(after)) {
		if i >= len(before) || i >= len(after) || before[i] != after[i] {
			t.Fatalf("before\n%q\nafter\n%q", before[min(i, len(before)):], after[min(i, len(after)):])
		}
	}
	f.schedule(e.ID, 3)
	var n int
	if err := f.db.Owner().QueryRow(t.Context(), "select count from waybill.counted").Scan(&n); err != nil || n != 13 {
		t.Error(n, err)
	}
	if !slices.ContainsFunc(after, func(s string) bool { return s != "" }) {
		t.Error("nothing was compared")
	}
}
