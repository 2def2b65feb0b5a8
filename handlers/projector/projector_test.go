package projector_test

import (
	"context"
	"io"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"pgregory.net/rapid"

	"waybill/adapters/postgres"
	"waybill/adapters/postgres/postgrestest"
	"waybill/domain"
	"waybill/events"
	"waybill/handlers/projector"
	"waybill/handlers/sealer"
	"waybill/projections"
)

// rig is a log that a test writes as it likes.
type rig struct {
	*postgres.Ledger
	t      *testing.T
	db     *postgrestest.DB
	ids    []uuid.UUID
	at     domain.Instant
	health map[uuid.UUID]projections.Tally
	hours  map[projections.TallyKey]projections.Tally
}

func newRig(t *testing.T) *rig {
	t.Helper()
	db := postgrestest.New(t)
	r := &rig{Ledger: postgres.Open(db.App, postgres.Config{}), t: t, db: db,
		health: map[uuid.UUID]projections.Tally{}, hours: map[projections.TallyKey]projections.Tally{}}
	var err error
	if r.at, err = r.Now(t.Context()); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		r.ids = append(r.ids, postgres.NewID(r.at))
	}
	return r
}

// put appends one event of a stream of its own, as it is: what a projection counts is in
// each event by itself.
func (r *rig) put(endpoint uuid.UUID, name string, version int, data string) uuid.UUID {
	r.t.Helper()
	id := postgres.NewID(r.at)
	r.at = r.at.After(7 * time.Minute)
	const insert = `insert into waybill.events (tenant, stream, stream_id, seq, name, version, recorded_at, actor, endpoint_id, data, hash)
		values ('default', 'delivery', $1, 1, $2, $3, $4, 'worker:w', $5, $6, $7)`
	if _, err := r.db.App.Exec(r.t.Context(), insert, id, name, version, r.at.Time, endpoint, data, make([]byte, 32)); err != nil {
		r.t.Fatal(err)
	}
	return id
}

// attempt appends an attempt, and keeps in mind what it must add up to.
func (r *rig) attempt(endpoint uuid.UUID, a domain.Attempted) {
	r.t.Helper()
	name, version, data, err := events.Encode(a)
	if err != nil {
		r.t.Fatal(err)
	}
	r.put(endpoint, name, version, string(data))
	h := r.health[endpoint]
	h.Attempts++
	map[domain.Outcome]func(){
		domain.Succeeded: func() { h.Succeeded++; h.LastSuccess = r.at }, domain.Refused: func() { h.Refused++ },
		domain.Unreached: func() { h.Unreached++ }, domain.Unknown: func() { h.Unknown++ },
	}[a.Outcome]()
	if a.Status > 0 {
		h.Answered, h.DurationSumMS, h.DurationMaxMS = h.Answered+1, h.DurationSumMS+a.DurationMS, max(h.DurationMaxMS, a.DurationMS)
	}
	r.health[endpoint] = h
	k := projections.TallyKey{Tenant: "default", EndpointID: endpoint, Hour: r.at.Unix() / 3600 * 3600}
	hour := r.hours[k]
	hour.Attempts++
	r.hours[k] = hour
}

func (r *rig) seal() {
	r.t.Helper()
	s := sealer.New(sealer.Config{Ledger: r.Ledger, Log: slog.New(slog.DiscardHandler)})
	for more := true; more; {
		var err error
		if _, more, err = s.Round(r.t.Context()); err != nil {
			r.t.Fatal(err)
		}
	}
}

func (r *rig) projector(log io.Writer) *projector.Projector {
	return projector.New(projector.Config{Ledger: r.Ledger, Log: slog.New(slog.NewTextHandler(log, nil)), Transient: postgres.Transient})
}

// catchUp goes on until every projection is at the horizon or stopped: one round may move
// nothing because a session that was cut off has its rows locked still.
func (r *rig) catchUp(log io.Writer) {
	r.t.Helper()
	for behind := true; behind; {
		moved, err := r.projector(log).Round(r.t.Context())
		if err != nil {
			r.t.Fatal(err)
		}
		behind = moved > 0 || slices.ContainsFunc(r.statuses(), func(s projections.ProjectionStatus) bool {
			return s.Kind == "async" && s.State == projections.ProjectionRunning && s.Lag > 0
		})
	}
}

