package webhook

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"sync/atomic"

	"code.dny.dev/ssrf"

	"waybill/domain"
)

// What a write may get.
var (
	errNotYours = errors.New("no attempt permits this write")
	errNothing  = errors.New("nothing was written")
)

// wire is a TCP connection that counts what is handed to the kernel, TLS records
// included.
type wire struct {
	net.Conn
	sent atomic.Int64
}

// Write counts what it writes.
func (w *wire) Write(p []byte) (int, error) {
	n, err := w.Conn.Write(p)
	w.sent.Add(int64(n))
	return n, err
}

// conn is what net/http writes a request to: a wire, or TLS over one. It is used
// by one attempt at a time and writes only with that attempt's permit.
type conn struct {
	net.Conn
	wire   *wire
	user   atomic.Pointer[attempt]
	broken atomic.Bool // a write failed
}

// Write needs the attempt's permit, and gives it back if nothing at all left:
// neither did the connection below take a byte, nor TLS seal one that went out.
func (c *conn) Write(p []byte) (int, error) {
	a := c.user.Load()
	if a == nil {
		return 0, errNotYours
	}
	first, ok := a.hold(c)
	if !ok {
		a.cancel(errResend)
		return 0, errNotYours
	}
	n, err := c.put(p, first)
	if first && errors.Is(err, errNothing) {
		a.giveBack()
	}
	return n, err
}

// put writes p. A write that breaks off half-way is reported as done, or net/http
// would hang up before it reads what a receiver answers who does not want the
// whole body (413, say). The connection is of no use after that: the rest of the
// request goes nowhere, and the next one is told to move on.
func (c *conn) put(p []byte, first bool) (int, error) {
	if c.broken.Load() {
		if first {
			return 0, errNothing
		}
		return len(p), nil
	}
	before := c.wire.sent.Load()
	n, err := c.Conn.Write(p)
	if err == nil {
		return n, nil
	}
	c.broken.Store(true)
	if first && n == 0 && c.wire.sent.Load() == before {
		return 0, fmt.Errorf("%w: %w", errNothing, err)
	}
	return len(p), nil
}

// Read counts for the attempt. What a receiver says while nobody asked is the
// end of the connection (net/http would log it).
func (c *conn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	a := c.user.Load()
	if a == nil && n > 0 {
		return 0, io.EOF
	}
	if a != nil {
		a.heard(p[:n])
	}
	return n, err
}

// dial connects for http.
func (s *Sender) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	w, err := s.dialWire(dialContext(ctx), network, addr)
	if err != nil {
		return nil, err
	}
	return &conn{Conn: w, wire: w}, nil
}

// dialTLS connects for https and completes the handshake, so that whatever is
// written to the connection it returns belongs to a request.
func (s *Sender) dialTLS(ctx context.Context, network, addr string) (net.Conn, error) {
	ctx = dialContext(ctx)
	w, err := s.dialWire(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	config := s.tls.Clone()
	config.ServerName, _, _ = net.SplitHostPort(addr)
	t := tls.Client(w, config)
	if err := t.HandshakeContext(ctx); err != nil {
		_ = w.Close()
		return nil, &fault{domain.ReasonTLS, err.Error()}
	}
	return &conn{Conn: t, wire: w}, nil
}

func (s *Sender) dialWire(ctx context.Context, network, addr string) (*wire, error) {
	c, err := s.dialer.DialContext(ctx, network, addr)
	if err != nil {
		return nil, dialFault(err)
	}
	return &wire{Conn: c}, nil
}

// dialContext is the attempt's own context. net/http lets a dial outlive the
// request that asked for it; here it ends with the attempt.
func dialContext(ctx context.Context) context.Context {
	if a, ok := ctx.Value(attemptKey{}).(*attempt); ok {
		return a.ctx
	}
	return ctx
}

// guardian holds the address rules: whatever IANA registers as special-purpose
// is refused, IPv4 inside IPv6 (mapped, NAT64, 6to4, Teredo) with it, unless allow
// contains it. Any port will do.
func guardian(allow []netip.Prefix) *ssrf.Guardian {
	var v4, v6 []netip.Prefix
	for _, p := range allow {
		if p.Addr().Is4In6() && p.Bits() >= 96 {
			p = netip.PrefixFrom(p.Addr().Unmap(), p.Bits()-96)
		}
		if p.Addr().Is4() {
			v4 = append(v4, p)
		} else {
			v6 = append(v6, p)
		}
	}
	return ssrf.New(ssrf.WithAnyPort(), ssrf.WithAllowedV4Prefixes(v4...), ssrf.WithAllowedV6Prefixes(v6...))
}
