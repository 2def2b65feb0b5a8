package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/google/uuid"

	"waybill/domain"
	"waybill/handlers/command"
)

// eraseCmd erases payloads and what receivers answered.
type eraseCmd struct {
	Delivery   identity `xor:"which" required:"" placeholder:"ID" help:"The message of this delivery."`
	Message    identity `xor:"which" required:"" placeholder:"ID" help:"This message."`
	Endpoint   identity `xor:"which" required:"" placeholder:"ID" help:"Every settled message that was handed in for this endpoint."`
	Before     moment   `xor:"which" required:"" placeholder:"T" help:"Every settled message handed in before T: RFC 3339, or a duration ago (2160h)."`
	Until      moment   `placeholder:"T" help:"With --endpoint: only what was handed in before T."`
	Reason     string   `required:"" placeholder:"R" help:"Why, for those who read the history. Kept for ever: no personal data."`
	LegalBasis string   `placeholder:"B" help:"On what ground, such as 'GDPR art. 17'. Kept for ever."`
	DryRun     bool     `help:"Only count what would be erased."`
}

// Run erases one message, or whatever is settled of many.
func (c *eraseCmd) Run(ctx context.Context, in *invocation) error {
	if c.Until.set && c.Endpoint.UUID == uuid.Nil {
		return usageError("--until goes with --endpoint; without one say --before")
	}
	return in.withTenant(ctx, func(s *session) error {
		count, err := c.erase(ctx, in, s)
		if err == nil {
			return c.summary(in, count)
		}
		if count.Erased > 0 {
			_, _ = fmt.Fprintf(in.err, "%d messages are erased; run it again for the rest\n", count.Erased)
		}
		return err
	})
}

func (c *eraseCmd) erase(ctx context.Context, in *invocation, s *session) (command.ErasureCount, error) {
	why := domain.PayloadErased{Reason: c.Reason, LegalBasis: c.LegalBasis}
	scope := command.ErasureScope{EndpointID: c.Endpoint.UUID, Why: why, DryRun: c.DryRun}
	one := c.Message.UUID
	if c.Delivery.UUID != uuid.Nil {
		d, err := s.Delivery(ctx, in.Tenant, c.Delivery.UUID)
		if err != nil {
			return command.ErasureCount{}, err
		}
		one = d.MessageID
	}
	eraser := command.Eraser{Ledger: s}
	if one != uuid.Nil {
		return eraser.One(ctx, s.by, one, scope)
	}
	if scope.EndpointID != uuid.Nil {
		if _, err := s.Endpoint(ctx, in.Tenant, scope.EndpointID); err != nil {
			return command.ErasureCount{}, err
		}
	}
	var err error
	if scope.Before, err = c.bound(ctx, s); err != nil {
		return command.ErasureCount{}, err
	}
	p := in.progress("messages")
	defer p.end()
	p.phase("erase", 0)
	return eraser.All(ctx, s.by, scope, func(n int) { p.add(int64(n)) })
}

// bound is up to when messages were handed in; without one, up to now.
func (c *eraseCmd) bound(ctx context.Context, s *session) (domain.Instant, error) {
	switch {
	case c.Before.set:
		return c.Before.instant(ctx, s)
	case c.Until.set:
		return c.Until.instant(ctx, s)
	}
	return s.Now(ctx)
}

func (c *eraseCmd) summary(in *invocation, count command.ErasureCount) error {
	done := "erased"
	if c.DryRun {
		done = "would be erased"
	}
	words := []string{fmt.Sprintf("%d messages %s", count.Erased, done)}
	if count.Unsettled > 0 {
		var ids []string
		for _, id := range count.First {
			ids = append(ids, id.String())
		}
		words = append(words, fmt.Sprintf("and %d left, which have deliveries that have not ended, the first: %s", count.Unsettled, strings.Join(ids, ", ")))
	}
	return say(in, count, words...)
}
