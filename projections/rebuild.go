package projections

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/google/uuid"

	"waybill/domain"
	"waybill/events"
)

// Fold computes rows of an inline projection from records that come stream by stream, each
// stream in order of seq from 1: as [FoldDelivery] and [FoldEndpoint] do, without keeping
// the records.
type Fold interface {
	// Columns names the columns that Row gives, in order.
	Columns() []string
	// Begin starts another stream.
	Begin(id uuid.UUID)
	// Add takes the stream's next record. Of its envelope only tenant and time are needed.
	Add(events.Record) error
	// Row writes the stream's row, a value for each of Columns.
	Row(to RowWriter) error
}

// RowWriter takes the values of a row, in order.
type RowWriter interface {
	UUID(uuid.UUID)    // the zero id is null
	Text(string)       // never null
	Optional(string)   // the empty one is null
	Integer(int)       // of 32 bits
	Bool(bool)         //
	At(domain.Instant) // the zero one is null
	Bytes([]byte)      // also JSON
	Texts([]string)    //
}

// NewFold returns the fold of an inline projection's streams.
func (p Projection) NewFold() Fold {
	if p.Stream == events.EndpointStream {
		return &endpointFold{}
	}
	return &deliveryFold{}
}

// next checks a record's place and decodes it.
func next(r events.Record, version int) (domain.Event, error) {
	if r.Seq != version+1 {
		return nil, fmt.Errorf("fold %s %s: seq %d is missing; the next is %d: run waybill verify", r.Stream, r.StreamID, version+1, r.Seq)
	}
	e, err := r.Event()
	if err != nil {
		return nil, fmt.Errorf("fold %s %s at seq %d: %w", r.Stream, r.StreamID, r.Seq, err)
	}
	return e, nil
}

type deliveryFold struct{ d Delivery }

// deliveryColumns is every column of a delivery's row.
var deliveryColumns = []string{
	"id", "tenant", "endpoint_id", "message_id", "event_type", "idempotency_key", "ordering_key", "state", "version",
	"attempts", "cycle", "cycle_attempts", "due_at", "claim_token", "failure_reason", "last_outcome", "last_attempt",
	"unknown_attempts", "proof", "forced_after", "held_by", "payload_erased", "created_at", "updated_at", "head_hash",
}

// Columns names what Row gives.
func (*deliveryFold) Columns() []string { return slices.Clone(deliveryColumns) }

// Begin starts another stream.
func (f *deliveryFold) Begin(id uuid.UUID) { f.d = Delivery{}; f.d.ID = id }

// Add takes the stream's next record.
func (f *deliveryFold) Add(r events.Record) error {
	e, err := next(r, f.d.Version)
	if err != nil {
		return err
	}
	f.d.take(&r, e)
	return nil
}

// Row writes the delivery's row.
func (f *deliveryFold) Row(to RowWriter) error {
	d := &f.d
	to.UUID(d.ID)
	to.Text(d.Tenant)
	to.UUID(d.EndpointID)
	to.UUID(d.MessageID)
	to.Text(d.EventType)
	to.Optional(d.IdempotencyKey)
	to.Optional(d.OrderingKey)
	to.Text(string(d.State))
	for _, n := range [...]int{d.Version, d.Attempts, d.Cycle, d.CycleAttempts} {
		to.Integer(n)
	}
	to.At(d.DueAt)
	to.UUID(d.Claim.Token)
	to.Optional(string(d.FailureReason))
	to.Optional(string(d.LastOutcome))
	for _, n := range [...]int{d.LastAttempt, d.UnknownAttempts, d.Proof, d.ForcedAfter} {
		to.Integer(n)
	}
	to.UUID(d.HeldBy)
	to.Bool(d.PayloadErased)
	to.At(d.CreatedAt)
	to.At(d.UpdatedAt)
	to.Bytes(d.Head[:])
	return nil
}

type endpointFold struct{ p Endpoint }

// endpointColumns is every column of an endpoint's row that is not computed from others.
var endpointColumns = []string{
	"id", "tenant", "url", "url_fingerprint", "description", "mode", "event_types", "policy", "status", "version",
	"head_hash", "created_at", "updated_at",
}

// Columns names what Row gives.
func (*endpointFold) Columns() []string { return slices.Clone(endpointColumns) }

// Begin starts another stream.
func (f *endpointFold) Begin(id uuid.UUID) { f.p = Endpoint{}; f.p.ID = id }

// Add takes the stream's next record.
func (f *endpointFold) Add(r events.Record) error {
	e, err := next(r, f.p.Version)
	if err != nil {
		return err
	}
	f.p.take(&r, e)
	return nil
}

// Row writes the endpoint's row.
func (f *endpointFold) Row(to RowWriter) error {
	p := &f.p
	policy, err := json.Marshal(p.Config.Policy)
	if err != nil {
		return fmt.Errorf("fold endpoint %s: %w", p.ID, err)
	}
	to.UUID(p.ID)
	to.Text(p.Tenant)
	to.Text(p.Config.URL)
	to.Bytes(p.Config.URLFingerprint)
	to.Text(p.Config.Description)
	to.Text(string(p.Config.Mode))
	to.Texts(p.Config.EventTypes)
	to.Bytes(policy)
	to.Text(string(p.Status))
	to.Integer(p.Version)
	to.Bytes(p.Head[:])
	to.At(p.CreatedAt)
	to.At(p.UpdatedAt)
	return nil
}

// Rebuilt is what a rebuild did, and what was wrong before it.
type Rebuilt struct {
	Projection string           `json:"projection"`
	Version    int              `json:"version"`
	DryRun     bool             `json:"dry_run"`
	Streams    int64            `json:"streams,omitempty"` // folded; those that changed meanwhile count again
	Events     int64            `json:"events"`
	Rows       int64            `json:"rows"`
	Compared   bool             `json:"compared"`  // not if the rows before were of another version, or had stopped elsewhere
	Differing  int64            `json:"differing"` // rows that were not as the log says
	Kinds      map[string]int64 `json:"kinds"`     // of them: changed, missing (in the table) or extra (not in the log)
	Columns    map[string]int64 `json:"columns"`   // in which those changed differ
	First      []Differing      `json:"first"`     // the least of them by key, at most a hundred
	Swaps      int              `json:"swap_tries"`
	LockedMS   int64            `json:"locked_ms"` // how long the table was locked for the swap
	TookMS     int64            `json:"took_ms"`
}

// Differing is a row that was not as the log says.
type Differing struct {
	Key     string   `json:"key"`
	Kind    string   `json:"kind" enum:"changed,missing,extra"`
	Columns []string `json:"columns,omitempty"`
}
