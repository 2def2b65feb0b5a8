package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"waybill/domain"
	"waybill/handlers/command"
)

// importCmd takes over what another system has sent.
type importCmd struct {
	Endpoint identity `required:"" placeholder:"E" help:"Where the other system sent it."`
	File     string   `required:"" placeholder:"F" help:"JSON lines of idempotency_key, event_type, delivered_at (RFC 3339); - is standard input."`
}

const (
	importBatch = 500      // lines a transaction
	importLine  = 64 << 10 // bytes of one line
	importSays  = 5 * time.Second
)

// Run imports batch by batch. Running it again imports what is still missing.
func (c *importCmd) Run(ctx context.Context, in *invocation) error {
	from := in.in
	if c.File != "-" {
		f, err := os.Open(c.File)
		if err != nil {
			return err
		}
		defer func() { _ = f.Close() }()
		from = f
	}
	return in.withTenant(ctx, func(s *session) error {
		run := importRun{in: in, importer: command.Importer{Ledger: s}, by: s.by, to: c.Endpoint, said: time.Now()}
		if err := run.all(ctx, newImportReader(from)); err != nil {
			return run.explain(err)
		}
		if n := run.count.NotDelivered; n > 0 {
			_, _ = fmt.Fprintf(in.err, "%d duplicates are not delivered here: their keys were handed in to Waybill before, which goes on with them\n", n)
		}
		return say(in, run.count, fmt.Sprintf("%d imported, %d duplicates", run.count.Imported, run.count.Duplicates))
	})
}

// importRun is one import on its way.
type importRun struct {
	in       *invocation
	importer command.Importer
	by       command.Caller
	to       identity
	count    command.ImportCount
	through  int // the last line that is settled
	said     time.Time
}

func (r *importRun) all(ctx context.Context, lines *importReader) error {
	for {
		batch, err := lines.batch()
		if err != nil {
			return err
		}
		done, err := r.importer.Import(ctx, r.by, r.to.UUID, batch)
		if err != nil || len(batch) == 0 {
			return err
		}
		r.count.Add(done)
		r.through = batch[len(batch)-1].Line
		if time.Since(r.said) >= importSays {
			_, _ = fmt.Fprintf(r.in.err, "%d lines: %d imported, %d duplicates\n", r.through, r.count.Imported, r.count.Duplicates)
			r.said = time.Now()
		}
	}
}

// explain says how far it came: the batches before stay.
func (r *importRun) explain(err error) error {
	if r.through == 0 {
		return err
	}
	so := fmt.Sprintf("lines up to %d are imported, none beyond; run it again once that is put right", r.through)
	var refused *domain.Error
	if errors.As(err, &refused) {
		return refused.With(refused.Message + " (" + so + ")")
	}
	return fmt.Errorf("%s: %w", so, err)
}

// importReader reads lines of JSON.
type importReader struct {
	lines *bufio.Scanner
	line  int
}

func newImportReader(from io.Reader) *importReader {
	lines := bufio.NewScanner(from)
	lines.Buffer(nil, importLine)
	return &importReader{lines: lines}
}

// batch returns the next lines, none at the end.
func (r *importReader) batch() ([]command.Imported, error) {
	var batch []command.Imported
	for len(batch) < importBatch && r.lines.Scan() {
		r.line++
		text := bytes.TrimSpace(r.lines.Bytes())
		if len(text) == 0 {
			continue
		}
		item, err := parseImported(text, r.line)
		if err != nil {
			return nil, err
		}
		batch = append(batch, item)
	}
	err := r.lines.Err()
	if errors.Is(err, bufio.ErrTooLong) {
		return nil, badLine(r.line+1, fmt.Sprintf("longer than %d bytes", importLine))
	}
	return batch, err
}

func parseImported(text []byte, line int) (command.Imported, error) {
	var v struct {
		Key         string         `json:"idempotency_key"`
		EventType   string         `json:"event_type"`
		DeliveredAt domain.Instant `json:"delivered_at"`
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&v); err != nil {
		return command.Imported{}, badLine(line, strings.TrimPrefix(err.Error(), "json: "))
	}
	if d.More() {
		return command.Imported{}, badLine(line, "more than one JSON value")
	}
	item := command.Imported{IdempotencyKey: v.Key, EventType: v.EventType, DeliveredAt: v.DeliveredAt, Line: line}
	return item, item.Check()
}

func badLine(line int, what string) error {
	return domain.ErrInvalidRequest.With(fmt.Sprintf("line %d: %s", line, what))
}
