package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"waybill/domain"
	"waybill/handlers/command"
)

// identity is an id as the contract writes it: plain, and not zero.
type identity struct{ uuid.UUID }

// UnmarshalText reads the plain form only.
func (i *identity) UnmarshalText(b []byte) error {
	id, err := uuid.ParseBytes(b)
	if err != nil || len(b) != 36 || id == uuid.Nil {
		return fmt.Errorf("%.50q is not an id such as 0198c1d2-0000-7000-8000-000000000000", b)
	}
	i.UUID = id
	return nil
}

// moment is a time that a person gives: RFC 3339, or a duration ago.
type moment struct {
	at  domain.Instant
	ago time.Duration
	set bool
}

// UnmarshalText reads either form.
func (m *moment) UnmarshalText(b []byte) error {
	if ago, err := time.ParseDuration(string(b)); err == nil {
		if ago < 0 {
			return fmt.Errorf("%q lies in the future; a duration means so long ago", b)
		}
		*m = moment{ago: ago, set: true}
		return nil
	}
	at, err := time.Parse(time.RFC3339Nano, string(b))
	if err != nil {
		return fmt.Errorf("%.50q is neither RFC 3339 (2026-01-31T12:00:00Z) nor a duration ago (2h)", b)
	}
	*m = moment{at: domain.At(at), set: true}
	return nil
}

// instant resolves the moment by the database's clock; zero if none was given.
func (m moment) instant(ctx context.Context, clock command.Clock) (domain.Instant, error) {
	if !m.set || m.ago == 0 && !m.at.IsZero() {
		return m.at, nil
	}
	now, err := clock.Now(ctx)
	if err != nil {
		return domain.Instant{}, err
	}
	return now.After(-m.ago), nil
}

// span is a half-open range of creation times.
type span struct {
	Since moment `placeholder:"T" help:"Made at or after T: RFC 3339, or a duration ago (2h)."`
	Until moment `placeholder:"T" help:"Made before T."`
}

func (s span) resolve(ctx context.Context, clock command.Clock) (since, until domain.Instant, err error) {
	if since, err = s.Since.instant(ctx, clock); err != nil {
		return since, until, err
	}
	if until, err = s.Until.instant(ctx, clock); err != nil {
		return since, until, err
	}
	if s.Since.set && s.Until.set && until.Before(since.Time) {
		return since, until, usageError("--until lies before --since")
	}
	return since, until, nil
}

// payloadLimit is a number of bytes, written as 1048576, 512KiB or 1MiB.
type payloadLimit int64

// largestPayload is what a limit may be set to: one payload must fit, with others,
// into what may wait for a commit.
const largestPayload = 32 << 20

// UnmarshalText reads a number with or without a binary unit.
func (l *payloadLimit) UnmarshalText(b []byte) error {
	digits := strings.TrimRight(string(b), "BKMi")
	n, err := strconv.ParseInt(digits, 10, 32)
	shift, ok := map[string]int{"": 0, "B": 0, "KiB": 10, "MiB": 20}[string(b[len(digits):])]
	switch {
	case err != nil || !ok || n < 1:
		return fmt.Errorf("%.50q is not a size such as 1MiB", b)
	case n<<shift > largestPayload:
		return fmt.Errorf("%.50q is more than %d MiB", b, largestPayload>>20)
	}
	*l = payloadLimit(n << shift)
	return nil
}
