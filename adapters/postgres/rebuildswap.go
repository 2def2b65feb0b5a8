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
	"waybill/events"
	"waybill/projections"
)

//go:embed sql/list_blockers.sql
var listBlockers string

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
	if !r.p.Inline() {
		return r.follow(ctx)
	}
	r.o.Phase("catch up", 0)
	for range maxRounds {
		settled, err := r.settled(ctx)
		if err != nil {
			return err
		}
		moved, err := r.round(ctx, "")
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

// round refolds and compares anew the streams that have records which the shadow does not
// hold, and returns how many those are. Inside a transaction of the rebuild's connection
// seen is its snapshot; empty: each statement has its own.
func (r *rebuild) round(ctx context.Context, seen string) (moved int, err error) {
	const moving = "select waybill.moved_streams($1, $2::text::waybill.stream_kind, $3)"
	rows, err := r.conn.Query(ctx, r.schema.SQL(moving), r.p.Name, string(r.p.Stream), r.after)
	if err != nil {
		return 0, err
	}
	ids, err := pgx.CollectRows(rows, pgx.RowTo[uuid.UUID])
	if err != nil {
		return 0, err
	}
	for some := range slices.Chunk(ids, refoldAtOnce) {
		if err := r.renew(ctx, some, seen); err != nil {
			return 0, err
		}
	}
	return len(ids), nil
}

// renew refolds and compares some streams. What they are folded from another connection
// reads, as one cannot read and copy at once.
func (r *rebuild) renew(ctx context.Context, ids []uuid.UUID, seen string) error {
	read, err := r.pool.Acquire(ctx)
	if err != nil {
		return err
	}
	defer read.Release()
	err = pgx.BeginTxFunc(ctx, read, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) error {
		if seen != "" {
			if _, err := tx.Exec(ctx, "set transaction snapshot '"+seen+"'"); err != nil {
				return err
			}
		}
		return r.refold(ctx, read.Conn(), r.conn, ids)
	})
	if err != nil {
		return err
	}
	_, err = r.conn.Exec(ctx, r.schema.SQL("call waybill.compare_shadow($1, $2)"), r.p.Name, ids)
	return err
}

// look is what a dry run ends with: in one snapshot of log, shadow and live table it does
// what a swap does under the lock. Nobody is kept from appending.
func (r *rebuild) look(ctx context.Context) error {
	if !r.p.Inline() {
		return pgx.BeginFunc(ctx, r.conn, func(tx pgx.Tx) error {
			_, err := r.settle(ctx, tx)
			return err
		})
	}
	return pgx.BeginTxFunc(ctx, r.conn, pgx.TxOptions{IsoLevel: pgx.RepeatableRead}, func(tx pgx.Tx) error {
		var seen string
		if err := tx.QueryRow(ctx, "select pg_export_snapshot()").Scan(&seen); err != nil {
			return err
		}
		if _, err := r.round(ctx, seen); err != nil {
			return err
		}
		return r.leaveArchived(ctx)
	})
}

// leaveArchived takes out of the shadow what an archive has taken out of the live table. A
// month's rows go before its events do, and an archive may rest in between.
func (r *rebuild) leaveArchived(ctx context.Context) error {
	if r.p.Stream != events.DeliveryStream {
		return nil
	}
	var n int64
	err := r.conn.QueryRow(ctx, r.schema.SQL("select waybill.leave_archived()")).Scan(&n)
	r.report.Rows -= n
	return err
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
	locked, was, after := time.Time{}, r.report, r.after
	err := pgx.BeginFunc(ctx, r.conn, func(tx pgx.Tx) error {
		var position any // none: it moves with each append
		if !r.p.Inline() {
			held, err := r.settle(ctx, tx)
			if err != nil {
				return err
			}
			position = held
		}
		if _, err := tx.Exec(ctx, "set local lock_timeout = '"+swapLock+"'"); err != nil {
			return err
		}
		live := pgx.Identifier{string(r.schema), r.p.Name}.Sanitize()
		if _, err := tx.Exec(ctx, "lock table "+live+" in access exclusive mode"); err != nil {
			return err
		}
		locked = time.Now()
		if r.p.Inline() {
			if _, err := r.round(ctx, ""); err != nil {
				return err
			}
			if err := r.leaveArchived(ctx); err != nil {
				return err
			}
		}
		if err := r.call(ctx, "call waybill.swap_shadow($1)"); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, r.schema.SQL(markRebuilt), args{"name": r.p.Name, "version": r.p.Version, "position": position})
		r.report.LockedMS = time.Since(locked).Milliseconds() // the commit lets go before it deletes the old files
		return err
	})
	if err != nil {
		r.report, r.after = was, after
	}
	return err
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
