package main

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"waybill/domain"
	"waybill/events"
)

// gist is what matters of a record, in one line.
func gist(r events.Record) string {
	e, err := r.Event()
	if err != nil {
		return string(r.Data)
	}
	switch e := e.(type) {
	case domain.Scheduled:
		return scheduledGist(e)
	case domain.Claimed:
		return fmt.Sprintf("attempt %d (cycle %d, %d), lease until %s", e.Attempt, e.Cycle, e.CycleAttempt, e.LeaseUntil)
	case domain.LeaseExtended:
		return "lease until " + e.LeaseUntil.String()
	case domain.Released:
		return "never sent (" + e.Why + "), due " + e.DueAt.String()
	case domain.Attempted:
		return attemptedGist(e)
	case domain.Delivered:
		return "proven by attempt " + strconv.Itoa(e.Attempt)
	case domain.RetryScheduled:
		return "due " + e.DueAt.String() + " (" + e.Why + ")"
	case domain.Failed:
		return string(e.Why)
	case domain.LeaseExpired:
		return "attempt " + strconv.Itoa(e.Attempt) + " is in doubt: its worker never reported"
	case domain.Held:
		return e.Why + ": waits for a person"
	}
	return decisionGist(e, r)
}

// decisionGist is for what people decide.
func decisionGist(e domain.Event, r events.Record) string {
	switch e := e.(type) {
	case domain.Resolved:
		if !e.DeliveredAt.IsZero() {
			return claimed("delivered by another system at "+e.DeliveredAt.String()+": "+e.Reason, e.OnBehalfOf)
		}
		return claimed(string(e.Resolution)+": "+e.Reason, e.OnBehalfOf)
	case domain.Replayed:
		how := "cycle "
		if e.Force {
			how = "forced, cycle "
		}
		return claimed(how+strconv.Itoa(e.Cycle)+", due "+e.DueAt.String()+": "+e.Reason, e.OnBehalfOf)
	case domain.Cancelled:
		return claimed(e.Reason, e.OnBehalfOf)
	case domain.PayloadErased:
		what := "payload and answers are gone"
		if e.LegalBasis != "" {
			what += " (" + e.LegalBasis + ")"
		}
		return claimed(what+": "+e.Reason, e.OnBehalfOf)
	}
	return string(r.Data)
}

// claimed adds whom an actor says to act for, shown as claimed.
func claimed(what, onBehalfOf string) string {
	if onBehalfOf == "" {
		return what
	}
	return what + " (claims to act for " + onBehalfOf + ")"
}

func scheduledGist(e domain.Scheduled) string {
	parts := []string{strconv.Itoa(e.PayloadSize) + " bytes"}
	if e.EventType != "" {
		parts = append(parts, e.EventType)
	}
	if e.ContentType != "" {
		parts = append(parts, e.ContentType)
	}
	if e.IdempotencyKey != "" {
		parts = append(parts, "key "+e.IdempotencyKey)
	}
	return claimed(strings.Join(append(parts, "due "+e.DueAt.String()), ", "), e.OnBehalfOf)
}

func attemptedGist(e domain.Attempted) string {
	what := fmt.Sprintf("attempt %d %s", e.Attempt, e.Outcome)
	if e.Status != 0 {
		what += " " + strconv.Itoa(e.Status)
	}
	if e.Reason != "" {
		what += " (" + string(e.Reason) + ")"
	}
	what += fmt.Sprintf(" after %s", time.Duration(e.DurationMS)*time.Millisecond)
	if e.RetryAfterS != nil {
		what += fmt.Sprintf(", asks for %d s", *e.RetryAfterS)
	}
	if e.Superseded {
		what += ", superseded"
	}
	return what
}
