package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/google/uuid"

	"waybill/domain"
	"waybill/events"
	"waybill/projections"
)

// errFaulty is what a verification that found faults ends with.
var errFaulty = errors.New("the verification found faults")

// tell prints the whole history of the delivery whose worker was killed.
func (d *demo) tell(ctx context.Context) error {
	s, err := d.look(ctx)
	if err != nil {
		return err
	}
	id := s.of(d.part(theBank))[0].ID
	records, err := d.front.ledger.Stream(ctx, d.by.Tenant, events.DeliveryStream, id, 0, projections.MaxLimit)
	if err != nil {
		return err
	}
	d.screen.title("6  One history, whole: bank's delivery, whose first worker was killed")
	t := newTable(d.screen)
	for _, r := range records {
		t.row("  "+strconv.Itoa(r.Seq), since(records[0], r.RecordedAt), r.Name, actorOf(r), brief(records[0], r))
	}
	return t.Flush()
}

// since is a time as seconds after the first record.
func since(first events.Record, at domain.Instant) string {
	return fmt.Sprintf("+%.2f s", at.Sub(first.RecordedAt.Time).Seconds())
}

// brief is a gist that leaves a table within 80 columns.
func brief(first, r events.Record) string {
	e, err := r.Event()
	if err != nil {
		return err.Error()
	}
	switch e := e.(type) {
	case domain.Scheduled:
		return fmt.Sprintf("%d bytes, %s", e.PayloadSize, e.EventType)
	case domain.Claimed:
		return fmt.Sprintf("attempt %d, lease to %s", e.Attempt, since(first, e.LeaseUntil))
	case domain.LeaseExpired:
		return fmt.Sprintf("attempt %d is in doubt", e.Attempt)
	case domain.RetryScheduled:
		return fmt.Sprintf("due %s, %s", since(first, e.DueAt), e.Why)
	case domain.Attempted:
		return fmt.Sprintf("attempt %d %s %d", e.Attempt, e.Outcome, e.Status)
	}
	return gist(r)
}

// actorOf is the name of who did it; of an API key the end of its id is enough here.
func actorOf(r events.Record) string {
	kind, name, _ := strings.Cut(string(r.Actor), ":")
	if kind == "key" {
		return "key …" + name[max(0, len(name)-4):]
	}
	return name
}

// prove holds the ledger against the receivers' own record and against itself.
func (d *demo) prove(ctx context.Context) error {
	s, err := d.look(ctx)
	if err != nil {
		return err
	}
	d.screen.title("7  Does the record hold?")
	known, err := d.onRecord(ctx, s)
	if err != nil {
		return err
	}
	faults := d.compare(known)
	report, err := d.front.ledger.Verify(ctx)
	if err != nil {
		return err
	}
	for _, f := range report.Faults {
		faults = append(faults, f.String())
	}
	if e, err := d.front.ledger.Endpoint(ctx, d.by.Tenant, d.part(theGone).endpoint); err != nil || e.Status != domain.StatusDisabled {
		faults = append(faults, fmt.Sprintf("after a 410 the endpoint is %q: %v", e.Status, err))
	}
	if len(faults) > 0 {
		return fmt.Errorf("%w: %s", errFaulty, strings.Join(faults, "; "))
	}
	d.screen.say("   Every row is the fold of its events, whose hashes follow from each other:\n"+
		"   %s", d.screen.paint(green, fmt.Sprintf("verified %d deliveries, %d events: ok", report.Deliveries, report.Events)))
	d.screen.say("\n%s, in %.0f s. Next, with a ledger that stays: waybill dev", s, d.screen.elapsed().Seconds())
	return nil
}

// recorded is what the log says of requests that may have gone out.
type recorded struct{ attempts, doubts map[arrival]bool }

// onRecord reads it from the log itself, not from the rows made of it.
func (d *demo) onRecord(ctx context.Context, s standing) (recorded, error) {
	var ids []uuid.UUID
	for _, p := range d.cast {
		for _, v := range s.of(p) {
			ids = append(ids, v.ID)
		}
	}
	known := recorded{map[arrival]bool{}, map[arrival]bool{}}
	streams, err := d.front.ledger.Streams(ctx, events.DeliveryStream, ids)
	if err != nil {
		return known, err
	}
	for id, records := range streams {
		for _, r := range records {
			e, err := r.Event()
			if err != nil {
				return known, err
			}
			switch e := e.(type) {
			case domain.Attempted:
				known.attempts[arrival{id.String(), strconv.Itoa(e.Attempt)}] = true
			case domain.LeaseExpired:
				known.doubts[arrival{id.String(), strconv.Itoa(e.Attempt)}] = true
			}
		}
	}
	return known, nil
}

// compare says whether each request that arrived is on record, once.
func (d *demo) compare(known recorded) (faults []string) {
	arrivals, signed := d.receivers.record()
	total, attempts, doubts := 0, 0, 0
	for a, times := range arrivals {
		total += times
		switch {
		case times > 1:
			faults = append(faults, fmt.Sprintf("delivery %s: attempt %s arrived %d times", a.delivery, a.attempt, times))
		case known.attempts[a]:
			attempts++
		case known.doubts[a]:
			doubts++
		default:
			faults = append(faults, fmt.Sprintf("delivery %s: attempt %s arrived and is not on record", a.delivery, a.attempt))
		}
	}
	if signed != total {
		faults = append(faults, fmt.Sprintf("%d of %d requests were not signed rightly", total-signed, total))
	}
	d.screen.say("   %d requests arrived, %d of them signed rightly:\n"+
		"   %d are attempts on record, %d is the claim in doubt, %d are unaccounted for.",
		total, signed, attempts, doubts, total-attempts-doubts)
	return faults
}
