package postgres

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"waybill/domain"
	"waybill/events"
	"waybill/projections"
)

var (
	//go:embed sql/insert_archive.sql
	insertArchive string
	//go:embed sql/move_archive.sql
	moveArchive string
	//go:embed sql/set_archive_file.sql
	setArchiveFile string
	//go:embed sql/keep_leaves.sql
	keepLeaves string
	//go:embed sql/clear_month.sql
	clearMonth string
	//go:embed sql/clear_unwanted.sql
	clearUnwanted string
	//go:embed sql/clear_claims.sql
	clearClaims string
	//go:embed sql/try_archiving.sql
	tryArchiving string
)

// Archiver takes months out of the log, as the schema's owner. There is one at a time.
type Archiver struct {
	l  *Ledger
	by domain.Actor
	db *pgxpool.Conn // holds the lock; without time limits
}

// NewArchiver refuses whoever does not own the schema, and a second archiver. Close it.
func (l *Ledger) NewArchiver(ctx context.Context, by domain.Actor) (*Archiver, error) {
	p, err := l.Power(ctx)
	switch {
	case err != nil:
		return nil, err
	case !p.Owner && !p.Superuser:
		return nil, domain.ErrOwnerNeeded
	}
	db, err := l.pool.Acquire(ctx)
	if err != nil {
		return nil, fmt.Errorf("archive: %w", err)
	}
	var mine bool
	_, err = db.Exec(ctx, "select set_config('statement_timeout', '0', false), set_config('lock_timeout', '0', false), "+
		"set_config('idle_in_transaction_session_timeout', '60s', false)")
	if err == nil {
		err = db.QueryRow(ctx, l.Schema.SQL(tryArchiving)).Scan(&mine)
	}
	a := &Archiver{l, by, db}
	if err != nil || !mine {
		a.Close()
		if err == nil {
			return nil, domain.ErrArchiveRunning
		}
		return nil, fmt.Errorf("archive: %w", err)
	}
	return a, nil
}

// Close lets another archive. The connection is not used again: its limits were lifted.
func (a *Archiver) Close() {
	conn := a.db.Hijack()
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = conn.Close(ctx)
}

// Reader asks questions without time limits: whole months are read.
func (a *Archiver) Reader() projections.Reader {
	return projections.Reader{DB: a.db, Schema: a.l.Schema}
}

// How long closing a month waits for those who are adding to it, and how often it tries:
// while it waits, so do others who would add.
const (
	closePatience = "200ms"
	closeTries    = 50
)

// CloseMonth lets nothing more be added to a month's partition. It is refused, and nothing
// is closed, if the month has deliveries that have not ended or is not wholly sealed.
func (a *Archiver) CloseMonth(ctx context.Context, month, reason string) error {
	for n := 1; ; n++ {
		err := a.close(ctx, month, reason)
		var pg *pgconn.PgError
		if !errors.As(err, &pg) || pg.Code != codeLockTimeout || n == closeTries {
			return wrap(err, "close month %s", month)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(closePause):
		}
	}
}

const closePause = 100 * time.Millisecond

func (a *Archiver) close(ctx context.Context, month, reason string) error {
	low, high, err := events.MonthBounds(month)
	if err != nil {
		return err
	}
	return pgx.BeginFunc(ctx, a.db, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "set local lock_timeout = '"+closePatience+"'"); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, a.l.Schema.SQL("call waybill.close_month($1)"), partitionOf(month)); err != nil {
			return err
		}
		// Nobody is adding now; these statements see whatever was added.
		if err := (projections.Reader{DB: tx, Schema: a.l.Schema}).Archivable(ctx, month); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, a.l.Schema.SQL(insertArchive), args{"month": month + "-01", "low": low, "high": high, "reason": reason, "actor": string(a.by)})
		return err
	})
}

// SetFile says which file holds a closed month.
func (a *Archiver) SetFile(ctx context.Context, month string, t events.ExportTail, deliveries int64) error {
	low, _, err := events.MonthBounds(month)
	if err != nil {
		return err
	}
	tag, err := a.db.Exec(ctx, a.l.Schema.SQL(setArchiveFile), args{"low": low, "file": t.File, "sha256": t.SHA256[:],
		"events": t.Count, "deliveries": deliveries, "first": t.First, "last": t.Last})
	if err == nil && tag.RowsAffected() != 1 {
		err = errors.New("it is not being archived")
	}
	return wrap(err, "name the file of month %s", month)
}

