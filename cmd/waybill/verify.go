package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"waybill/domain"
	"waybill/events"
	"waybill/projections"
)

// verifyCmd holds the ledger against its own log.
type verifyCmd struct {
	Sample     share    `placeholder:"P" help:"Look into this share of deliveries and blocks alone, drawn at random: 0.01 or 1%."`
	Checkpoint string   `placeholder:"F" help:"A signed checkpoint that the log must extend."`
	Key        string   `placeholder:"K" help:"The verifier key that it is signed with, NAME+HASH+KEY."`
	From       identity `placeholder:"ID" help:"Only deliveries from this id on, and neither endpoints nor blocks: goes on with a verification that was stopped."`
	To         identity `placeholder:"ID" help:"Only deliveries below this id."`
	Workers    int      `default:"2" placeholder:"N" help:"How many read at a time, 1 to 64 (default ${default})."`
}

// share is a part of a whole: 0.01 or 1%.
type share float64

// UnmarshalText reads either form.
func (s *share) UnmarshalText(b []byte) error {
	text, percent := strings.CutSuffix(string(b), "%")
	f, err := strconv.ParseFloat(text, 64)
	if percent {
		f /= 100
	}
	if err != nil || !(f > 0 && f <= 1) {
		return fmt.Errorf("%.50q is not a share above 0 and up to 1, such as 0.01 or 1%%", b)
	}
	*s = share(f)
	return nil
}

// Validate refuses what makes no sense.
func (c *verifyCmd) Validate() error {
	switch {
	case c.Workers < 1 || c.Workers > 64:
		return usageError("--workers is 1 to 64")
	case (c.Checkpoint == "") != (c.Key == ""):
		return usageError("--checkpoint needs the --key that it is signed with, and the other way round")
	case c.Checkpoint != "" && (c.From.UUID != uuid.Nil || c.To.UUID != uuid.Nil):
		return usageError("a checkpoint is about the whole log; leave --from and --to out")
	}
	return nil
}

// Run verifies, names each fault on standard output, and ends with exit code 4 if there
// is one.
func (c *verifyCmd) Run(ctx context.Context, in *invocation) error {
	batch()
	v := projections.Verification{Workers: c.Workers, From: c.From.UUID, To: c.To.UUID, Sample: float64(c.Sample)}
	if c.Checkpoint != "" {
		p, err := c.checkpoint()
		if err != nil {
			return err
		}
		v.Checkpoint = &p
	}
	return in.withLedger(ctx, func(s *session) error {
		shown := in.progress("events")
		v.Schema, v.Snapshot, v.Phase, v.Done = s.Schema, s.Snapshot, shown.phase, shown.add
		began := time.Now()
		rep, err := v.Run(ctx)
		shown.end()
		for _, f := range rep.Faults {
			if err := say(in, f, f.String()); err != nil {
				return err
			}
		}
		if err != nil {
			return c.stopped(in, rep, err)
		}
		return verified(in, rep, time.Since(began))
	})
}

func (c *verifyCmd) checkpoint() (events.Checkpoint, error) {
	signed, err := readBounded(c.Checkpoint)
	if err != nil {
		return events.Checkpoint{}, err
	}
	p, err := events.OpenCheckpoint(signed, c.Key)
	if errors.Is(err, events.ErrUnsigned) {
		return p, fmt.Errorf("%w: %s: %w", errFaulty, c.Checkpoint, err)
	}
	if err != nil {
		return p, domain.ErrInvalidRequest.With(err.Error())
	}
	return p, nil
}

// stopped says how to go on.
func (c *verifyCmd) stopped(in *invocation, rep projections.Report, err error) error {
	if rep.Through != uuid.Nil && rep.Through != uuid.Max {
		_, _ = fmt.Fprintf(in.err, "everything up to delivery %s was looked at; go on with: waybill verify --from %s\n", rep.Through, rep.Through)
	}
	if len(rep.Faults) > 0 {
		return fmt.Errorf("%w: %d faults before it was stopped: %w", errFaulty, len(rep.Faults), err)
	}
	return err
}

// verifiedView is how a verification ends.
type verifiedView struct {
	projections.Report
	Faults int   `json:"faults"` // each was printed
	OK     bool  `json:"ok"`
	TookMS int64 `json:"took_ms"`
}

func verified(in *invocation, rep projections.Report, took time.Duration) error {
	v := verifiedView{rep, len(rep.Faults), len(rep.Faults) == 0, took.Milliseconds()}
	if err := say(in, v, fmt.Sprintf("verified %d deliveries, %d endpoints, %d events, %d blocks, %d payloads and %d answers in %s: %s",
		rep.Deliveries, rep.Endpoints, rep.Events, rep.Blocks, rep.Payloads, rep.Excerpts, took.Round(time.Millisecond), word(v.OK))); err != nil {
		return err
	}
	switch {
	case rep.More:
		return fmt.Errorf("%w: stopped at %d faults, there may be more", errFaulty, len(rep.Faults))
	case !v.OK:
		return fmt.Errorf("%w: %d faults", errFaulty, len(rep.Faults))
	}
	return nil
}

func word(ok bool) string {
	if ok {
		return "ok"
	}
	return "FAULTY"
}
