package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"
)

// tortureWorkers is how many worker processes share the work.
const tortureWorkers = 3

// tortureSettle bounds how long everything may take to end once the faults are over: a
// lease, retries, and a slow machine.
const tortureSettle = 90 * time.Second

// tortureCmd runs the product as processes on a database of its own, lets everything
// befall them that can go wrong, and then has a checker that shares no decision with
// the product go through the log and the receiver's own record. The seed determines
// the faults, when they come, the messages and how the receiver answers; what the
// operating system makes of it is never twice the same.
//
// Exit codes: 0 nothing was found, 1 interrupted or failed, 4 a promise was broken.
type tortureCmd struct {
	Seconds int    `default:"60" placeholder:"N" help:"How long the faults go on (default ${default}); what is underway then takes about 20s more."`
	Seed    uint64 `default:"0" placeholder:"S" help:"Determines the faults and the receiver's answers; 0 draws one."`
}

// Validate refuses what makes no sense.
func (c *tortureCmd) Validate() error {
	if c.Seconds < 1 || c.Seconds > 24*60*60 {
		return usageError("--seconds is 1 to 86400")
	}
	return nil
}

// Run tortures, and says what it did and what it found.
func (c *tortureCmd) Run(ctx context.Context, in *invocation) error {
	defer surviveBrokenPipe()()
	in.noteUnused("torture")
	for c.Seed == 0 {
		c.Seed = uint64(rand.Uint32())
	}
	t := &tortureScreen{out: in.out, json: in.JSON}
	t.say(0, fmt.Sprintf("seed %d, %d s of faults", c.Seed, c.Seconds))
	rep, err := runOrdeal(ctx, ordealConfig{
		Seed: c.Seed, Length: time.Duration(c.Seconds) * time.Second, Workers: tortureWorkers, Settle: tortureSettle, Say: t.say,
	})
	if err != nil {
		return err
	}
	if in.JSON {
		err = printJSON(in.out, rep)
	} else {
		err = rep.print(in.out)
	}
	if err == nil && len(rep.Breaches) > 0 {
		err = fmt.Errorf("%w: %d breaches; the same faults again: waybill torture --seconds %d --seed %d",
			errFaulty, len(rep.Breaches), c.Seconds, c.Seed)
	}
	return err
}

// tortureScreen shows what happens while it happens.
type tortureScreen struct {
	mu   sync.Mutex
	out  io.Writer
	json bool
}

func (t *tortureScreen) say(at time.Duration, what string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.json {
		_ = printJSON(t.out, map[string]any{"at_s": at.Round(time.Millisecond).Seconds(), "what": what})
		return
	}
	_, _ = fmt.Fprintf(t.out, "%7.2f s  %s\n", at.Seconds(), what)
}

// print shows what a run has shown.
func (r tortureReport) print(out io.Writer) error {
	b := &strings.Builder{}
	fmt.Fprintf(b, "\nDone by seed %d in %.0f s\n", r.Seed, r.Seconds)
	tabulate(b, r.Faults)
	c := r.Checked
	fmt.Fprintf(b, "Checked\n")
	tabulate(b, map[string]int{
		"submissions accepted": r.Submitted, "submissions repeated for want of an answer": r.Repeated,
		"deliveries": c.Deliveries, "events": c.Events, "claims": c.Claims, "claims in doubt (ran out)": c.Expired,
		"claims given back": c.Released, "results of superseded claims": c.Superseded, "late successes that settled": c.LateSuccess,
		"replays": c.Replays, "held for a person": c.Held, "arrivals": c.Arrivals, "arrivals nobody reported": c.Unreported,
	})
	tabulate(b, prefixed("attempts ", c.Outcomes))
	tabulate(b, prefixed("ended ", c.States))
	for _, f := range r.Breaches {
		fmt.Fprintf(b, "BROKEN  %s\n", f)
	}
	for _, s := range r.Stories {
		fmt.Fprintf(b, "\n%s\n", strings.Join(s, "\n"))
	}
	if len(r.Breaches) == 0 {
		fmt.Fprintf(b, "No promise was broken.\n")
	}
	_, err := io.WriteString(out, b.String())
	return err
}

func prefixed(prefix string, m map[string]int) map[string]int {
	out := map[string]int{}
	for k, n := range m {
		out[prefix+k] = n
	}
	return out
}

func tabulate(b *strings.Builder, m map[string]int) {
	for _, k := range slices.Sorted(maps.Keys(m)) {
		fmt.Fprintf(b, "%9d  %s\n", m[k], k)
	}
}
