package webhook_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"waybill/domain"
)

// certificate signs itself for name, valid until the given time.
func certificate(t *testing.T, until time.Time, name string) (tls.Certificate, *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: until.Add(-48 * time.Hour), NotAfter: until, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	if ip := net.ParseIP(name); ip != nil {
		template.IPAddresses = []net.IP{ip}
	} else {
		template.DNSNames = []string{name}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	leaf, _ := x509.ParseCertificate(der)
	pool := x509.NewCertPool()
	pool.AddCert(leaf)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, pool
}

func tlsServer(t *testing.T, config *tls.Config, handler http.HandlerFunc) string {
	t.Helper()
	srv := httptest.NewUnstartedServer(handler)
	srv.TLS, srv.EnableHTTP2 = config, true
	srv.Config.ErrorLog = log.New(io.Discard, "", 0)
	srv.StartTLS()
	t.Cleanup(srv.Close)
	return srv.URL
}

// TestUntrustedTLSIsUnreachedAndSaysWhy is case 23: certificates that are expired, of another name or of an unknown CA.
func TestUntrustedTLSIsUnreachedAndSaysWhy(t *testing.T) {
	t.Parallel()
	later := time.Now().Add(time.Hour)
	good, goodPool := certificate(t, later, "127.0.0.1")
	expired, expiredPool := certificate(t, time.Now().Add(-time.Hour), "127.0.0.1")
	named, namedPool := certificate(t, later, "other.example.com")
	for name, c := range map[string]struct {
		config *tls.Config
		roots  *x509.CertPool
		text   string
	}{
		"unknown authority": {&tls.Config{Certificates: []tls.Certificate{good}}, namedPool, "unknown authority"},
		"expired":           {&tls.Config{Certificates: []tls.Certificate{expired}}, expiredPool, "expired"},
		"wrong name":        {&tls.Config{Certificates: []tls.Certificate{named}}, namedPool, "127.0.0.1"},
		"old version":       {&tls.Config{Certificates: []tls.Certificate{good}, MaxVersion: tls.VersionTLS11, MinVersion: tls.VersionTLS10}, goodPool, "version"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := tlsServer(t, c.config, func(http.ResponseWriter, *http.Request) { t.Error("arrived") })
			res := newSender(t, trusting(c.roots)).Send(t.Context(), requestTo(url))
			expect(t, res, domain.Unreached, domain.ReasonTLS)
			if !strings.Contains(string(res.Detail), c.text) {
				t.Errorf("%s", res.Detail)
			}
		})
	}
}

func TestPlainServerBehindHTTPSIsTLS(t *testing.T) {
	t.Parallel()
	srv := httptest.NewUnstartedServer(http.NotFoundHandler())
	srv.Config.ErrorLog = log.New(io.Discard, "", 0)
	srv.Start()
	t.Cleanup(srv.Close)
	res := newSender(t).Send(t.Context(), requestTo(strings.Replace(srv.URL, "http:", "https:", 1)))
	expect(t, res, domain.Unreached, domain.ReasonTLS)
}

func TestTrustedTLSSpeaksHTTP1AndKeepsTheConnection(t *testing.T) {
	t.Parallel()
	cert, pool := certificate(t, time.Now().Add(time.Hour), "127.0.0.1")
	var peers []string
	url := tlsServer(t, &tls.Config{Certificates: []tls.Certificate{cert}}, func(_ http.ResponseWriter, r *http.Request) {
		peers = append(peers, r.RemoteAddr)
		if r.ProtoMajor != 1 || r.TLS.Version != tls.VersionTLS13 {
			t.Errorf("%s over %x", r.Proto, r.TLS.Version)
		}
	})
	s := newSender(t, trusting(pool))
	for range 3 {
		expect(t, s.Send(t.Context(), requestTo(url)), domain.Succeeded, "")
	}
	if peers[0] != peers[2] {
		t.Errorf("a new connection each time: %q", peers)
	}
}

// After the handshake the request is on the wire, and a reset leaves it in doubt.
func TestResetOverTLSIsUnknown(t *testing.T) {
	t.Parallel()
	cert, pool := certificate(t, time.Now().Add(time.Hour), "127.0.0.1")
	url := tlsServer(t, &tls.Config{Certificates: []tls.Certificate{cert}}, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		c, _, err := w.(http.Hijacker).Hijack()
		if err == nil {
			reset(c.(*tls.Conn).NetConn())
		}
	})
	expect(t, newSender(t, trusting(pool)).Send(t.Context(), requestTo(url)), domain.Unknown, domain.ReasonReset)
}
