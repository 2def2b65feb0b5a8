package command_test

import (
	"errors"
	"fmt"
	"maps"

	"github.com/anishathalye/porcupine"
	"github.com/google/uuid"

	"waybill/domain"
	"waybill/projections"
)

// call is one operation on one delivery as a client made it.
type call struct {
	delivery   int // which of the few; histories are checked for each by itself
	kind       callKind
	token      uuid.UUID // of a result
	outcome    domain.Outcome
	force      bool
	resolution domain.Resolution
}

type callKind string

const (
	callClaim   callKind = "claim"
	callResult  callKind = "result"
	callExpire  callKind = "expire"
	callReplay  callKind = "replay"
	callCancel  callKind = "cancel"
	callResolve callKind = "resolve"
	callRead    callKind = "read"
)

// reply is what a client was told: a refusal, or the state after and, of a claim, its
// token, of a result, the attempt on record.
type reply struct {
	nothing  bool   // a claim that brought nothing
	refusal  string // a refusal's code
	after    seen
	token    uuid.UUID
	attempt  domain.Attempted
	repeated bool
}

// seen is what an answer shows of a delivery, without times. The version is among it:
// whoever is told of a change that is not in the log is found out by it.
type seen struct {
	State           domain.State
	Version         int
	Attempts        int
	Cycle           int
	CycleAttempts   int
	Token           uuid.UUID
	FailureReason   domain.FailureReason
	LastOutcome     domain.Outcome
	LastAttempt     int
	UnknownAttempts int
	Proof           int
	ForcedAfter     int
	HeldBy          uuid.UUID
}

func see(d domain.Delivery) seen {
	return seen{d.State, d.Version, d.Attempts, d.Cycle, d.CycleAttempts, d.Claim.Token, d.FailureReason,
		d.LastOutcome, d.LastAttempt, d.UnknownAttempts, d.Proof, d.ForcedAfter, d.HeldBy}
}

// modelState is one delivery of the model: what the domain folds, at one fixed time.
type modelState struct {
	d      domain.Delivery
	claims domain.ClaimHistory
	first  map[uuid.UUID]seen // what each token's first report was answered; never changed in place
}

// then is the state after decided events.
func (m modelState) then(facts []domain.Event) modelState {
	for _, f := range facts {
		m.d, m.claims = m.d.Evolve(f, domain.Instant{}), m.claims.Evolve(f)
	}
	return m
}

// sequential is the model: one delivery at a time, one operation at a time, and every
// operation is the domain's own decision.
func sequential(policies []domain.Policy, due domain.Instant) porcupine.Model {
	return porcupine.Model{
		Partition: byDelivery,
		Init: func() any {
			return modelState{}.then([]domain.Event{domain.Scheduled{DueAt: due}})
		},
		Step: func(state, input, output any) (bool, any) {
			c := input.(call)
			m := modelOf{state.(modelState), policies[c.delivery], due}
			return m.step(c, output.(reply))
		},
		Equal: func(a, b any) bool { // the version and the attempts' reports make the rest
			x, y := a.(modelState), b.(modelState)
			return see(x.d) == see(y.d) && fmt.Sprint(reports(x.claims)) == fmt.Sprint(reports(y.claims))
		},
		DescribeOperation: func(input, output any) string { return fmt.Sprintf("%+v -> %+v", input, output) },
	}
}

func byDelivery(history []porcupine.Operation) [][]porcupine.Operation {
	apart := map[int][]porcupine.Operation{}
	for _, op := range history {
		d := op.Input.(call).delivery
		apart[d] = append(apart[d], op)
	}
	var list [][]porcupine.Operation
	for _, ops := range apart {
		list = append(list, ops)
	}
	return list
}

func reports(h domain.ClaimHistory) (list []domain.Outcome) {
	for _, c := range h {
		if list = append(list, ""); c.Report != nil {
			list[len(list)-1] = c.Report.Outcome
		}
	}
	return list
}

// modelOf is a state and what decisions about it rest on.
type modelOf struct {
	modelState
	policy domain.Policy
	at     domain.Instant
}

// step says whether an operation could have had this answer in this state, and what
// the state is then. A claim may bring nothing in any state: a row that somebody else
// has locked is passed over.
func (m modelOf) step(c call, r reply) (bool, any) {
	if c.kind == callClaim && r.nothing || r.refusal == domain.ErrStale.Code {
		return true, m.modelState
	}
	facts, err := m.decide(c, r)
	if err != nil {
		var refused *domain.Error
		return errors.As(err, &refused) && refused.Code == r.refusal, m.modelState
	}
	if r.refusal != "" {
		return false, m.modelState
	}
	after := m.then(facts)
	switch {
	case c.kind == callResult && len(facts) == 0: // the first answer, whatever has happened since
		return r.after == m.first[c.token] && m.answers(c, r, facts), after
	case c.kind == callResult:
		after.first = maps.Clone(m.first)
		if after.first == nil {
			after.first = map[uuid.UUID]seen{}
		}
		after.first[c.token] = see(after.d)
	}
	return see(after.d) == r.after && m.answers(c, r, facts), after
}

func (m modelOf) decide(c call, r reply) ([]domain.Event, error) {
	retry := domain.Retry{Policy: m.policy, From: m.at}
	switch c.kind {
	case callClaim:
		return m.d.TakeClaim(domain.ClaimOrder{Token: r.token}, domain.StatusActive, m.policy, m.at)
	case callResult:
		rep := domain.Report{Token: c.token, Result: domain.Result{Outcome: c.outcome}}
		return m.d.RecordLate(m.claims, rep, retry) // which is Record for the owner
	case callExpire:
		return m.d.Expire(m.d.Claim.Token, retry)
	case callReplay:
		return m.d.Replay("r", c.force, "", m.at)
	case callCancel:
		return m.d.Cancel("r", "")
	case callResolve:
		return m.d.Resolve(c.resolution, "r", "", m.at)
	}
	return nil, nil // a read
}

// answers compares what a result's reporter was told of its attempt.
func (m modelOf) answers(c call, r reply, facts []domain.Event) bool {
	if c.kind != callResult {
		return true
	}
	var want domain.Attempted
	if repeated := len(facts) == 0; repeated {
		record, known := m.claims.Find(c.token)
		if !known || record.Report == nil || !r.repeated {
			return false
		}
		want = *record.Report
	} else if want = facts[0].(domain.Attempted); r.repeated {
		return false
	}
	got := r.attempt
	return got.Attempt == want.Attempt && got.CycleAttempt == want.CycleAttempt && got.Token == want.Token &&
		got.Outcome == want.Outcome && got.Superseded == want.Superseded
}

// told is a reply that shows a delivery, or the refusal instead.
func told(d projections.Delivery, err error) (reply, error) {
	var refused *domain.Error
	switch {
	case errors.As(err, &refused):
		return reply{refusal: refused.Code}, nil
	case err != nil:
		return reply{}, err
	}
	return reply{after: see(d.Delivery)}, nil
}
