// Package api answers HTTP: the calls under /v1 of the contract, their OpenAPI
// description, and the two probes.
//
//	request ─▶ edge: deadline, panics, 404 and 405
//	           └▶ key and scope (one an operation, declared with it)
//	              └▶ handler ─▶ a use case of handlers/command, or a question
//
// A handler knows no SQL and takes no decision. It turns a request into the words
// of a use case and the answer into those of the contract. Refusals become RFC 9457
// problems by one table from [domain.Kind] to status; everything else is a fault, of
// which the caller learns no more than whether trying again may help.
//
// Payloads are bytes: they are read by hand, bounded, and never decoded, also where
// they stand as values inside a batch's JSON. Everything else that is JSON is held
// to what text columns can keep (see checkJSON): nothing is silently replaced.
package api
