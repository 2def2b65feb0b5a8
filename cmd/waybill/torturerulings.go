package main

import "github.com/google/uuid"

// consequence takes what follows from a claim's end, and what people decide.
func (t *trial) consequence(name string, f tortureFact) {
	switch name {
	case "delivery.delivered":
		t.require(t.proof != 0 && f.Attempt == t.proof, ruleNoProof, "delivered by attempt %d, proven by %d", f.Attempt, t.proof)
		t.state = "delivered"
	case "delivery.retry_scheduled":
		t.require(!t.unknowable(), ruleDoubt, "tried again although nobody can know")
		t.require(t.spent < t.Endpoints[t.endpoint].Attempts, ruleCycle, "tried again after %d attempts", t.spent)
		t.state, t.due = "pending", f.DueAt
	case "delivery.held":
		t.require(t.unknowable() && t.ended.token == f.Token, ruleDoubt, "held without a doubt")
		t.state, t.heldBy = "held", f.Token
		t.tally.Held++
	case "delivery.failed":
		t.failed(f)
	default:
		t.decision(name, f)
	}
	t.ended = nil
}

// unknowable: the claim that just ended left a doubt, at an endpoint whose policy is
// to ask a person.
func (t *trial) unknowable() bool {
	if t.ended == nil || !t.Endpoints[t.endpoint].Hold {
		return false
	}
	return t.ended.result == nil || t.ended.result.Outcome == "unknown"
}

func (t *trial) failed(f tortureFact) {
	switch f.Why {
	case "exhausted":
		t.require(t.spent >= t.Endpoints[t.endpoint].Attempts, ruleCycle, "given up after %d attempts", t.spent)
		t.require(!t.unknowable(), ruleDoubt, "given up although nobody can know")
	case "rejected":
		gone := t.ended != nil && t.ended.result != nil && t.ended.result.Status == 410
		t.require(gone, ruleFollows, "rejected by nobody")
	default:
		t.object(ruleFollows, "failed as %q", f.Why)
	}
	t.state = "failed"
}

// decision takes what a person decided.
func (t *trial) decision(name string, f tortureFact) {
	switch name {
	case "delivery.resolved":
		t.require(t.state == "held", ruleFollows, "resolved while %s", t.state)
		t.state = f.Resolution
		if f.Resolution == "retry" {
			t.begin(f)
		}
	case "delivery.replayed":
		forced := f.Force && (t.state == "delivered" || t.state == "cancelled")
		t.require(t.state == "failed" || forced, ruleFollows, "replayed while %s", t.state)
		if f.Force {
			t.forced, t.proof = t.last, 0
		}
		t.begin(f)
		t.tally.Replays++
	case "delivery.cancelled":
		t.require(t.state == "pending" || t.state == "processing" || t.state == "held", ruleFollows, "cancelled while %s", t.state)
		if t.open != nil {
			t.open.end, t.open = name, nil
		}
		t.state = "cancelled"
	default:
		t.object(ruleFollows, "%s has no place here", name)
	}
	t.heldBy = uuid.Nil
}

// begin starts a cycle.
func (t *trial) begin(f tortureFact) {
	t.require(f.Cycle == t.cycle+1, ruleCycle, "cycle %d follows %d", f.Cycle, t.cycle)
	t.state, t.cycle, t.spent, t.due = "pending", f.Cycle, 0, f.DueAt
}
