package postgres

import (
	"cmp"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"golang.org/x/sync/errgroup"

	"waybill/domain"
	"waybill/projections"
)

var (
	//go:embed sql/get_table_owner.sql
	getTableOwner string
	//go:embed sql/mark_rebuilt.sql
	markRebuilt string
)

// RebuildOptions is how a projection is rebuilt.
type RebuildOptions struct {
	Workers  int                          // that copy at a time; 0: one a processor, at most 8
	DryRun   bool                         // only say what differs
	Patience time.Duration                // for whoever keeps the table locked; 0: ten minutes
	Phase    func(name string, all int64) // told what is done now, and of how many events if known; may be nil
	Done     func(events int64)           // told of each few events; may be nil; from many goroutines
	Waiting  func(why string)             // told who keeps the table locked; may be nil
}

const swapPatience = 10 * time.Minute

func (o RebuildOptions) withDefaults() RebuildOptions {
	if o.Workers <= 0 {
		o.Workers = min(runtime.NumCPU(), 8)
	}
	if o.Patience <= 0 {
		o.Patience = swapPatience
	}
	if o.Phase == nil {
		o.Phase = func(string, int64) {}
	}
	if o.Done == nil {
		o.Done = func(int64) {}
	}
	if o.Waiting == nil {
		o.Waiting = func(string) {}
	}
	return o
}

// Rebuild computes a projection anew from the log, beside traffic, and puts it in the
// place of the one before:
//
//	1 note up to where the log is settled, P
//	2 make a shadow table; copy the fold of every stream into it, in parallel
//	3 build its indexes and, meanwhile, compare it with the live table
//	4 refold and compare the streams that have records above P, move P; again, until there are few
//	5 lock the live table, refold and compare what is above P once more, swap, commit
//
// A projection that follows the sealed log is counted from its beginning into the shadow; for
// the swap its checkpoint is held, so that nobody moves it meanwhile.
//
// An append writes its records and its row in one transaction, so once the table is locked
// every append that had touched it has ended, and one that had not finds the new table: a
// statement that has waited for a lock looks its names up again. Every stream with a record
// that the copy may not have seen has one above P. The lock is asked for with little
// patience, again and again, so that one idle transaction does not make all others wait.
//
// The URL's role must be able to act as the owner of the projection's table. A rebuild
// that ends early, however it does, leaves the live table as it was; the next one drops
// what is left of it. A reader whose repeatable-read snapshot is older than the swap and
// who first looks at the table after it sees an empty one, as after a TRUNCATE.
func Rebuild(ctx context.Context, databaseURL string, schema projections.Schema, p projections.Projection, o RebuildOptions) (projections.Rebuilt, error) {
	o = o.withDefaults()
	began := time.Now()
	r := &rebuild{o: o, p: p, schema: schema, report: projections.Rebuilt{Projection: p.Name, Version: p.Version, DryRun: o.DryRun}}
	err := r.open(ctx, databaseURL)
	if err == nil {
		defer r.close()
		err = r.run(ctx)
	}
	r.report.TookMS = time.Since(began).Milliseconds()
	if err != nil {
		return r.report, fmt.Errorf("rebuild %s: %w", p.Name, err)
	}
	return r.report, nil
}

// rebuild is one rebuild of one projection.
type rebuild struct {
	o      RebuildOptions
	p      projections.Projection
	schema projections.Schema
	pool   *pgxpool.Pool
	conn   *pgx.Conn // holds the right to rebuild for as long as it lives, and swaps
	after  int64     // P: every stream is in the shadow as its records up to here make it
	report projections.Rebuilt
}

// open connects as the owner of the projection's table.
func (r *rebuild) open(ctx context.Context, databaseURL string) error {
	probe, err := Connect(ctx, databaseURL, ConnectOptions{MaxConns: 1, Name: "waybill-rebuild"})
	if err != nil {
		return err
	}
	defer probe.Close()
	var owner string
	var member bool
	err = probe.QueryRow(ctx, r.schema.SQL(getTableOwner), args{"table": r.p.Name}).Scan(&owner, &member)
	if errors.Is(err, pgx.ErrNoRows) {
		return domain.ErrSchemaUnknown.With("there is no table " + r.p.Name + "; run: waybill migrate")
	}
	if err != nil {
		return err
	}
	if !member {
		return domain.ErrProjectionNotOwned.With(r.p.Name + " belongs to the role " + owner + "; give --projection-url of that role")
	}
	r.pool, err = Connect(ctx, databaseURL, ConnectOptions{
		MaxConns: int32(2*r.o.Workers + 2), Name: "waybill-rebuild", Role: owner, Patient: true,
	})
	if err != nil {
		return err
	}
	held, err := r.pool.Acquire(ctx)
	if err != nil {
		r.pool.Close()
		return err
	}
	r.conn = held.Hijack()
	return nil
}

