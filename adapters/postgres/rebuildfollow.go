package postgres

import (
	"context"
	_ "embed"
	"strings"

	"github.com/jackc/pgx/v5"

	"waybill/projections"
)

//go:embed sql/hold_checkpoint.sql
var holdCheckpoint string

const (
	followAtOnce = 20_000 // positions
	followLeft   = 5_000  // positions that may be left for the time that nobody moves the projection
)

// follow fills the shadow of a projection that follows the sealed log, from its beginning
// to about where that one is. The shadow has its key by then.
func (r *rebuild) follow(ctx context.Context) error {
	for first := true; ; first = false {
		target, _, err := r.target(ctx, false)
		if err != nil {
			return err
		}
		if first {
			r.o.Phase("copy", target)
		}
		if target-r.after <= followLeft && !first {
			return nil
		}
		if err := r.advance(ctx, target); err != nil {
			return err
		}
	}
}

// target is where the shadow must come to: to where the projection is, so that the two can
// be compared, or up to the horizon where it has stopped or is of another version.
func (r *rebuild) target(ctx context.Context, hold bool) (position int64, comparable bool, err error) {
	sql := holdCheckpoint
	if !hold {
		sql = strings.TrimSuffix(strings.TrimSpace(sql), "for update of p")
	}
	var last int64
	err = r.conn.QueryRow(ctx, r.schema.SQL(sql), args{"name": r.p.Name, "version": r.p.Version}).Scan(&position, &comparable, &last)
	if !comparable {
		position = last
	}
	return position, comparable && position >= r.after, err
}

// advance adds to the shadow what the log says up to a position.
func (r *rebuild) advance(ctx context.Context, to int64) error {
	sql := strings.ReplaceAll(addition(r.p), "waybill."+r.p.Name, "waybill."+r.p.Name+"_shadow")
	for r.after < to {
		next := min(r.after+followAtOnce, to)
		rows, err := tally(ctx, projections.Reader{DB: r.conn, Schema: r.schema}, r.p, r.after, next)
		if err != nil {
			return err
		}
		if err := addTally(ctx, r.conn, r.schema.SQL(sql), rows); err != nil {
			return err
		}
		r.report.Events += next - r.after
		r.o.Done(next - r.after)
		r.after = next
	}
	return nil
}

// settle keeps the projection where it is, in a transaction, brings the shadow there and
// compares the two. It returns the position.
func (r *rebuild) settle(ctx context.Context, tx pgx.Tx) (int64, error) {
	target, comparable, err := r.target(ctx, true)
	if err != nil {
		return 0, err
	}
	if err := r.advance(ctx, target); err != nil {
		return 0, err
	}
	if r.report.Compared = comparable; comparable {
		if err := r.call(ctx, "call waybill.compare_shadow($1, null)"); err != nil {
			return 0, err
		}
	}
	return r.after, tx.QueryRow(ctx, "select count(*) from "+r.shadow().Sanitize()).Scan(&r.report.Rows)
}
