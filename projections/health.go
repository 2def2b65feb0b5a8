package projections

import "time"

// OutboxGroup is the rows of the outbox that wait, or that were refused for one reason.
type OutboxGroup struct {
	Code   string // of the refusal; empty: they wait
	Rows   int
	Oldest int64 // the least id
	Age    time.Duration
}

// Power is what the connected database role could do to the log.
type Power struct {
	Role      string
	Superuser bool
	Owner     bool // a member of the role that owns it
	Change    bool // may update, delete or truncate it, or a partition of it
}

// Appender is a transaction that has a lock on the log as those have who add to it: until
// it ends, positions that it may have drawn are not settled.
type Appender struct {
	Transaction string // virtual transaction id
	PID         int    // 0: a prepared transaction
	Application string
	State       string // of its session, or "prepared"
	Age         time.Duration
}

// Prepared says whether it is a prepared transaction, which no session holds.
func (a Appender) Prepared() bool { return a.PID == 0 }
