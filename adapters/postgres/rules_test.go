package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"waybill/adapters/postgres"
	"waybill/domain"
	"waybill/projections"
)

// partitions are the log's root and everything below it.
func partitions(t *testing.T, pool *pgxpool.Pool) []string {
	t.Helper()
	rows, err := pool.Query(t.Context(), `select relid::regclass::text from pg_partition_tree('waybill.events')`)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	var list []string
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			t.Fatal(err)
		}
		list = append(list, name)
	}
	return list
}

func code(err error) string {
	var pg *pgconn.PgError
	if errors.As(err, &pg) {
		return pg.Code
	}
	return fmt.Sprint(err)
}

// TestLogIsAppendOnly is rule 1: nobody updates, deletes or truncates, neither the
// application nor the owner nor a superuser, on the root or a partition, with rows
// or without, in replica mode or not. It fails without the triggers.
func TestLogIsAppendOnly(t *testing.T) {
	t.Parallel()
	f := open(t)
	f.schedule(f.endpoint().ID, 1)
	roles := map[string]*pgxpool.Pool{"app": f.db.App, "owner": f.db.Owner(), "superuser": f.db.Super()}
	tables := partitions(t, f.db.Super())
	if len(tables) < 9 { // root, three kinds, months
		t.Fatalf("partitions %v", tables)
	}
	for role, pool := range roles {
		for _, table := range tables {
			for _, sql := range []string{
				"update " + table + " set actor = 'x'", "delete from " + table, "truncate " + table,
				"update " + table + " set actor = 'x' where false", "delete from " + table + " where false",
			} {
				_, err := pool.Exec(t.Context(), sql)
				if got := code(err); got != "23001" && (role != "app" || got != "42501") {
					t.Errorf("%s: %s: %s", role, sql, got)
				}
			}
		}
	}
	replica := "set session_replication_role = replica; delete from waybill.events"
	if _, err := roles["superuser"].Exec(t.Context(), replica); code(err) != "23001" {
		t.Errorf("in replica mode: %v", err)
	}
	f.verify()
}

// TestApplicationMayOnlyAdd is rule 1 for rights: the application cannot choose a
// position, write to a partition past the root, drop a trigger, or move the
// sequence. It fails with broader grants.
func TestApplicationMayOnlyAdd(t *testing.T) {
	t.Parallel()
	f := open(t)
	f.schedule(f.endpoint().ID, 1)
	for _, sql := range []string{
		`insert into waybill.events (tenant, stream, stream_id, seq, position, name, version, recorded_at, actor, data, hash)
		 values ('default', 'admin', gen_random_uuid(), 1, 1, 'n', 1, now(), 'a', '{}', '')`,
		`insert into waybill.events_admin (tenant, stream, stream_id, seq, name, version, recorded_at, actor, data, hash)
		 values ('default', 'admin', gen_random_uuid(), 1, 'n', 1, now(), 'a', '{}', '')`,
		"alter table waybill.events disable trigger all",
		"drop table waybill.events",
		"select setval('waybill.events_position', 1)",
		"delete from waybill.deliveries", "delete from waybill.messages", "update waybill.messages set payload = ''",
		"update waybill.exchanges set excerpt = ''", "insert into waybill.archived_leaves values (1, '')", "call waybill.close_month('x')",
		"update waybill.idempotency_keys set key = 'x'", "create table waybill.mine ()",
		"select waybill.make_partition('2030-01-01')", "call waybill.grant_app('public')",
		"update waybill.api_keys set digest = ''", "update waybill.goose_db_version set version_id = 0",
	} {
		if _, err := f.db.App.Exec(t.Context(), sql); code(err) != "42501" && !strings.Contains(fmt.Sprint(err), "must be owner") {
			t.Errorf("%s: %v", sql, err)
		}
	}
}

// TestStaleItemHarmsNoNeighbour is rules 2 and 12: of a batch, exactly the stale item
// is refused.
func TestStaleItemHarmsNoNeighbour(t *testing.T) {
	t.Parallel()
	f := open(t)
	list := f.schedule(f.endpoint().ID, 5)
	var changes []projections.DeliveryChange
	for i, d := range list {
		if i == 2 {
			d.Version = 7 // decided on a version that is not the stream's
		}
		c, err := d.Advance("operator:test@here", f.now(), domain.Cancelled{Reason: "r"})
		if err != nil {
			t.Fatal(err)
		}
		changes = append(changes, c)
	}
	stale, err := f.Append(t.Context(), changes)
	if err != nil || len(stale) != 1 || stale[0] != list[2].ID {
		t.Fatalf("stale %v, %v", stale, err)
	}
	for i, d := range list {
		if got := len(f.stream(d.ID)); (got == 2) != (i != 2) {
			t.Errorf("delivery %d has %d events", i, got)
		}
	}
	f.verify()
}

