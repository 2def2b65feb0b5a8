package main

import (
	"context"
	"iter"
	"time"

	"waybill/events"
)

// eventsCmd reads the log.
type eventsCmd struct {
	Tail eventsTailCmd `cmd:"" help:"Read the sealed events of --tenant in order of position."`
}

// tailEvery is how often the end of the sealed log is looked for.
const tailEvery = 500 * time.Millisecond

type eventsTailCmd struct {
	After  int64    `default:"0" placeholder:"P" help:"Only what follows this position; from the start if left out."`
	Follow bool     `help:"Stay, and print what is sealed from now on, until Ctrl-C."`
	Type   []string `placeholder:"T" help:"Only events of this name, or of prefix.*; may be repeated."`
}

// Run prints events. A reader who follows is never done, so being stopped is no failure.
func (c *eventsTailCmd) Run(ctx context.Context, in *invocation) error {
	names, err := eventNames(c.Type)
	if err != nil {
		return err
	}
	if c.After < 0 {
		return usageError("--after is a position: 0 or more")
	}
	err = in.withTenant(ctx, func(s *session) error {
		l := listing[events.Record]{
			heads: []string{"POSITION", "TIME", "NAME", "STREAM", "SEQ", "ACTOR", "WHAT"},
			row: func(r events.Record) []string {
				return []string{itoa(int(r.Position)), r.RecordedAt.String(), r.Name, r.StreamID.String(), itoa(r.Seq), string(r.Actor), gist(r)}
			},
		}
		for page, err := range c.pages(ctx, s, in.Tenant, names) {
			if err != nil {
				return err
			}
			if err := l.page(in, in.out, page); err != nil {
				return err
			}
			l.heads = nil
		}
		return nil
	})
	if c.Follow && ctx.Err() != nil {
		return nil
	}
	return err
}

// pages yields what there is up to the horizon, and with --follow waits for more.
func (c *eventsTailCmd) pages(ctx context.Context, s *session, tenant string, names []string) iter.Seq2[[]events.Record, error] {
	return func(yield func([]events.Record, error) bool) {
		for after := c.After; ; {
			head, err := s.Head(ctx)
			for err == nil && after < head.Last {
				var page []events.Record
				page, after, err = s.Tail(ctx, tenant, names, after, head.Last)
				if len(page) > 0 && !yield(page, nil) {
					return
				}
			}
			if err != nil {
				yield(nil, err)
				return
			}
			if !c.Follow {
				return
			}
			select {
			case <-ctx.Done():
				return
			case <-time.After(tailEvery):
			}
		}
	}
}
