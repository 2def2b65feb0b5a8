package main

import (
	"context"
	"encoding/json"
	"math/rand/v2"
	"net/http"
	"time"

	"github.com/google/uuid"
)

// person operates the ledger through its API, for good or ill.
type person struct {
	*ordeal
	load *load
	dice *rand.Rand
	c    *client
}

func newPerson(o *ordeal, l *load) *person {
	return &person{ordeal: o, load: l, dice: dice(o.Seed, diceOperator), c: newClient(o.api, o.key)}
}

// meddle replays, cancels and resolves until ctx ends.
func (p *person) meddle(ctx context.Context) {
	for ctx.Err() == nil {
		switch n := p.dice.IntN(10); {
		case n < 3:
			p.onAny(ctx, "failed", p.replay)
		case n < 5:
			p.onAny(ctx, "held", p.resolve)
		case n == 5:
			p.resume(ctx)
		default:
			if id, ok := p.load.pick(p.dice.Int()); ok {
				p.act(ctx, id)
			}
		}
		sleep(ctx, between(p.dice, 10, 120))
	}
}

// act does to a delivery what comes to mind, whatever its state.
func (p *person) act(ctx context.Context, id uuid.UUID) {
	switch n := p.dice.IntN(10); {
	case n < 4:
		p.order(ctx, id, "cancel", map[string]any{"reason": "torture"})
	case n < 7:
		p.order(ctx, id, "replay", map[string]any{"reason": "torture", "force": p.dice.IntN(2) == 0})
	default:
		p.resolve(ctx, id)
	}
}

func (p *person) replay(ctx context.Context, id uuid.UUID) {
	p.order(ctx, id, "replay", map[string]any{"reason": "torture"})
}

func (p *person) resolve(ctx context.Context, id uuid.UUID) {
	as := []string{"delivered", "failed", "retry", "retry"}[p.dice.IntN(4)]
	p.order(ctx, id, "resolve", map[string]any{"reason": "torture", "outcome": as})
}

// order makes a decision. It may be refused, or get no answer; anything else is wrong.
func (p *person) order(ctx context.Context, id uuid.UUID, what string, body map[string]any) {
	text, err := json.Marshal(body)
	if err != nil {
		p.breach(ruleAPI, "%s", err)
		return
	}
	status, answer := p.c.call(ctx, http.MethodPost, "/v1/deliveries/"+id.String()+"/"+what, "", text, nil)
	switch status {
	case 0, http.StatusConflict, http.StatusServiceUnavailable:
	case http.StatusAccepted:
		p.count("operator: " + what)
	default:
		p.breach(ruleAPI, "%s of delivery %s was answered with %d: %s", what, id, status, answer)
	}
}

// onAny decides about one delivery in a state.
func (p *person) onAny(ctx context.Context, state string, decide func(context.Context, uuid.UUID)) {
	if ids := p.list(ctx, state, 50); len(ids) > 0 {
		decide(ctx, ids[p.dice.IntN(len(ids))])
	}
}

func (p *person) list(ctx context.Context, state string, limit int) (ids []uuid.UUID) {
	var page struct {
		Items []struct {
			ID uuid.UUID `json:"id"`
		} `json:"items"`
	}
	status, text := p.c.call(ctx, http.MethodGet, "/v1/deliveries?state="+state+"&limit="+itoa(limit), "", nil, &page)
	if status != 0 && status != http.StatusOK && status != http.StatusServiceUnavailable {
		p.breach(ruleAPI, "a list was answered with %d: %s", status, text)
	}
	for _, item := range page.Items {
		ids = append(ids, item.ID)
	}
	return ids
}

// resume makes the endpoint active that a 410 has disabled.
func (p *person) resume(ctx context.Context) {
	for _, e := range p.endpoints {
		if e.Path == pathGone {
			p.c.call(ctx, http.MethodPost, "/v1/endpoints/"+e.ID.String()+"/resume", "", []byte("{}"), nil)
		}
	}
}

// settle decides about all that is held, until every delivery has ended or ctx has.
func (p *person) settle(ctx context.Context) {
	for ctx.Err() == nil {
		p.resume(ctx)
		for _, id := range p.list(ctx, "held", 500) {
			p.resolve(ctx, id)
		}
		if left, err := p.unsettled(ctx); err == nil && left == 0 {
			return
		}
		sleep(ctx, 200*time.Millisecond)
	}
}
