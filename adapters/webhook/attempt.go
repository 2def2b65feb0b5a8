package webhook

import (
	"context"
	"errors"
	"net/http/httptrace"
	"sync"
	"time"
)

// Why an attempt's context ended, where it was not the caller who ended it.
var (
	errTimeout  = errors.New("the attempt's timeout ran out")
	errResend   = errors.New("the request was already written to another connection")
	errBodyTime = errors.New("the body took too long")
	errEnded    = errors.New("the attempt is over")
)

// attempt is the permit to write one request to one connection.
//
//	free ──hold──▶ held by a connection ──▶ (for good)
//	  ▲                │
//	  └── giveBack ────┘  the very first write failed and put nothing on the wire
//
// No connection but the holder may write for it, and none at all once it is over.
type attempt struct {
	ctx    context.Context
	cancel context.CancelCauseFunc
	stop   context.CancelFunc
	start  time.Time

	mu     sync.Mutex
	read   int64  // bytes that came from the receiver
	head   []byte // the first of them
	lent   *conn  // the connection net/http chose last
	holder *conn  // the one that was written to
	reused bool   // lent had served an earlier attempt
	over   bool
}

// attemptKey finds the attempt in a dial's context.
type attemptKey struct{}

// begin opens an attempt that lasts at most timeout; whoever begins one ends it.
func begin(ctx context.Context, timeout time.Duration) *attempt {
	a := &attempt{start: time.Now()}
	ctx, a.stop = context.WithTimeoutCause(ctx, timeout, errTimeout)
	ctx, a.cancel = context.WithCancelCause(ctx)
	ctx = context.WithValue(ctx, attemptKey{}, a)
	a.ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GetConn: a.wanted,
		GotConn: a.got,
	})
	return a
}

// end frees what the attempt holds, a dial still under way included.
func (a *attempt) end() {
	a.mu.Lock()
	lent := a.lent
	a.mu.Unlock()
	if lent != nil {
		lent.user.CompareAndSwap(a, nil)
	}
	a.cancel(errEnded)
	a.stop()
}

// wanted runs when net/http looks for a connection. When something was already
// written, that is a resend of its own making, and the attempt ends here.
func (a *attempt) wanted(string) {
	if a.written() {
		a.cancel(errResend)
	}
}

// got runs when net/http has a connection and has written nothing to it yet.
func (a *attempt) got(info httptrace.GotConnInfo) {
	c, ok := info.Conn.(*conn)
	if !ok {
		return
	}
	a.mu.Lock()
	a.lent, a.reused = c, info.Reused
	a.mu.Unlock()
	c.user.Store(a)
}

// hold asks for the permit on behalf of c; first says that nobody held it.
func (a *attempt) hold(c *conn) (first, ok bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.over || (a.holder != nil && a.holder != c) {
		return false, false
	}
	first = a.holder == nil
	a.holder = c
	return first, true
}

// giveBack frees the permit; only for a holder that provably wrote nothing.
func (a *attempt) giveBack() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.holder = nil
}

// written reports whether anything of the request may be on the wire; a write
// still under way counts.
func (a *attempt) written() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.holder != nil
}

// heard takes note of what the receiver said.
func (a *attempt) heard(p []byte) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.read += int64(len(p))
	a.head = append(a.head, p[:min(len(p), statusLine-len(a.head))]...)
}

// settle says how far the attempt came; nothing can be written after it.
func (a *attempt) settle() ending {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.over = true
	return ending{
		cause: context.Cause(a.ctx), connected: a.lent != nil, written: a.holder != nil,
		read: a.read, head: a.head,
	}
}

// mayMove reports whether the request may go to another connection: the last one
// was kept alive from earlier, and nothing was written to it. Each such answer
// uses up one idle connection, so a caller's loop ends.
func (a *attempt) mayMove() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.holder != nil || !a.reused || a.ctx.Err() != nil {
		return false
	}
	a.reused = false
	return true
}