// KeepLeaves keeps positions and hashes of an exported month.
func (a *Archiver) KeepLeaves(ctx context.Context, v projections.Archive) error {
	return a.step(ctx, v.Month, projections.StageExported, projections.StageKept, func(tx pgx.Tx, bounds args) error {
		tag, err := tx.Exec(ctx, a.l.Schema.SQL(keepLeaves), bounds)
		if err == nil && tag.RowsAffected() != v.Events {
			err = fmt.Errorf("the month has %d events, its file %d", tag.RowsAffected(), v.Events)
		}
		return err
	})
}

// clearBatch is how many rows one transaction deletes.
const clearBatch = 2000

// Clear deletes a kept month's deliveries and what belongs to them alone, in many short
// transactions. Told is called with how many are gone.
func (a *Archiver) Clear(ctx context.Context, month string, told func(int64)) error {
	if err := a.sweep(ctx, month, told); err != nil {
		return err
	}
	return a.step(ctx, month, projections.StageKept, projections.StageCleared, func(tx pgx.Tx, bounds args) error {
		_, err := tx.Exec(ctx, a.l.Schema.SQL(clearClaims), bounds)
		return err
	})
}

func (a *Archiver) sweep(ctx context.Context, month string, told func(int64)) error {
	low, high, err := events.MonthBounds(month)
	if err != nil {
		return err
	}
	for _, sql := range []string{clearMonth, clearUnwanted} {
		for n := int64(clearBatch); n == clearBatch; told(n) {
			if err := a.db.QueryRow(ctx, a.l.Schema.SQL(sql), args{"low": low, "high": high, "limit": clearBatch}).Scan(&n); err != nil {
				return wrap(err, "clear month %s", month)
			}
		}
	}
	return nil
}

// Detach takes a cleared month's partition out of the log, without keeping anybody from
// appending or reading, and says so in the log. It waits for those who read it now.
func (a *Archiver) Detach(ctx context.Context, v projections.Archive) error {
	if err := a.detach(ctx, v.Month); err != nil {
		return wrap(err, "detach month %s", v.Month)
	}
	if err := a.sweep(ctx, v.Month, func(int64) {}); err != nil { // what a rebuild put back meanwhile
		return err
	}
	now, err := a.l.clock.Now(ctx)
	if err != nil {
		return err
	}
	return a.step(ctx, v.Month, projections.StageCleared, projections.StageDetached, func(tx pgx.Tx, _ args) error {
		if _, err := tx.Exec(ctx, a.l.Schema.SQL("call waybill.set_aside_month($1)"), partitionOf(v.Month)); err != nil {
			return err
		}
		return a.l.administer(ctx, tx, domain.SystemTenant, a.by, now, domain.PartitionArchived{Month: v.Month, Reason: v.Reason,
			Events: v.Events, Deliveries: v.Deliveries, First: v.First, Last: v.Last, SHA256: v.SHA256, File: v.File})
	})
}

// detach is one statement outside of any transaction; one that was cut off is finished.
// The month was read from the catalog, so the name needs no quoting.
func (a *Archiver) detach(ctx context.Context, month string) error {
	list, err := a.Reader().Partitions(ctx)
	if err != nil {
		return err
	}
	for _, p := range list {
		if p.Month != month {
			continue
		}
		how := "concurrently"
		if p.Detaching {
			how = "finalize"
		}
		sql := "alter table waybill.events_delivery detach partition waybill." + partitionOf(month) + " " + how
		if _, err := a.db.Exec(ctx, a.l.Schema.SQL(sql)); err != nil {
			return err
		}
	}
	return nil
}

// Drop drops a detached month's partition.
func (a *Archiver) Drop(ctx context.Context, month string) error {
	return a.step(ctx, month, projections.StageDetached, projections.StageDropped, func(tx pgx.Tx, _ args) error {
		_, err := tx.Exec(ctx, a.l.Schema.SQL("call waybill.drop_month($1)"), partitionOf(month))
		return err
	})
}

// step enters a stage together with what it stands for.
func (a *Archiver) step(ctx context.Context, month, from, to string, do func(pgx.Tx, args) error) error {
	low, high, err := events.MonthBounds(month)
	if err != nil {
		return err
	}
	err = pgx.BeginFunc(ctx, a.db, func(tx pgx.Tx) error {
		if err := do(tx, args{"low": low, "high": high}); err != nil {
			return err
		}
		tag, err := tx.Exec(ctx, a.l.Schema.SQL(moveArchive), args{"low": low, "from": from, "stage": to})
		if err == nil && tag.RowsAffected() != 1 {
			err = fmt.Errorf("it is not %s", from)
		}
		return err
	})
	return wrap(err, "archive month %s, %s", month, to)
}

// partitionOf is the name of a month's partition.
func partitionOf(month string) string {
	return "events_delivery_" + strings.ReplaceAll(month, "-", "_")
}

func wrap(err error, doing string, values ...any) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf(doing+": %w", append(values, err)...)
}
