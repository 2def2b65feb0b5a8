package main

import (
	"time"

	"github.com/google/uuid"
)

// forged is evidence of a breach.
type forged struct {
	rule  string
	hold  bool
	make  func(f *forgery)
	after func(f *forgery) // done to what is hashed already
}

// ok is a delivery that was made by the book.
func ok(f *forgery) { f.claim(1, 1, 1).came(1, 200).result(1, 1, "succeeded", 200).delivered(1) }

// forgeries is every kind of breach that the audit must name.
var forgeries = map[string]forged{
	"an accepted one is missing": {rule: ruleLost, make: func(f *forgery) { ok(f); f.Accepted[uuid.New()] = handedIn{Key: "other"} }},
	"one never ends":             {rule: ruleEnds, make: func(f *forgery) { f.claim(1, 1, 1).result(1, 1, "unreached", 0).retry() }},
	"one stays claimed":          {rule: ruleEnds, make: func(f *forgery) { f.claim(1, 1, 1) }},
	"one that nobody submitted":  {rule: ruleNobody, make: func(f *forgery) { ok(f); clear(f.Accepted) }},
	"two for one key": {rule: ruleNobody, make: func(f *forgery) {
		ok(f)
		first := len(f.Log)
		f.Log = append(f.Log, f.Log...)
		id := uuid.New()
		for i := range f.Log[first:] {
			f.Log[first+i].StreamID = id
		}
		f.Accepted[id] = f.Accepted[f.id]
	}},
	"another key than submitted": {rule: ruleNobody, make: func(f *forgery) {
		ok(f)
		f.Accepted[f.id] = handedIn{Key: "other", Endpoint: f.endpoint}
	}},
	"a hole": {rule: ruleHole, make: ok, after: func(f *forgery) { f.Log = append(f.Log[:1], f.Log[2:]...) }},
	"a position that falls": {rule: rulePosition, make: ok, after: func(f *forgery) {
		f.Log[1].Position, f.Log[2].Position = f.Log[2].Position, f.Log[1].Position
	}},
	"time that runs backwards": {rule: ruleTime, make: func(f *forgery) {
		ok(f)
		f.record().RecordedAt.Time = f.record().RecordedAt.Add(-time.Hour)
	}},
	"a claim before it is due": {rule: ruleTime, make: func(f *forgery) {
		f.claim(1, 1, 1).result(1, 1, "unreached", 0).add("retry_scheduled", "due_at", f.at.Add(time.Hour)).claim(2, 2, 1).cancelled()
	}},
	"a lease cut short": {rule: ruleTime, make: func(f *forgery) {
		f.add("claimed", "claim_token", tokenOf(1), "attempt", 1, "cycle_attempt", 1, "cycle", 1, "lease_until", f.at.Add(time.Hour)).
			expired(1).retry().cancelled()
	}},
	"an edited record": {rule: ruleChain, make: ok, after: func(f *forgery) { f.Log[1].Actor = "somebody else" }},

	"a claim after a success": {rule: ruleProof, make: func(f *forgery) { ok(f); f.claim(2, 2, 1) }},
	"sent again after a late success": {rule: ruleProof, make: func(f *forgery) {
		f.claim(1, 1, 1).came(1, 200).expired(1).retry().late(1, 1, "succeeded", 200).claim(2, 2, 1)
	}},
	"a success that is not settled": {rule: ruleProof, make: func(f *forgery) {
		f.claim(1, 1, 1).came(1, 200).expired(1).retry().claim(2, 2, 1).late(1, 1, "succeeded", 200).result(2, 2, "refused", 500).retry()
	}},
	"a cancel after a success": {rule: ruleProof, make: func(f *forgery) {
		f.claim(1, 1, 1).came(1, 200).expired(1).retry().claim(2, 2, 1).late(1, 1, "succeeded", 200).cancelled()
	}},
	"a replay by nobody's force": {rule: ruleProof, make: func(f *forgery) { ok(f); f.replayed(2, false) }},
	"delivered without proof": {rule: ruleNoProof, make: func(f *forgery) {
		f.claim(1, 1, 1).came(1, 500).result(1, 1, "refused", 500).delivered(1)
	}},
	"proven by what was before the force": {rule: ruleNoProof, make: func(f *forgery) {
		ok(f)
		f.replayed(2, true).claim(2, 1, 2).result(2, 1, "unknown", 0).delivered(1)
	}},
	"two claims at a time": {rule: ruleOneClaim, make: func(f *forgery) { f.claim(1, 1, 1).claim(2, 2, 1) }},
	"a number drawn again": {rule: ruleNumbers, make: func(f *forgery) { f.claim(1, 1, 1).released(1).claim(1, 1, 1) }},
	"a number left out":    {rule: ruleNumbers, make: func(f *forgery) { f.claim(2, 1, 1) }},
	"another claim's number": {rule: ruleNumbers, make: func(f *forgery) {
		f.claim(1, 1, 1).add("attempted", "claim_token", tokenOf(1), "attempt", 2, "outcome", "unknown")
	}},
	"a cycle's count is wrong": {rule: ruleCycle, make: func(f *forgery) { f.claim(1, 2, 1) }},
	"a claim of another cycle": {rule: ruleCycle, make: func(f *forgery) { f.claim(1, 1, 2) }},
	"a cycle with too many": {rule: ruleCycle, make: func(f *forgery) {
		for n := 1; n <= 4; n++ {
			f.claim(n, n, 1).result(n, n, "unreached", 0).retry()
		}
	}},
	"given up too early": {rule: ruleCycle, make: func(f *forgery) { f.claim(1, 1, 1).result(1, 1, "unreached", 0).failed("exhausted") }},
	"a cycle left out": {rule: ruleCycle, make: func(f *forgery) {
		f.claim(1, 1, 1).came(1, 410).result(1, 1, "refused", 410).failed("rejected").replayed(3, false)
	}},
	"a token issued twice": {rule: ruleToken, make: func(f *forgery) {
		f.claim(1, 1, 1).released(1).add("claimed", "claim_token", tokenOf(1), "attempt", 2, "cycle_attempt", 1, "cycle", 1)
	}},
	"a result of nobody's":      {rule: ruleToken, make: func(f *forgery) { f.claim(1, 1, 1).late(2, 1, "succeeded", 200) }},
	"two results of one":        {rule: ruleOneResult, make: func(f *forgery) { ok(f); f.late(1, 1, "succeeded", 200) }},
	"the owner is superseded":   {rule: ruleOwner, make: func(f *forgery) { f.claim(1, 1, 1).late(1, 1, "succeeded", 200) }},
	"another ends the claim":    {rule: ruleOwner, make: func(f *forgery) { f.claim(1, 1, 1).expired(1).retry().claim(2, 2, 1).result(1, 1, "refused", 500) }},
	"another's claim runs out":  {rule: ruleOwner, make: func(f *forgery) { f.claim(1, 1, 1).expired(1).retry().claim(2, 2, 1).expired(1) }},
	"nothing follows a result":  {rule: ruleFollows, make: func(f *forgery) { f.claim(1, 1, 1).result(1, 1, "unreached", 0).cancelled() }},
	"a retry for no reason":     {rule: ruleFollows, make: func(f *forgery) { f.retry() }},
	"rejected without a 410":    {rule: ruleFollows, make: func(f *forgery) { f.claim(1, 1, 1).came(1, 500).result(1, 1, "refused", 500).failed("rejected") }},
	"an event of no meaning":    {rule: ruleFollows, make: func(f *forgery) { f.add("forgotten") }},
	"accepted twice":            {rule: ruleFollows, make: func(f *forgery) { f.add("scheduled") }},
	"resolved but not held":     {rule: ruleFollows, make: func(f *forgery) { f.resolved("failed", 0) }},
	"a doubt is tried again":    {rule: ruleDoubt, hold: true, make: func(f *forgery) { f.claim(1, 1, 1).expired(1).retry() }},
	"an unknown is tried again": {rule: ruleDoubt, hold: true, make: func(f *forgery) { f.claim(1, 1, 1).result(1, 1, "unknown", 0).retry() }},
	"held for a refusal":        {rule: ruleDoubt, hold: true, make: func(f *forgery) { f.claim(1, 1, 1).came(1, 500).result(1, 1, "refused", 500).held(1) }},
	"held where none should be": {rule: ruleDoubt, make: func(f *forgery) { f.claim(1, 1, 1).result(1, 1, "unknown", 0).held(1) }},

	"an arrival of no delivery": {rule: ruleStranger, make: func(f *forgery) { ok(f); f.came(2, 200).then(func(f *forgery) { f.arrival().Delivery = uuid.New() }) }},
	"an arrival of no claim":    {rule: ruleStranger, make: func(f *forgery) { ok(f); f.came(2, 200) }},
	"an arrival called unsent":  {rule: ruleStranger, make: func(f *forgery) { f.claim(1, 1, 1).came(1, 200).released(1).cancelled() }},
	"an arrival called unreached": {rule: ruleStranger, make: func(f *forgery) {
		f.claim(1, 1, 1).came(1, 200).result(1, 1, "unreached", 0).retry().cancelled()
	}},
	"an arrival of an open claim": {rule: ruleStranger, make: func(f *forgery) { f.claim(1, 1, 1).came(1, 200) }},
	"one attempt, two arrivals":   {rule: ruleTwice, make: func(f *forgery) { ok(f); f.came(1, 200) }},
	"a doubt with two arrivals":   {rule: ruleTwice, make: func(f *forgery) { f.claim(1, 1, 1).came(1, 0).came(1, 0).expired(1).retry().cancelled() }},
	"a success that never arrived": {rule: ruleMissing, make: func(f *forgery) {
		f.claim(1, 1, 1).result(1, 1, "succeeded", 200).delivered(1)
	}},
	"an answer that was not given": {rule: ruleMissing, make: func(f *forgery) {
		f.claim(1, 1, 1).came(1, 500).result(1, 1, "succeeded", 200).delivered(1)
	}},
	"an answer to half a request": {rule: ruleMissing, make: func(f *forgery) { ok(f); f.arrival().Whole = false }},
	"a 500 that is a success": {rule: ruleMissing, make: func(f *forgery) {
		f.claim(1, 1, 1).came(1, 500).result(1, 1, "succeeded", 500).delivered(1)
	}},
	"a row that says otherwise": {rule: ruleFold, make: ok, after: func(f *forgery) { f.Rows[0].Attempts++ }},
	"a row too few":             {rule: ruleFold, make: ok, after: func(f *forgery) { f.Rows = nil }},
	"a row too many":            {rule: ruleFold, make: ok, after: func(f *forgery) { f.Rows = append(f.Rows, deliveryRow{ID: uuid.New(), State: "pending"}) }},
	"other bytes":               {rule: ruleBytes, make: func(f *forgery) { ok(f); f.arrival().Payload[0]++ }},
	"a wrong signature":         {rule: ruleBytes, make: func(f *forgery) { ok(f); f.arrival().Signed = false }},
	"another message":           {rule: ruleBytes, make: func(f *forgery) { ok(f); f.arrival().Message = "another" }},
	"another's endpoint":        {rule: ruleBytes, make: func(f *forgery) { ok(f); f.arrival().Endpoint = uuid.New() }},
}
