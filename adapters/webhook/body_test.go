package webhook_test

import (
	"bufio"
	"bytes"
	"compress/gzip"
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

// answering serves every request with an answer's raw bytes, then tail.
func answering(t *testing.T, head string, tail func(net.Conn)) string {
	t.Helper()
	return rawServer(t, func(_ int, c net.Conn, r *bufio.Reader) {
		if readRequest(r) {
			_, _ = io.WriteString(c, head)
			tail(c)
		}
	})
}

func drip(c net.Conn) {
	for _, err := io.WriteString(c, "x"); err == nil; _, err = io.WriteString(c, "x") {
		time.Sleep(20 * time.Millisecond)
	}
}

func gzipped(data []byte) []byte {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, _ = z.Write(data)
	_ = z.Close()
	return b.Bytes()
}

// TestBodiesWithoutEndAreBounded is case 20: bodies without end, dripping ones and gzip bombs are bounded.
func TestBodiesWithoutEndAreBounded(t *testing.T) {
	t.Parallel()
	bomb := bytes.Repeat(gzipped(make([]byte, 1<<20)), 10_000) // 10 GB in 10 MB
	const open = "HTTP/1.1 200 OK\r\nConnection: close\r\n"
	for name, c := range map[string]struct {
		head  string
		tail  func(net.Conn)
		bytes int64 // -1: some
	}{
		"endless":      {open + "\r\n", func(c net.Conn) { repeat(c, "x") }, 64 << 10},
		"dripping":     {open + "\r\n", drip, -1},
		"silent":       {open + "Content-Length: 5\r\n\r\nab", func(c net.Conn) { _, _ = c.Read(make([]byte, 1)) }, 2},
		"cut":          {open + "Content-Length: 5\r\n\r\nab", func(net.Conn) {}, 2},
		"reset":        {open + "Content-Length: 5\r\n\r\nab", func(c net.Conn) { time.Sleep(50 * time.Millisecond); reset(c) }, 2},
		"gzip bomb":    {open + "Content-Encoding: gzip\r\n\r\n", func(c net.Conn) { _, _ = c.Write(bomb) }, 64 << 10},
		"not gzip":     {open + "Content-Encoding: gzip\r\n\r\n", func(c net.Conn) { repeat(c, "x") }, 0},
		"silent gzip":  {open + "Content-Encoding: gzip\r\n\r\n", func(c net.Conn) { _, _ = c.Read(make([]byte, 1)) }, 0},
		"empty blocks": {open + "Content-Encoding: x-gzip\r\n\r\n\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff", func(c net.Conn) { repeat(c, "\x00\x00\x00\xff\xff") }, 0},
		"bad chunk":    {open + "Transfer-Encoding: chunked\r\n\r\n2\r\nab\r\nzz", func(net.Conn) {}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSender(t, func(c *webhook.Config) { c.BodyTimeout = 200 * time.Millisecond })
			start := time.Now()
			res := s.Send(t.Context(), requestTo(answering(t, c.head, c.tail)))
			expect(t, res, domain.Succeeded, "")
			if c.bytes >= 0 && res.ResponseBytes != c.bytes || len(res.Excerpt) > 4096 {
				t.Errorf("%d bytes, excerpt %d", res.ResponseBytes, len(res.Excerpt))
			}
			if d := time.Since(start); d > 2*time.Second {
				t.Errorf("took %s", d)
			}
		})
	}
}

func TestBodyIsWithinTheAttemptsTimeout(t *testing.T) {
	t.Parallel()
	r := requestTo(answering(t, "HTTP/1.1 500 Oh\r\nConnection: close\r\n\r\n", drip))
	r.Timeout = 500 * time.Millisecond
	res := newSender(t).Send(t.Context(), r)
	expect(t, res, domain.Refused, domain.ReasonHTTPStatus)
	if res.Duration > 2*time.Second {
		t.Error(res.Duration)
	}
}

