package domain

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Rate is a budget of submissions in windows of fixed length: at most Count in each.
type Rate struct {
	Count int
	Per   time.Duration
}

// Bounds of a rate.
const (
	MaxRateCount  = 100_000_000
	MinRateWindow = time.Second
	MaxRateWindow = 24 * time.Hour
)

// ParseRate reads "COUNT/WINDOW", such as 1000/1m: a count from 1 to 100,000,000 and
// a window from 1s to 24h in whole seconds.
func ParseRate(s string) (Rate, error) {
	count, per, ok := strings.Cut(s, "/")
	n, countErr := strconv.Atoi(count)
	d, perErr := time.ParseDuration(per)
	r := Rate{Count: n, Per: d}
	switch {
	case !ok || countErr != nil || perErr != nil:
		return Rate{}, ErrInvalidRequest.With(fmt.Sprintf("%q is not a rate such as 1000/1m", s))
	case n < 1 || n > MaxRateCount:
		return Rate{}, ErrInvalidRequest.With("a rate's count is 1 to 100000000")
	case d < MinRateWindow || d > MaxRateWindow || d%time.Second != 0:
		return Rate{}, ErrInvalidRequest.With("a rate's window is 1s to 24h, in whole seconds")
	}
	return r, nil
}

// IsZero reports that there is no limit.
func (r Rate) IsZero() bool { return r == Rate{} }

// String formats the rate as ParseRate reads it; no limit is empty.
func (r Rate) String() string {
	if r.IsZero() {
		return ""
	}
	switch {
	case r.Per%time.Hour == 0:
		return fmt.Sprintf("%d/%dh", r.Count, r.Per/time.Hour)
	case r.Per%time.Minute == 0:
		return fmt.Sprintf("%d/%dm", r.Count, r.Per/time.Minute)
	}
	return fmt.Sprintf("%d/%ds", r.Count, r.Per/time.Second)
}

// MarshalText formats the rate as ParseRate reads it.
func (r Rate) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// UnmarshalText reads a rate; empty is no limit.
func (r *Rate) UnmarshalText(b []byte) (err error) {
	if *r = (Rate{}); len(b) > 0 {
		*r, err = ParseRate(string(b))
	}
	return err
}