// TestSequenceIsTheAuthority is rule 2 below the gate: even an insert that passes the
// gate by cannot take a seq that is taken.
func TestSequenceIsTheAuthority(t *testing.T) {
	t.Parallel()
	f := open(t)
	d := f.schedule(f.endpoint().ID, 1)[0]
	_, err := f.db.App.Exec(t.Context(), `insert into waybill.events (tenant, stream, stream_id, seq, name, version,
		recorded_at, actor, data, hash) values ('default', 'delivery', $1, 1, 'n', 1, now(), 'a', '{}', '')`, d.ID)
	if code(err) != "23505" {
		t.Errorf("a second event at seq 1: %v", err)
	}
}

// TestPositionsRiseWithSeq is rule 10: every insert of several events is ordered. It
// fails without the order in the insert.
func TestPositionsRiseWithSeq(t *testing.T) {
	t.Parallel()
	f := open(t)
	list := f.schedule(f.endpoint().ID, 500)
	var changes []projections.DeliveryChange
	for _, d := range list {
		c, err := d.Advance("operator:test@here", f.now(), domain.Cancelled{Reason: "r"}, domain.Replayed{Reason: "r", Cycle: 2, DueAt: f.now(), Force: true})
		if err != nil {
			t.Fatal(err)
		}
		changes = append(changes, c)
	}
	if stale, err := f.Append(t.Context(), changes); err != nil || len(stale) > 0 {
		t.Fatal(stale, err)
	}
	f.verify() // checks positions
}