// close gives up the right to rebuild.
func (r *rebuild) close() {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	_ = r.conn.Close(ctx)
	r.pool.Close()
}

func (r *rebuild) run(ctx context.Context) (err error) {
	if err := r.begin(ctx); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.tidy(ctx)) }()
	steps := []func(context.Context) error{r.copy, r.key, r.indexAndCompare, r.catchUp}
	if !r.p.Inline() {
		steps = []func(context.Context) error{r.key, r.index, r.follow, r.analyze}
	}
	for _, step := range steps {
		if err := step(ctx); err != nil {
			return err
		}
	}
	if r.o.DryRun {
		err = r.look(ctx)
	} else {
		err = r.replace(ctx)
	}
	if err != nil {
		return err
	}
	return r.count(ctx)
}

// begin takes the right to rebuild and makes an empty shadow, in place of one that was
// left.
func (r *rebuild) begin(ctx context.Context) error {
	if free, err := r.lock(ctx, r.conn); err != nil || !free {
		return cmp.Or(err, error(domain.ErrRebuildRunning))
	}
	rows, err := r.conn.Query(ctx, r.schema.SQL("select waybill.projection_dependents($1)"), r.p.Name)
	if err != nil {
		return err
	}
	dependents, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return err
	}
	if len(dependents) > 0 && !r.o.DryRun {
		return domain.ErrProjectionDependents.With(r.p.Name + " cannot be replaced; these depend on its table: " + strings.Join(dependents, ", "))
	}
	if r.p.Inline() {
		if r.after, err = r.settled(ctx); err != nil {
			return err
		}
	}
	return r.call(ctx, "call waybill.make_shadow($1)")
}

// lock takes the right to rebuild, which ends with the connection, however that ends.
func (r *rebuild) lock(ctx context.Context, c *pgx.Conn) (free bool, err error) {
	key := r.schema.SQL("waybill.rebuild.") + r.p.Name
	err = c.QueryRow(ctx, "select pg_try_advisory_lock(hashtextextended($1, 0))", key).Scan(&free)
	return free, err
}

// key gives the shadow the live table's key and other constraints.
func (r *rebuild) key(ctx context.Context) error {
	r.o.Phase("index", 0)
	return r.call(ctx, "call waybill.index_shadow($1, true)")
}

// index gives the shadow the other indexes of the live table, and statistics.
func (r *rebuild) index(ctx context.Context) error {
	_, err := r.pool.Exec(ctx, r.schema.SQL("call waybill.index_shadow($1, false)"), r.p.Name)
	return err
}

// indexAndCompare does both at once, as neither fills more than one core.
func (r *rebuild) indexAndCompare(ctx context.Context) error {
	work, ctx := errgroup.WithContext(ctx)
	work.Go(func() error { return r.index(ctx) })
	work.Go(func() error { return r.compare(ctx) })
	return work.Wait()
}

// analyze takes statistics of a shadow that was filled after its indexes were made.
func (r *rebuild) analyze(ctx context.Context) error {
	_, err := r.conn.Exec(ctx, "analyze "+r.shadow().Sanitize())
	return err
}

// compare notes which rows differ.
func (r *rebuild) compare(ctx context.Context) error {
	r.o.Phase("compare", 0)
	r.report.Compared = true
	return r.call(ctx, "call waybill.compare_shadow($1, null)")
}

// tidy drops what only the rebuild needs. Where its connection is lost, and with it the
// right to rebuild, another rebuild may have begun: that one did it then.
func (r *rebuild) tidy(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	if r.conn.IsClosed() {
		held, err := r.pool.Acquire(ctx)
		if err != nil {
			return err
		}
		r.conn = held.Hijack()
		if free, err := r.lock(ctx, r.conn); err != nil || !free {
			return err
		}
	}
	return r.call(ctx, "call waybill.drop_shadow($1)")
}

func (r *rebuild) call(ctx context.Context, sql string) error {
	_, err := r.conn.Exec(ctx, r.schema.SQL(sql), r.p.Name)
	return err
}
