package projections

import (
	"context"
	_ "embed"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"waybill/domain"
	"waybill/events"
)

var (
	//go:embed sql/is_archived.sql
	isArchived string
	//go:embed sql/list_archives.sql
	listArchives string
	//go:embed sql/list_partitions.sql
	listPartitions string
	//go:embed sql/get_month.sql
	getMonth string
	//go:embed sql/list_unsettled.sql
	listUnsettled string
)

// The stages of archiving a month, in their order. Each is entered in one transaction with
// what it stands for, so that whatever ends the work, it goes on from the last:
//
//	closed     nothing is added to the month's partition any more
//	exported   its events are in a file, which was verified
//	kept       their positions and hashes are in archived_leaves
//	cleared    its deliveries, their messages, answers and keys are gone
//	detached   its partition is not the log's any more; the log says so
//	dropped    the partition is gone
const (
	StageClosed   = "closed"
	StageExported = "exported"
	StageKept     = "kept"
	StageCleared  = "cleared"
	StageDetached = "detached"
	StageDropped  = "dropped"
)

// Archive is how far the archiving of a month has come.
type Archive struct {
	Month      string
	Stage      string
	File       string // without directories
	SHA256     []byte
	Events     int64
	Deliveries int64
	First      int64 // positions
	Last       int64
	Reason     string
	BeganAt    domain.Instant
	EndedAt    domain.Instant // zero before it is detached
}

// Done reports whether the month has left the log.
func (a Archive) Done() bool { return a.Stage == StageDetached || a.Stage == StageDropped }

// Partition is a month of the log.
type Partition struct {
	Month     string
	Rows      int64 // estimated
	Bytes     int64 // with its indexes
	Detaching bool  // was begun, and not ended
}

// Month is what keeps a month where it is, or does not.
type Month struct {
	Oldest, Newest uuid.UUID // zero if it has no deliveries
	Unsettled      int64
	Last           int64 // position
}

// Unsettled is a delivery that has not ended.
type Unsettled struct {
	ID     uuid.UUID
	Tenant string
	State  domain.State
}

// Absent is why a delivery is not there: because its month was archived, or because it
// never was.
func (r Reader) Absent(ctx context.Context, id uuid.UUID) error {
	rows, err := r.DB.Query(ctx, r.Schema.SQL(isArchived), pgx.StrictNamedArgs{"id": id})
	if err != nil {
		return fmt.Errorf("look for an archive: %w", err)
	}
	archived, err := pgx.CollectExactlyOneRow(rows, pgx.RowTo[bool])
	switch {
	case err != nil:
		return fmt.Errorf("look for an archive: %w", err)
	case archived:
		return domain.ErrDeliveryArchived
	}
	return domain.ErrDeliveryNotFound
}

// Archives lists the months that are being archived or have been.
func (r Reader) Archives(ctx context.Context) ([]Archive, error) {
	rows, err := r.DB.Query(ctx, r.Schema.SQL(listArchives))
	if err != nil {
		return nil, fmt.Errorf("list the archives: %w", err)
	}
	return collect(rows, func(row pgx.CollectableRow) (a Archive, err error) {
		var began time.Time
		var ended *time.Time
		err = row.Scan(&a.Month, &a.Stage, &a.File, &a.SHA256, &a.Events, &a.Deliveries, &a.First, &a.Last, &a.Reason, &began, &ended)
		a.BeganAt, a.EndedAt = domain.At(began), instant(ended)
		return a, err
	}, "list the archives")
}

// Partitions lists the months that the log has partitions for, the oldest first.
func (r Reader) Partitions(ctx context.Context) ([]Partition, error) {
	rows, err := r.DB.Query(ctx, r.Schema.SQL(listPartitions))
	if err != nil {
		return nil, fmt.Errorf("list the partitions: %w", err)
	}
	return collect(rows, func(row pgx.CollectableRow) (p Partition, err error) {
		return p, row.Scan(&p.Month, &p.Rows, &p.Bytes, &p.Detaching)
	}, "list the partitions")
}

// Month looks at a month (2026-01). It reads the month's rows of deliveries.
func (r Reader) Month(ctx context.Context, month string) (m Month, err error) {
	low, high, err := events.MonthBounds(month)
	if err != nil {
		return m, err
	}
	rows, err := r.DB.Query(ctx, r.Schema.SQL(getMonth), pgx.StrictNamedArgs{"low": low, "high": high})
	if err != nil {
		return m, fmt.Errorf("look at month %s: %w", month, err)
	}
	m, err = pgx.CollectExactlyOneRow(rows, func(row pgx.CollectableRow) (m Month, err error) {
		var oldest, newest *uuid.UUID
		if err = row.Scan(&oldest, &newest, &m.Unsettled, &m.Last); err == nil && oldest != nil {
			m.Oldest, m.Newest = *oldest, *newest
		}
		return m, err
	})
	if err != nil {
		return m, fmt.Errorf("look at month %s: %w", month, err)
	}
	return m, nil
}

// UnsettledOf names the first deliveries that keep a month from being archived.
func (r Reader) UnsettledOf(ctx context.Context, month string, limit int) ([]Unsettled, error) {
	low, high, err := events.MonthBounds(month)
	if err != nil {
		return nil, err
	}
	rows, err := r.DB.Query(ctx, r.Schema.SQL(listUnsettled), pgx.StrictNamedArgs{"low": low, "high": high, "limit": limit})
	if err != nil {
		return nil, fmt.Errorf("look at month %s: %w", month, err)
	}
	return collect(rows, func(row pgx.CollectableRow) (u Unsettled, err error) {
		return u, row.Scan(&u.ID, &u.Tenant, &u.State)
	}, "look for what has not ended")
}

// namedUnsettled is how many deliveries are named that keep a month where it is.
const namedUnsettled = 5

// Archivable is ErrPartitionUnsettled for a month that has deliveries that have not ended,
// the first of which it names, or that is not wholly sealed.
func (r Reader) Archivable(ctx context.Context, month string) error {
	m, err := r.Month(ctx, month)
	if err != nil {
		return err
	}
	if m.Unsettled > 0 {
		list, err := r.UnsettledOf(ctx, month, namedUnsettled)
		if err != nil {
			return err
		}
		var names []string
		for _, u := range list {
			names = append(names, fmt.Sprintf("%s (%s, of %s)", u.ID, u.State, u.Tenant))
		}
		return domain.ErrPartitionUnsettled.With(fmt.Sprintf("month %s has %d deliveries that have not ended, the first: %s",
			month, m.Unsettled, strings.Join(names, ", ")))
	}
	head, err := r.Head(ctx)
	if err == nil && m.Last > head.Last {
		err = domain.ErrPartitionUnsettled.With(fmt.Sprintf("month %s is sealed up to position %d only, and goes on to %d", month, head.Last, m.Last))
	}
	return err
}
