package main

import (
	"context"
	"strings"

	"github.com/google/uuid"

	"waybill/domain"
	"waybill/events"
	"waybill/handlers/command"
	"waybill/projections"
)

// deliveriesCmd looks at deliveries and decides about them.
type deliveriesCmd struct {
	List      deliveryListCmd      `cmd:"" help:"List the deliveries of --tenant, newest first."`
	Show      deliveryShowCmd      `cmd:"" help:"Show where a delivery stands."`
	Events    deliveryEventsCmd    `cmd:"" help:"Show a delivery's whole history."`
	Exchanges deliveryExchangesCmd `cmd:"" help:"Show what receivers answered, escaped."`
	Payload   deliveryPayloadCmd   `cmd:"" help:"Write the payload's exact bytes; the reading is kept in the log."`
	Replay    deliveryReplayCmd    `cmd:"" help:"Start a new cycle of attempts for a delivery that failed."`
	Cancel    deliveryCancelCmd    `cmd:"" help:"End a delivery that has not ended."`
	Resolve   deliveryResolveCmd   `cmd:"" help:"Say what became of a held delivery."`
}

type deliveryArg struct {
	ID identity `arg:"" help:"The delivery's id."`
}

type deliveryListCmd struct {
	limit
	span
	State          string   `enum:"pending,processing,delivered,failed,held,cancelled," default:"" placeholder:"S" help:"Only in this state: pending, processing, delivered, failed, held or cancelled."`
	Endpoint       identity `placeholder:"E" help:"Only to this endpoint."`
	EventType      string   `placeholder:"T" help:"Only of this event type."`
	IdempotencyKey string   `placeholder:"K" help:"Only with this idempotency key."`
	InDoubt        *bool    `negatable:"" help:"Only those whose last attempt may have been received."`
	EverUnknown    *bool    `negatable:"" help:"Only those of which any attempt was ever in doubt."`
	PayloadErased  *bool    `negatable:"" help:"Only those whose payload is erased."`
	AsOf           moment   `placeholder:"T" help:"As they were at T: RFC 3339, or a duration ago (2h)."`
	Count          bool     `help:"Count them by state instead."`
}

// Run lists deliveries.
func (c *deliveryListCmd) Run(ctx context.Context, in *invocation) error {
	return in.withTenant(ctx, func(s *session) error {
		f := projections.DeliveryFilter{
			EndpointID: c.Endpoint.UUID, State: domain.State(c.State), EventType: c.EventType,
			IdempotencyKey: c.IdempotencyKey, InDoubt: c.InDoubt, EverUnknown: c.EverUnknown, PayloadErased: c.PayloadErased,
		}
		var err error
		if f.Since, f.Until, err = c.resolve(ctx, s); err != nil {
			return err
		}
		if c.AsOf.set || c.Count {
			return c.past(ctx, in, s, f)
		}
		pages := keyset(c.Limit, uuid.Nil, func(v projections.View) uuid.UUID { return v.ID },
			func(before uuid.UUID, n int) ([]projections.View, error) {
				list, err := s.Deliveries(ctx, in.Tenant, f, before, n)
				return viewsOf(list, projections.Delivery.View), err
			})
		return deliveryListing.print(in, pages)
	})
}

var deliveryListing = listing[projections.View]{
	heads: []string{"ID", "STATE", "ATTEMPTS", "LAST", "DUE", "CREATED", "EVENT TYPE", "ENDPOINT"},
	row: func(v projections.View) []string {
		return []string{v.ID.String(), stateOf(v), itoa(v.Attempts), dash(string(v.LastOutcome)), instantOf(v.DueAt),
			v.CreatedAt.String(), dash(v.EventType), v.EndpointID.String()}
	},
}

// stateOf is the state, and what a person must know with it.
func stateOf(v projections.View) string {
	s := string(v.State)
	if v.FailureReason != "" {
		s += " (" + string(v.FailureReason) + ")"
	}
	if v.InDoubt {
		s += " in doubt"
	}
	return s
}

type deliveryShowCmd struct {
	deliveryArg
	past
}

