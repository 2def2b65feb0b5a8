package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"testing"
	"time"

	"waybill/domain"
)

// receiverThat answers every request with a status.
func receiverThat(t *testing.T, status int) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) }))
	t.Cleanup(s.Close)
	return s
}

// TestBudgetsOfThreeProcesses: three processes hand in three times as much as a key, and
// an endpoint, may take. Exactly the budget is accepted, no count is lost, every answer
// says what remains, and what one process has spent, another one, started later, has not.
// The guard is that spend_rates.sql reads and writes a counter in one upsert.
func TestBudgetsOfThreeProcesses(t *testing.T) {
	t.Parallel()
	if left := 24*time.Hour - time.Since(time.Now().Truncate(24*time.Hour)); left < 30*time.Second {
		time.Sleep(left) // so that all of it falls into one window
	}
	f := newFleet(t, 3)
	free, limited := f.endpoint("http://127.0.0.1:1/hook"), f.get("id", "endpoints", "create", "--url", "http://127.0.0.1:1/hook",
		"--allow-networks", loopback, "--policy", `{"submit_rate":"30/24h"}`)
	whole, part := f.key("--scope", "submit"), f.key("--scope", "submit", "--rate", "50/24h")
	for _, c := range []struct {
		name, endpoint, key string
		budget              int
	}{{"key", free, part, 50}, {"endpoint", limited, whole, 30}} {
		before := f.count("select count(*) from waybill.deliveries")
		submission := ask{method: http.MethodPost, path: "/v1/endpoints/" + c.endpoint + "/deliveries", key: c.key, body: "x"}
		answers := []answer{f.send(0, submission)} // so that there is a counter, which all others wait for
		answers = append(answers, f.behind("select from waybill.rate_limit_counters where most = $1 for update", c.budget, 3,
			func() []answer { return f.atOnce(3*c.budget, func(int) ask { return submission }) })...)
		accepted, remaining := 0, map[int]bool{}
		for _, a := range answers {
			left := f.budgetOf(a, c.name, c.budget)
			if remaining[left] = true; a.status == http.StatusAccepted {
				accepted++
			}
		}
		if made := f.count("select count(*) from waybill.deliveries") - before; accepted != c.budget || made != c.budget || !remaining[0] {
			t.Errorf("%s: %d accepted, %d made, of a budget of %d", c.name, accepted, made, c.budget)
		}
	}
	if used := f.count("select sum(used)::int from waybill.rate_limit_counters"); used != 80 {
		t.Errorf("%d are counted, want 80", used)
	}
	f.nodes = append(f.nodes, f.serve("--no-worker"))
	for _, a := range []ask{{path: free, key: part}, {path: limited, key: whole}} {
		a.method, a.path, a.body = http.MethodPost, "/v1/endpoints/"+a.path+"/deliveries", "x"
		if got := f.send(3, a); got.status != http.StatusTooManyRequests {
			t.Errorf("a process of its own was told %d", got.status)
		}
	}
	f.stop()
}

// budgetOf checks what an answer says of a budget and returns what remains of it.
func (f *fleet) budgetOf(a answer, name string, count int) (remaining int) {
	f.t.Helper()
	policy, left := fmt.Sprintf(`"%s";q=%d;w=86400`, name, count), fmt.Sprintf(`"%s";r=%%d;t=%%d`, name)
	var reset int
	if _, err := fmt.Sscanf(a.header.Get("RateLimit"), left, &remaining, &reset); err != nil || reset < 1 || reset > 86400 || a.header.Get("RateLimit-Policy") != policy {
		f.t.Errorf("%d says %q and %q: %v", a.status, a.header.Get("RateLimit-Policy"), a.header.Get("RateLimit"), err)
	}
	switch a.status {
	case http.StatusAccepted:
	case http.StatusTooManyRequests:
		wait, err := strconv.Atoi(a.header.Get("Retry-After"))
		if a.text("code") != domain.ErrRateLimited.Code || err != nil || wait != reset || remaining != 0 {
			f.t.Errorf("429 %s with Retry-After %q, %d remain, until %d: %v", a.raw, a.header.Get("Retry-After"), remaining, reset, err)
		}
	default:
		f.t.Errorf("%d %s", a.status, a.raw)
	}
	return remaining
}
