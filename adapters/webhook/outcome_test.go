package webhook_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"waybill/adapters/webhook"
	"waybill/domain"
)

func TestStatusDecides(t *testing.T) {
	t.Parallel()
	for status, want := range map[int]domain.Outcome{
		200: domain.Succeeded, 201: domain.Succeeded, 204: domain.Succeeded, 299: domain.Succeeded,
		400: domain.Refused, 403: domain.Refused, 410: domain.Refused, 429: domain.Refused, 500: domain.Refused, 503: domain.Refused,
	} {
		url := httpServer(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) })
		res := newSender(t).Send(t.Context(), requestTo(url))
		reason := domain.ReasonHTTPStatus
		if want == domain.Succeeded {
			reason = ""
		}
		expect(t, res, want, reason)
		if res.Status != status || res.URL != url || res.Duration <= 0 {
			t.Errorf("%+v", res)
		}
	}
}

// TestRedirectsAreRefusedAndNotFollowed is case 21: redirects are refused, and where they lead is kept.
func TestRedirectsAreRefusedAndNotFollowed(t *testing.T) {
	t.Parallel()
	for _, status := range []int{300, 301, 302, 303, 304, 307, 308} {
		calls := 0
		url := httpServer(t, func(w http.ResponseWriter, _ *http.Request) {
			calls++
			w.Header().Set("Location", "/elsewhere"+strings.Repeat("x", 5000))
			w.WriteHeader(status)
		})
		res := newSender(t).Send(t.Context(), requestTo(url))
		expect(t, res, domain.Refused, domain.ReasonRedirect)
		if calls != 1 || len(res.Location) != 2048 || !strings.HasPrefix(string(res.Location), "/elsewhere") || res.Status != status {
			t.Errorf("%d: %d calls, location %d bytes", status, calls, len(res.Location))
		}
	}
}

func TestConnectionRefusedIsUnreached(t *testing.T) {
	t.Parallel()
	l, _ := net.Listen("tcp", "127.0.0.1:0")
	_ = l.Close()
	res := newSender(t).Send(t.Context(), requestTo("http://u:pw@"+l.Addr().String()+"/?k=pw"))
	expect(t, res, domain.Unreached, domain.ReasonConnect)
	if strings.Contains(string(res.Detail)+res.URL, "pw") {
		t.Errorf("leaks: %s %s", res.Detail, res.URL)
	}
}

// After the request was read, every end without a status line is unknown.
//
// Case 24: what was written and got no answer is unknown.
func TestWrittenAndUnansweredIsUnknown(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		end    func(net.Conn)
		reason domain.Reason
	}{
		"reset":   {reset, domain.ReasonReset},
		"closed":  {func(c net.Conn) { _ = c.Close() }, domain.ReasonReset},
		"garbage": {func(c net.Conn) { _, _ = io.WriteString(c, "Authorization: hunter2\r\n\r\n") }, domain.ReasonReset},
		"half":    {func(c net.Conn) { _, _ = io.WriteString(c, "HTTP/1.1 20") }, domain.ReasonReset},
		"only 1xx": {func(c net.Conn) { _, _ = io.WriteString(c, "HTTP/1.1 103 Early Hints\r\n\r\n") },
			domain.ReasonReset},
		"endless 1xx": {func(c net.Conn) { repeat(c, "HTTP/1.1 103 Early Hints\r\nX: y\r\n\r\n") }, domain.ReasonTooLarge},
		"silence":     {func(net.Conn) { time.Sleep(500 * time.Millisecond) }, domain.ReasonTimeout},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := rawServer(t, func(_ int, conn net.Conn, r *bufio.Reader) {
				readRequest(r)
				c.end(conn)
			})
			r := requestTo(url)
			if c.reason == domain.ReasonTimeout {
				r.Timeout = 300 * time.Millisecond
			}
			r.Headers = map[string]string{"Authorization": "hunter2"}
			res := newSender(t).Send(t.Context(), r)
			expect(t, res, domain.Unknown, c.reason)
			if res.Status != 0 || len(res.Detail) == 0 || strings.Contains(string(res.Detail), "hunter2") {
				t.Errorf("%+v", res)
			}
		})
	}
}