func (r *rig) statuses() []projections.ProjectionStatus {
	r.t.Helper()
	list, err := r.ListProjections(r.t.Context())
	if err != nil {
		r.t.Fatal(err)
	}
	return list
}

// check holds the rows against what was appended.
func (r *rig) check() {
	r.t.Helper()
	n := 0
	for id, want := range r.health {
		var got projections.Tally
		var last, success *time.Time
		var durations []int64
		const read = `select attempts, succeeded, refused, unreached, unknown, answered, duration_sum_ms, duration_max_ms, durations,
			last_success_at, last_attempt_at from waybill.endpoint_health where tenant = 'default' and endpoint_id = $1`
		err := r.db.App.QueryRow(r.t.Context(), read, id).Scan(&got.Attempts, &got.Succeeded, &got.Refused, &got.Unreached, &got.Unknown,
			&got.Answered, &got.DurationSumMS, &got.DurationMaxMS, &durations, &success, &last)
		if err != nil {
			r.t.Fatal(id, err)
		}
		if success != nil {
			got.LastSuccess = domain.At(*success)
		}
		sum := int64(0)
		for _, d := range durations {
			sum += d
		}
		if got != want || sum != want.Answered || last == nil {
			r.t.Errorf("%s: %+v, not %+v; durations %v", id, got, want, durations)
		}
	}
	for k, want := range r.hours {
		var got int64
		const read = `select succeeded + refused + unreached + unknown from waybill.outcomes_hourly where endpoint_id = $1 and hour = to_timestamp($2)`
		if err := r.db.App.QueryRow(r.t.Context(), read, k.EndpointID, k.Hour).Scan(&got); err != nil || got != want.Attempts {
			r.t.Errorf("%v: %d, not %d: %v", k, got, want.Attempts, err)
		}
	}
	if err := r.db.App.QueryRow(r.t.Context(), "select count(*) from waybill.outcomes_hourly").Scan(&n); err != nil || n != len(r.hours) {
		r.t.Errorf("%d hours, not %d: %v", n, len(r.hours), err)
	}
}

func (r *rig) rebuild(name string, dry bool) (projections.Rebuilt, error) {
	p, err := projections.FindProjection(name)
	if err != nil {
		r.t.Fatal(err)
	}
	return postgres.Rebuild(r.t.Context(), r.db.OwnerURL, r.Schema, p, postgres.RebuildOptions{DryRun: dry})
}

func (r *rig) status(name string) (found projections.ProjectionStatus) {
	r.t.Helper()
	for _, s := range r.statuses() {
		if s.Name == name {
			found = s
		}
	}
	return found
}

var drawAttempt = rapid.Custom(func(t *rapid.T) domain.Attempted {
	a := domain.Attempted{Attempt: 1, DurationMS: rapid.Int64Range(0, 60_000).Draw(t, "ms")}
	a.Outcome = rapid.SampledFrom([]domain.Outcome{domain.Succeeded, domain.Refused, domain.Unreached, domain.Unknown}).Draw(t, "outcome")
	if a.Outcome == domain.Succeeded || a.Outcome == domain.Refused {
		a.Status = 200
	}
	return a
})

// TestKilledProjectorsCountOnce cuts projectors off again and again: their contexts end and
// their sessions are terminated, some while others move the same projections. Nothing may
// be lost or counted twice, and a rebuild in between must find nothing.
func TestKilledProjectorsCountOnce(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for round := range 12 {
		for i := range 40 {
			r.attempt(r.ids[i%3], drawAttempt.Example(round*100+i))
		}
		r.seal()
		var work sync.WaitGroup
		for i := range 3 {
			work.Go(func() {
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(i*round)*time.Millisecond)
				defer cancel()
				for ctx.Err() == nil {
					for _, p := range projections.Projections[2:] {
						_, _ = r.Project(ctx, p, 7) // may be cut off anywhere
					}
				}
			})
		}
		if _, err := r.db.Super().Exec(t.Context(), `select pg_terminate_backend(pid) from pg_stat_activity
			where datname = current_database() and usename = 'waybill_test_app' and state <> 'idle'`); err != nil {
			t.Fatal(err)
		}
		work.Wait()
		if round%5 == 4 {
			for _, name := range []string{"endpoint_health", "outcomes_hourly"} {
				if got, err := r.rebuild(name, round == 4); err != nil || !got.Compared || got.Differing != 0 {
					t.Fatalf("%+v %v", got, err)
				}
			}
		}
	}
	r.catchUp(io.Discard)
	r.check()
	if _, err := r.db.Super().Exec(t.Context(), "update waybill.endpoint_health set attempts = attempts + 1 where endpoint_id = $1", r.ids[0]); err != nil {
		t.Fatal(err)
	}
	if got, err := r.rebuild("endpoint_health", false); err != nil || got.Differing != 1 || got.Columns["attempts"] != 1 || got.Rows != 3 {
		t.Fatalf("%+v %v", got, err)
	}
	r.check()
}

