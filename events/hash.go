package events

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"

	"github.com/google/uuid"
)

// hashPrefix separates the hashes of events from all other uses of SHA-256.
const hashPrefix = "waybill.event.v1"

// Canonical returns the bytes whose SHA-256 is the record's hash: the prefix, then
// each field as a big-endian u32 length and its bytes. prev is the hash of the
// stream's previous record; at seq 1 there is none and its field is empty.
func (r Record) Canonical(prev Hash) []byte {
	return r.AppendCanonical(make([]byte, 0, 256+len(r.Data)), prev)
}

// AppendCanonical is Canonical for whoever hashes many records and has room already.
func (r *Record) AppendCanonical(b []byte, prev Hash) []byte {
	b = append(b, hashPrefix...)
	b = field(b, r.Tenant)
	b = field(b, r.Stream)
	b = field(b, r.StreamID[:])
	b = binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint32(b, 8), uint64(r.Seq))
	b = field(b, r.Name)
	b = binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(b, 4), uint32(r.Version))
	b = binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint32(b, 8), uint64(r.RecordedAt.UnixMicro()))
	b = field(b, r.Actor)
	b = field(b, optional(&r.EndpointID))
	b = field(b, r.TraceParent)
	b = field(b, r.Data)
	if r.Seq == 1 {
		return field(b, "")
	}
	return field(b, prev[:])
}

// Sum is the record's hash, given the hash of the stream's previous record.
func (r Record) Sum(prev Hash) Hash { return sha256.Sum256(r.Canonical(prev)) }

func field[T ~string | ~[]byte](b []byte, v T) []byte {
	b = binary.BigEndian.AppendUint32(b, uint32(len(v)))
	return append(b, v...)
}

func optional(id *uuid.UUID) []byte {
	if *id == uuid.Nil {
		return nil
	}
	return id[:]
}

// Commitment binds bytes that stay outside the log to the log without saying
// anything about them: HMAC-SHA256 of the bytes under a random salt. Erasing bytes
// and salt leaves a value that nobody can test guesses against.
func Commitment(salt, content []byte) []byte {
	m := hmac.New(sha256.New, salt)
	m.Write(content)
	return m.Sum(nil)
}

// Fingerprint tells whether a repeated idempotency key comes with the same content:
// HMAC-SHA256, under the message's salt, over content type, event type, ordering
// key and bytes, each preceded by its length.
func Fingerprint(salt []byte, contentType, eventType, orderingKey string, payload []byte) []byte {
	m := hmac.New(sha256.New, salt)
	for _, s := range []string{contentType, eventType, orderingKey} {
		m.Write(field(nil, s))
	}
	m.Write(binary.BigEndian.AppendUint32(nil, uint32(len(payload))))
	m.Write(payload)
	return m.Sum(nil)
}

// HashOf is SHA-256, of a record's canonical bytes.
func HashOf(canonical []byte) Hash { return sha256.Sum256(canonical) }
