package command_test

import (
	"math/rand/v2"
	"slices"
	"time"

	"github.com/anishathalye/porcupine"

	"waybill/domain"
	"waybill/handlers/command"
	"waybill/projections"
)

// since is the moment as histories have it.
func (c *crowd) since() int64 { return int64(time.Since(c.begun)) }

func (c *crowd) note(client int, in call, begun int64, out reply) {
	op := porcupine.Operation{ClientId: client, Input: in, Call: begun, Output: out, Return: c.since()}
	kind := string(in.kind)
	switch {
	case out.nothing:
		kind = "nothing due"
	case out.refusal != "":
		kind += " refused"
	case out.repeated:
		kind = "repeated"
	case out.attempt.Superseded:
		kind = "late"
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.history = append(c.history, op)
	c.done[kind]++
}

// lacks reports that there is a kind of call of which none has come about.
func (c *crowd) lacks() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, kind := range []string{"claim", "result", "late", "repeated", "expire", "replay", "cancel", "resolve", "read"} {
		if c.done[kind] < 3 {
			return true
		}
	}
	return false
}

// one makes one call of a random kind. What a delivery needs to go on comes more often
// than what ends it.
func (c *crowd) one(l ledgers, client int) {
	in := call{delivery: rand.N(len(c.ids))}
	switch n := rand.N(20); {
	case n < 6:
		c.claim(l, client, in)
		return
	case n < 12:
		c.result(l, client, in)
		return
	case n < 15:
		in.kind, in.force = callReplay, rand.N(2) == 0
	case n < 16:
		in.kind = callCancel
	case n < 18:
		in.kind = callResolve
		in.resolution = []domain.Resolution{domain.ResolvedRetry, domain.ResolvedDelivered, domain.ResolvedFailed}[rand.N(3)]
	default:
		in.kind = callRead
	}
	c.operate(l, client, in)
}

func (c *crowd) operate(l ledgers, client int, in call) {
	op := command.Operations{Ledger: l}
	id := c.ids[in.delivery]
	var d projections.Delivery
	var err error
	begun := c.since()
	switch in.kind {
	case callReplay:
		d, err = op.Replay(c.t.Context(), by, id, "r", in.force)
	case callCancel:
		d, err = op.Cancel(c.t.Context(), by, id, "r")
	case callResolve:
		d, err = op.Resolve(c.t.Context(), by, id, in.resolution, "r")
	case callRead:
		d, err = l.Delivery(c.t.Context(), domain.DefaultTenant, id)
	}
	out, err := told(d, err)
	if err != nil {
		c.t.Errorf("%s: %v", in.kind, err)
		return
	}
	c.note(client, in, begun, out)
}

func (c *crowd) claim(l ledgers, client int, in call) {
	in.kind = callClaim
	begun := c.since()
	b, err := l.Claim(c.t.Context(), projections.ClaimRequest{Worker: "w", Batch: 1,
		Lease: time.Duration(5+rand.N(60)) * time.Millisecond,
		From:  []projections.ClaimQuota{{EndpointID: c.places[in.delivery], Limit: 1}}})
	if err != nil {
		c.t.Errorf("claim: %v", err)
		return
	}
	out := reply{nothing: true}
	for _, d := range b.Ended {
		out = reply{after: see(d.Delivery)}
	}
	for _, a := range b.Taken {
		out = reply{after: see(a.Delivery.Delivery), token: b.Token}
		c.mu.Lock()
		c.held[in.delivery] = append(c.held[in.delivery], command.Finished{Delivery: a.Delivery, Token: b.Token,
			Policy: a.Endpoint.Policy, EndpointVersion: 1, Result: domain.Result{StartedAt: b.Now.Time}})
		c.mu.Unlock()
	}
	c.note(client, in, begun, out)
}

// result reports for a claim of the latest: the present one, one that has ended, or one
// that has been reported before.
func (c *crowd) result(l ledgers, client int, in call) {
	c.mu.Lock()
	claims := c.held[in.delivery]
	if len(claims) == 0 {
		c.mu.Unlock()
		return
	}
	at := max(0, len(claims)-1-rand.N(2))
	f := claims[at]
	if rand.N(2) == 0 { // or it is reported again some time, also at this very moment
		c.held[in.delivery] = slices.Delete(slices.Clone(claims), at, at+1)
	}
	c.mu.Unlock()
	f.Result.Outcome = []domain.Outcome{domain.Succeeded, domain.Refused, domain.Unknown, domain.Unknown}[rand.N(4)]
	in.kind, in.token, in.outcome = callResult, f.Token, f.Result.Outcome
	begun := c.since()
	answers, err := command.Recorder{Ledger: l}.Record(c.t.Context(), "worker:w", []command.Finished{f})
	if err == nil {
		err = answers[0].Err
	}
	var d projections.Delivery
	if err == nil {
		d = answers[0].Delivery
	}
	out, err := told(d, err)
	if err != nil {
		c.t.Errorf("result: %v", err)
		return
	}
	if out.refusal == "" {
		out.attempt, out.repeated = answers[0].Attempt, answers[0].Repeated
	}
	c.note(client, in, begun, out)
}

// recover notes an expiry for each claim that it ended.
func (c *crowd) recover(l ledgers, client int) {
	begun := c.since()
	_, ended, err := l.Recover(c.t.Context())
	if err != nil {
		c.t.Errorf("recover: %v", err)
	}
	for _, d := range ended {
		c.note(client, call{delivery: slices.Index(c.ids, d.ID), kind: callExpire}, begun, reply{after: see(d.Delivery)})
	}
}