// TestPoisonStopsOneProjection has an event that nobody can read, which stops both, and a
// row that one projection cannot be written to, which stops that one.
func TestPoisonStopsOneProjection(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for i := range 20 {
		r.attempt(r.ids[i%3], drawAttempt.Example(i))
	}
	name, version, data, err := events.Encode(domain.Attempted{Outcome: domain.Succeeded, Status: 200, DurationMS: 500_000})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.db.Owner().Exec(t.Context(), "alter table waybill.endpoint_health add constraint sane check (duration_max_ms < 100000)"); err != nil {
		t.Fatal(err)
	}
	bad := r.put(r.ids[0], name, version, string(data))
	other := r.put(r.ids[1], name, version, `{"outcome":"refused"}`)
	r.seal()
	var log strings.Builder
	r.catchUp(&log)
	s := r.status("endpoint_health")
	if s.State != projections.ProjectionStopped || s.StreamID != bad || s.Seq != 1 || s.Error == "" || s.Lag == 0 {
		t.Errorf("%+v", s)
	}
	if n := strings.Count(log.String(), "has stopped"); n != 1 || !strings.Contains(log.String(), bad.String()) {
		t.Errorf("%d times: %s", n, &log)
	}
	if s := r.status("outcomes_hourly"); s.State != projections.ProjectionRunning || s.Lag != 0 {
		t.Errorf("%+v", s)
	}
	if got, err := r.rebuild("endpoint_health", false); err == nil {
		t.Errorf("rebuilt over what it cannot take: %+v", got)
	}
	if s := r.status("endpoint_health"); s.State != projections.ProjectionStopped {
		t.Errorf("%+v", s)
	}
	// What cannot be read stops the other one as well, before the event and not over it.
	unread := r.put(r.ids[2], "delivery.attempted", 99, `{}`)
	r.seal()
	r.catchUp(&log)
	if s := r.status("outcomes_hourly"); s.State != projections.ProjectionStopped || s.StreamID != unread {
		t.Errorf("%+v, not at %s after %s", s, unread, other)
	}
	r.mend()
	for _, name := range []string{"endpoint_health", "outcomes_hourly"} {
		got, err := r.rebuild(name, false)
		if err != nil || got.Compared || got.Rows == 0 {
			t.Errorf("%+v %v", got, err)
		}
		if s := r.status(name); s.State != projections.ProjectionRunning || s.Lag != 0 || s.RebuiltAt.IsZero() {
			t.Errorf("%+v", s)
		}
	}
	r.attempt(r.ids[0], domain.Attempted{Outcome: domain.Unreached})
	r.seal()
	r.catchUp(&log)
}

// mend takes away what stopped the projections, as if a newer program could read and apply
// it. The log takes an edit from a superuser alone, once the triggers are off.
func (r *rig) mend() {
	r.t.Helper()
	super := r.db.Super()
	for _, sql := range []string{
		"do $$ declare p regclass; begin for p in select relid from pg_partition_tree('waybill.events') loop execute format('alter table %s disable trigger all', p); end loop; end $$",
		"update waybill.events set version = 1, data = '{}' where version = 99",
		"alter table waybill.endpoint_health drop constraint sane",
	} {
		if _, err := super.Exec(r.t.Context(), sql); err != nil {
			r.t.Fatal(err)
		}
	}
}