// Case 20: the status line decides, however its headers end.
func TestStatusDecidesWhateverTheHeadersAre(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(net.Conn){
		"endless line":  func(c net.Conn) { repeat(c, "HTTP/1.1 200 OK ") },
		"large headers": func(c net.Conn) { _, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\n"); repeat(c, "A: b\r\n") },
		"two lengths": func(c net.Conn) {
			_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab")
		},
		"cut off": func(c net.Conn) { _, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nA: b"); _ = c.Close() },
		"dripping": func(c net.Conn) {
			_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nA: b")
			time.Sleep(500 * time.Millisecond)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := rawServer(t, func(_ int, conn net.Conn, r *bufio.Reader) {
				readRequest(r)
				end(conn)
			})
			r := requestTo(url)
			r.Timeout = 300 * time.Millisecond
			res := newSender(t).Send(t.Context(), r)
			expect(t, res, domain.Succeeded, "")
			if res.Status != 200 || len(res.Detail) == 0 {
				t.Errorf("%+v", res)
			}
		})
	}
}

// repeat writes until the peer has had enough.
func repeat(w io.Writer, s string) {
	chunk := []byte(strings.Repeat(s, 1+4096/len(s)))
	for {
		if _, err := w.Write(chunk); err != nil {
			return
		}
	}
}

// A receiver may answer before it has read the whole body, and hang up: its
// answer counts, and its connection is not used again.
func TestAnswerBeforeTheWholeBodyWasRead(t *testing.T) {
	t.Parallel()
	for _, header := range []string{"Connection: close\r\n", ""} {
		url := rawServer(t, func(_ int, c net.Conn, r *bufio.Reader) {
			_, _ = http.ReadRequest(r)
			_, _ = io.WriteString(c, "HTTP/1.1 413 Too Large\r\n"+header+"Content-Length: 2\r\n\r\nno")
		})
		s := newSender(t)
		for range 30 {
			r := requestTo(url)
			r.Payload = make([]byte, 1<<20)
			res := s.Send(t.Context(), r)
			expect(t, res, domain.Refused, domain.ReasonHTTPStatus)
			if res.Status != 413 {
				t.Fatalf("%+v", res)
			}
		}
	}
}

func TestInterimAnswerIsNotFinal(t *testing.T) {
	t.Parallel()
	url := rawServer(t, func(_ int, c net.Conn, r *bufio.Reader) {
		readRequest(r)
		_, _ = io.WriteString(c, "HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 202 Accepted\r\nContent-Length: 2\r\n\r\nok")
	})
	res := newSender(t).Send(t.Context(), requestTo(url))
	expect(t, res, domain.Succeeded, "")
	if res.Status != 202 || string(res.Excerpt) != "ok" {
		t.Errorf("%+v", res)
	}
}

func TestSwitchingProtocolsIsRefused(t *testing.T) {
	t.Parallel()
	url := rawServer(t, func(_ int, c net.Conn, r *bufio.Reader) {
		readRequest(r)
		_, _ = io.WriteString(c, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n")
		_, _ = c.Read(make([]byte, 1))
	})
	start := time.Now()
	res := newSender(t).Send(t.Context(), requestTo(url))
	expect(t, res, domain.Refused, domain.ReasonHTTPStatus)
	if res.Status != 101 || time.Since(start) > 2*time.Second {
		t.Errorf("%+v", res)
	}
}

func TestEndedBeforeTheFirstByte(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	url := httpServer(t, func(http.ResponseWriter, *http.Request) { t.Error("arrived") })
	expect(t, newSender(t).Send(ctx, requestTo(url)), domain.Unreached, domain.ReasonCancelled)
}

func TestCancelledWhileWaiting(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	url := rawServer(t, func(_ int, c net.Conn, r *bufio.Reader) {
		readRequest(r)
		cancel()
		_, _ = c.Read(make([]byte, 1))
	})
	expect(t, newSender(t).Send(ctx, requestTo(url)), domain.Unknown, domain.ReasonCancelled)
}

// A receiver that accepts and never reads blocks the write half-way: something
// was written, so nobody can know.
func TestTimeoutWhileWritingIsUnknown(t *testing.T) {
	t.Parallel()
	url := rawServer(t, func(_ int, _ net.Conn, _ *bufio.Reader) { time.Sleep(2 * time.Second) })
	r := requestTo(url)
	r.Payload, r.Timeout = make([]byte, 16<<20), 1500*time.Millisecond
	expect(t, newSender(t).Send(t.Context(), r), domain.Unknown, domain.ReasonTimeout)
}

// A listener whose backlog is full, or that never shakes hands, cannot be reached
// in time; the bytes of a TLS handshake are not bytes of the request.
func TestTimeoutInTheHandshakeIsUnreached(t *testing.T) {
	t.Parallel()
	url := rawServer(t, func(_ int, c net.Conn, _ *bufio.Reader) { _, _ = io.Copy(io.Discard, c) })
	r := requestTo(strings.Replace(url, "http:", "https:", 1))
	r.Timeout = 150 * time.Millisecond
	expect(t, newSender(t).Send(t.Context(), r), domain.Unreached, domain.ReasonTimeout)
}

func TestTimeoutWhileResolvingIsUnreached(t *testing.T) {
	t.Parallel()
	silent := &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	}}
	s := newSender(t, func(c *webhook.Config) { c.Resolver = silent })
	r := requestTo("https://hook.example.com/")
	r.Timeout = 150 * time.Millisecond
	expect(t, s.Send(t.Context(), r), domain.Unreached, domain.ReasonTimeout)
}

func TestManyAtOnceKeepTheirOwnAnswers(t *testing.T) {
	t.Parallel()
	url := httpServer(t, func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, r.Header.Get("Webhook-Id")) })
	s := newSender(t)
	done := make(chan string, 400)
	for range 40 {
		go func() {
			for range 10 {
				r := requestTo(url)
				if res := s.Send(context.Background(), r); string(res.Excerpt) != r.MessageID.String() {
					done <- string(res.Excerpt) + string(res.Detail)
					continue
				}
				done <- ""
			}
		}()
	}
	for range 400 {
		if got := <-done; got != "" {
			t.Error(got)
		}
	}
}
