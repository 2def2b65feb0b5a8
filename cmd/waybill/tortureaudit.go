package main

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	"waybill/events"
)

// evidence is all that the checker knows: the log, and what those outside of the
// ledger wrote down themselves. The rows that the product derives from its log are
// here to be judged, and nothing is concluded from them.
type evidence struct {
	Log        []events.Record        // of delivery streams, in position order
	Accepted   map[uuid.UUID]handedIn // what was answered with 202, by delivery
	Unanswered map[string]bool        // idempotency keys that never got an answer
	Rows       []deliveryRow
	Arrivals   []arrived                     // the receiver's own record
	Endpoints  map[uuid.UUID]tortureEndpoint // as they were created
}

// handedIn is one accepted submission, as its sender knows it.
type handedIn struct {
	Key      string
	Endpoint uuid.UUID
	Payload  events.Hash // SHA-256 of the bytes handed in
}

// tortureEndpoint is what an endpoint's policy allows.
type tortureEndpoint struct {
	Attempts int  // of a cycle
	Hold     bool // what nobody can know waits for a person
}

// arrived is one request at the receiver.
type arrived struct {
	Delivery uuid.UUID
	Message  string // webhook-id
	Attempt  int
	Endpoint uuid.UUID
	At       time.Time
	Payload  events.Hash
	Whole    bool // the body came to its end
	Signed   bool // rightly
	Answered int  // the status that was written; 0: none
}

// deliveryRow is a projection's row.
type deliveryRow struct {
	ID                                             uuid.UUID
	State                                          string
	Version, Attempts, Cycle, CycleAttempts, Proof int
}

// breach is one promise that the evidence shows broken.
type breach struct {
	Rule     string    `json:"rule"`
	Delivery uuid.UUID `json:"delivery,omitzero"`
	Seq      int       `json:"seq,omitempty"`
	What     string    `json:"what"`
}

// String names the rule, the stream and the seq.
func (b breach) String() string {
	return fmt.Sprintf("%s: delivery %s seq %d: %s", b.Rule, b.Delivery, b.Seq, b.What)
}

// The rules, by the names that a breach carries.
const (
	ruleLost      = "accepted_is_there"    // a 202 is a delivery in the log
	ruleEnds      = "accepted_ends"        // and it ends
	ruleNobody    = "nobody_submitted"     // no delivery that was not handed in, and one for a key
	ruleHole      = "sequence"             // seq starts at 1 without holes
	rulePosition  = "position"             // positions rise with seq
	ruleTime      = "time"                 // recorded_at does not run backwards; due and lease are kept
	ruleChain     = "hash_chain"           // each hash is that of the record and the one before
	ruleProof     = "nothing_after_proof"  // no claim, retry, hold or cancel after a success that counts
	ruleNoProof   = "delivered_by_proof"   // delivered names a success that counts
	ruleOneClaim  = "one_claim_at_a_time"  // a claim begins where none is open
	ruleNumbers   = "attempt_numbers"      // drawn by claims, rising, never twice
	ruleCycle     = "cycle_accounting"     // cycles rise, and spend what their policy allows
	ruleToken     = "token_was_issued"     // no result under a token that no claim carries
	ruleOneResult = "one_result_per_token" // a token has at most one attempted
	ruleOwner     = "ownership"            // superseded exactly if another claim, or none, is open
	ruleFollows   = "what_follows"         // each end of a claim has its consequence, each event its cause
	ruleDoubt     = "in_doubt"             // hold holds what nobody can know, and nothing else
	ruleStranger  = "arrival_on_record"    // an arrival is an attempt or a claim in doubt
	ruleTwice     = "one_arrival"          // an attempt number arrives at most once
	ruleMissing   = "attempt_arrived"      // an answer on record was given, once
	ruleBytes     = "bytes"                // the receiver got what was handed in, signed
	ruleFold      = "row_is_fold"          // by the checker's count, and by the product's own verification
	ruleProcess   = "process"              // no process of the product ends by itself
	ruleAPI       = "api"                  // the API answers as documented
)

