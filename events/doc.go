// Package events says what one line of the log is: the record, the codec that names
// and versions its event, and the hash that chains it to the line before.
//
// # Names and versions
//
// Names are written by hand and never derived from Go types. Every name has a
// version; data of an older version is brought up to the present one when it is
// read, never in the log. testdata holds one frozen file per name and version.
//
// # Canonical bytes
//
// A record's hash is SHA-256 over the ASCII text "waybill.event.v1" and then, each
// as a big-endian u32 length and its bytes: tenant, stream, stream id (16 bytes),
// seq (u64), name, version (u32), recorded at (i64, microseconds since 1970 UTC),
// actor, endpoint id (16 bytes, or none), trace parent (or none), data (the JSON
// bytes as stored), hash of the stream's previous record (none at seq 1). Integers
// are big-endian. The position is not part of it: the database draws it when the
// record is inserted.
//
// # Test vectors
//
// Tenant "default", stream "delivery", stream id 01890a5d-ac96-774b-bcce-b302099a8057,
// seq 1, name "delivery.delivered", version 1, recorded at 1767323045678901, actor
// "worker:w1", endpoint id 01890a5d-ac96-774b-bcce-b302099a8058, no trace parent,
// data {"attempt":1} has the canonical bytes
//
//	77617962696c6c2e6576656e742e76310000000764656661756c740000000864
//	656c69766572790000001001890a5dac96774bbcceb302099a80570000000800
//	000000000000010000001264656c69766572792e64656c697665726564000000
//	0400000001000000080006475ef6574f3500000009776f726b65723a77310000
//	001001890a5dac96774bbcceb302099a8058000000000000000d7b2261747465
//	6d7074223a317d00000000
//
// and the hash
//
//	414e42a885b15b15b8d41e0668ffbb385d4176e5a9a455666ed5b654718add1e
//
// Followed by the same at seq 2, without an endpoint id and with trace parent
// "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01":
//
//	4adb3b04d6f19daa1a1ee4d5e4834d32ddda8409a57858c137d70923d937c363
package events