// Run shows one delivery.
func (c *deliveryShowCmd) Run(ctx context.Context, in *invocation) error {
	return in.withTenant(ctx, func(s *session) error {
		v, err := c.view(ctx, in, s)
		if err != nil {
			return err
		}
		fields := [][2]string{
			{"id", v.ID.String()}, {"tenant", v.Tenant}, {"state", stateOf(v)}, {"endpoint", v.EndpointID.String()},
			{"message", v.MessageID.String()}, {"event type", v.EventType}, {"version", itoa(v.Version)},
			{"attempts", itoa(v.Attempts)}, {"unknown", itoa(v.UnknownAttempts)}, {"cycle", itoa(v.Cycle)},
			{"in this cycle", itoa(v.CycleAttempts)}, {"last outcome", string(v.LastOutcome)}, {"due", strings.Trim(instantOf(v.DueAt), "-")},
			{"claim", claimOf(v.Claim)}, {"idempotency key", v.IdempotencyKey}, {"ordering key", v.OrderingKey},
			{"created", v.CreatedAt.String()}, {"updated", v.UpdatedAt.String()},
		}
		if v.PayloadErased {
			fields = append(fields, [2]string{"payload", "erased"})
		}
		return show(in, v, append(fields, basisOf(v.Basis)...)...)
	})
}

func (c *deliveryShowCmd) view(ctx context.Context, in *invocation, s *session) (projections.View, error) {
	p, err := c.resolve(ctx, s)
	if err != nil {
		return projections.View{}, err
	}
	if p == (projections.Past{}) {
		d, err := s.Delivery(ctx, in.Tenant, c.ID.UUID)
		return d.View(), err
	}
	d, err := s.DeliveryAsOf(ctx, in.Tenant, c.ID.UUID, p)
	return d.View(), err
}

func claimOf(c *projections.ClaimView) string {
	if c == nil {
		return ""
	}
	return c.Token.String() + " of " + c.Worker + " until " + c.LeaseUntil.String()
}

type deliveryEventsCmd struct {
	deliveryArg
	After int `placeholder:"SEQ" help:"Only what follows this seq."`
	Limit int `default:"0" placeholder:"N" help:"At most this many; 0 is all."`
}

// Run shows the history in order of seq.
func (c *deliveryEventsCmd) Run(ctx context.Context, in *invocation) error {
	return in.withTenant(ctx, func(s *session) error {
		if _, err := s.Delivery(ctx, in.Tenant, c.ID.UUID); err != nil {
			return err
		}
		pages := keyset(max(c.Limit, 0), c.After, func(r events.Record) int { return r.Seq },
			func(after, n int) ([]events.Record, error) {
				return s.Stream(ctx, in.Tenant, events.DeliveryStream, c.ID.UUID, after, n)
			})
		return listing[events.Record]{
			heads: []string{"SEQ", "TIME", "NAME", "ACTOR", "WHAT"},
			row: func(r events.Record) []string {
				return []string{itoa(r.Seq), r.RecordedAt.String(), r.Name, string(r.Actor), gist(r)}
			},
		}.print(in, pages)
	})
}

type deliveryReplayCmd struct {
	deliveryArg
	reason
	Force bool `help:"Also a delivered or cancelled one: it may be received twice."`
}

type reason struct {
	Reason string `required:"" placeholder:"R" help:"Why, for those who read the history. Kept for ever: no personal data."`
}

// Run replays the delivery.
func (c *deliveryReplayCmd) Run(ctx context.Context, in *invocation) error {
	return in.decide(ctx, func(s *session, o command.Operations) (projections.Delivery, error) {
		return o.Replay(ctx, s.by, c.ID.UUID, c.Reason, c.Force)
	})
}

type deliveryCancelCmd struct {
	deliveryArg
	reason
}

// Run cancels the delivery.
func (c *deliveryCancelCmd) Run(ctx context.Context, in *invocation) error {
	return in.decide(ctx, func(s *session, o command.Operations) (projections.Delivery, error) {
		return o.Cancel(ctx, s.by, c.ID.UUID, c.Reason)
	})
}

type deliveryResolveCmd struct {
	deliveryArg
	reason
	Outcome domain.Resolution `required:"" enum:"delivered,failed,retry" placeholder:"O" help:"delivered, failed, or retry for a new cycle of attempts."`
}

// Run resolves the hold.
func (c *deliveryResolveCmd) Run(ctx context.Context, in *invocation) error {
	return in.decide(ctx, func(s *session, o command.Operations) (projections.Delivery, error) {
		return o.Resolve(ctx, s.by, c.ID.UUID, c.Outcome, c.Reason)
	})
}

// decide takes one decision about one delivery and prints where that leaves it.
func (in *invocation) decide(ctx context.Context, take func(*session, command.Operations) (projections.Delivery, error)) error {
	return in.withTenant(ctx, func(s *session) error {
		d, err := take(s, command.Operations{Ledger: s})
		if err != nil {
			return err
		}
		v := d.View()
		return say(in, v, v.ID.String(), stateOf(v))
	})
}
