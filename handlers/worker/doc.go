// Package worker delivers: it claims due work, makes the requests, and records what
// came of them.
//
//	find ──▶ roster ──▶ claim ──▶ senders ──▶ results ──▶ record
//	           ▲                                            │
//	           └───────── when it is due again ─────────────┘
//
// The roster knows which endpoints may have due work. The claim loop goes round
// them and takes a bounded number from each, never more than there are free senders,
// so that one slow endpoint cannot hold up the others. Senders hold no transaction
// and no connection to the database. Results that finish close together are
// recorded together; one that cannot be recorded is kept and tried until it can,
// and until then nothing else is written about it.
//
// A request starts only if the lease, counted from before the claim was asked for,
// outlasts its timeout by five seconds; what cannot start in time is given back.
// Beside that a worker recovers run-out claims, ends what waits at archived
// endpoints, and says that it is alive, so that caps are divided among the living.
//
// When its context ends a worker drains: it claims nothing more, gives back what it
// has not sent, waits for what is on the wire, and records all of it.
package worker
