package main

import (
	"context"
	"fmt"
	"io"
	"os"

	"github.com/google/uuid"

	"waybill/adapters/postgres"
	"waybill/domain"
	"waybill/handlers/command"
)

// submitCmd hands in a message for one endpoint.
type submitCmd struct {
	Stdin          string       `arg:"" optional:"" enum:"-," default:"" help:"- reads the payload from standard input."`
	File           string       `placeholder:"F" help:"The payload, byte for byte; - is standard input."`
	Endpoint       identity     `required:"" placeholder:"E" help:"Where it goes."`
	EventType      string       `placeholder:"T" help:"What it is about, such as order.paid."`
	IdempotencyKey *string      `placeholder:"K" help:"The same key again answers with the first delivery instead of making one."`
	ContentType    string       `default:"application/json" placeholder:"C" help:"Sent along as it is (default ${default})."`
	MaxPayload     payloadLimit `default:"1MiB" placeholder:"N" help:"Refuse more bytes than this (default ${default})."`
}

// submitted is the answer, as the API gives it.
type submitted struct {
	DeliveryID uuid.UUID    `json:"delivery_id"`
	MessageID  uuid.UUID    `json:"message_id"`
	State      domain.State `json:"state"`
	Duplicate  bool         `json:"duplicate"`
}

// Run submits and prints the delivery's id once it is committed.
func (c *submitCmd) Run(ctx context.Context, in *invocation) error {
	payload, err := c.payload(in.in)
	if err != nil {
		return err
	}
	sub := command.Submission{
		EndpointID: c.Endpoint.UUID, EventType: c.EventType, ContentType: c.ContentType, Payload: payload,
	}
	if c.IdempotencyKey != nil {
		sub.IdempotencyKey, sub.HasKey = *c.IdempotencyKey, true
	}
	return in.withTenant(ctx, func(s *session) error {
		submitter := command.NewSubmitter(s.Ledger, command.SubmitOptions{Committers: 1, Isolable: postgres.Isolable})
		defer submitter.Close()
		a, err := submitter.Submit(ctx, s.by, sub)
		if err != nil {
			return err
		}
		d := a.Deliveries[0]
		if a.Duplicate && !in.JSON {
			_, _ = fmt.Fprintf(in.err, "duplicate: the key was used before; this is the original, now %s\n", d.State)
		}
		return say(in, submitted{d.DeliveryID, a.MessageID, d.State, a.Duplicate}, d.DeliveryID.String())
	})
}

// payload reads the bytes, which must be named: an empty standard input is too
// easily an accident.
func (c *submitCmd) payload(stdin io.Reader) ([]byte, error) {
	switch {
	case c.File == "" && c.Stdin == "":
		return nil, usageError("name the payload: --file F, or - for standard input")
	case c.File != "" && c.Stdin != "":
		return nil, usageError("give either --file or -, not both")
	}
	from := stdin
	if c.File != "" && c.File != "-" {
		f, err := os.Open(c.File)
		if err != nil {
			return nil, err
		}
		defer func() { _ = f.Close() }()
		from = f
	}
	payload, err := io.ReadAll(io.LimitReader(from, int64(c.MaxPayload)+1))
	if err != nil {
		return nil, fmt.Errorf("read the payload: %w", err)
	}
	if len(payload) > int(c.MaxPayload) {
		return nil, domain.ErrPayloadTooLarge.With(fmt.Sprintf("the payload is larger than %d bytes; --max-payload moves the limit", c.MaxPayload))
	}
	return payload, nil
}
