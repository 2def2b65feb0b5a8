package postgres

import (
	"cmp"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"waybill/projections"
)

var (
	//go:embed sql/add_endpoint_health.sql
	addEndpointHealth string
	//go:embed sql/add_outcomes_hourly.sql
	addOutcomesHourly string
	//go:embed sql/take_checkpoint.sql
	takeCheckpoint string
	//go:embed sql/move_checkpoint.sql
	moveCheckpoint string
	//go:embed sql/stop_projection.sql
	stopProjection string
)

// Project moves an asynchronous projection over at most so many positions of the sealed
// log, rows and checkpoint in one transaction, and returns how many those were: 0 if it is
// as far as the log is sealed, stopped, or being moved by somebody else. At a record that it
// cannot read it moves up to that one and stops there, with a *[projections.Poison].
func (l *Ledger) Project(ctx context.Context, p projections.Projection, most int64) (moved int64, err error) {
	var poison *projections.Poison
	err = pgx.BeginFunc(ctx, l.pool, func(tx pgx.Tx) error {
		moved, poison = 0, nil
		var from, last int64
		err := tx.QueryRow(ctx, l.Schema.SQL(takeCheckpoint), args{"name": p.Name, "version": p.Version}).Scan(&from, &last)
		if errors.Is(err, pgx.ErrNoRows) || err == nil && from >= last {
			return nil
		}
		if err != nil {
			return err
		}
		to := min(from+most, last)
		rows, err := tally(ctx, projections.Reader{DB: tx, Schema: l.Schema}, p, from, to)
		if errors.As(err, &poison) {
			to, err = poison.Record.Position-1, nil
		}
		if err != nil {
			return err
		}
		if err := addTally(ctx, tx, l.Schema.SQL(addition(p)), rows); err != nil {
			return err
		}
		moved = to - from
		_, err = tx.Exec(ctx, l.Schema.SQL(moveCheckpoint), args{"name": p.Name, "position": to})
		if err != nil || poison == nil {
			return err
		}
		return l.stop(ctx, tx, p, to, poison)
	})
	if err != nil {
		return 0, fmt.Errorf("project %s: %w", p.Name, err)
	}
	if poison != nil {
		return moved, poison
	}
	return moved, nil
}

// StopProjection stops a projection before the next of its records, which could not be
// applied although it can be read.
func (l *Ledger) StopProjection(ctx context.Context, p projections.Projection, cause error) error {
	var found *projections.Poison
	err := pgx.BeginFunc(ctx, l.pool, func(tx pgx.Tx) error {
		var from, last int64
		err := tx.QueryRow(ctx, l.Schema.SQL(takeCheckpoint), args{"name": p.Name, "version": p.Version}).Scan(&from, &last)
		if err != nil {
			return err
		}
		records, err := projections.Reader{DB: tx, Schema: l.Schema}.SealedNamed(ctx, from, min(from+1, last), projections.TallyNames)
		if err != nil || len(records) == 0 {
			return cmp.Or(err, cause)
		}
		found = &projections.Poison{Record: records[0], Cause: cause}
		return l.stop(ctx, tx, p, from, found)
	})
	if err != nil {
		return fmt.Errorf("stop %s: %w", p.Name, err)
	}
	return found
}

func (l *Ledger) stop(ctx context.Context, tx pgx.Tx, p projections.Projection, at int64, poison *projections.Poison) error {
	r := poison.Record
	_, err := tx.Exec(ctx, l.Schema.SQL(stopProjection), args{
		"name": p.Name, "position": at, "error": printableText(poison.Cause.Error()), "stream": string(r.Stream), "stream_id": r.StreamID, "seq": r.Seq,
	})
	return err
}

// printableText is a text as a column can keep it.
func printableText(s string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "")
}

// tally counts what the records between two positions change.
func tally(ctx context.Context, r projections.Reader, p projections.Projection, after, last int64) (map[projections.TallyKey]projections.Tally, error) {
	records, err := r.SealedNamed(ctx, after, last, projections.TallyNames)
	if err != nil {
		return nil, err
	}
	return p.Count(records)
}

// addition is the statement that adds to a projection's rows.
func addition(p projections.Projection) string {
	if p.Name == "outcomes_hourly" {
		return addOutcomesHourly
	}
	return addEndpointHealth
}

// addTally adds to rows, in order of their keys.
func addTally(ctx context.Context, q querier, sql string, rows map[projections.TallyKey]projections.Tally) error {
	if len(rows) == 0 {
		return nil
	}
	a := tallyArgs(rows)
	if strings.Contains(sql, "@hours") {
		a = a.without("attempts", "answered", "sums", "maxima", "durations", "last_attempts", "last_successes")
	} else {
		a = a.without("hours")
	}
	_, err := q.Exec(ctx, sql, a)
	return err
}

func tallyArgs(rows map[projections.TallyKey]projections.Tally) args {
	keys := make([]projections.TallyKey, 0, len(rows))
	for k := range rows {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, func(a, b projections.TallyKey) int {
		return cmp.Or(cmp.Compare(a.Tenant, b.Tenant), compareIDs(a.EndpointID, b.EndpointID), cmp.Compare(a.Hour, b.Hour))
	})
	var tenants, durations []string
	var endpoints []uuid.UUID
	var lastAttempts, lastSuccesses []*time.Time
	numbers := map[string][]int64{}
	for _, k := range keys {
		t := rows[k]
		tenants, endpoints = append(tenants, k.Tenant), append(endpoints, k.EndpointID)
		durations = append(durations, arrayText(t.Durations[:]))
		lastAttempts, lastSuccesses = append(lastAttempts, orNilTime(t.LastAttempt)), append(lastSuccesses, orNilTime(t.LastSuccess))
		for name, n := range map[string]int64{
			"hours": k.Hour, "attempts": t.Attempts, "succeeded": t.Succeeded, "refused": t.Refused, "unreached": t.Unreached,
			"unknown": t.Unknown, "lost": t.Lost, "answered": t.Answered, "sums": t.DurationSumMS, "maxima": t.DurationMaxMS,
		} {
			numbers[name] = append(numbers[name], n)
		}
	}
	a := args{"tenants": tenants, "endpoints": uuids(endpoints), "durations": durations, "last_attempts": lastAttempts, "last_successes": lastSuccesses}
	for name, list := range numbers {
		a[name] = list
	}
	return a
}

// arrayText is numbers as PostgreSQL writes an array.
func arrayText(list []int64) string {
	words := make([]string, len(list))
	for i, n := range list {
		words[i] = strconv.FormatInt(n, 10)
	}
	return "{" + strings.Join(words, ",") + "}"
}
