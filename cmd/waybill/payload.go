package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/google/uuid"
)

// fromCommandLine is where the log says that a payload was read from.
const fromCommandLine = "command line"

type deliveryPayloadCmd struct {
	deliveryArg
	Out string `placeholder:"F" help:"A new file (mode 0600) instead of standard output."`
}

// payloadView is a payload as --json shows it.
type payloadView struct {
	DeliveryID  uuid.UUID `json:"delivery_id"`
	ContentType string    `json:"content_type"`
	Payload     []byte    `json:"payload_base64"`
}

// Run writes the bytes as they came, once the reading is committed to the log.
func (c *deliveryPayloadCmd) Run(ctx context.Context, in *invocation) error {
	return in.withTenant(ctx, func(s *session) error {
		return c.into(in.out, func(out io.Writer) error {
			bytes, contentType, err := s.ReadPayload(ctx, in.Tenant, c.ID.UUID, s.by.Actor, fromCommandLine, "")
			if err != nil {
				return err
			}
			if in.JSON {
				return printJSON(out, payloadView{c.ID.UUID, contentType, bytes})
			}
			if _, err := out.Write(bytes); err != nil {
				return fmt.Errorf("write the payload: %w", err)
			}
			return nil
		})
	})
}

// into opens the output before anything is read, so that no reading is recorded
// whose bytes have nowhere to go. A file that is there is never replaced.
func (c *deliveryPayloadCmd) into(stdout io.Writer, write func(io.Writer) error) error {
	if c.Out == "" || c.Out == "-" {
		return write(stdout)
	}
	f, err := os.OpenFile(c.Out, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	err = write(f)
	if err = errors.Join(err, f.Close()); err != nil {
		return errors.Join(err, os.Remove(c.Out))
	}
	return nil
}

type deliveryExchangesCmd struct{ deliveryArg }

// exchangeView is what a receiver answered, as the API shows it.
type exchangeView struct {
	Attempt  int    `json:"attempt"`
	Excerpt  []byte `json:"excerpt_base64"`
	Location string `json:"location,omitempty"`
	Detail   string `json:"detail,omitempty"`
}

// Run shows the excerpts escaped as in Go strings, which hold any byte and move no
// cursor.
func (c *deliveryExchangesCmd) Run(ctx context.Context, in *invocation) error {
	return in.withTenant(ctx, func(s *session) error {
		if _, err := s.Delivery(ctx, in.Tenant, c.ID.UUID); err != nil {
			return err
		}
		list, err := s.Exchanges(ctx, in.Tenant, c.ID.UUID)
		var views []exchangeView
		for _, x := range list {
			views = append(views, exchangeView{x.Attempt, x.Excerpt, escaped(x.Location), escaped(x.Detail)})
		}
		return listing[exchangeView]{
			heads: []string{"ATTEMPT", "BODY", "LOCATION", "ERROR"},
			row: func(v exchangeView) []string {
				return []string{itoa(v.Attempt), dash(escaped(v.Excerpt)), dash(v.Location), dash(v.Detail)}
			},
		}.print(in, onePage(views, err))
	})
}

// escaped is bytes from outside as the API shows them: what is not printable, or not
// UTF-8, as in a Go string.
func escaped(b []byte) string {
	quoted := strconv.Quote(string(b))
	return strings.ReplaceAll(quoted[1:len(quoted)-1], `\"`, `"`)
}
