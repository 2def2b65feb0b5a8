package main

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"

	"waybill/domain"
	"waybill/events"
	"waybill/projections"
)

// partitionsCmd looks at the log's months.
type partitionsCmd struct {
	List partitionsListCmd `cmd:"" help:"List months, the oldest first: how large they are and what keeps them from being archived."`
}

type partitionsListCmd struct{}

// The states of a month in a list, beside the stages of archiving.
const (
	monthAhead     = "ahead"     // has not begun
	monthPresent   = "present"   // is being added to
	monthUnsettled = "unsettled" // has deliveries that have not ended
	monthSettled   = "settled"   // may be archived
)

// monthView is a month as a list shows it.
type monthView struct {
	Month     string          `json:"month"`
	From      domain.Instant  `json:"from"`
	To        domain.Instant  `json:"to"`
	State     string          `json:"state"`
	Rows      int64           `json:"estimated_rows"`
	Bytes     int64           `json:"bytes"`
	Oldest    *domain.Instant `json:"oldest,omitempty"`
	Newest    *domain.Instant `json:"newest,omitempty"`
	Unsettled int64           `json:"unsettled"`
	File      string          `json:"file,omitempty"`
}

// Run lists partitions and archives.
func (partitionsListCmd) Run(ctx context.Context, in *invocation) error {
	return in.withLedger(ctx, func(s *session) error {
		list, err := months(ctx, s.Reader, s)
		return listing[monthView]{
			heads: []string{"MONTH", "STATE", "ROWS", "BYTES", "UNSETTLED", "OLDEST", "NEWEST", "FILE"},
			row: func(v monthView) []string {
				return []string{v.Month, v.State, fmt.Sprint(v.Rows), fmt.Sprint(v.Bytes), fmt.Sprint(v.Unsettled), instantOf(v.Oldest), instantOf(v.Newest), dash(v.File)}
			},
		}.print(in, onePage(list, err))
	})
}

// clock tells the database's time.
type clock interface {
	Now(ctx context.Context) (domain.Instant, error)
}

// months lists every month that has a partition or had one.
func months(ctx context.Context, r projections.Reader, c clock) ([]monthView, error) {
	archives, err := r.Archives(ctx)
	if err != nil {
		return nil, err
	}
	partitions, err := r.Partitions(ctx)
	if err != nil {
		return nil, err
	}
	now, err := c.Now(ctx)
	if err != nil {
		return nil, err
	}
	var list []monthView
	of := map[string]projections.Archive{}
	for _, a := range archives {
		if of[a.Month] = a; a.Done() {
			v, err := newMonthView(a.Month)
			if err != nil {
				return nil, err
			}
			v.State, v.File = a.Stage, a.File
			list = append(list, v)
		}
	}
	for _, p := range partitions {
		v, err := monthOf(ctx, r, p, now)
		if err != nil {
			return nil, err
		}
		if a, begun := of[p.Month]; begun {
			v.State, v.File = a.Stage, a.File
		}
		list = append(list, v)
	}
	return list, nil
}

func newMonthView(month string) (monthView, error) {
	first, err := time.Parse("2006-01", month)
	return monthView{Month: month, From: domain.At(first), To: domain.At(first.AddDate(0, 1, 0))}, err
}

// settlingTime is how long after a month's end deliveries with an id of it may still be
// accepted: ids are drawn before they are written.
const settlingTime = time.Hour

func monthOf(ctx context.Context, r projections.Reader, p projections.Partition, now domain.Instant) (monthView, error) {
	v, err := newMonthView(p.Month)
	if err != nil {
		return v, err
	}
	m, err := r.Month(ctx, p.Month)
	if err != nil {
		return v, err
	}
	v.Rows, v.Bytes, v.Unsettled = p.Rows, p.Bytes, m.Unsettled
	if m.Oldest != uuid.Nil {
		oldest, newest := events.TimeOf(m.Oldest), events.TimeOf(m.Newest)
		v.Oldest, v.Newest = &oldest, &newest
	}
	switch {
	case now.Before(v.From.Time):
		v.State = monthAhead
	case now.Before(v.To.Add(settlingTime)):
		v.State = monthPresent
	case m.Unsettled > 0:
		v.State = monthUnsettled
	default:
		v.State = monthSettled
	}
	return v, nil
}
