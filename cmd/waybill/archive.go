package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"waybill/adapters/postgres"
	"waybill/adapters/secrets"
	"waybill/domain"
	"waybill/events"
	"waybill/projections"
)

// archiveCmd moves whole months out.
type archiveCmd struct {
	Before     moment `required:"" placeholder:"T" help:"Every month that ended at T or earlier: RFC 3339, or a duration ago (8760h)."`
	Out        string `required:"" placeholder:"D" help:"The directory for the files, one a month, each with its manifest."`
	Reason     string `placeholder:"R" help:"Why, for those who read the history."`
	SigningKey string `placeholder:"F" help:"The key that signs the manifests; without one nobody vouches for them."`
	Drop       bool   `help:"Drop the detached partitions too; else they stay as tables archived_events_delivery_YYYY_MM."`
	DryRun     bool   `help:"Only say which months would go, and what keeps others."`
}

// archiveView says what became of a month.
type archiveView struct {
	Month      string `json:"month"`
	Stage      string `json:"stage"`
	File       string `json:"file,omitempty"`
	Events     int64  `json:"events"`
	Deliveries int64  `json:"deliveries"`
	DryRun     bool   `json:"dry_run,omitempty"`
}

// Run archives month by month, the oldest first, and goes on with what was begun before.
func (c *archiveCmd) Run(ctx context.Context, in *invocation) error {
	if err := domain.CheckText("reason", c.Reason, domain.MaxReason); err != nil {
		return err
	}
	key, err := signing{SigningKey: c.SigningKey}.key()
	if err != nil {
		return err
	}
	return in.withLedger(ctx, func(s *session) error {
		before, err := c.Before.instant(ctx, s)
		if err != nil {
			return err
		}
		a, err := s.NewArchiver(ctx, s.by.Actor)
		if err != nil {
			return err
		}
		defer a.Close()
		return archiveJob{c, in, s, a, key}.run(ctx, before)
	})
}

// archiveJob is one run of the command.
type archiveJob struct {
	*archiveCmd
	in  *invocation
	s   *session
	a   *postgres.Archiver
	key *secrets.SigningKey
}

func (j archiveJob) run(ctx context.Context, before domain.Instant) error {
	list, err := months(ctx, j.a.Reader(), j.s)
	if err != nil {
		return err
	}
	done := 0
	for _, m := range list {
		wanted := !before.Before(m.To.Time) && m.State != monthPresent && m.State != monthAhead
		if !wanted || m.State == projections.StageDropped || m.State == projections.StageDetached && !j.Drop {
			continue
		}
		if err := j.month(ctx, m.Month); err != nil {
			return err
		}
		done++
	}
	if done == 0 && !j.in.JSON {
		_, err = fmt.Fprintln(j.in.out, "no month is to be archived")
	}
	return err
}

// month takes one month through the stages that it has not been through.
func (j archiveJob) month(ctx context.Context, month string) error {
	v, err := j.begun(ctx, month)
	if err != nil {
		return err
	}
	if j.DryRun {
		if v.Stage == "" {
			err = j.a.Reader().Archivable(ctx, month)
		}
		if err != nil {
			return err
		}
		return say(j.in, archiveView{Month: month, Stage: v.Stage, DryRun: true}, month, "would be archived")
	}
	if v.Stage == "" {
		if err := j.a.CloseMonth(ctx, month, j.Reason); err != nil {
			return err
		}
	}
	for {
		if v, err = j.begun(ctx, month); err != nil {
			return err
		}
		if v.Stage == projections.StageDropped || v.Stage == projections.StageDetached && !j.Drop {
			return say(j.in, archiveView{v.Month, v.Stage, v.File, v.Events, v.Deliveries, false},
				fmt.Sprintf("%s %s: %d events of %d deliveries in %s", v.Month, v.Stage, v.Events, v.Deliveries, filepath.Join(j.Out, v.File)))
		}
		if err := j.next(ctx, v); err != nil {
			return err
		}
	}
}

// begun is how far a month has come; its stage is empty if it was not begun.
func (j archiveJob) begun(ctx context.Context, month string) (projections.Archive, error) {
	list, err := j.a.Reader().Archives(ctx)
	for _, a := range list {
		if a.Month == month {
			return a, err
		}
	}
	return projections.Archive{Month: month}, err
}