func TestGzipIsDecodedAndTheConnectionKept(t *testing.T) {
	t.Parallel()
	var peers []string
	packed := gzipped([]byte("hello"))
	url := httpServer(t, func(w http.ResponseWriter, r *http.Request) {
		peers = append(peers, r.RemoteAddr)
		w.Header().Set("Content-Encoding", "gzip")
		_, _ = w.Write(packed)
	})
	s := newSender(t)
	for range 3 {
		res := s.Send(t.Context(), requestTo(url))
		if string(res.Excerpt) != "hello" || res.ResponseBytes != 5 {
			t.Fatalf("%+v", res)
		}
	}
	if peers[0] != peers[2] {
		t.Errorf("a new connection each time: %q", peers)
	}
}

func TestExcerptIsABeginning(t *testing.T) {
	t.Parallel()
	url := httpServer(t, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, strings.Repeat("x", 9000)) })
	res := newSender(t).Send(t.Context(), requestTo(url))
	if len(res.Excerpt) != 4096 || res.ResponseBytes != 9000 {
		t.Errorf("excerpt %d of %d", len(res.Excerpt), res.ResponseBytes)
	}
}

// Odd bytes from a receiver are kept as they came; odd headers do not hide the
// status.
func TestOddBytesOfAnAnswer(t *testing.T) {
	t.Parallel()
	const odd, length = "a\x00b\xff\xfe\r\n", "Content-Length: 7\r\n\r\n"
	for name, c := range map[string]struct {
		head    string
		outcome domain.Outcome
		status  int
		excerpt string
	}{
		"body":            {"HTTP/1.1 200 OK\r\n", domain.Succeeded, 200, odd},
		"reason phrase":   {"HTTP/1.1 200 \x00\xff\r\n", domain.Succeeded, 200, odd},
		"broken utf-8":    {"HTTP/1.1 200 OK\r\nX-Odd: \xff\xfe\r\n", domain.Succeeded, 200, odd},
		"nul in a header": {"HTTP/1.1 200 OK\r\nX-Odd: a\x00b\r\n", domain.Succeeded, 200, ""},
		"nul in location": {"HTTP/1.1 302 OK\r\nLocation: /\x00\xff\r\n", domain.Refused, 302, ""},
		"nul in a name":   {"HTTP/1.1 410 Gone\r\nX-\x00: a\r\n", domain.Refused, 410, ""},
		"nul in a status": {"HTTP/1.1 2\x0000 OK\r\n", domain.Unknown, 0, ""},
		"nul after a 1xx": {"HTTP/1.1 103 Hi\r\nX: a\x00b\r\n", domain.Unknown, 0, ""},
		"no http at all":  {"SSH-2.0-x 200\r\nX: a\x00b\r\n", domain.Unknown, 0, ""},
	} {
		url := answering(t, c.head+length, func(c net.Conn) { _, _ = io.WriteString(c, odd) })
		res := newSender(t).Send(t.Context(), requestTo(url))
		if res.Outcome != c.outcome || res.Status != c.status || string(res.Excerpt) != c.excerpt {
			t.Errorf("%s: %s %s %q %s", name, res.Outcome, res.Reason, res.Excerpt, res.Detail)
		}
	}
}

// Bytes that nobody asked for end a connection and nothing else.
func TestUnsolicitedBytesEndTheConnection(t *testing.T) {
	t.Parallel()
	released, hungUp := make(chan bool), make(chan bool)
	url := rawServer(t, func(_ int, c net.Conn, r *bufio.Reader) {
		readRequest(r)
		_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
		<-released
		_, _ = io.WriteString(c, "HTTP/1.1 500 Forged\r\nContent-Length: 0\r\n\r\n")
		hungUp <- !readRequest(r)
	})
	s := newSender(t)
	for range 2 {
		expect(t, s.Send(t.Context(), requestTo(url)), domain.Succeeded, "")
		released <- true
		if !<-hungUp {
			t.Fatal("the connection was used again")
		}
	}
}
