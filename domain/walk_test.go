package domain_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"waybill/domain"
)

// TestAWholeLife walks random lives of a delivery, under policies that change, at an
// endpoint that comes and goes, and with every report that could ever arrive, and
// compares each step with the model. It goes further than the exploration (more
// claims, real delays, JSON), and less thoroughly.
func TestAWholeLife(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(drawPolicy(t))
		t.Repeat(map[string]func(*rapid.T){
			"claim":   func(t *rapid.T) { w.must(t, command{verb: "claim"}) },
			"present": func(t *rapid.T) { w.must(t, drawReport(t, w.d.Attempts)) },
			"any":     func(t *rapid.T) { w.must(t, drawReport(t, drawAttempt(t, &w))) },
			"ending": func(t *rapid.T) {
				verb := rapid.SampledFrom([]string{"release", "expire", "extend"}).Draw(t, "verb")
				w.must(t, command{verb: verb, attempt: drawAttempt(t, &w)})
			},
			"release": func(t *rapid.T) { w.must(t, command{verb: "release", attempt: w.d.Attempts}) },
			"expire":  func(t *rapid.T) { w.must(t, command{verb: "expire", attempt: w.d.Attempts}) },
			"cancel":  func(t *rapid.T) { w.must(t, command{verb: "cancel"}) },
			"replay":  func(t *rapid.T) { w.must(t, command{verb: "replay", force: rapid.Bool().Draw(t, "force")}) },
			"resolve": func(t *rapid.T) { w.must(t, command{verb: "resolve", as: drawResolution(t)}) },
			"wait":    func(t *rapid.T) { w.now = w.now.After(time.Duration(rapid.IntRange(1, 4).Draw(t, "s")) * time.Second) },
			"policy":  func(t *rapid.T) { w.policy = drawPolicy(t) },
			"endpoint": func(t *rapid.T) {
				w.status = rapid.SampledFrom([]domain.EndpointStatus{domain.StatusActive, domain.StatusActive, domain.StatusActive,
					domain.StatusPaused, domain.StatusDisabled, domain.StatusArchived}).Draw(t, "status")
			},
			"": func(t *rapid.T) { w.check(t) },
		})
	})
}

func (w *world) must(t *rapid.T, c command) {
	if err := w.do(c); err != nil {
		t.Fatalf("%v\nafter %+v, the last of\n%s", err, c, w.story())
	}
}

// check holds what must hold after every step against the whole history.
func (w *world) check(t *rapid.T) {
	err := w.refold(throughJSON)
	if err == nil {
		err = audit(w.log)
	}
	if err != nil {
		t.Fatalf("%v\nafter\n%s", err, w.story())
	}
}

func drawPolicy(t *rapid.T) domain.Policy {
	p := domain.DefaultPolicy()
	p.Jitter = 0
	p.OnUnknown = rapid.SampledFrom([]domain.OnUnknown{domain.RetryUnknown, domain.HoldUnknown}).Draw(t, "unknown")
	p.Retries.Delays = make([]domain.Duration, rapid.IntRange(1, 4).Draw(t, "attempts"))
	for i := range p.Retries.Delays {
		p.Retries.Delays[i] = domain.Duration(rapid.IntRange(0, 2).Draw(t, "delay")) * domain.Duration(time.Second)
	}
	return p
}

// drawAttempt also draws claims that never were.
func drawAttempt(t *rapid.T, w *world) int {
	return rapid.IntRange(0, w.d.Attempts+1).Draw(t, "attempt")
}

func drawReport(t *rapid.T, attempt int) command {
	return rapid.SampledFrom([]command{
		{verb: "report", attempt: attempt, outcome: domain.Succeeded, status: 200},
		{verb: "report", attempt: attempt, outcome: domain.Refused, status: 500},
		{verb: "report", attempt: attempt, outcome: domain.Refused, status: 410},
		{verb: "report", attempt: attempt, outcome: domain.Unreached},
		{verb: "report", attempt: attempt, outcome: domain.Unknown},
	}).Draw(t, "report")
}

func drawResolution(t *rapid.T) domain.Resolution {
	return rapid.SampledFrom([]domain.Resolution{domain.ResolvedDelivered, domain.ResolvedFailed, domain.ResolvedRetry}).Draw(t, "as")
}