// next enters the stage after the present one. Before anything is deleted, and again
// after whatever has ended the work, the file is looked at.
func (j archiveJob) next(ctx context.Context, v projections.Archive) error {
	switch v.Stage {
	case projections.StageClosed:
		return j.export(ctx, v)
	case projections.StageDetached:
		return j.a.Drop(ctx, v.Month)
	}
	there, err := j.there(ctx, v)
	switch {
	case err != nil:
		return err
	case !there:
		return j.export(ctx, v)
	case v.Stage == projections.StageExported:
		return j.a.KeepLeaves(ctx, v)
	case v.Stage == projections.StageCleared:
		return j.a.Detach(ctx, v)
	}
	p := j.in.progress("deliveries")
	defer p.end()
	p.phase("clear "+v.Month, v.Deliveries)
	return j.a.Clear(ctx, v.Month, p.add)
}

// archiveFile is a month's file.
func archiveFile(month string) string { return "waybill-" + month + ".jsonl" }

// there reports whether the month's file, as it was written, is in the directory. Another
// file in its place is an error.
func (j archiveJob) there(ctx context.Context, v projections.Archive) (bool, error) {
	path := filepath.Join(j.Out, v.File)
	if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	rep, err := j.check(ctx, v.Month)
	if err == nil && !bytes.Equal(rep.Tail.SHA256[:], v.SHA256) {
		err = fmt.Errorf("%s is not the file that was written for month %s", path, v.Month)
	}
	return err == nil, err
}

// export writes the month's file, or takes the one that an earlier run was ended after
// writing, verifies it and compares it with the month.
func (j archiveJob) export(ctx context.Context, v projections.Archive) error {
	path := filepath.Join(j.Out, archiveFile(v.Month))
	removePartials(path)
	if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
		head := events.ExportHead{Encoding: events.JSONLines, Month: v.Month}
		if _, err := (exportJob{in: j.in, s: j.s, from: j.a.Reader(), key: j.key, out: path}).run(ctx, head); err != nil {
			return err
		}
	}
	rep, err := j.check(ctx, v.Month)
	if err != nil {
		return err
	}
	m, err := j.a.Reader().MonthPositions(ctx, v.Month)
	if err != nil {
		return err
	}
	if m.Events != rep.Tail.Count || m.First != rep.Tail.First || m.Last != rep.Tail.Last {
		return fmt.Errorf("%w: %s holds %d events, month %s has %d", errFaulty, path, rep.Tail.Count, v.Month, m.Events)
	}
	return j.a.SetFile(ctx, v.Month, rep.Tail, m.Deliveries)
}

// check is verify-export, and that the file is this ledger's and this month's.
func (j archiveJob) check(ctx context.Context, month string) (events.ExportReport, error) {
	path, verifier := filepath.Join(j.Out, archiveFile(month)), ""
	if j.key != nil {
		verifier = j.key.Verifier
	}
	p := j.in.progress("events")
	defer p.end()
	p.phase("verify "+month, 0)
	rep, err := checkExport(ctx, path, verifier, p.add)
	if err != nil {
		return rep, err
	}
	head, err := j.s.Head(ctx)
	switch {
	case err != nil:
		return rep, err
	case rep.Wrong > 0:
		return rep, fmt.Errorf("%w: %s: %s", errFaulty, path, rep.Faults[0])
	case rep.Head.Ledger != head.Ledger || rep.Head.Month != month:
		return rep, fmt.Errorf("%s is not this ledger's month %s", path, month)
	}
	root, err := j.s.Root(ctx, min(rep.Head.Size, head.Blocks))
	if err == nil && (rep.Head.Size > head.Blocks || root != rep.Head.Root) {
		err = fmt.Errorf("%w: %s is not of the log as it is sealed here", errFaulty, path)
	}
	return rep, err
}

// removePartials removes what a run that was killed has left of a file.
func removePartials(path string) {
	for _, f := range []string{path, manifestOf(path)} {
		left, _ := filepath.Glob(filepath.Join(filepath.Dir(f), "."+filepath.Base(f)+".*"+partial)) // the pattern is well formed
		for _, l := range left {
			_ = os.Remove(l)
		}
	}
}
