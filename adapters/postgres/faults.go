package postgres

import (
	"context"
	"errors"
	"io"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"waybill/domain"
)

// Codes of PostgreSQL (its manual, appendix A) that the product tells apart.
const (
	codeNoPartition     = "23514" // check_violation: also "no partition of relation found for row"
	codeUnique          = "23505"
	codeUndefinedSchema = "3F000"
	codeUndefinedTable  = "42P01"
	codeReadOnly        = "25006"
	codeLockTimeout     = "55P03" // lock_not_available
	codeArchived        = "WB410" // ours: raised by refuse_archived
)

// neverWritten are codes after which the statement surely had no effect and which
// may pass by themselves: serialization, deadlock, lock and statement timeouts,
// resources, shutdown, and a server that is read-only after a failover.
var neverWritten = []string{
	"40001", "40P01", "55P03", "57014", "53000", "53100", "53200", "53300", "53400",
	"57P01", "57P02", "57P03", "57P05", "25P03", codeReadOnly, "58030",
}

// Transient reports whether a fault may pass by itself.
func Transient(err error) bool {
	var pg *pgconn.PgError
	switch {
	case err == nil || errors.Is(err, context.Canceled):
		return false
	case errors.As(err, &pg):
		return slices.Contains(neverWritten, pg.Code) || strings.HasPrefix(pg.Code, "08")
	}
	return connectionLost(err) || errors.Is(err, context.DeadlineExceeded)
}

// Unsure reports whether a write that ended with this fault may have happened all
// the same: the connection was lost after the statement had been sent.
func Unsure(err error) bool {
	var pg *pgconn.PgError
	if err == nil || errors.As(err, &pg) || pgconn.SafeToRetry(err) {
		return false
	}
	return connectionLost(err) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled)
}

func connectionLost(err error) bool {
	var broken *net.OpError
	var connect *pgconn.ConnectError
	listening := errors.As(err, &broken) && broken.Op == "listen"
	return broken != nil && !listening || errors.As(err, &connect) || pgconn.SafeToRetry(err) ||
		errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed) ||
		strings.Contains(err.Error(), "conn closed") || strings.Contains(err.Error(), "closed pool")
}

// Isolable reports whether one item may have caused a batch's fault, so that its
// neighbours are worth trying without it.
func Isolable(err error) bool {
	var pg *pgconn.PgError
	var refused *domain.Error
	if errors.As(err, &refused) {
		return true
	}
	return errors.As(err, &pg) && !strings.HasPrefix(pg.Code, "57P") && !strings.HasPrefix(pg.Code, "08") &&
		!strings.HasPrefix(pg.Code, "53") && pg.Code != codeReadOnly
}

// tries is how often a write is begun anew after a fault that surely wrote nothing.
const tries = 4

// again runs a write and, where it surely wrote nothing and a new try may succeed
// at once (deadlock, serialization, a connection that died while idle), runs it
// again.
func again(ctx context.Context, write func() error) error {
	for n := 1; ; n++ {
		err := write()
		if err == nil || n == tries || ctx.Err() != nil || !passesAtOnce(err) {
			return err
		}
		time.Sleep(time.Duration(n) * 5 * time.Millisecond)
	}
}

func passesAtOnce(err error) bool {
	var pg *pgconn.PgError
	if errors.As(err, &pg) {
		return pg.Code == "40001" || pg.Code == "40P01"
	}
	return pgconn.SafeToRetry(err)
}

// refusal turns what the database says no to into the product's own words; other
// faults stay as they are.
func refusal(err error) error {
	var pg *pgconn.PgError
	if !errors.As(err, &pg) {
		return err
	}
	if pg.Code == codeNoPartition && strings.HasPrefix(pg.Message, "no partition of relation") {
		return domain.ErrOutsidePartitions
	}
	if pg.Code == codeArchived {
		return domain.ErrDeliveryArchived
	}
	return err
}
