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
