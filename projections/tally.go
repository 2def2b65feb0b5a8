package projections

import (
	"fmt"
	"time"

	"github.com/google/uuid"

	"waybill/domain"
	"waybill/events"
)

// TallyNames is the events that the asynchronous projections count.
var TallyNames = []string{"delivery.attempted", "delivery.lease_expired"}

// DurationBounds are the upper bounds, in milliseconds, of the counts of durations; one
// more count is of what took longer.
var DurationBounds = [...]int64{10, 25, 50, 100, 250, 500, 1000, 2500, 5000, 10_000, 30_000}

// TallyKey is a row of endpoint_health (no hour) or of outcomes_hourly.
type TallyKey struct {
	Tenant     string
	EndpointID uuid.UUID
	Hour       int64 // seconds since 1970
}

// Tally is what some records add to a row.
type Tally struct {
	Attempts, Succeeded, Refused, Unreached, Unknown, Lost int64
	Answered, DurationSumMS, DurationMaxMS                 int64
	Durations                                              [len(DurationBounds) + 1]int64
	LastAttempt, LastSuccess                               domain.Instant
}

// Poison is a record that a projection cannot take.
type Poison struct {
	Record events.Record
	Cause  error
}

// Error names the record.
func (p *Poison) Error() string {
	return fmt.Sprintf("%s %s seq %d: %v", p.Record.Stream, p.Record.StreamID, p.Record.Seq, p.Cause)
}

// Unwrap returns what is wrong with it.
func (p *Poison) Unwrap() error { return p.Cause }

// Count adds up what records change in an asynchronous projection's rows. At a record that
// it cannot read it ends with a *[Poison]; what it returns then is of those before.
func (p Projection) Count(records []events.Record) (map[TallyKey]Tally, error) {
	rows := map[TallyKey]Tally{}
	for _, r := range records {
		e, err := r.Event()
		if err != nil {
			return rows, &Poison{r, err}
		}
		k := TallyKey{Tenant: r.Tenant, EndpointID: r.EndpointID}
		if p.Name == "outcomes_hourly" {
			k.Hour = r.RecordedAt.Truncate(time.Hour).Unix()
		}
		t := rows[k]
		t.add(e, r.RecordedAt)
		rows[k] = t
	}
	return rows, nil
}

func (t *Tally) add(e domain.Event, at domain.Instant) {
	switch e := e.(type) {
	case domain.LeaseExpired:
		t.Lost++
	case domain.Attempted:
		t.Attempts++
		t.LastAttempt = t.LastAttempt.Later(at)
		switch e.Outcome {
		case domain.Succeeded:
			t.Succeeded++
			t.LastSuccess = t.LastSuccess.Later(at)
		case domain.Refused:
			t.Refused++
		case domain.Unreached:
			t.Unreached++
		case domain.Unknown:
			t.Unknown++
		}
		if e.Status > 0 {
			t.answered(e.DurationMS)
		}
	}
}

func (t *Tally) answered(ms int64) {
	t.Answered++
	t.DurationSumMS += ms
	t.DurationMaxMS = max(t.DurationMaxMS, ms)
	i := 0
	for i < len(DurationBounds) && ms > DurationBounds[i] {
		i++
	}
	t.Durations[i]++
}
