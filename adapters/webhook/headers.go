package webhook

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Bounds of an endpoint's own headers.
const (
	maxHeaders     = 32
	maxHeadersSize = 8 << 10 // bytes, names and values together
)

// tokenSymbols are the characters beside letters and digits that a field name may
// hold (RFC 9110, section 5.6.2).
const tokenSymbols = "!#$%&'*+-.^_`|~"

// reservedNames belong to Waybill or to the connection.
var reservedNames = []string{
	"accept-encoding", "connection", "content-length", "content-type", "expect", "host",
	"http2-settings", "keep-alive", "te", "traceparent", "tracestate", "trailer",
	"transfer-encoding", "upgrade", "user-agent",
}

// reservedPrefixes are families of such names.
var reservedPrefixes = []string{"webhook-", "waybill-", "proxy-"}

// CheckHeaders reports what is wrong with an endpoint's own headers: at most 32,
// at most 8 KiB in all, names that are tokens (RFC 9110, section 5.6.2), given
// once and not reserved, values without control characters or space around them.
// The error names the header and never its value. It serves for an idempotency
// header's name too.
func CheckHeaders(headers map[string]string) error {
	if len(headers) > maxHeaders {
		return fmt.Errorf("at most %d headers, not %d", maxHeaders, len(headers))
	}
	size, seen := 0, make(map[string]bool, len(headers))
	for _, name := range slices.Sorted(maps.Keys(headers)) {
		if err := checkHeader(name, headers[name]); err != nil {
			return err
		}
		if seen[strings.ToLower(name)] {
			return fmt.Errorf("header %s is given twice", name)
		}
		seen[strings.ToLower(name)] = true
		size += len(name) + len(headers[name])
	}
	if size > maxHeadersSize {
		return fmt.Errorf("headers are %d bytes in all, at most %d", size, maxHeadersSize)
	}
	return nil
}

func checkHeader(name, value string) error {
	switch {
	case name == "":
		return errors.New("a header needs a name")
	case !isToken(name):
		return fmt.Errorf("header name %.100q: letters, digits and %s only", name, tokenSymbols)
	case reserved(name):
		return fmt.Errorf("header %s is set by Waybill or by the connection", name)
	case strings.ContainsFunc(value, isControl):
		return fmt.Errorf("the value of header %s has a control character", name)
	case strings.TrimSpace(value) != value:
		return fmt.Errorf("the value of header %s begins or ends with space", name)
	}
	return nil
}

// reserved reports whether an endpoint may not set the header, in any case.
func reserved(name string) bool {
	name = strings.ToLower(name)
	return slices.Contains(reservedNames, name) ||
		slices.ContainsFunc(reservedPrefixes, func(p string) bool { return strings.HasPrefix(name, p) })
}

func isToken(name string) bool {
	return !strings.ContainsFunc(name, func(r rune) bool {
		return !isAlphanumeric(r) && !strings.ContainsRune(tokenSymbols, r)
	})
}

func isAlphanumeric(r rune) bool {
	return '0' <= r && r <= '9' || 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z'
}

func isControl(r rune) bool { return r < ' ' || r == 0x7f }
