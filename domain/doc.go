// Package domain decides what may happen to a delivery: one message owed to one
// endpoint. Its history is a list of [Event]; its state is what [Delivery.Evolve]
// makes of them.
//
//	          ┌────────── retry_scheduled, released ─────────┐
//	          ▼                                              │
//	scheduled ─▶ pending ──claimed──▶ processing ──attempted─┼─ succeeded ─▶ delivered
//	          ▲     ▲                                        ├─ gave up ────▶ failed
//	          │     │                                        └─ in doubt ───▶ held
//	          │     └──────────── resolved: retry ──────────────────────────────┘
//	          └── replayed ── failed (delivered, cancelled: only with force)
//
// A decision is a method that returns events or a refusal (an [*Error]) and
// changes nothing, so it may run twice after a conflict. Evolve folds one event
// into the state and cannot fail; the same fold serves the inline projection,
// rebuilding, reading as of a time, and verification.
//
// Ownership is the claim token. A result that arrives under another token is
// late: [Delivery.RecordLate] keeps it as an attempt of its own claim and lets it
// move the state only where the receiver's answer leaves no other truth.
//
// The package does no I/O, reads no clock and draws no random number: time,
// identity and jitter arrive as arguments, so every rule is a table test.
package domain
