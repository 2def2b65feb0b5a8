package main

import (
	"github.com/google/uuid"
)

// attemptKey is what a receiver sees of an attempt.
type attemptKey struct {
	delivery uuid.UUID
	number   int
}

// checkArrivals holds the receiver's record and the log against each other, both ways.
func (a *audit) checkArrivals() {
	came := map[attemptKey][]arrived{}
	for _, v := range a.Arrivals {
		a.tally.Arrivals++
		k := attemptKey{v.Delivery, v.Attempt}
		came[k] = append(came[k], v)
		if t := a.trials[v.Delivery]; t == nil {
			a.say(ruleStranger, v.Delivery, 0, "arrived and is no delivery in the log")
		} else {
			t.arrival(v)
		}
	}
	for k, list := range came {
		if len(list) > 1 {
			a.say(ruleTwice, k.delivery, 0, "attempt %d arrived %d times", k.number, len(list))
		}
	}
	for _, id := range a.order {
		for _, c := range a.trials[id].claims {
			a.trials[id].answered(c, came[attemptKey{id, c.attempt}])
		}
	}
}

// arrival: each request is an attempt on record, or one in doubt, with the very bytes.
func (t *trial) arrival(v arrived) {
	c := t.attempts[v.Attempt]
	object := func(rule, what string) { t.say(rule, t.id, 0, "attempt %d %s", v.Attempt, what) }
	switch {
	case c == nil:
		object(ruleStranger, "arrived and was never claimed")
	case c.result != nil && c.result.Outcome == "unreached":
		object(ruleStranger, "arrived and is on record as unreached")
	case c.result != nil:
	case c.end == "delivery.released":
		object(ruleStranger, "arrived and is on record as given back unsent")
	case c.end == "":
		object(ruleStranger, "arrived and its claim never ended")
	default:
		t.tally.Unreported++
	}
	s, known := t.Accepted[t.id]
	switch {
	case v.Endpoint != t.endpoint || v.Message != t.message:
		object(ruleBytes, "arrived at another endpoint, or as another message")
	case !v.Whole:
	case known && v.Payload != s.Payload:
		object(ruleBytes, "arrived with other bytes than were handed in")
	case !v.Signed:
		object(ruleBytes, "arrived with a signature that does not verify")
	}
}

// answered: a claim's result against what the receiver says of it.
func (t *trial) answered(c *tenure, came []arrived) {
	if c.result == nil || len(came) > 1 { // twice is said elsewhere
		return
	}
	object := func(what string) {
		t.say(ruleMissing, t.id, 0, "attempt %d is on record as %s %d and %s", c.attempt, c.result.Outcome, c.result.Status, what)
	}
	switch c.result.Outcome {
	case "succeeded", "refused":
		switch {
		case len(came) == 0:
			object("never arrived")
		case !came[0].Whole:
			object("did not arrive whole")
		case came[0].Answered != c.result.Status:
			t.say(ruleMissing, t.id, 0, "attempt %d is on record as %s %d and was answered with %d",
				c.attempt, c.result.Outcome, c.result.Status, came[0].Answered)
		case (c.result.Outcome == "succeeded") != (c.result.Status/100 == 2):
			object("that is the other outcome")
		}
	case "unknown", "unreached":
	default:
		object("there is no such outcome")
	}
}