// audit goes through the evidence.
type audit struct {
	evidence
	trials   map[uuid.UUID]*trial
	order    []uuid.UUID // of trials, as the log begins them
	tally    tally
	breaches []breach
}

// tally is what was checked.
type tally struct {
	Events      int            `json:"events"`
	Deliveries  int            `json:"deliveries"`
	States      map[string]int `json:"states"`
	Claims      int            `json:"claims"`
	Outcomes    map[string]int `json:"outcomes"`
	Superseded  int            `json:"superseded"`
	Expired     int            `json:"claims_in_doubt"`
	Released    int            `json:"released"`
	Replays     int            `json:"replays"`
	Held        int            `json:"held"`
	LateSuccess int            `json:"late_successes"`
	Arrivals    int            `json:"arrivals"`
	Unreported  int            `json:"arrivals_of_claims_in_doubt"`
}

// check judges the evidence. It folds the log by itself, record by record in position
// order, and shares no decision with the product.
func (e evidence) check() (tally, []breach) {
	a := &audit{evidence: e, trials: map[uuid.UUID]*trial{},
		tally: tally{States: map[string]int{}, Outcomes: map[string]int{}}}
	for _, r := range e.Log {
		a.tally.Events++
		a.trial(r.StreamID).hear(r)
	}
	a.checkAccepted()
	a.checkRows()
	a.checkArrivals()
	for _, id := range a.order {
		a.trials[id].close()
	}
	return a.tally, a.breaches
}

func (a *audit) trial(id uuid.UUID) *trial {
	t, ok := a.trials[id]
	if !ok {
		t = newTrial(a, id)
		a.trials[id] = t
		a.order = append(a.order, id)
	}
	return t
}

func (a *audit) say(rule string, id uuid.UUID, seq int, format string, args ...any) {
	a.breaches = append(a.breaches, breach{rule, id, seq, fmt.Sprintf(format, args...)})
}

// checkAccepted holds submissions and deliveries against each other, both ways.
func (a *audit) checkAccepted() {
	for id, s := range a.Accepted {
		t, ok := a.trials[id]
		switch {
		case !ok:
			a.say(ruleLost, id, 0, "accepted under key %s and not in the log", s.Key)
		case t.key != s.Key || t.endpoint != s.Endpoint:
			a.say(ruleNobody, id, 1, "submitted under key %s to %s, in the log under %s to %s", s.Key, s.Endpoint, t.key, t.endpoint)
		}
	}
	keys := map[string]uuid.UUID{}
	for _, id := range a.order {
		t := a.trials[id]
		a.tally.Deliveries++
		if _, ok := a.Accepted[id]; !ok && !a.Unanswered[t.key] {
			a.say(ruleNobody, id, 1, "nobody was told that key %s was accepted as this", t.key)
		}
		if other, ok := keys[t.key]; ok {
			a.say(ruleNobody, id, 1, "key %s has the delivery %s already", t.key, other)
		}
		keys[t.key] = id
	}
	slices.SortFunc(a.breaches, func(x, y breach) int { return cmp.Compare(x.Delivery.String(), y.Delivery.String()) })
}

// checkRows: a row says what its events add up to, and each delivery has one.
func (a *audit) checkRows() {
	seen := map[uuid.UUID]bool{}
	for _, r := range a.Rows {
		seen[r.ID] = true
		t := a.trial(r.ID)
		if folded := (deliveryRow{r.ID, t.state, t.seq, t.last, t.cycle, t.spent, t.proof}); folded != r {
			a.say(ruleFold, r.ID, r.Version, "the row says %+v, its events %+v", r, folded)
		}
	}
	for _, id := range a.order {
		if !seen[id] {
			a.say(ruleFold, id, 0, "has no row")
		}
	}
}
