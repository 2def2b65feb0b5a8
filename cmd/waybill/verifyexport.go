package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"waybill/events"
)

// verifyExportCmd checks an export without any database.
type verifyExportCmd struct {
	File string `arg:"" placeholder:"F" help:"The export's file; its manifest is beside it."`
	Key  string `placeholder:"K" help:"The verifier key, NAME+HASH+KEY, from somebody you trust. Without it only this is shown: that file and manifest belong together."`
}

// exportVerdict is what a check says as JSON.
type exportVerdict struct {
	Verified bool `json:"verified"`
	events.ExportReport
}

// Run prints what the export is of, and every fault.
func (c *verifyExportCmd) Run(ctx context.Context, in *invocation) error {
	p := in.progress("events")
	p.phase("check", 0)
	rep, err := checkExport(ctx, c.File, c.Key, p.add)
	p.end()
	if err != nil {
		return err
	}
	if err := c.say(in, rep); err != nil {
		return err
	}
	if rep.Wrong > 0 {
		return fmt.Errorf("%w: %d in %s", errFaulty, rep.Wrong, c.File)
	}
	return nil
}

func checkExport(ctx context.Context, path, key string, told func(int64)) (rep events.ExportReport, err error) {
	file, err := os.Open(path)
	if err != nil {
		return rep, err
	}
	defer func() { _ = file.Close() }()
	manifest, err := os.Open(manifestOf(path))
	if err != nil {
		return rep, err
	}
	defer func() { _ = manifest.Close() }()
	rep, err = events.CheckExport(manifest, bufio.NewReaderSize(until{ctx, file}, 1<<20), filepath.Base(path), key, told)
	return rep, errors.Join(err, ctx.Err())
}

// until is a reader that ends with a context.
type until struct {
	ctx context.Context
	io.Reader
}

// Read fails once the context has ended.
func (u until) Read(b []byte) (int, error) {
	if err := u.ctx.Err(); err != nil {
		return 0, err
	}
	return u.Reader.Read(b)
}

func (c *verifyExportCmd) say(in *invocation, rep events.ExportReport) error {
	if in.JSON {
		return printJSON(in.out, exportVerdict{rep.Wrong == 0, rep})
	}
	for _, f := range rep.Faults {
		if _, err := fmt.Fprintln(in.out, plain(f.String())); err != nil {
			return err
		}
	}
	if more := rep.Wrong - len(rep.Faults); more > 0 {
		_, _ = fmt.Fprintf(in.out, "and %d more\n", more)
	}
	if rep.Wrong > 0 {
		return nil
	}
	h, t := rep.Head, rep.Tail
	says := "file and manifest belong together; nobody vouches for them: give --key"
	if rep.Signed {
		says = "signed: these events are in the log that the checkpoint speaks of, as they stand here"
	}
	return show(in, nil, [2]string{"verified", says}, [2]string{"events", fmt.Sprintf("%d, at positions %d to %d", t.Count, t.First, t.Last)},
		[2]string{"of", scopeOf(h)}, [2]string{"log", fmt.Sprintf("ledger %s, epoch %d, %d blocks up to position %d, root %s", h.Ledger, h.Epoch, h.Size, h.Last, h.Root)},
		[2]string{"sha256", t.SHA256.String()})
}

// scopeOf says what an export is of.
func scopeOf(h events.ExportHead) string {
	of := "all tenants"
	if h.Tenant != "" {
		of = "tenant " + h.Tenant
	}
	if h.Month != "" {
		return of + ", deliveries of " + h.Month
	}
	of += ", recorded from " + h.Since.String() + " to " + h.Until.String()
	if len(h.Names) > 0 {
		of += fmt.Sprintf(", only %v", h.Names)
	}
	return of
}
