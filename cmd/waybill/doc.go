// Command waybill is the delivery ledger: its server, and the tools of whoever
// operates it.
//
//	args, environment ──▶ cli ──▶ one command's Run
//	                                ├─ serve ──▶ node: API, worker, partitions
//	                                ├─ demo, dev: the same, on a database of their own
//	                                └─ session: one tenant of one ledger
//
// This is the only package that knows all others. It decides nothing: a command
// reads flags, calls a use case of handlers/command or a question of projections,
// and prints the answer, as an aligned table or, with --json, as one JSON value a
// line. What a node is made of is assembled in one place, [startNode].
//
// Exit codes are part of the contract: 0 done, 1 failed, 2 wrong usage, 3 refused,
// 4 verification found a fault.
// An error is one line on standard error, "waybill: CODE: message". It never
// carries a password of the database, a key or a secret; see [scrub].
//
// Whoever holds the database's URL is the operator, and is named
// operator:OSUSER@HOST in the log.
package main
