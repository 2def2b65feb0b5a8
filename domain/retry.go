package domain

import (
	"math"
	"time"
)

// MaxRetryAfter bounds how long a receiver's Retry-After may postpone an attempt.
const MaxRetryAfter = 24 * time.Hour

// Retry is what decides when a delivery is tried again, beside its own state:
// the policy, the time that delays count from, and a random number in [0, 1).
type Retry struct {
	Policy Policy
	From   Instant
	Random float64
}

// due is when the given attempt of a cycle may start. Retry-After postpones and
// never hastens, and jitter never undercuts it.
func (r Retry) due(cycleAttempt int, retryAfter *time.Duration) Instant {
	delay := jittered(r.Policy.Retries.Delay(cycleAttempt), r.Policy.Jitter, r.Random)
	if retryAfter != nil {
		delay = max(delay, min(*retryAfter, MaxRetryAfter))
	}
	return r.From.After(delay)
}

// jittered spreads d evenly over d·(1−jitter) … d·(1+jitter).
func jittered(d time.Duration, jitter, random float64) time.Duration {
	return time.Duration(float64(d) * (1 + jitter*(2*random-1)))
}

// Retries says how many attempts a cycle has and how long each waits: either a
// list, where Delays[i] precedes attempt i+1, or exponential, where attempt 1 is
// at once and attempt n+1 follows after min(Cap, Base·Factor^(n−1)).
type Retries struct {
	Delays   []Duration `json:"delays,omitempty"`
	Base     Duration   `json:"base,omitempty"`
	Factor   float64    `json:"factor,omitempty"`
	Cap      Duration   `json:"cap,omitempty"`
	Attempts int        `json:"attempts,omitempty"`
}

// DefaultRetries is the schedule of Standard Webhooks' operators: ten attempts
// over about three days.
func DefaultRetries() Retries {
	h := Duration(time.Hour)
	return Retries{Delays: []Duration{0, Duration(5 * time.Second), Duration(5 * time.Minute),
		Duration(30 * time.Minute), 2 * h, 5 * h, 10 * h, 14 * h, 20 * h, 24 * h}}
}

// Max is how many attempts a cycle has.
func (r Retries) Max() int {
	if len(r.Delays) > 0 {
		return len(r.Delays)
	}
	return r.Attempts
}

// Delay is how long the given attempt of a cycle, from 1, waits after the one
// before it; beyond the last it stays at the last.
func (r Retries) Delay(attempt int) time.Duration {
	if len(r.Delays) > 0 {
		return time.Duration(r.Delays[min(max(attempt, 1), len(r.Delays))-1])
	}
	if attempt <= 1 {
		return 0
	}
	d := float64(r.Base) * math.Pow(r.Factor, float64(attempt-2))
	return time.Duration(min(d, float64(r.Cap)))
}

// Limits of a retry schedule.
const (
	MaxAttemptsPerCycle = 100
	MaxRetryDelay       = 30 * 24 * time.Hour
)

func (r Retries) check() error {
	exponential := r.Base != 0 || r.Factor != 0 || r.Cap != 0 || r.Attempts != 0
	switch {
	case len(r.Delays) > 0 && exponential:
		return ErrInvalidRequest.With("policy.retries has either delays or base, factor, cap and attempts")
	case len(r.Delays) > 0:
		return r.checkDelays()
	case r.Attempts < 1 || r.Attempts > MaxAttemptsPerCycle:
		return ErrInvalidRequest.With("policy.retries.attempts is 1 to 100")
	case r.Base < 0 || r.Cap < r.Base || time.Duration(r.Cap) > MaxRetryDelay:
		return ErrInvalidRequest.With("policy.retries needs 0 ≤ base ≤ cap ≤ 720h")
	case r.Factor < 1 || r.Factor > 100 || math.IsNaN(r.Factor):
		return ErrInvalidRequest.With("policy.retries.factor is 1 to 100")
	}
	return nil
}

func (r Retries) checkDelays() error {
	if len(r.Delays) > MaxAttemptsPerCycle {
		return ErrInvalidRequest.With("policy.retries.delays has at most 100 entries")
	}
	for _, d := range r.Delays {
		if d < 0 || time.Duration(d) > MaxRetryDelay {
			return ErrInvalidRequest.With("each of policy.retries.delays is 0 to 720h")
		}
	}
	return nil
}
