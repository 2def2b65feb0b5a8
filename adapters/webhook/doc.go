// Package webhook makes one attempt: it signs a message, writes it to its
// endpoint at most once, and says what came of it.
//
//	Request ──sign──▶ dial ──address rules──▶ TLS ──▶ write ──▶ answer ──▶ Result
//	                  └──── unreached ─────────────┘ └ unknown ┘ └ succeeded, refused
//
// Where an attempt ended decides its outcome, and only the wire knows where it
// ended: a trace hook of net/http fires when a header enters a buffer, not when
// it leaves the process. So every connection counts what is written to it, and
// an [attempt] is a permit that exactly one connection may use. Nothing written
// is unreached; one byte written and no answer is unknown; a status line read
// decides by itself, whatever the body does afterwards.
//
// The permit also keeps a promise that net/http does not make. Its transport
// sends a request again by itself when a kept-alive connection breaks and the
// request looks replayable to it, which a header named Idempotency-Key is
// enough for. The second connection finds the permit taken and writes nothing:
// one attempt in the log is at most one arrival. A connection that was closed
// while it lay idle, so that nothing was written to it, gives the permit back,
// and the request goes out on another one.
//
// HTTP/1.1 only. HTTP/2 shares one connection among requests, and its frames,
// window updates and pings make "was a byte of this request written?" a question
// that the connection can no longer answer. One request a connection can.
//
// Addresses are checked when they are dialled, after resolution, each one that
// is tried, so that a name that points elsewhere between check and use gains
// nothing. [CheckURL] and [CheckHeaders] refuse at configuration time what could
// never be sent; they are a courtesy, the dialler is the rule. No proxy is used,
// whatever the environment says.
//
// The package follows no redirect, keeps no cookie, logs nothing and returns no
// error: whatever goes wrong is a [domain.Result]. It neither retries nor decides
// whether to.
package webhook
