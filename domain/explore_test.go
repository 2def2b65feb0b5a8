package domain_test

import (
	"fmt"
	"strings"
	"testing"

	"waybill/domain"
)

// exploreClaims is how many claims the exploration draws at most.
const exploreClaims = 4

// TestEveryReachableState walks breadth first through every state that up to four
// claims can lead to, with every report of every claim at every time, cancels,
// resolutions, replays and one forced replay. Each step is compared with the model;
// each new state's log is audited and folded again.
func TestEveryReachableState(t *testing.T) {
	for _, unknown := range []domain.OnUnknown{domain.RetryUnknown, domain.HoldUnknown} {
		for attempts := 1; attempts <= 3; attempts++ {
			t.Run(fmt.Sprintf("%s/%d attempts", unknown, attempts), func(t *testing.T) {
				t.Parallel()
				p := domain.DefaultPolicy()
				p.OnUnknown, p.Jitter = unknown, 0
				p.Retries = domain.Retries{Delays: make([]domain.Duration, attempts)}
				states, steps := explore(t, newWorld(p))
				t.Logf("%d states, %d steps", states, steps)
				if least := 2000; states < least {
					t.Errorf("only %d states: the exploration does not reach what it is meant to", states)
				}
			})
		}
	}
}

func explore(t *testing.T, start world) (states, steps int) {
	visited := map[fingerprint]bool{start.fingerprint(): true}
	for queue := []world{start}; len(queue) > 0; queue = queue[1:] {
		for _, c := range queue[0].commands() {
			next := queue[0]
			err := next.do(c)
			if steps++; err == nil && c.verb == "report" && len(next.log) == len(queue[0].log) && !queue[0].reported(c.attempt) {
				err = fmt.Errorf("the first report of attempt %d was lost", c.attempt)
			}
			if fp := next.fingerprint(); err == nil && !visited[fp] {
				visited[fp] = true
				queue = append(queue, next)
				if err = next.refold(inMemory); err == nil {
					err = audit(next.log)
				}
			}
			if err != nil {
				t.Fatalf("%v\nafter %+v, the last of\n%s", err, c, next.story())
			}
		}
	}
	return len(visited), steps
}

// commands lists what can be asked in this state.
func (w *world) commands() []command {
	list := []command{{verb: "cancel"}, {verb: "replay"},
		{verb: "resolve", as: domain.ResolvedDelivered}, {verb: "resolve", as: domain.ResolvedFailed}, {verb: "resolve", as: domain.ResolvedRetry}}
	if w.d.Attempts < exploreClaims {
		list = append(list, command{verb: "claim"})
	}
	if w.model.forces == 0 {
		list = append(list, command{verb: "replay", force: true})
	}
	for a := 1; a <= w.d.Attempts; a++ {
		list = append(list, command{verb: "release", attempt: a},
			command{verb: "report", attempt: a, outcome: domain.Succeeded, status: 200},
			command{verb: "report", attempt: a, outcome: domain.Refused, status: 500},
			command{verb: "report", attempt: a, outcome: domain.Refused, status: 410},
			command{verb: "report", attempt: a, outcome: domain.Unknown})
	}
	if w.d.Attempts > 0 { // refused for older claims, as release is
		list = append(list, command{verb: "expire", attempt: w.d.Attempts}, command{verb: "extend", attempt: w.d.Attempts})
	}
	return list
}

func (w *world) reported(attempt int) bool {
	c, _ := w.claims.Find(token(attempt))
	return c.Report != nil
}

// fingerprint is all that what comes next depends on, the model's half included.
// Counters that only ever count up (version, cycle, how many were unknown) and why it
// failed decide nothing; every step compares them with the model all the same.
type fingerprint struct {
	state               domain.State
	last                domain.Outcome
	attempts, spent     int8
	lastAttempt, proof  int8
	forcedAfter, forces int8
	owner, holder       byte
	claims              [exploreClaims]byte // r, x or l: running, released, lost; R: has reported
}

func (w *world) fingerprint() fingerprint {
	f := fingerprint{
		state: w.d.State, last: w.d.LastOutcome, attempts: int8(w.d.Attempts), spent: int8(w.d.CycleAttempts),
		lastAttempt: int8(w.d.LastAttempt), proof: int8(w.d.Proof), forcedAfter: int8(w.d.ForcedAfter),
		forces: int8(w.model.forces), owner: w.d.Claim.Token[15], holder: w.d.HeldBy[15],
	}
	for i, c := range w.model.claims {
		switch {
		case c.outcome != "":
			f.claims[i] = 'R'
		case c.lost():
			f.claims[i] = 'l'
		case c.fate == "released":
			f.claims[i] = 'x'
		default:
			f.claims[i] = 'r'
		}
	}
	return f
}

func (w *world) story() string {
	var b strings.Builder
	for i, e := range w.log {
		fmt.Fprintf(&b, "%3d %T %+v\n", i+1, e, e)
	}
	return b.String()
}