// TestOneIDWithoutPartition is rule 12 at its root: a refusal with a code, nothing
// half-written, and the month's border itself is no border.
func TestOneIDWithoutPartition(t *testing.T) {
	t.Parallel()
	f := open(t)
	e := f.endpoint()
	now := f.now()
	first := time.Date(now.Year(), now.Month(), 1, 0, 0, 0, 0, time.UTC)
	for name, at := range map[string]time.Time{
		"last moment of this month": first.AddDate(0, 1, 0).Add(-time.Millisecond),
		"first moment of the next":  first.AddDate(0, 1, 0),
		"three months ahead":        first.AddDate(0, 4, 0).Add(-time.Millisecond),
		"last month":                first.Add(-time.Millisecond),
	} {
		s := f.draft(e.ID, domain.At(at), "")
		if _, err := f.Schedule(t.Context(), []projections.Submission{s}, domain.At(at)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if got := f.stream(s.Deliveries[0].After.ID); len(got) != 1 {
			t.Errorf("%s: history %v", name, names(got))
		}
	}
	beyond := domain.At(first.AddDate(0, 4, 0))
	s := f.draft(e.ID, beyond, "k")
	if _, err := f.Schedule(t.Context(), []projections.Submission{s}, beyond); !errors.Is(err, domain.ErrOutsidePartitions) {
		t.Errorf("beyond the partitions: %v", err)
	}
	var left int
	err := f.db.App.QueryRow(t.Context(), `select (select count(*) from waybill.messages where id = $1)
		+ (select count(*) from waybill.idempotency_keys) + (select count(*) from waybill.deliveries where message_id = $1)`,
		s.Message.ID).Scan(&left)
	if err != nil || left != 0 {
		t.Errorf("%d rows were left behind: %v", left, err)
	}
	f.verify()
}

// TestPartitionsAheadAreMadeOnce: the application may have months made, from many
// places at once, and they are as protected as the others.
func TestPartitionsAheadAreMadeOnce(t *testing.T) {
	t.Parallel()
	f := open(t)
	before := len(partitions(t, f.db.Super()))
	errs := make(chan error, 6)
	for range cap(errs) {
		go func() {
			var made int
			errs <- f.db.App.QueryRow(t.Context(), "select waybill.make_partitions(5)").Scan(&made)
		}()
	}
	for range cap(errs) {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
	all := partitions(t, f.db.Super())
	if len(all) != before+2 {
		t.Fatalf("%d partitions became %d", before, len(all))
	}
	for _, table := range all {
		if _, err := f.db.Owner().Exec(t.Context(), "delete from "+table); code(err) != "23001" {
			t.Errorf("%s is not protected: %v", table, err)
		}
	}
}

// TestClaimsPartitionTheWork: six sessions that claim at once share the work out, and
// none of them waits for a row that another holds. It fails without SKIP LOCKED.
func TestClaimsPartitionTheWork(t *testing.T) {
	t.Parallel()
	f := open(t)
	e := f.endpoint()
	f.schedule(e.ID, 60)
	start := make(chan struct{})
	got := make(chan projections.Batch, 6)
	for range cap(got) {
		go func() {
			<-start
			b, err := f.Claim(t.Context(), projections.ClaimRequest{Worker: "w", Lease: time.Minute, Batch: 10,
				From: []projections.ClaimQuota{{EndpointID: e.ID, Limit: 10}}})
			if err != nil {
				t.Error(err)
			}
			got <- b
		}()
	}
	close(start)
	seen := map[string]bool{}
	for range cap(got) {
		b := <-got
		for _, a := range b.Taken {
			if seen[a.Delivery.ID.String()] {
				t.Errorf("%s was claimed twice", a.Delivery.ID)
			}
			seen[a.Delivery.ID.String()] = true
		}
	}
	for len(seen) < 60 {
		b := f.claim(e.ID, 60, time.Minute)
		if len(b.Taken) == 0 {
			t.Fatalf("%d of 60 were claimed", len(seen))
		}
		for _, a := range b.Taken {
			seen[a.Delivery.ID.String()] = true
		}
	}
	f.verify()
}

// TestLockedRowIsPassedOver: while somebody holds one due row, a claim takes the
// others and does not wait. It fails without SKIP LOCKED.
func TestLockedRowIsPassedOver(t *testing.T) {
	t.Parallel()
	f := open(t)
	e := f.endpoint()
	list := f.schedule(e.ID, 3)
	tx, err := f.db.Super().Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(t.Context()) }()
	if _, err := tx.Exec(t.Context(), "select from waybill.deliveries where id = $1 for update", list[0].ID); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	b, err := f.Claim(ctx, projections.ClaimRequest{Worker: "w", Lease: time.Minute, Batch: 10,
		From: []projections.ClaimQuota{{EndpointID: e.ID, Limit: 10}}})
	if err != nil || len(b.Taken) != 2 {
		t.Errorf("claimed %d of the 2 that are free: %v", len(b.Taken), err)
	}
}

// TestRunOutLeaseIsEndedOnce: of two recoveries released together exactly one ends
// the claim, and the attempt is in doubt and spent.
func TestRunOutLeaseIsEndedOnce(t *testing.T) {
	t.Parallel()
	f := open(t)
	e := f.endpoint()
	d := f.schedule(e.ID, 1)[0]
	f.claim(e.ID, 1, time.Millisecond)
	time.Sleep(10 * time.Millisecond)
	start := make(chan struct{})
	got := make(chan int, 2)
	for range cap(got) {
		go func() {
			<-start
			_, ended, err := f.Recover(t.Context())
			if err != nil {
				t.Error(err)
			}
			got <- len(ended)
		}()
	}
	close(start)
	if n := <-got + <-got; n != 1 {
		t.Errorf("ended %d times", n)
	}
	row, err := f.Delivery(t.Context(), domain.DefaultTenant, d.ID)
	if err != nil || !row.InDoubt() || row.CycleAttempts != 1 || row.State != domain.StatePending {
		t.Errorf("%+v %v", row, err)
	}
	f.verify()
}

// TestOrphansAreAdopted: a delivery that is processing under a claim that is gone, as
// after a restore, is found and recovered.
func TestOrphansAreAdopted(t *testing.T) {
	t.Parallel()
	f := open(t)
	e := f.endpoint()
	d := f.schedule(e.ID, 1)[0]
	b := f.claim(e.ID, 1, time.Minute)
	if err := f.EndClaims(t.Context(), []uuid.UUID{b.Token}); err != nil {
		t.Fatal(err)
	}
	if n, err := f.AdoptOrphans(t.Context()); n != 1 || err != nil {
		t.Fatal(n, err)
	}
	if _, ended, err := f.Recover(t.Context()); len(ended) != 1 || err != nil {
		t.Fatal(ended, err)
	}
	row, err := f.Delivery(t.Context(), domain.DefaultTenant, d.ID)
	if err != nil || row.State != domain.StatePending || !row.InDoubt() {
		t.Errorf("%+v %v", row, err)
	}
	f.verify()
}

// TestVerifyFindsWhatWasEdited is rule 6 turned round: a row that is not the fold of
// its events is named.
func TestVerifyFindsWhatWasEdited(t *testing.T) {
	t.Parallel()
	f := open(t)
	d := f.schedule(f.endpoint().ID, 3)[1]
	if _, err := f.db.Super().Exec(t.Context(), "update waybill.deliveries set attempts = 5 where id = $1", d.ID); err != nil {
		t.Fatal(err)
	}
	rep, err := f.Verify(t.Context())
	if err != nil || len(rep.Faults) != 1 || rep.Faults[0].StreamID != d.ID || rep.Deliveries != 3 {
		t.Errorf("%+v %v", rep, err)
	}
}

// TestIDsComeFromTheDatabasesClock is rule 8 for ids.
func TestIDsComeFromTheDatabasesClock(t *testing.T) {
	t.Parallel()
	at := domain.At(time.Date(2031, 5, 6, 7, 8, 9, 123e6, time.UTC))
	id := postgres.NewID(at)
	if sec, nsec := id.Time().UnixTime(); id.Version() != 7 || time.Unix(sec, nsec).UnixMilli() != at.UnixMilli() {
		t.Errorf("id %s of %s", id, at)
	}
}
