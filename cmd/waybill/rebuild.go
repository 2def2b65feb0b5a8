package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"waybill/adapters/postgres"
	"waybill/projections"
)

// rebuildCmd computes a projection anew from the log.
type rebuildCmd struct {
	Projection    string        `arg:"" help:"Which: waybill projections list names them."`
	Workers       int           `default:"0" placeholder:"N" help:"How many copy at a time; 0 is one a processor, at most 8."`
	DryRun        bool          `help:"Only say what differs from the log."`
	ProjectionURL string        `placeholder:"URL" help:"The database as the role that owns the projections, where --database-url is another; better given in the environment."`
	Patience      time.Duration `default:"10m" placeholder:"D" help:"How long to try to get the table for the swap (default ${default})."`
}

// Validate refuses what makes no sense.
func (c *rebuildCmd) Validate() error {
	switch {
	case c.Workers < 0 || c.Workers > 64:
		return usageError("--workers is 1 to 64, or 0")
	case c.Patience <= 0:
		return usageError("--patience is more than 0s")
	}
	return nil
}

// Run rebuilds beside traffic and says what was wrong.
func (c *rebuildCmd) Run(ctx context.Context, in *invocation) error {
	batch()
	p, err := projections.FindProjection(c.Projection)
	if err != nil {
		return err
	}
	return in.withLedger(ctx, func(s *session) error {
		shown := in.progress("events")
		report, err := postgres.Rebuild(ctx, c.url(in), s.Schema, p, postgres.RebuildOptions{
			Workers: c.Workers, DryRun: c.DryRun, Patience: c.Patience, Phase: shown.phase, Done: shown.add,
			Waiting: func(why string) { _, _ = fmt.Fprintln(in.err, plain("waiting for the table: "+why)) },
		})
		shown.end()
		if err != nil {
			return c.scrubbed(err)
		}
		if !c.DryRun {
			if err := s.RebuildDone(ctx, s.by.Actor, report); err != nil {
				return err
			}
		}
		return showRebuilt(in, report)
	})
}

// url is where the projections' owner connects.
func (c *rebuildCmd) url(in *invocation) string {
	if c.ProjectionURL != "" {
		return c.ProjectionURL
	}
	return in.DatabaseURL
}

// scrubbed is an error that tells nothing of the second URL either.
func (c *rebuildCmd) scrubbed(err error) error {
	if clean := scrub(err.Error(), c.ProjectionURL); clean != err.Error() {
		return fmt.Errorf("%s", clean)
	}
	return err
}

func showRebuilt(in *invocation, r projections.Rebuilt) error {
	if in.JSON {
		return printJSON(in.out, r)
	}
	did := "rebuilt"
	if r.DryRun {
		did = "compared with the log, nothing was changed"
	}
	took := time.Duration(r.TookMS) * time.Millisecond
	err := show(in, r,
		[2]string{"projection", fmt.Sprintf("%s, version %d", r.Projection, r.Version)},
		[2]string{"done", did},
		[2]string{"rows", strconv.FormatInt(r.Rows, 10)},
		[2]string{"events", fmt.Sprintf("%d in %s", r.Events, took)},
		[2]string{"locked", locked(r)},
		[2]string{"differing", differing(r)},
	)
	if err != nil || len(r.First) == 0 {
		return err
	}
	return listing[projections.Differing]{
		heads: []string{"KEY", "KIND", "COLUMNS"},
		row:   func(d projections.Differing) []string { return []string{d.Key, d.Kind, strings.Join(d.Columns, " ")} },
	}.print(in, onePage(r.First, nil))
}

func locked(r projections.Rebuilt) string {
	if r.DryRun {
		return ""
	}
	return fmt.Sprintf("%d ms, at the %s try", r.LockedMS, ordinal(r.Swaps))
}

func ordinal(n int) string {
	if n == 1 {
		return "first"
	}
	return strconv.Itoa(n) + "."
}

// differing counts by kind and by column.
func differing(r projections.Rebuilt) string {
	if !r.Compared {
		return "not compared: the rows before had stopped elsewhere, or were of another version"
	}
	if r.Differing == 0 {
		return "none: every row was as the log says"
	}
	var parts []string
	for _, m := range []map[string]int64{r.Kinds, r.Columns} {
		for _, k := range slices.Sorted(maps.Keys(m)) {
			parts = append(parts, fmt.Sprintf("%s %d", k, m[k]))
		}
	}
	return fmt.Sprintf("%d rows (%s)", r.Differing, strings.Join(parts, ", "))
}
