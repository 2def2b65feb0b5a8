package domain_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"time"

	"github.com/google/uuid"

	"waybill/domain"
)

// noon is when the deliveries of these tests are scheduled.
var noon = domain.At(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))

// token is the claim token of the claim that draws the given lifetime number.
func token(attempt int) uuid.UUID { return uuid.UUID{0: 1, 15: byte(attempt)} }

// command is one thing that may be asked of a delivery. What a verb does not need is
// zero.
type command struct {
	verb    string // claim, report, release, expire, extend, cancel, resolve, replay
	attempt int    // the claim it comes from, by its lifetime number
	outcome domain.Outcome
	status  int
	as      domain.Resolution
	force   bool
}

// world is a delivery, the events that made it, a naive model of the rules that lives
// the same life, and what decisions depend on beside them.
type world struct {
	d      domain.Delivery
	claims domain.ClaimHistory
	log    []domain.Event
	times  []domain.Instant
	model  model

	policy domain.Policy
	status domain.EndpointStatus
	now    domain.Instant
}

// newWorld schedules a delivery that is due at once.
func newWorld(p domain.Policy) world {
	w := world{policy: p, status: domain.StatusActive, now: noon, model: newModel(noon)}
	w.fold(domain.Scheduled{EndpointID: uuid.UUID{1}, MessageID: uuid.UUID{2}, DueAt: noon})
	return w
}

func (w *world) fold(events ...domain.Event) {
	w.log, w.times = slices.Clip(w.log), slices.Clip(w.times)
	for _, e := range events {
		w.log, w.times = append(w.log, e), append(w.times, w.now)
		w.d, w.claims = w.d.Evolve(e, w.now), w.claims.Evolve(e)
	}
}

func (w *world) retry() domain.Retry { return domain.Retry{Policy: w.policy, From: w.now} }

// decide asks the domain, as the handlers do.
func (w *world) decide(c command) ([]domain.Event, error) {
	switch c.verb {
	case "claim":
		return w.d.TakeClaim(domain.ClaimOrder{
			Token: token(w.d.Attempts + 1), Worker: "w", LeaseUntil: w.now.After(time.Minute),
		}, w.status, w.policy, w.now)
	case "report":
		r := domain.Report{Token: token(c.attempt), Result: domain.Result{Outcome: c.outcome, Status: c.status, StartedAt: w.now.Time}}
		if w.d.Owns(r.Token) {
			return w.d.Record(r, w.retry())
		}
		return w.d.RecordLate(w.claims, r, w.retry())
	case "release":
		return w.d.Release(token(c.attempt), domain.WhyDrain, w.now)
	case "expire":
		return w.d.Expire(token(c.attempt), w.retry())
	case "extend":
		return w.d.Extend(token(c.attempt), w.now.After(time.Minute))
	case "cancel":
		return w.d.Cancel("why", "")
	case "resolve":
		return w.d.Resolve(c.as, "why", "", w.now)
	case "replay":
		return w.d.Replay("why", c.force, "", w.now)
	}
	panic(c.verb)
}

// do gives one command to the delivery and to the model, and says how they differ, or
// which promise the decision broke.
func (w *world) do(c command) error {
	before, claims, kept := w.d, w.claims, slices.Clone(w.claims)
	proven := w.model.proof() != 0
	events, err := w.decideTwice(c)
	if err != nil {
		return err
	}
	if w.d != before {
		return errors.New("the decision changed the state")
	}
	for _, e := range events {
		switch e.(type) {
		case domain.Claimed, domain.Cancelled:
			if proven {
				return fmt.Errorf("%T after a recorded success", e)
			}
		}
	}
	w.fold(events...)
	if !slices.Equal(claims, kept) {
		return errors.New("deciding or folding changed the claims as they were before")
	}
	return w.compare()
}

// decideTwice decides, moves the model, and says where a second decision or the model
// says something else.
func (w *world) decideTwice(c command) ([]domain.Event, error) {
	events, err := w.decide(c)
	again, errAgain := w.decide(c)
	switch {
	case err != errAgain || len(events) != len(again) || len(events) > 0 && !reflect.DeepEqual(events, again):
		return nil, errors.New("deciding twice gives two answers")
	case err != nil && len(events) > 0:
		return nil, errors.New("a refusal came with events")
	}
	if want, got := w.model.do(c, w), codeOf(err); want != got {
		return nil, fmt.Errorf("refused with %q, the model says %q", got, want)
	}
	return events, nil
}

func codeOf(err error) string {
	var refusal *domain.Error
	if errors.As(err, &refusal) {
		return refusal.Code
	}
	if err != nil {
		return "fault: " + err.Error()
	}
	return ""
}

// compare says where the state and the model differ.
func (w *world) compare() error {
	got, want := w.seen(), w.model.seen()
	if got != want {
		return fmt.Errorf("the state is\n %+v, the model says\n %+v", got, want)
	}
	if proven := w.d.Proof != 0; proven && w.d.State != domain.StateDelivered &&
		w.d.State != domain.StateProcessing && w.d.State != domain.StateCancelled {
		return fmt.Errorf("proven by attempt %d, but %s and no claim is running", w.d.Proof, w.d.State)
	}
	return nil
}

// seen is what can be told of a delivery from outside.
type seen struct {
	State                          domain.State
	Attempts, Cycle, CycleAttempts int
	Proof, Unknown                 int
	InDoubt                        bool
	Last                           domain.Outcome
	Why                            domain.FailureReason
	Owner, HeldBy                  uuid.UUID
	Due                            domain.Instant
}

func (w *world) seen() seen {
	return seen{
		State: w.d.State, Attempts: w.d.Attempts, Cycle: w.d.Cycle, CycleAttempts: w.d.CycleAttempts,
		Proof: w.d.Proof, Unknown: w.d.UnknownAttempts, InDoubt: w.d.InDoubt(), Last: w.d.LastOutcome,
		Why: w.d.FailureReason, Owner: w.d.Claim.Token, HeldBy: w.d.HeldBy, Due: w.d.DueAt,
	}
}

// refold folds the whole log from scratch, each event as read back from where it was
// kept, and says where that differs from what was folded step by step.
func (w *world) refold(kept func(domain.Event) (domain.Event, error)) error {
	var d domain.Delivery
	var claims domain.ClaimHistory
	for i, e := range w.log {
		e, err := kept(e)
		if err != nil {
			return err
		}
		d, claims = d.Evolve(e, w.times[i]), claims.Evolve(e)
	}
	switch {
	case d != w.d:
		return fmt.Errorf("folded from scratch:\n %+v, step by step:\n %+v", d, w.d)
	case !slices.EqualFunc(claims, w.claims, sameClaim):
		return fmt.Errorf("claims folded from scratch:\n %+v, step by step:\n %+v", claims, w.claims)
	case d.Version != len(w.log):
		return fmt.Errorf("version %d after %d events", d.Version, len(w.log))
	}
	return nil
}

func sameClaim(a, b domain.ClaimRecord) bool {
	same := a.Report == b.Report || a.Report != nil && b.Report != nil && reflect.DeepEqual(*a.Report, *b.Report)
	a.Report, b.Report = nil, nil
	return same && a == b
}

func inMemory(e domain.Event) (domain.Event, error) { return e, nil }

func throughJSON(e domain.Event) (domain.Event, error) {
	b, err := json.Marshal(e)
	if err != nil {
		return nil, err
	}
	read := reflect.New(reflect.TypeOf(e))
	if err := json.Unmarshal(b, read.Interface()); err != nil {
		return nil, fmt.Errorf("%T: %w", e, err)
	}
	return read.Elem().Interface().(domain.Event), nil
}
