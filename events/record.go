package events

import (
	"encoding/hex"
	"encoding/json"
	"fmt"

	"github.com/google/uuid"

	"waybill/domain"
)

// Stream is the kind of thing whose history a record belongs to.
type Stream string

// The kinds of stream.
const (
	DeliveryStream Stream = "delivery"
	EndpointStream Stream = "endpoint"
	AdminStream    Stream = "admin"
)

// Hash is the SHA-256 of a record's canonical bytes.
type Hash [32]byte

// String returns the hash in lower-case hexadecimal.
func (h Hash) String() string { return hex.EncodeToString(h[:]) }

// MarshalText returns the hash in lower-case hexadecimal.
func (h Hash) MarshalText() ([]byte, error) { return []byte(h.String()), nil }

// UnmarshalText reads 64 hexadecimal digits.
func (h *Hash) UnmarshalText(b []byte) error {
	if hex.DecodedLen(len(b)) != len(h) {
		return fmt.Errorf("a hash has 64 hexadecimal digits, not %d", len(b))
	}
	_, err := hex.Decode(h[:], b)
	return err
}

// Envelope is what every record carries beside its event: whose it is, who did
// it and when.
type Envelope struct {
	Tenant      string
	Stream      Stream
	StreamID    uuid.UUID
	RecordedAt  domain.Instant
	Actor       domain.Actor
	EndpointID  uuid.UUID // zero where no endpoint is concerned
	TraceParent string    // W3C Trace Context; empty where there is none
}

// Record is one line of the log. Position is the place among all records, drawn by
// the database when the record is inserted, and zero before.
type Record struct {
	Envelope
	Seq      int
	Position int64
	Name     string
	Version  int
	Data     json.RawMessage
	Hash     Hash
}

// recordJSON is a record as the contract shows it.
type recordJSON struct {
	Position    int64           `json:"position"`
	Tenant      string          `json:"tenant"`
	Stream      Stream          `json:"stream"`
	StreamID    uuid.UUID       `json:"stream_id"`
	Seq         int             `json:"seq"`
	Name        string          `json:"name"`
	Version     int             `json:"version"`
	RecordedAt  domain.Instant  `json:"recorded_at"`
	Actor       domain.Actor    `json:"actor"`
	EndpointID  uuid.UUID       `json:"endpoint_id,omitzero"`
	TraceParent string          `json:"trace_parent,omitempty"`
	Data        json.RawMessage `json:"data"`
	Hash        Hash            `json:"hash"`
}

func (v recordJSON) record() Record {
	return Record{Envelope: Envelope{Tenant: v.Tenant, Stream: v.Stream, StreamID: v.StreamID, RecordedAt: v.RecordedAt,
		Actor: v.Actor, EndpointID: v.EndpointID, TraceParent: v.TraceParent},
		Seq: v.Seq, Position: v.Position, Name: v.Name, Version: v.Version, Data: v.Data, Hash: v.Hash}
}

// MarshalJSON writes the record as the contract shows it.
func (r Record) MarshalJSON() ([]byte, error) {
	return json.Marshal(recordJSON{r.Position, r.Tenant, r.Stream, r.StreamID, r.Seq, r.Name, r.Version,
		r.RecordedAt, r.Actor, r.EndpointID, r.TraceParent, r.Data, r.Hash})
}

// Chain turns decided events into records that follow the stream's last one, whose
// seq and hash are given (0 and the zero hash for a new stream).
func Chain(e Envelope, after int, prev Hash, facts []domain.Event) ([]Record, error) {
	records := make([]Record, 0, len(facts))
	for _, f := range facts {
		name, version, data, err := Encode(f)
		if err != nil {
			return nil, err
		}
		after++
		r := Record{Envelope: e, Seq: after, Name: name, Version: version, Data: data}
		r.Hash = r.Sum(prev)
		prev = r.Hash
		records = append(records, r)
	}
	return records, nil
}
