package webhook

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// TestParseRetryAfter is case 22: seconds, dates, the past, rubbish and a year.
func TestParseRetryAfter(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	const none = time.Duration(-1)
	for value, want := range map[string]time.Duration{
		"120": 2 * time.Minute, " 7 ": 7 * time.Second, "0": 0, "00012": 12 * time.Second,
		"86400": maxRetryAfter, "86401": maxRetryAfter, "31536000": maxRetryAfter, "9223372036854775807": maxRetryAfter,
		strings.Repeat("9", 400):        maxRetryAfter,
		"Sun, 01 Mar 2026 12:01:00 GMT": time.Minute, "Sun, 01 Mar 2026 11:00:00 GMT": 0,
		"Sunday, 01-Mar-26 12:00:30 GMT": 30 * time.Second, "Sun Mar  1 12:00:05 2026": 5 * time.Second,
		"Fri, 31 Dec 9999 23:59:59 GMT": maxRetryAfter, "Thu, 01 Jan 0001 00:00:00 GMT": 0,
		"": none, "-1": none, "+5": none, "1.5": none, "1e3": none, "soon": none, "5 s": none, "0x10": none, "\x00": none, "٣": none,
	} {
		got := parseRetryAfter(value, now)
		if (got == nil) != (want == none) || got != nil && *got != want {
			t.Errorf("%q: got %v, want %s", value, got, want)
		}
	}
}

func FuzzParseRetryAfter(f *testing.F) {
	for _, seed := range []string{"120", "-1", "Sun, 01 Mar 2026 12:01:00 GMT", "99999999999999999999", "", "\xff"} {
		f.Add(seed, int64(0))
	}
	f.Fuzz(func(t *testing.T, value string, unix int64) {
		d := parseRetryAfter(value, time.Unix(unix, 0))
		if d != nil && (*d < 0 || *d > maxRetryAfter) {
			t.Fatalf("%q: %s", value, *d)
		}
	})
}

func TestRetryAfterCountsOn429And503Only(t *testing.T) {
	t.Parallel()
	status := 0
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "30")
		w.WriteHeader(status)
	}))
	t.Cleanup(srv.Close)
	s := local(t)
	for _, status = range []int{200, 301, 413, 429, 500, 503} {
		res := s.Send(t.Context(), requestFor(srv.URL, "x"))
		want := status == 429 || status == 503
		if (res.RetryAfter != nil) != want || want && *res.RetryAfter != 30*time.Second {
			t.Errorf("%d: %v", status, res.RetryAfter)
		}
	}
}
