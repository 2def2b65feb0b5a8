package main

import (
	"github.com/google/uuid"
)

// claim takes a claim: only of what is due, unowned and unproven, under the next
// lifetime number.
func (t *trial) claim(f tortureFact) {
	t.tally.Claims++
	t.require(t.open == nil, ruleOneClaim, "claimed as attempt %d while attempt %d is", f.Attempt, openAttempt(t.open))
	t.require(t.state == "pending" || t.open != nil, ruleFollows, "claimed while %s", t.state)
	t.require(!t.at.Before(t.due), ruleTime, "claimed before it was due at %s", t.due)
	t.require(f.Attempt == t.last+1, ruleNumbers, "drew attempt number %d after %d", f.Attempt, t.last)
	t.require(f.Cycle == t.cycle && f.CycleAttempt == t.spent+1, ruleCycle,
		"drew %d of cycle %d, after %d of cycle %d", f.CycleAttempt, f.Cycle, t.spent, t.cycle)
	t.require(f.CycleAttempt <= t.Endpoints[t.endpoint].Attempts, ruleCycle, "drew %d of %d attempts",
		f.CycleAttempt, t.Endpoints[t.endpoint].Attempts)
	t.require(t.claims[f.Token] == nil, ruleToken, "token %s is issued again", f.Token)
	c := &tenure{token: f.Token, attempt: f.Attempt, cycleAttempt: f.CycleAttempt, lease: f.LeaseUntil}
	t.claims[f.Token], t.attempts[f.Attempt], t.open = c, c, c
	t.last, t.spent, t.state = max(t.last, f.Attempt), f.CycleAttempt, "processing"
}

func openAttempt(c *tenure) int {
	if c == nil {
		return 0
	}
	return c.attempt
}

// finish ends the open claim, which must be the token's.
func (t *trial) finish(token uuid.UUID, how string) *tenure {
	c := t.claims[token]
	switch {
	case c == nil:
		t.object(ruleToken, "%s under the token %s, which was never issued", how, token)
		return nil
	case c != t.open:
		t.object(ruleOwner, "%s under the token %s, which does not own it", how, token)
		return c
	}
	c.end, t.open = how, nil
	return c
}

// attempted takes a result: the owner's ends its claim, another's is on record under
// its own claim's numbers and counts as proof only.
func (t *trial) attempted(f tortureFact) {
	t.tally.Outcomes[f.Outcome]++
	c := t.claims[f.Token]
	if c == nil {
		t.object(ruleToken, "a result under the token %s, which was never issued", f.Token)
		return
	}
	t.require(c.result == nil, ruleOneResult, "the second result of attempt %d", c.attempt)
	t.require(c.attempt == f.Attempt && c.cycleAttempt == f.CycleAttempt, ruleNumbers,
		"attempt %d/%d is reported as %d/%d", c.attempt, c.cycleAttempt, f.Attempt, f.CycleAttempt)
	t.require(f.Superseded == (c != t.open), ruleOwner, "superseded is %v, owner is attempt %d", f.Superseded, openAttempt(t.open))
	t.require(f.AfterRelease == (c.end == "delivery.released"), ruleOwner, "after_release is %v", f.AfterRelease)
	c.result = &f
	proves := f.Outcome == "succeeded" && f.Attempt > t.forced && t.proof == 0
	if proves {
		t.proof = f.Attempt
	}
	if c == t.open {
		c.end, t.open = "delivery.attempted", nil
		t.state, t.ended = "ended", c
		return
	}
	t.late(c, f, proves)
}

// late says what is owed after a result whose claim was over.
func (t *trial) late(c *tenure, f tortureFact, proves bool) {
	t.tally.Superseded++
	switch {
	case proves && (t.state == "pending" || t.state == "held" || t.state == "failed"):
		t.state, t.ended = "ended", nil
		t.tally.LateSuccess++
	case t.state == "held" && t.heldBy == c.token && (f.Outcome == "refused" || f.Outcome == "unreached"):
		t.state, t.ended = "ended", c
	}
}
