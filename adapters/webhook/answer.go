package webhook

import (
	"compress/gzip"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"waybill/domain"
)

// maxRetryAfter is the longest postponement a receiver gets.
const maxRetryAfter = 24 * time.Hour

// answer reads the status off a response and as much of the body as is worth it.
// The body changes nothing about the outcome.
func (s *Sender) answer(a *attempt, resp *http.Response, at time.Time) domain.Result {
	res := verdict(resp.StatusCode)
	if res.Reason == domain.ReasonRedirect {
		res.Location = bound(resp.Header.Get("Location"), maxLocation)
	}
	if resp.StatusCode != http.StatusSwitchingProtocols {
		res.Excerpt, res.ResponseBytes = s.readBody(a, resp)
	}
	_ = resp.Body.Close()
	if resp.StatusCode == http.StatusTooManyRequests || resp.StatusCode == http.StatusServiceUnavailable {
		now := at.Add(time.Since(a.start))
		res.RetryAfter = parseRetryAfter(resp.Header.Get("Retry-After"), now)
	}
	return res
}

// verdict is the outcome that a status stands for.
func verdict(status int) domain.Result {
	switch status / 100 {
	case 2:
		return domain.Result{Outcome: domain.Succeeded, Status: status}
	case 3:
		return domain.Result{Outcome: domain.Refused, Reason: domain.ReasonRedirect, Status: status}
	}
	return domain.Result{Outcome: domain.Refused, Reason: domain.ReasonHTTPStatus, Status: status}
}

// readBody reads within three bounds: bytes as they come, bytes decompressed,
// and time. A body that is read to its end leaves the connection for the next
// attempt; any other costs it.
func (s *Sender) readBody(a *attempt, resp *http.Response) (excerpt []byte, n int64) {
	timer := time.AfterFunc(s.bodyTime, func() { a.cancel(errBodyTime) })
	defer timer.Stop()
	raw := io.LimitReader(resp.Body, s.maxBody)
	body := io.LimitReader(decoded(resp.Header.Get("Content-Encoding"), raw), s.maxBody)
	excerpt, _ = io.ReadAll(io.LimitReader(body, int64(s.excerpt)))
	rest, _ := io.Copy(io.Discard, body)
	_, _ = io.Copy(io.Discard, raw)
	if len(excerpt) == 0 {
		excerpt = nil
	}
	return excerpt, int64(len(excerpt)) + rest
}

// decoded undoes the one coding that was offered. What is not gzip although it
// says so is read as nothing.
func decoded(coding string, raw io.Reader) io.Reader {
	switch strings.ToLower(strings.TrimSpace(coding)) {
	case "gzip", "x-gzip":
	default:
		return raw
	}
	z, err := gzip.NewReader(raw)
	if err != nil {
		return strings.NewReader("")
	}
	return z
}

// parseRetryAfter reads Retry-After (RFC 9110, section 10.2.3): seconds, or a
// date against now. A date in the past is zero, anything else is at most 24 h,
// and what is neither form is nil.
func parseRetryAfter(value string, now time.Time) *time.Duration {
	value = strings.TrimSpace(value)
	d, ok := parseSeconds(value)
	if !ok {
		date, err := http.ParseTime(value)
		if err != nil {
			return nil
		}
		d = date.Sub(now)
	}
	d = max(0, min(d, maxRetryAfter))
	return &d
}

// parseSeconds takes digits only, however many.
func parseSeconds(value string) (time.Duration, bool) {
	if value == "" || strings.Trim(value, "0123456789") != "" {
		return 0, false
	}
	n, err := strconv.ParseInt(value, 10, 64)
	if err != nil || n > int64(maxRetryAfter/time.Second) {
		return maxRetryAfter, true
	}
	return time.Duration(n) * time.Second, true
}
