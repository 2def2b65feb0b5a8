package domain_test

import (
	"slices"
	"time"

	"github.com/google/uuid"

	"waybill/domain"
)

// model says again what rules 3 to 5 of the design say, in the most simple-minded way:
// it keeps every claim and every report, and computes what it is asked by looking
// through all of them. It shares no code with the domain but its names.
type model struct {
	state   domain.State
	cycle   int
	forces  int          // forced replays so far
	claims  []modelClaim // claims[i] drew lifetime number i+1
	reports []int        // attempts in the order of their reports
	holder  int          // attempt that caused the hold; 0: none
	why     domain.FailureReason
	due     domain.Instant
}

type modelClaim struct {
	cycle, forces int    // when it was made
	fate          string // running, reported, released, expired, cancelled
	outcome       domain.Outcome
}

func newModel(due domain.Instant) model {
	return model{state: domain.StatePending, cycle: 1, due: due}
}

// do returns the code of the refusal, or none.
func (m *model) do(c command, w *world) string {
	m.claims, m.reports = slices.Clone(m.claims), slices.Clone(m.reports)
	switch c.verb {
	case "claim":
		return m.claim(w)
	case "report":
		return m.report(c, w)
	case "release", "expire", "extend":
		if m.running() == 0 || m.running() != c.attempt {
			return "claim_superseded"
		}
		m.end(c, w)
		return ""
	case "cancel":
		return m.cancel()
	case "resolve":
		return m.resolve(c, w)
	case "replay":
		return m.replay(c, w)
	}
	panic(c.verb)
}

func (m *model) claim(w *world) string {
	switch {
	case m.state != domain.StatePending:
		return "delivery_not_due"
	case w.status == domain.StatusArchived:
		m.fail(domain.EndpointGone)
	case m.due.Time.After(w.now.Time):
		return "delivery_not_due"
	case w.status != domain.StatusActive:
		return "endpoint_inactive"
	case m.spent() >= w.policy.MaxAttempts():
		m.fail(domain.Exhausted)
	default:
		m.become(domain.StateProcessing)
		m.claims = append(m.claims, modelClaim{cycle: m.cycle, forces: m.forces, fate: "running"})
	}
	return ""
}

func (m *model) report(c command, w *world) string {
	if c.attempt < 1 || c.attempt > len(m.claims) {
		return "claim_not_found"
	}
	claim := &m.claims[c.attempt-1]
	if claim.outcome != "" {
		return "" // a repetition
	}
	claim.outcome = c.outcome
	m.reports = append(m.reports, c.attempt)
	success := c.outcome == domain.Succeeded && claim.forces == m.forces
	switch {
	case claim.fate == "running":
		claim.fate = "reported"
		m.follow(c, w)
	case success && (m.state == domain.StatePending || m.state == domain.StateHeld || m.state == domain.StateFailed):
		m.become(domain.StateDelivered)
	case m.holder == c.attempt && (c.outcome == domain.Refused || c.outcome == domain.Unreached):
		m.follow(c, w)
	}
	return ""
}

// end ends the running claim without a report, or leaves it running.
func (m *model) end(c command, w *world) {
	claim := &m.claims[c.attempt-1]
	switch c.verb {
	case "release":
		claim.fate = "released"
		if m.become(domain.StatePending); m.proof() != 0 {
			m.become(domain.StateDelivered)
			return
		}
		m.due = w.now
	case "expire":
		claim.fate = "expired"
		m.follow(command{attempt: c.attempt, outcome: domain.Unknown}, w)
	}
}

// follow is what comes after a claim that may have sent.
func (m *model) follow(c command, w *world) {
	switch {
	case m.proof() != 0:
		m.become(domain.StateDelivered)
	case c.outcome == domain.Refused && c.status == 410:
		m.fail(domain.Rejected)
	case c.outcome == domain.Unknown && w.policy.OnUnknown == domain.HoldUnknown:
		m.become(domain.StateHeld)
		m.holder = c.attempt
	case m.spent() >= w.policy.MaxAttempts():
		m.fail(domain.Exhausted)
	default:
		m.become(domain.StatePending)
		m.due = domain.Instant{Time: w.now.Add(time.Duration(w.policy.Retries.Delays[m.spent()]))}
	}
}

func (m *model) cancel() string {
	if m.proof() != 0 || m.state == domain.StateDelivered || m.state == domain.StateFailed || m.state == domain.StateCancelled {
		return "delivery_not_cancellable"
	}
	if a := m.running(); a != 0 {
		m.claims[a-1].fate = "cancelled"
	}
	m.become(domain.StateCancelled)
	return ""
}

func (m *model) resolve(c command, w *world) string {
	if m.state != domain.StateHeld {
		return "delivery_not_held"
	}
	switch c.as {
	case domain.ResolvedDelivered:
		m.become(domain.StateDelivered)
	case domain.ResolvedFailed:
		m.fail(domain.ByPerson)
	case domain.ResolvedRetry:
		m.again(w)
	}
	return ""
}

func (m *model) replay(c command, w *world) string {
	ended := m.state == domain.StateDelivered || m.state == domain.StateCancelled
	if m.state != domain.StateFailed && !(c.force && ended) {
		return "delivery_not_replayable"
	}
	if c.force {
		m.forces++
	}
	m.again(w)
	return ""
}

func (m *model) again(w *world) {
	m.cycle++
	m.become(domain.StatePending)
	m.due = w.now
}

func (m *model) become(s domain.State) { m.state, m.holder, m.why, m.due = s, 0, "", domain.Instant{} }

func (m *model) fail(why domain.FailureReason) {
	m.become(domain.StateFailed)
	m.why = why
}

// running is the attempt of the claim that owns the delivery, or 0.
func (m *model) running() int {
	return 1 + slices.IndexFunc(m.claims, func(c modelClaim) bool { return c.fate == "running" })
}

// proof is the first report of a success whose claim no forced replay came after.
func (m *model) proof() int {
	for _, a := range m.reports {
		if c := m.claims[a-1]; c.outcome == domain.Succeeded && c.forces == m.forces {
			return a
		}
	}
	return 0
}

// spent counts the claims of this cycle that were not given back.
func (m *model) spent() int {
	n := 0
	for _, c := range m.claims {
		if c.cycle == m.cycle && c.fate != "released" {
			n++
		}
	}
	return n
}

func (c modelClaim) lost() bool { return c.fate == "expired" || c.fate == "cancelled" }

// last is the outcome of the highest attempt of which anything is known.
func (m *model) last() domain.Outcome {
	for _, c := range slices.Backward(m.claims) {
		switch {
		case c.outcome != "":
			return c.outcome
		case c.lost():
			return domain.Unknown
		}
	}
	return ""
}

func (m *model) seen() seen {
	s := seen{
		State: m.state, Attempts: len(m.claims), Cycle: m.cycle, CycleAttempts: m.spent(),
		Proof: m.proof(), Last: m.last(), Why: m.why, Due: m.due,
		InDoubt: m.last() == domain.Unknown && m.state != domain.StateDelivered,
	}
	for _, c := range m.claims {
		if c.lost() || c.outcome == domain.Unknown {
			s.Unknown++
		}
	}
	s.Owner, s.HeldBy = tokenOrNone(m.running()), tokenOrNone(m.holder)
	return s
}

func tokenOrNone(attempt int) uuid.UUID {
	if attempt == 0 {
		return uuid.UUID{}
	}
	return token(attempt)
}
