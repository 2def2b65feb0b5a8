package webhook_test

import (
	"bufio"
	"crypto/x509"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"go.uber.org/goleak"

	"waybill/adapters/webhook"
	"waybill/domain"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// loopback is what every test that has a server allows.
var loopback = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}

const secretA = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSwMfKQ9r8GKYq="

// newSender returns a sender that may call loopback; change may alter its config.
func newSender(t testing.TB, change ...func(*webhook.Config)) *webhook.Sender {
	t.Helper()
	c := webhook.Config{AllowNetworks: loopback, UserAgentVersion: "1.2.3"}
	for _, f := range change {
		f(&c)
	}
	s := webhook.New(c)
	t.Cleanup(s.Close)
	return s
}

func trusting(roots *x509.CertPool) func(*webhook.Config) {
	return func(c *webhook.Config) { c.RootCAs = roots }
}

func requestTo(url string) domain.Request {
	return domain.Request{
		DeliveryID: uuid.Must(uuid.NewV7()), MessageID: uuid.Must(uuid.NewV7()), Attempt: 3,
		EventType: "order.paid", ContentType: "application/json", Payload: []byte(`{"a":1}`),
		Timeout: 5 * time.Second, URL: url, Secrets: []string{secretA}, At: time.Now(),
	}
}

// httpServer serves handler on loopback until the test ends.
func httpServer(t testing.TB, handler http.HandlerFunc) string {
	t.Helper()
	srv := httptest.NewServer(handler)
	t.Cleanup(srv.Close)
	return srv.URL
}

// rawServer hands each connection to serve, which owns it, and waits for all of
// them at the test's end.
func rawServer(t testing.TB, serve func(n int, c net.Conn, r *bufio.Reader)) (url string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		acceptAll(l, serve)
	}()
	t.Cleanup(func() { _ = l.Close(); <-done })
	return "http://" + l.Addr().String()
}

func acceptAll(l net.Listener, serve func(int, net.Conn, *bufio.Reader)) {
	var open atomic.Int64
	idle := make(chan struct{}, 1024)
	for n := 0; ; n++ {
		c, err := l.Accept()
		if err != nil {
			break
		}
		open.Add(1)
		_ = c.SetDeadline(time.Now().Add(4 * time.Second))
		go func() {
			defer func() { _ = c.Close(); idle <- struct{}{} }()
			serve(n, c, bufio.NewReader(c))
		}()
	}
	for range open.Load() {
		<-idle
	}
}

// readRequest reads one whole request; false at the connection's end.
func readRequest(r *bufio.Reader) bool {
	req, err := http.ReadRequest(r)
	if err != nil {
		return false
	}
	_, err = io.Copy(io.Discard, req.Body)
	return err == nil
}

// reset closes c so that its peer sees RST.
func reset(c net.Conn) {
	_ = c.(*net.TCPConn).SetLinger(0)
	_ = c.Close()
}

func expect(t *testing.T, res domain.Result, outcome domain.Outcome, reason domain.Reason) {
	t.Helper()
	if res.Outcome != outcome || res.Reason != reason {
		t.Fatalf("got %s/%s (%d, %s), want %s/%s", res.Outcome, res.Reason, res.Status, res.Detail, outcome, reason)
	}
}
