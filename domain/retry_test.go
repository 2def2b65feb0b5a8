package domain_test

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"

	"waybill/domain"
)

// dueAfter is how long after its refusal the second attempt of a cycle may start.
func dueAfter(t interface{ Fatal(...any) }, r domain.Retry, retryAfter *time.Duration) time.Duration {
	d, _ := given(claimed(1, 1, 1))
	rep := report(1, domain.Refused, 503)
	rep.Result.RetryAfter = retryAfter
	events, err := d.Record(rep, r)
	if err != nil {
		t.Fatal(err)
	}
	return events[1].(domain.RetryScheduled).DueAt.Sub(r.From.Time)
}

func delayed(second time.Duration, jitter, random float64) domain.Retry {
	p := domain.DefaultPolicy()
	p.Jitter, p.Retries = jitter, domain.Retries{Delays: []domain.Duration{0, domain.Duration(second)}}
	return domain.Retry{Policy: p, From: noon, Random: random}
}

// TestRetryAfterPostponesAndNeverHastens is case 22: jitter never undercuts Retry-After.
func TestRetryAfterPostponesAndNeverHastens(t *testing.T) {
	for name, c := range map[string]struct{ delay, after, want time.Duration }{
		"later than the policy":  {time.Second, time.Minute, time.Minute},
		"sooner than the policy": {time.Hour, time.Minute, time.Hour},
		"now":                    {time.Hour, 0, time.Hour},
		"in the past":            {time.Hour, -time.Hour, time.Hour},
		"long past":              {0, math.MinInt64, 0},
		"a day":                  {time.Second, 24 * time.Hour, 24 * time.Hour},
		"more than a day":        {time.Second, 25 * time.Hour, 24 * time.Hour},
		"for ever":               {time.Second, math.MaxInt64, 24 * time.Hour},
		"more than a day, sooner than the policy": {48 * time.Hour, 30 * time.Hour, 48 * time.Hour},
	} {
		if got := dueAfter(t, delayed(c.delay, 0, 0), &c.after); got != c.want {
			t.Errorf("%s: got %v, want %v", name, got, c.want)
		}
	}
}

func TestJitterBounds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		delay := time.Duration(rapid.Int64Range(0, int64(domain.MaxRetryDelay)).Draw(t, "delay")).Truncate(time.Microsecond)
		jitter := rapid.Float64Range(0, 1).Draw(t, "jitter")
		random := rapid.Float64Range(0, math.Nextafter(1, 0)).Draw(t, "random")
		after := time.Duration(rapid.Int64Range(0, int64(48*time.Hour)).Draw(t, "after")).Truncate(time.Microsecond)
		slack := time.Duration(float64(delay)*1e-9) + time.Microsecond

		got := dueAfter(t, delayed(delay, jitter, random), nil)
		low, high := time.Duration(float64(delay)*(1-jitter)), time.Duration(float64(delay)*(1+jitter))
		if got < low-slack || got > high+slack || got < 0 {
			t.Fatalf("%v ± %v gives %v", delay, jitter, got)
		}
		if asked := dueAfter(t, delayed(delay, jitter, random), &after); asked < got || asked < min(after, domain.MaxRetryAfter) {
			t.Fatalf("Retry-After %v: due after %v, without it after %v", after, asked, got)
		}
	})
}

func TestJitterSpreadsOverAllOfIt(t *testing.T) {
	for name, c := range map[string]struct {
		jitter, random float64
		want           time.Duration
	}{
		"none":            {0, 0.9, time.Minute},
		"the least":       {0.1, 0, 54 * time.Second},
		"the middle":      {0.1, 0.5, time.Minute},
		"nearly the most": {0.1, math.Nextafter(1, 0), 66 * time.Second},
		"whole, least":    {1, 0, 0},
		"whole, most":     {1, math.Nextafter(1, 0), 2 * time.Minute},
	} {
		got := dueAfter(t, delayed(time.Minute, c.jitter, c.random), nil)
		if got > c.want || got < c.want-2*time.Microsecond {
			t.Errorf("%s: got %v, want %v", name, got, c.want)
		}
	}
}

