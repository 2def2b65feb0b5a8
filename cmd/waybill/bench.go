package main

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strconv"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"

	"waybill/adapters/embedded"
	"waybill/adapters/postgres"
	"waybill/projections"
)

// benchCmd measures on a database of its own, filled with a log that it makes up.
type benchCmd struct {
	Verify  benchVerifyCmd  `cmd:"" help:"How fast the whole log is verified, beside reading the same rows and doing nothing."`
	AsOf    benchAsOfCmd    `cmd:"" help:"How fast the log answers about the past: one delivery, a page, a count by state."`
	Rebuild benchRebuildCmd `cmd:"" help:"How fast deliveries are rebuilt from the log, beside reading the same rows."`
}

// benchFlags are of every benchmark of the log.
type benchFlags struct {
	Events  int    `default:"1000000" placeholder:"N" help:"How many events the log has (default ${default}); 10 million take some 8 GB."`
	Workers int    `default:"2" placeholder:"N" help:"How many read at a time (default ${default})."`
	DataDir string `placeholder:"D" help:"Keep the database here, and use the log that is in it."`
}

// Validate refuses what makes no sense.
func (c *benchFlags) Validate() error {
	if c.Events < 1000 || c.Workers < 1 || c.Workers > 64 {
		return usageError("--events is 1000 or more, --workers 1 to 64")
	}
	return nil
}

type benchVerifyCmd struct{ benchFlags }

// Run measures verification.
func (c *benchVerifyCmd) Run(ctx context.Context, in *invocation) error {
	return c.measure(ctx, in, "verified", func(b *benchLog) (int64, error) {
		rep, err := projections.Verification{Schema: b.Schema, Snapshot: b.Snapshot, Workers: c.Workers, Phase: b.shown.phase, Done: b.shown.add}.Run(ctx)
		if err == nil && len(rep.Faults) > 0 {
			err = fmt.Errorf("%w: %s", errFaulty, rep.Faults[0])
		}
		return int64(rep.Events), err
	})
}

type benchRebuildCmd struct{ benchFlags }

// Run measures a rebuild.
func (c *benchRebuildCmd) Run(ctx context.Context, in *invocation) error {
	return c.measure(ctx, in, "rebuilt", func(b *benchLog) (int64, error) {
		p, err := projections.FindProjection("deliveries")
		if err != nil {
			return 0, err
		}
		rep, err := postgres.Rebuild(ctx, b.url, b.Schema, p, postgres.RebuildOptions{Workers: c.Workers, Phase: b.shown.phase, Done: b.shown.add})
		if err == nil && rep.Differing > 0 {
			err = fmt.Errorf("%w: %d rows differed", errFaulty, rep.Differing)
		}
		return rep.Events, err
	})
}

// benchView is one measurement.
type benchView struct {
	Events    int64   `json:"events"`
	Seconds   float64 `json:"seconds"`
	PerSecond float64 `json:"events_per_second"`
	Raw       float64 `json:"raw_read_per_second"` // the same rows in the same order, read and dropped
	CPU       float64 `json:"cpu_us_per_event"`    // of this process; the server's comes on top
	PeakMiB   int64   `json:"peak_memory_mib"`     // of this process, the filling included
}

// on does something with the benchmark's log, on a database that it opens and closes.
func (c *benchFlags) on(ctx context.Context, in *invocation, do func(*benchLog) error) (err error) {
	batch()
	in.noteUnused("bench")
	p, err := openPlace(ctx, placeConfig{Schema: projections.DefaultSchema, Name: "waybill_bench", Server: embedded.Config{DataDir: c.DataDir}, Own: true})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.Close()) }()
	b, err := c.log(ctx, in, p)
	if err != nil {
		return err
	}
	defer b.shown.end()
	return do(b)
}

func (c *benchFlags) measure(ctx context.Context, in *invocation, did string, work func(*benchLog) (int64, error)) error {
	return c.on(ctx, in, func(b *benchLog) error {
		v, err := b.measure(ctx, work)
		if err != nil {
			return err
		}
		b.shown.end()
		return show(in, v,
			[2]string{did, fmt.Sprintf("%d events in %.1f s", v.Events, v.Seconds)}, [2]string{"a second", fmt.Sprintf("%.0f", v.PerSecond)},
			[2]string{"raw read", fmt.Sprintf("%.0f a second, ratio %.2f", v.Raw, v.PerSecond/v.Raw)},
			[2]string{"CPU here", fmt.Sprintf("%.2f µs an event", v.CPU)}, [2]string{"peak memory", strconv.FormatInt(v.PeakMiB, 10) + " MiB"})
	})
}

func (b *benchLog) measure(ctx context.Context, work func(*benchLog) (int64, error)) (v benchView, err error) {
	if v.Raw, err = b.raw(ctx); err != nil {
		return v, err
	}
	began, spent := time.Now(), used()
	if v.Events, err = work(b); err != nil {
		return v, err
	}
	took, after := time.Since(began), used()
	v.Seconds, v.PeakMiB = took.Seconds(), after.peak>>20
	v.PerSecond = float64(v.Events) / v.Seconds
	v.CPU = (after.cpu - spent.cpu).Seconds() * 1e6 / float64(v.Events)
	return v, nil
}

// log opens the place's ledger and fills it where it is empty.
func (c *benchFlags) log(ctx context.Context, in *invocation, p *place) (*benchLog, error) {
	pool, err := postgres.Connect(ctx, p.admin, postgres.ConnectOptions{MaxConns: int32(c.Workers) + 4, Name: "waybill-bench"})
	if err != nil {
		return nil, err
	}
	p.later(func() error { pool.Close(); return nil })
	db, err := pgx.Connect(ctx, p.admin)
	if err != nil {
		return nil, err
	}
	p.later(func() error { return db.Close(context.WithoutCancel(ctx)) })
	b := &benchLog{Ledger: postgres.Open(pool, postgres.Config{Schema: p.Schema}), db: db, url: p.admin, shown: in.progress("events")}
	head, err := b.Head(ctx)
	if err != nil || head.Last > 0 {
		return b, err
	}
	return b, b.fill(ctx, c.Events)
}

// raw reads the log of deliveries stream by stream, as fast as rows come, and returns how
// many came in a second.
func (b *benchLog) raw(ctx context.Context) (float64, error) {
	began, n := time.Now(), 0
	b.shown.phase("read", 0)
	r := projections.Reader{DB: b.db, Schema: b.Schema}
	err := r.EachOf(ctx, "delivery", func() { n++ })
	return float64(n) / time.Since(began).Seconds(), err
}

// usage is what a process has taken so far.
type usage struct {
	cpu  time.Duration
	peak int64 // bytes
}

func used() usage {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return usage{}
	}
	peak := u.Maxrss
	if runtime.GOOS != "darwin" { // counts bytes; the others kibibytes
		peak <<= 10
	}
	return usage{time.Duration(u.Utime.Nano() + u.Stime.Nano()), peak}
}
