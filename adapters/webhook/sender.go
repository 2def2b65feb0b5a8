package webhook

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"net"
	"net/http"
	"net/netip"
	"time"

	"waybill/domain"
)

// Bounds that no configuration moves.
const (
	maxTimeout     = 30 * time.Second // of a whole attempt
	defaultTimeout = 15 * time.Second // where a request names none
	maxHeaderBytes = 64 << 10         // of an answer's status line and headers, 1xx included
	idleTimeout    = 60 * time.Second // before an unused connection is closed
	maxIdle        = 1024             // connections kept open, all hosts together
	maxIdlePerHost = 64               // of them to one host
	maxLocation    = 2048             // bytes kept of a redirect's target
	maxDetail      = 500              // bytes kept of an error's text
)

// Config is what a [Sender] may be told. The zero value is ready for the public
// internet.
type Config struct {
	AllowNetworks []netip.Prefix // allowed although the address rules would refuse them
	RootCAs       *x509.CertPool // nil: the system's
	Resolver      *net.Resolver  // nil: the system's

	UserAgentVersion string        // of "waybill/VERSION"; "dev" if empty
	MaxResponseBytes int64         // of a body, before and after decompression; 64 KiB if 0
	ExcerptBytes     int           // of a body that are kept; 4096 if 0
	BodyTimeout      time.Duration // for a body, within the attempt's timeout; 5 s if 0
}

// Sender makes attempts. It is safe for concurrent use and keeps connections
// alive between attempts; [Sender.Close] ends the idle ones.
type Sender struct {
	transport *http.Transport
	dialer    *net.Dialer
	tls       *tls.Config
	userAgent string
	maxBody   int64
	excerpt   int
	bodyTime  time.Duration
	config    Config
	own       senders // of endpoints that trust certificates of their own
}

// New returns a Sender; it opens nothing yet.
func New(c Config) *Sender {
	c = c.withDefaults()
	s := &Sender{
		dialer:    &net.Dialer{Control: guardian(c.AllowNetworks).Safe, Resolver: c.Resolver},
		tls:       &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: c.RootCAs, NextProtos: []string{"http/1.1"}},
		userAgent: "waybill/" + c.UserAgentVersion,
		maxBody:   c.MaxResponseBytes,
		excerpt:   c.ExcerptBytes,
		bodyTime:  c.BodyTimeout,
		config:    c,
	}
	s.transport = s.newTransport()
	return s
}

func (c Config) withDefaults() Config {
	if c.UserAgentVersion == "" {
		c.UserAgentVersion = "dev"
	}
	if c.MaxResponseBytes <= 0 {
		c.MaxResponseBytes = 64 << 10
	}
	if c.ExcerptBytes <= 0 {
		c.ExcerptBytes = 4096
	}
	if c.BodyTimeout <= 0 {
		c.BodyTimeout = 5 * time.Second
	}
	return c
}

// newTransport sets Proxy to nothing and HTTP/2 to off on purpose; see the
// package comment.
func (s *Sender) newTransport() *http.Transport {
	var http1 http.Protocols
	http1.SetHTTP1(true)
	return &http.Transport{
		Protocols:              &http1,
		DialContext:            s.dial,
		DialTLSContext:         s.dialTLS,
		DisableCompression:     true, // decoded by us, within the bound
		MaxIdleConns:           maxIdle,
		MaxIdleConnsPerHost:    maxIdlePerHost,
		IdleConnTimeout:        idleTimeout,
		MaxResponseHeaderBytes: maxHeaderBytes,
	}
}

// Close ends the idle connections. Attempts under way are not disturbed.
func (s *Sender) Close() {
	s.transport.CloseIdleConnections()
	s.own.close()
}

// Send makes one attempt and reports it. It lasts at most r.Timeout (15 s if
// that is 0, 30 s at most), body included. Ending ctx ends the attempt as
// cancelled, unless the answer's headers are already here.
func (s *Sender) Send(ctx context.Context, r domain.Request) domain.Result {
	if r.CA != "" {
		own := s.own.trusting(r.CA, s.config)
		r.CA = ""
		return own.Send(ctx, r)
	}
	a := begin(ctx, timeoutOf(r))
	defer a.end()
	res := s.exchange(a, r)
	res.URL, res.StartedAt = RedactURL(r.URL), r.At
	res.Duration = time.Since(a.start)
	return res
}

// exchange goes round again only when a kept-alive connection turned out to be
// dead before anything was written to it.
func (s *Sender) exchange(a *attempt, r domain.Request) domain.Result {
	for {
		req, err := s.request(a.ctx, r)
		if err != nil {
			return unreached(domain.ReasonInternal, err.Error())
		}
		resp, err := s.transport.RoundTrip(req)
		if err == nil {
			return s.answer(a, resp, r.At)
		}
		if !a.mayMove() {
			return a.failed(err)
		}
	}
}

func timeoutOf(r domain.Request) time.Duration {
	if r.Timeout <= 0 {
		return defaultTimeout
	}
	return min(r.Timeout, maxTimeout)
}
