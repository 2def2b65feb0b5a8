package postgres

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"waybill/domain"
	"waybill/projections"
)

var (
	//go:embed sql/list_moved.sql
	listMoved string
	//go:embed sql/list_blockers.sql
	listBlockers string
)

// How a rebuild catches up and swaps.
const (
	fewMoved     = 500 // streams that may be left for the time of the lock
	maxRounds    = 100
	refoldAtOnce = 1000
	swapLock     = "200ms" // that others wait behind us at most
	swapPause    = 300 * time.Millisecond
	maxSwapPause = 2 * time.Second
)

// catchUp refolds what has moved since the shadow was filled, until little is left.
func (r *rebuild) catchUp(ctx context.Context) error {
	r.o.Phase("catch up", 0)
	for range maxRounds {
		settled, err := r.settled(ctx)
		if err != nil {
			return err
		}
		moved, err := r.round(ctx, nil)
		if err != nil {
			return err
		}
		r.after = max(r.after, settled)
		if moved <= fewMoved {
			return nil
		}
	}
	return nil // appends are faster than we are: the lock will stop them for a while
}

// round refolds and compares anew the streams that have records above the rebuild's
// position, and returns how many those are; in the given transaction, or in some of its own.
func (r *rebuild) round(ctx context.Context, tx pgx.Tx) (moved int, err error) {
	rows, err := r.conn.Query(ctx, r.schema.SQL(listMoved), args{"stream": string(r.p.Stream), "after": r.after})
	if err != nil {
		return 0, err
	}
	ids, err := pgx.CollectRows(rows, pgx.RowTo[uuid.UUID])
	if err != nil {
		return 0, err
	}
	for some := range slices.Chunk(ids, refoldAtOnce) {
		if tx != nil {
			err = r.renew(ctx, some)
		} else {
			err = pgx.BeginFunc(ctx, r.conn, func(pgx.Tx) error { return r.renew(ctx, some) })
		}
		if err != nil {
			return 0, err
		}
	}
	return len(ids), nil
}

// renew refolds and compares some streams in the transaction that the rebuild's connection
// is in. What they are folded from another connection reads: one cannot read and copy.
func (r *rebuild) renew(ctx context.Context, ids []uuid.UUID) error {
	read, err := r.pool.Acquire(ctx)
	if err != nil {
		return err
	}
	defer read.Release()
	if err := r.refold(ctx, read.Conn(), r.conn, ids); err != nil {
		return err
	}
	_, err = r.conn.Exec(ctx, r.schema.SQL("call waybill.compare_shadow($1, $2)"), r.p.Name, ids)
	return err
}

// look is what a dry run ends with: nobody is kept from appending, so that streams which
// moved since are compared again until they agree or stand still.
func (r *rebuild) look(ctx context.Context) error {
	for range maxRounds {
		settled, err := r.settled(ctx)
		if err != nil {
			return err
		}
		if _, err := r.round(ctx, nil); err != nil {
			return err
		}
		r.after = max(r.after, settled)
		still, err := r.standing(ctx)
		if err != nil || still {
			return err
		}
	}
	return errors.New("the rows that differ change too fast to be compared; run it again, or without --dry-run")
}

// standing reports whether no row that was found to differ has records above the
// rebuild's position, so that what was found is true.
func (r *rebuild) standing(ctx context.Context) (still bool, err error) {
	differ := pgx.Identifier{string(r.schema), r.p.Name + "_differ"}.Sanitize()
	const moving = `select not exists (select from waybill.events e join %s d on d.key = e.stream_id::text
		where e.stream = $1::text::waybill.stream_kind and e.position > $2)`
	err = r.conn.QueryRow(ctx, fmt.Sprintf(r.schema.SQL(moving), differ), string(r.p.Stream), r.after).Scan(&still)
	return still, err
}

// replace swaps as soon as the live table can be had.
func (r *rebuild) replace(ctx context.Context) error {
	r.o.Phase("swap", 0)
	end := time.Now().Add(r.o.Patience)
	for pause := swapPause; ; pause = min(2*pause, maxSwapPause) {
		r.report.Swaps++
		err := r.swap(ctx)
		if !isLockTimeout(err) {
			return err
		}
		why, err := r.blockers(ctx)
		if err != nil {
			return err
		}
		if time.Now().After(end) {
			return domain.ErrProjectionBusy.With(r.p.Name + " could not be locked within " + r.o.Patience.String() + "; nothing was changed. Who holds it: " + why)
		}
		r.o.Waiting(why)
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(pause):
		}
		if err := r.catchUp(ctx); err != nil {
			return err
		}
	}
}

// swap locks the live table, brings the shadow up to date and puts it in its place, all in
// one transaction.
func (r *rebuild) swap(ctx context.Context) error {
	locked, rows := time.Time{}, r.report.Rows
	err := pgx.BeginFunc(ctx, r.conn, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "set local lock_timeout = '"+swapLock+"'"); err != nil {
			return err
		}
		live := pgx.Identifier{string(r.schema), r.p.Name}.Sanitize()
		if _, err := tx.Exec(ctx, "lock table "+live+" in access exclusive mode"); err != nil {
			return err
		}
		locked = time.Now()
		if _, err := r.round(ctx, tx); err != nil {
			return err
		}
		if err := r.call(ctx, "call waybill.swap_shadow($1)"); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, r.schema.SQL(markRebuilt), args{"name": r.p.Name, "version": r.p.Version, "position": nil})
		return err
	})
	if err != nil {
		r.report.Rows = rows
		return err
	}
	r.report.LockedMS = time.Since(locked).Milliseconds()
	return nil
}

func isLockTimeout(err error) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && pg.Code == codeLockTimeout
}

// blockers says who holds the live table.
func (r *rebuild) blockers(ctx context.Context) (string, error) {
	rows, err := r.conn.Query(ctx, r.schema.SQL(listBlockers), args{"table": r.p.Name})
	if err != nil {
		return "", err
	}
	list, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (string, error) {
		var a projections.Appender
		var age float64
		err := row.Scan(&a.PID, &a.Application, &a.State, &age)
		return fmt.Sprintf("process %d (%s, %s, for %s)", a.PID, a.Application, a.State, seconds(age)), err
	})
	return strings.Join(list, ", "), err
}
