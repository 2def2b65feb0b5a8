package webhook

import (
	"crypto/tls"
	"errors"
	"io"
	"net"
	"strconv"
	"strings"
	"syscall"

	"code.dny.dev/ssrf"

	"waybill/domain"
)

// fault is a dial that failed, already told apart.
type fault struct {
	reason domain.Reason
	text   string
}

// Error is the fault's text.
func (f *fault) Error() string { return f.text }

// dialFault tells a refused address, a name without one and an address without
// an answer apart. Where a blocked name points stays unsaid: that would read
// somebody's internal DNS out to whoever may configure an endpoint.
func dialFault(err error) *fault {
	var dns *net.DNSError
	switch {
	case errors.Is(err, ssrf.ErrProhibitedIP), errors.Is(err, ssrf.ErrProhibitedNetwork),
		errors.Is(err, ssrf.ErrInvalidHostPort):
		return &fault{domain.ReasonBlockedAddress, "the host is, or resolves to, an address that is not allowed"}
	case errors.As(err, &dns):
		return &fault{domain.ReasonDNS, "lookup " + dns.Name + ": " + dns.Err}
	}
	return &fault{domain.ReasonConnect, err.Error()}
}

// ending is how far an attempt without an answer came.
type ending struct {
	cause     error // of its context's end, if that ended
	connected bool
	written   bool
	read      int64
	head      []byte
}

// failed turns the end of an attempt that got no answer into its result.
func (a *attempt) failed(err error) domain.Result {
	e := a.settle()
	if status, ok := e.status(); ok {
		res := verdict(status)
		res.Detail = bound(e.brokenAnswer(), maxDetail)
		return res
	}
	reason, text := e.reason(err)
	if !e.written {
		return unreached(reason, text)
	}
	return domain.Result{Outcome: domain.Unknown, Reason: reason, Detail: bound(text, maxDetail)}
}

// statusLine is as much of an answer as holds its status.
const statusLine = len("HTTP/1.1 200")

// status is what the receiver answered although its headers never came to a good
// end: malformed, too large, too slow, or cut off. They came after a whole status
// line, and the status decides.
func (e ending) status() (int, bool) {
	if len(e.head) < statusLine {
		return 0, false
	}
	status, err := strconv.Atoi(string(e.head[statusLine-3:]))
	return status, err == nil && status >= 200 && strings.HasPrefix(string(e.head), "HTTP/1.")
}

// brokenAnswer says why there is nothing of the answer but its status. The text is
// ours alone, as what the receiver wrote may quote our headers.
func (e ending) brokenAnswer() string {
	switch {
	case e.read >= maxHeaderBytes:
		return "the answer's headers exceed 64 KiB; only its status counts"
	case errors.Is(e.cause, errTimeout):
		return "the answer's headers did not end in time; only its status counts"
	}
	return "the answer's headers are malformed or were cut off; only its status counts"
}

// reason says why no answer came. After a byte was written the text is ours
// alone: what net/http says by then may quote the receiver, who may quote our
// headers.
func (e ending) reason(err error) (domain.Reason, string) {
	switch {
	case e.written && e.read >= maxHeaderBytes:
		return domain.ReasonTooLarge, "the answer's headers exceed 64 KiB"
	case errors.Is(e.cause, errTimeout):
		return domain.ReasonTimeout, e.timeoutText()
	case e.cause != nil && !errors.Is(e.cause, errResend):
		return domain.ReasonCancelled, "ended by the worker"
	case e.written:
		return domain.ReasonReset, resetText(err)
	}
	return e.unwritten(err)
}

// unwritten is reason for a request of which nothing left.
func (e ending) unwritten(err error) (domain.Reason, string) {
	if f, ok := errors.AsType[*fault](err); ok {
		return f.reason, f.text
	}
	if _, ok := errors.AsType[tls.AlertError](err); ok {
		return domain.ReasonTLS, err.Error()
	}
	if e.connected {
		return domain.ReasonConnect, "the connection broke before anything was written"
	}
	return domain.ReasonInternal, "the request could not be built"
}

func (e ending) timeoutText() string {
	switch {
	case e.written:
		return "no answer in time"
	case e.connected:
		return "nothing could be written in time"
	}
	return "no connection in time"
}

func resetText(err error) string {
	switch {
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return "the connection was reset before an answer"
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, errResend):
		return "the connection was closed before an answer"
	}
	return "the connection broke, or what came was not an HTTP answer"
}

func unreached(reason domain.Reason, text string) domain.Result {
	return domain.Result{Outcome: domain.Unreached, Reason: reason, Detail: bound(text, maxDetail)}
}

// bound cuts text to n bytes of valid UTF-8; none is nil.
func bound(text string, n int) []byte {
	if text == "" {
		return nil
	}
	if len(text) > n {
		text = text[:n]
	}
	return []byte(strings.ToValidUTF8(text, ""))
}
