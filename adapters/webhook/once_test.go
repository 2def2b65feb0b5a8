package webhook

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/netip"
	"sync/atomic"
	"testing"
	"time"

	"waybill/domain"
)

// listener answers the first request of every connection, reads the second whole
// and closes without a word. It counts requests.
func listener(t *testing.T) (url string, arrivals *atomic.Int64) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	arrivals = new(atomic.Int64)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for c, err := l.Accept(); err == nil; c, err = l.Accept() {
			answerOnce(c, arrivals)
		}
	}()
	t.Cleanup(func() { _ = l.Close(); <-done })
	return "http://" + l.Addr().String(), arrivals
}

func answerOnce(c net.Conn, arrivals *atomic.Int64) {
	defer func() { _ = c.Close() }()
	r := bufio.NewReader(c)
	for n := range 2 {
		_ = c.SetDeadline(time.Now().Add(2 * time.Second))
		req, err := http.ReadRequest(r)
		if err != nil {
			return
		}
		_, _ = io.Copy(io.Discard, req.Body)
		arrivals.Add(1)
		if n == 0 {
			_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
		}
	}
}

func requestFor(url, payload string) domain.Request {
	return domain.Request{URL: url, Payload: []byte(payload), Secrets: []string{"whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"},
		Timeout: 2 * time.Second, At: time.Now(), IdempotencyHeader: "Idempotency-Key",
		Headers: map[string]string{"X-Idempotency-Key": "k"}}
}

func local(t *testing.T) *Sender {
	t.Helper()
	s := New(Config{AllowNetworks: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}})
	t.Cleanup(s.Close)
	return s
}

func check(t *testing.T, res domain.Result, outcome domain.Outcome, reason domain.Reason) {
	t.Helper()
	if res.Outcome != outcome || res.Reason != reason {
		t.Fatalf("got %s/%s (%s), want %s/%s", res.Outcome, res.Reason, res.Detail, outcome, reason)
	}
}

// TestOneAttemptIsAtMostOneArrival is net/http's own resend, provoked: a reused
// connection that dies unanswered, and a header that makes a POST look replayable.
func TestOneAttemptIsAtMostOneArrival(t *testing.T) {
	t.Parallel()
	for name, payload := range map[string]string{"empty": "", "body": "{}", "large": string(make([]byte, 1<<20))} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url, arrivals := listener(t)
			s := local(t)
			check(t, s.Send(t.Context(), requestFor(url, payload)), domain.Succeeded, "")
			check(t, s.Send(t.Context(), requestFor(url, payload)), domain.Unknown, domain.ReasonReset)
			if n := arrivals.Load(); n != 2 {
				t.Fatalf("2 attempts, %d arrivals", n)
			}
			check(t, s.Send(t.Context(), requestFor(url, payload)), domain.Succeeded, "")
		})
	}
}

// TestTransportWouldResend shows that the test above provokes what it means to:
// the plain transport makes two arrivals of the one request.
func TestTransportWouldResend(t *testing.T) {
	t.Parallel()
	url, arrivals := listener(t)
	plain := &http.Transport{}
	t.Cleanup(plain.CloseIdleConnections)
	for range 2 {
		req, _ := local(t).request(t.Context(), requestFor(url, ""))
		resp, err := plain.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, resp.Body)
		_ = resp.Body.Close()
	}
	if n := arrivals.Load(); n != 3 {
		t.Fatalf("2 requests, %d arrivals; net/http has changed", n)
	}
}

// TestPermitHoldsAgainstTheTransport gives net/http every reason to send again,
// GetBody included; the permit alone stops it.
func TestPermitHoldsAgainstTheTransport(t *testing.T) {
	t.Parallel()
	url, arrivals := listener(t)
	s := local(t)
	check(t, s.Send(t.Context(), requestFor(url, "x")), domain.Succeeded, "")
	a := begin(t.Context(), time.Second)
	defer a.end()
	req, _ := s.request(a.ctx, requestFor(url, "x"))
	body := req.Body
	req.GetBody = func() (io.ReadCloser, error) { return body, nil }
	_, err := s.transport.RoundTrip(req)
	if a.mayMove() {
		t.Fatal("a written request may not move")
	}
	check(t, a.failed(err), domain.Unknown, domain.ReasonReset)
	if n := arrivals.Load(); n != 2 {
		t.Fatalf("2 attempts, %d arrivals", n)
	}
}

// TestDeadIdleConnectionCostsNothing breaks the idle connection between the
// moment it is chosen and the first write: nothing was written, so the request
// goes out on a new one.
func TestDeadIdleConnectionCostsNothing(t *testing.T) {
	t.Parallel()
	for name, breakIt := range map[string]func(*conn){
		"write side": func(c *conn) { _ = c.wire.Conn.(*net.TCPConn).CloseWrite() },
		"both":       func(c *conn) { _ = c.Close() },
	} {
		for _, payload := range []string{"", "body"} {
			t.Run(name+" "+payload, func(t *testing.T) {
				t.Parallel()
				url, arrivals := listener(t)
				s := local(t)
				check(t, s.Send(t.Context(), requestFor(url, payload)), domain.Succeeded, "")
				broken := 0
				ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{GotConn: func(i httptrace.GotConnInfo) {
					if i.Reused {
						broken++
						breakIt(i.Conn.(*conn))
					}
				}})
				check(t, s.Send(ctx, requestFor(url, payload)), domain.Succeeded, "")
				if broken != 1 || arrivals.Load() != 2 {
					t.Fatalf("%d broken, %d arrivals", broken, arrivals.Load())
				}
			})
		}
	}
}

// flaky is a connection that takes some of the first write, then fails.
type flaky struct {
	net.Conn
	takes int
}

func (f flaky) Write([]byte) (int, error) { return f.takes, errors.New("broken") }

func TestPermit(t *testing.T) {
	t.Parallel()
	newConn := func(a *attempt, takes int) *conn {
		w := &wire{Conn: flaky{takes: takes}}
		c := &conn{Conn: w, wire: w}
		c.user.Store(a)
		return c
	}
	a := begin(context.Background(), time.Minute)
	defer a.end()
	if _, err := newConn(a, 0).Write([]byte("abc")); err == nil || a.written() {
		t.Fatal("nothing left, yet it counts")
	}
	c := newConn(a, 1)
	if _, _ = c.Write([]byte("abc")); !a.written() {
		t.Fatal("one byte left, yet it does not count")
	}
	if _, err := newConn(a, 3).Write([]byte("abc")); !errors.Is(err, errNotYours) || context.Cause(a.ctx) != errResend {
		t.Fatalf("a second connection wrote: %v", err)
	}
	if n, err := c.Write([]byte("abc")); n != 3 || err != nil || c.wire.sent.Load() != 1 || !a.written() {
		t.Fatalf("after the break: %d, %v, %d bytes", n, err, c.wire.sent.Load())
	}
	a.settle()
	if _, err := c.Write([]byte("abc")); !errors.Is(err, errNotYours) {
		t.Fatalf("written after the end: %v", err)
	}
	b := begin(context.Background(), time.Minute)
	defer b.end()
	c.user.Store(b)
	if _, err := c.Write([]byte("abc")); !errors.Is(err, errNothing) || b.written() {
		t.Fatalf("a broken connection served another attempt: %v", err)
	}
}