func TestDelays(t *testing.T) {
	s := domain.Duration(time.Second)
	list := domain.Retries{Delays: []domain.Duration{3 * s, s, 2 * s}}
	exponential := domain.Retries{Base: 5 * s, Factor: 3, Cap: 40 * s, Attempts: 6}
	steep := domain.Retries{Base: domain.Duration(domain.MaxRetryDelay), Factor: 100, Cap: domain.Duration(domain.MaxRetryDelay), Attempts: 100}
	for _, c := range []struct {
		r       domain.Retries
		attempt int
		want    time.Duration
	}{
		{list, 1, 3 * time.Second}, {list, 2, time.Second}, {list, 3, 2 * time.Second}, {list, 4, 2 * time.Second}, {list, 0, 3 * time.Second}, {list, -1, 3 * time.Second},
		{exponential, 1, 0}, {exponential, 2, 5 * time.Second}, {exponential, 3, 15 * time.Second}, {exponential, 4, 40 * time.Second}, {exponential, 100, 40 * time.Second},
		{exponential, 0, 0}, {steep, 2, domain.MaxRetryDelay}, {steep, 3, domain.MaxRetryDelay}, {steep, 100, domain.MaxRetryDelay},
		{domain.Retries{Factor: 100, Attempts: 100}, 100, 0},
		{domain.Retries{Base: 1, Factor: 100, Cap: s, Attempts: 100}, 100, time.Second},
		{domain.Retries{Base: s, Factor: 1, Cap: s, Attempts: 9}, 9, time.Second},
	} {
		if got := c.r.Delay(c.attempt); got != c.want {
			t.Errorf("%+v, attempt %d: got %v, want %v", c.r, c.attempt, got, c.want)
		}
	}
	if list.Max() != 3 || exponential.Max() != 6 {
		t.Error("a cycle has as many attempts as delays, or as attempts says")
	}
}

func TestEveryPermittedScheduleStaysWithinItsCap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		longest := int64(domain.MaxRetryDelay)
		r := domain.Retries{Base: domain.Duration(rapid.Int64Range(0, longest).Draw(t, "base")),
			Factor: rapid.Float64Range(1, 100).Draw(t, "factor"), Attempts: rapid.IntRange(1, 100).Draw(t, "attempts")}
		r.Cap = domain.Duration(rapid.Int64Range(int64(r.Base), longest).Draw(t, "cap"))
		p := domain.DefaultPolicy()
		if p.Retries = r; p.Check() != nil {
			t.Fatalf("%+v: %v", r, p.Check())
		}
		for n := 2; n <= r.Attempts; n++ {
			d, before := r.Delay(n), r.Delay(n-1)
			if d < before || d < time.Duration(r.Base) || d > time.Duration(r.Cap) {
				t.Fatalf("attempt %d waits %v, the one before %v", n, d, before)
			}
		}
	})
}

func TestTheDefaultScheduleIsTheContracts(t *testing.T) {
	want := []time.Duration{0, 5 * time.Second, 5 * time.Minute, 30 * time.Minute, 2 * time.Hour, 5 * time.Hour, 10 * time.Hour, 14 * time.Hour, 20 * time.Hour, 24 * time.Hour}
	r := domain.DefaultRetries()
	for i, d := range want {
		if r.Delay(i+1) != d {
			t.Errorf("attempt %d waits %v, want %v", i+1, r.Delay(i+1), d)
		}
	}
	if p := domain.DefaultPolicy(); r.Max() != len(want) || p.MaxAttempts() != len(want) || p.Jitter != 0.1 || time.Duration(p.Timeout) != 15*time.Second {
		t.Errorf("%+v", p)
	}
}
