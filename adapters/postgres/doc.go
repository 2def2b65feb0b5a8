// Package postgres writes and reads the ledger.
//
// # What an append promises
//
// Events go in and projection rows change in one statement, or nothing does. A
// change states the version it was decided on; where the stream has moved on, that
// change is stale: nothing of it is written and its id comes back, while its
// neighbours are written. Rows are locked in order of id, so that two appends cannot
// deadlock on each other. No hot transaction takes a lock that all of them share.
//
// # What a claim promises
//
// One short transaction locks due rows with SKIP LOCKED, decides in Go, appends and
// writes the claim down. Ownership is the claim's token; the lease only ends it.
//
// # Time
//
// [Clock] estimates the database's clock from a reading at most five seconds old. A
// record's time is part of its hash, so it must be known before the insert.
//
// # Faults
//
// Refusals are *domain.Error. Everything else is a fault; [Transient] tells those
// that may pass by themselves, and [Unsure] those after which the write may have
// happened all the same.
package postgres
