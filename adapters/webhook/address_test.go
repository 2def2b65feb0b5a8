package webhook_test

import (
	"context"
	"encoding/binary"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"waybill/adapters/webhook"
	"waybill/domain"
)

// names is a DNS server that answers A questions with what lookup says (the zero
// Addr: no such name) and every other question with nothing.
func names(t *testing.T, lookup func() netip.Addr) *net.Resolver {
	t.Helper()
	pc, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		buf := make([]byte, 1500)
		for n, from, err := pc.ReadFrom(buf); err == nil; n, from, err = pc.ReadFrom(buf) {
			_, _ = pc.WriteTo(dnsAnswer(buf[:n], lookup), from)
		}
	}()
	t.Cleanup(func() { _ = pc.Close(); <-done })
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "udp", pc.LocalAddr().String())
	}}
}

// dnsAnswer builds a reply (RFC 1035, section 4) to a query with one question.
func dnsAnswer(query []byte, lookup func() netip.Addr) []byte {
	end := 12
	for query[end] != 0 {
		end += int(query[end]) + 1
	}
	end += 5 // the root label, type and class
	reply := append([]byte{query[0], query[1], 0x81, 0x80, 0, 1, 0, 0, 0, 0, 0, 0}, query[12:end]...)
	if binary.BigEndian.Uint16(query[end-4:]) != 1 {
		return reply
	}
	addr := lookup()
	if !addr.IsValid() {
		reply[3] |= 3 // NXDOMAIN
		return reply
	}
	reply[7] = 1
	reply = append(reply, 0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4)
	ip := addr.As4()
	return append(reply, ip[:]...)
}

func resolving(r *net.Resolver) func(*webhook.Config) {
	return func(c *webhook.Config) { c.Resolver = r }
}

func TestUnknownNameIsDNS(t *testing.T) {
	t.Parallel()
	s := newSender(t, resolving(names(t, func() netip.Addr { return netip.Addr{} })))
	res := s.Send(t.Context(), requestTo("https://nowhere.invalid/?k=pw"))
	expect(t, res, domain.Unreached, domain.ReasonDNS)
	if !strings.Contains(string(res.Detail), "nowhere.invalid") || strings.Contains(string(res.Detail), "pw") {
		t.Errorf("%s", res.Detail)
	}
}

func TestUnreachableResolverIsDNS(t *testing.T) {
	t.Parallel()
	dead := &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
		return nil, &net.OpError{Op: "dial", Net: "udp", Err: net.UnknownNetworkError("down")}
	}}
	expect(t, newSender(t, resolving(dead)).Send(t.Context(), requestTo("https://nowhere.invalid/")), domain.Unreached, domain.ReasonDNS)
}

// TestDNSFailsThenRecovers is case 15: unreached while the name does not resolve.
func TestDNSFailsThenRecovers(t *testing.T) {
	t.Parallel()
	var up atomic.Bool
	s := newSender(t, resolving(names(t, func() netip.Addr {
		if up.Load() {
			return netip.MustParseAddr("127.0.0.1")
		}
		return netip.Addr{}
	})))
	url := strings.Replace(httpServer(t, func(http.ResponseWriter, *http.Request) {}), "127.0.0.1", "hook.example.com", 1)
	expect(t, s.Send(t.Context(), requestTo(url)), domain.Unreached, domain.ReasonDNS)
	up.Store(true)
	expect(t, s.Send(t.Context(), requestTo(url)), domain.Succeeded, "")
}

// A name may answer the check with one address and the dial with another; only
// the one that is dialled counts, and a blocked one is not told.
func TestNameOfABlockedAddress(t *testing.T) {
	t.Parallel()
	var asked atomic.Int64
	s := newSender(t, resolving(names(t, func() netip.Addr {
		if asked.Add(1) == 1 {
			return netip.MustParseAddr("127.0.0.1")
		}
		return netip.MustParseAddr("10.20.30.40")
	})))
	url := strings.Replace(httpServer(t, func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Connection", "close") }),
		"127.0.0.1", "rebind.example.com", 1)
	expect(t, s.Send(t.Context(), requestTo(url)), domain.Succeeded, "")
	res := s.Send(t.Context(), requestTo(url))
	expect(t, res, domain.Unreached, domain.ReasonBlockedAddress)
	if strings.Contains(string(res.Detail), "10.20") {
		t.Errorf("detail says where the name points: %s", res.Detail)
	}
}

func TestBlockedAtDial(t *testing.T) {
	t.Parallel()
	s := newSender(t, func(c *webhook.Config) { c.AllowNetworks = nil })
	for _, host := range []string{
		"127.0.0.1", "localhost", "169.254.169.254", "10.0.0.1", "172.31.255.255", "192.168.1.1", "0.0.0.0", "100.64.0.1", "224.0.0.1",
		"255.255.255.255", "[::]", "[::1]", "[::ffff:10.0.0.1]", "[::ffff:127.0.0.1]", "[64:ff9b::7f00:1]", "[2002:7f00:1::]", "[fe80::1]",
		"[fe80::1%25lo]", "[fc00::1]", "[ff02::1]", "[::127.0.0.1]",
	} {
		for _, scheme := range []string{"http://", "https://"} {
			res := s.Send(t.Context(), requestTo(scheme+host+":9/"))
			if res.Outcome != domain.Unreached || res.Reason != domain.ReasonBlockedAddress {
				t.Errorf("%s: %s/%s %s", host, res.Outcome, res.Reason, res.Detail)
			}
		}
	}
}

// Spellings of inet_aton are names to Go's resolver and addresses to the C
// library's; either way nothing is reached.
func TestOddSpellingsReachNothing(t *testing.T) {
	t.Parallel()
	url := httpServer(t, func(http.ResponseWriter, *http.Request) { t.Error("arrived") })
	port := url[strings.LastIndex(url, ":"):]
	resolvers := map[string]*net.Resolver{
		"go": names(t, func() netip.Addr { return netip.Addr{} }),
		"c":  names(t, func() netip.Addr { return netip.MustParseAddr("127.0.0.1") }),
	}
	for name, resolver := range resolvers {
		s := newSender(t, resolving(resolver), func(c *webhook.Config) { c.AllowNetworks = nil })
		for _, host := range []string{"2130706433", "0x7f.1", "127.1", "017700000001"} {
			res := s.Send(t.Context(), requestTo("http://"+host+port))
			if res.Outcome != domain.Unreached || res.Reason != domain.ReasonDNS && res.Reason != domain.ReasonBlockedAddress {
				t.Errorf("%s, %s: %s/%s", host, name, res.Outcome, res.Reason)
			}
		}
	}
}

func TestProxyOfTheEnvironmentIsIgnored(t *testing.T) {
	proxy := httpServer(t, func(http.ResponseWriter, *http.Request) { t.Error("the proxy was asked") })
	t.Setenv("HTTP_PROXY", proxy)
	t.Setenv("HTTPS_PROXY", proxy)
	s := newSender(t, resolving(names(t, func() netip.Addr { return netip.MustParseAddr("10.0.0.1") })))
	r := requestTo("http://hook.example.com/")
	r.Timeout = time.Second
	expect(t, s.Send(t.Context(), r), domain.Unreached, domain.ReasonBlockedAddress)
}
