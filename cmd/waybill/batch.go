package main

import "runtime/debug"

// What long work on the whole log may use: it makes garbage at a rate that the collector
// would otherwise spend a fifth of the time on, and must stay small all the same.
const (
	batchGarbage = 400 // percent of what is in use
	batchMemory  = 220 << 20
)

// batch lets the collector rest more, up to a bound, for commands that go through the
// whole log and end.
func batch() {
	debug.SetGCPercent(batchGarbage)
	debug.SetMemoryLimit(batchMemory)
}
