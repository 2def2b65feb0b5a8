package worker

import (
	"context"
	"sync"
	"time"
)

// laneTurns is how many results are tried by themselves at a time. A row that somebody
// else has locked keeps a turn until the lock times out.
const laneTurns = 4

// repeatAfter is how long the log is silent about a result that still cannot be recorded.
const repeatAfter = 30 * time.Second

// lane is where results are tried one by one after a batch that held them failed: each
// for itself until it is recorded, so that neither its neighbours nor what finishes
// later waits for it. It has room for as many as there are senders; while it is full
// nothing new is recorded, and so, in the end, nothing new is sent.
type lane struct {
	room, turns chan struct{}
	owned       sync.WaitGroup
}

func newLane(room int) *lane {
	return &lane{room: make(chan struct{}, room), turns: make(chan struct{}, laneTurns)}
}

// take goes on with a result until it is recorded or ctx ends. It returns once there is
// room for it.
func (l *lane) take(ctx context.Context, f finished, record func(context.Context, []finished) error, complain func(error)) {
	select {
	case l.room <- struct{}{}:
	case <-ctx.Done():
		return
	}
	l.owned.Go(func() {
		defer func() { <-l.room }()
		l.pursue(ctx, f, record, complain)
	})
}

func (l *lane) pursue(ctx context.Context, f finished, record func(context.Context, []finished) error, complain func(error)) {
	trouble := &backoff{least: 50 * time.Millisecond, most: 2 * time.Second}
	for said := (time.Time{}); ctx.Err() == nil; wait(ctx, nil, trouble.next()) {
		select {
		case l.turns <- struct{}{}:
		case <-ctx.Done():
			return
		}
		err := record(ctx, []finished{f})
		<-l.turns
		if err == nil {
			return
		}
		if time.Since(said) > repeatAfter {
			said = time.Now()
			complain(err)
		}
	}
}
