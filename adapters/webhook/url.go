package webhook

import (
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// maxURL bounds an endpoint's URL, in bytes.
const maxURL = 2048

// hidden stands where a value was.
const hidden = "***"

// loopbacks are what the name localhost stands for (RFC 6761, section 6.3).
var loopbacks = []netip.Addr{netip.AddrFrom4([4]byte{127, 0, 0, 1}), netip.IPv6Loopback()}

// What is wrong with a URL, in words for whoever wrote it.
var (
	errURLParse    = errors.New("the url does not parse; give an absolute one such as https://example.com/hook")
	errURLLong     = fmt.Errorf("the url is longer than %d bytes", maxURL)
	errURLScheme   = errors.New("the url must begin with https:// (http:// only for an address inside --allow-networks)")
	errURLUserinfo = errors.New("the url must not carry a user or password; send them as a header instead")
	errURLFragment = errors.New("the url must not have a fragment (#…); it is never sent")
	errURLPort     = errors.New("the url's port must be between 1 and 65535")
	errURLBlocked  = errors.New("the url's address is private, loopback or reserved; the operator can allow it with --allow-networks")
)

// CheckURL reports whether an endpoint may have this URL: absolute, https, a host
// and no userinfo or fragment. Plain http is for localhost or a literal address
// inside allow. A literal address is held to the address rules at once, also in
// the spellings of inet_aton (2130706433, 0x7f.1); a name is, when it is dialled.
// The error tells its reader what to do and quotes neither userinfo nor query.
func CheckURL(raw string, allow []netip.Prefix) error {
	if len(raw) > maxURL {
		return errURLLong
	}
	u, err := url.Parse(raw)
	if err != nil || u.Hostname() == "" || u.Opaque != "" {
		return errURLParse
	}
	switch {
	case u.User != nil:
		return errURLUserinfo
	case strings.Contains(raw, "#"):
		return errURLFragment
	case u.Scheme != "https" && u.Scheme != "http":
		return errURLScheme
	case !validPort(u.Port()):
		return errURLPort
	}
	exempt, err := checkHost(u.Hostname(), allow)
	if err == nil && u.Scheme == "http" && !exempt {
		return errURLScheme
	}
	return err
}

func validPort(port string) bool {
	n, err := strconv.ParseUint(port, 10, 16)
	return port == "" || err == nil && n > 0
}

// checkHost refuses hosts that cannot be or may not be dialled. exempt says that
// the host is an address, or localhost, that allow contains.
func checkHost(host string, allow []netip.Prefix) (exempt bool, err error) {
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	if host == "localhost" || strings.HasSuffix(host, ".localhost") {
		if !slices.ContainsFunc(loopbacks, func(a netip.Addr) bool { return within(a, allow) }) {
			return false, errURLBlocked
		}
		return true, nil
	}
	addr, err := literal(host)
	if err != nil {
		return false, err
	}
	if !addr.IsValid() {
		return false, checkName(host)
	}
	if guardian(allow).SafeAddr(addr) != nil {
		return false, errURLBlocked
	}
	if addr.String() != host && !strings.Contains(host, ":") {
		return false, fmt.Errorf("the url's host is an unusual spelling of %s; write that", addr)
	}
	return within(addr, allow), nil
}

func within(a netip.Addr, allow []netip.Prefix) bool {
	return slices.ContainsFunc(allow, func(p netip.Prefix) bool {
		return p.Contains(a) || p.Addr().Is4In6() && p.Contains(netip.AddrFrom16(a.As16()))
	})
}

// checkName holds a host to what a DNS name can be; others come as punycode.
func checkName(host string) error {
	bad := len(host) > 253
	for label := range strings.SplitSeq(host, ".") {
		bad = bad || label == "" || len(label) > 63 || strings.ContainsFunc(label, func(r rune) bool {
			return !isAlphanumeric(r) && r != '-' && r != '_'
		})
	}
	if bad {
		return errors.New("the url's host is not a DNS name; write international names in punycode (xn--…)")
	}
	return nil
}

// literal reads host as an address; the zero Addr if it is a name. A host whose
// last label is a number is an address or nothing (WHATWG URL, section 3.5).
func literal(host string) (netip.Addr, error) {
	if addr, err := netip.ParseAddr(host); err == nil {
		return addr.Unmap(), nil
	}
	labels := strings.Split(host, ".")
	last := labels[len(labels)-1]
	if strings.Contains(host, ":") || last != "" && (strings.Trim(last, "0123456789") == "" || strings.HasPrefix(last, "0x")) {
		return aton(labels)
	}
	return netip.Addr{}, nil
}

// aton reads one to four numbers, decimal, octal (0…) or hexadecimal (0x…), the
// last of which fills what the others leave of the 32 bits.
func aton(labels []string) (netip.Addr, error) {
	bad := errors.New("the url's host is neither a name nor a valid address")
	if len(labels) > 4 {
		return netip.Addr{}, bad
	}
	var sum uint64
	for i, label := range labels {
		n, err := parseNumber(label)
		room, shift := uint64(1)<<8, 8*(3-i)
		if i == len(labels)-1 {
			room, shift = uint64(1)<<(8*(4-i)), 0
		}
		if err != nil || n >= room {
			return netip.Addr{}, bad
		}
		sum |= n << shift
	}
	return netip.AddrFrom4([4]byte{byte(sum >> 24), byte(sum >> 16), byte(sum >> 8), byte(sum)}), nil
}

func parseNumber(label string) (uint64, error) {
	switch {
	case label == "0x":
		return 0, nil
	case strings.HasPrefix(label, "0x"):
		return strconv.ParseUint(label[2:], 16, 64)
	case len(label) > 1 && label[0] == '0':
		return strconv.ParseUint(label, 8, 64)
	}
	return strconv.ParseUint(label, 10, 64)
}

// RedactURL returns raw without userinfo, fragment and query values: each value
// becomes "***", names and order stay. A query part without "=" may be a value as
// well as a name, and is hidden. What does not parse is hidden whole.
func RedactURL(raw string) string {
	u, err := url.Parse(raw)
	if err != nil || u.Opaque != "" {
		return hidden
	}
	u.User, u.Fragment, u.RawFragment = nil, "", ""
	if u.RawQuery != "" {
		u.RawQuery = redactQuery(u.RawQuery)
	}
	return strings.ToValidUTF8(u.String(), "\uFFFD")
}

func redactQuery(query string) string {
	parts := strings.Split(query, "&")
	for i, part := range parts {
		name, _, named := strings.Cut(part, "=")
		switch {
		case named:
			parts[i] = name + "=" + hidden
		case part != "":
			parts[i] = hidden
		}
	}
	return strings.Join(parts, "&")
}
