package api

import (
	"encoding/json"
	"reflect"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"github.com/google/uuid"

	"waybill/domain"
	"waybill/events"
)

// newRegistry returns where schemas are kept, under the names of the contract.
func newRegistry() huma.Registry {
	contract := strings.NewReplacer("EndpointView", "Endpoint", "ClaimView", "Claim", "View", "Delivery")
	r := huma.NewMapRegistry("#/components/schemas/", func(t reflect.Type, hint string) string {
		return contract.Replace(huma.DefaultSchemaNamer(t, hint))
	})
	r.RegisterTypeAlias(reflect.TypeFor[uuid.UUID](), reflect.TypeFor[idSchema]())
	r.RegisterTypeAlias(reflect.TypeFor[domain.Instant](), reflect.TypeFor[instantSchema]())
	r.RegisterTypeAlias(reflect.TypeFor[events.Hash](), reflect.TypeFor[hashSchema]())
	r.RegisterTypeAlias(reflect.TypeFor[events.Record](), reflect.TypeFor[event]())
	return r
}

// finish puts right what huma derives: answers may have members beside the described
// ones, as the contract reserves (requests, named …Input, may not), and where null is
// taken beside fixed values it is one of them.
func finish(r huma.Registry) {
	for name, schema := range r.Map() {
		if !strings.HasSuffix(name, "Input") && schema.AdditionalProperties == false {
			schema.AdditionalProperties = nil
		}
		for _, member := range schema.Properties {
			if member.Nullable && len(member.Enum) > 0 {
				member.Enum = append(member.Enum, nil)
			}
		}
	}
}

type idSchema struct{}

// Schema describes an id.
func (idSchema) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{Type: "string", Format: "uuid", Description: "UUIDv7"}
}

type hashSchema struct{}

// Schema describes a hash.
func (hashSchema) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{Type: "string", Pattern: "^[0-9a-f]{64}$", Description: "SHA-256, in hex"}
}

type instantSchema struct{}

// Schema describes a time.
func (instantSchema) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{Type: "string", Format: "date-time", Description: "RFC 3339 with microseconds, UTC"}
}

// event describes how an [events.Record] writes itself.
type event struct {
	Position    int64           `json:"position" doc:"place in the whole log"`
	Tenant      string          `json:"tenant"`
	Stream      string          `json:"stream" enum:"delivery,endpoint,admin"`
	StreamID    uuid.UUID       `json:"stream_id"`
	Seq         int             `json:"seq" doc:"place in the stream, from 1, without holes"`
	Name        string          `json:"name" example:"delivery.attempted"`
	Version     int             `json:"version" doc:"of the format of data"`
	RecordedAt  domain.Instant  `json:"recorded_at"`
	Actor       string          `json:"actor" doc:"who was authenticated" example:"worker:w1"`
	EndpointID  uuid.UUID       `json:"endpoint_id,omitempty"`
	TraceParent string          `json:"trace_parent,omitempty" doc:"W3C Trace Context"`
	Data        json.RawMessage `json:"data"`
	Hash        string          `json:"hash" doc:"SHA-256 of the event and of the hash before it, in hex"`
}

// document is a JSON object that is checked against the schema of T and handed on as
// it came.
type document[T any] struct{ raw json.RawMessage }

// UnmarshalJSON keeps the bytes.
func (d *document[T]) UnmarshalJSON(b []byte) error {
	d.raw = append(json.RawMessage(nil), b...)
	return nil
}

// Schema is that of T.
func (document[T]) Schema(r huma.Registry) *huma.Schema {
	return r.Schema(reflect.TypeFor[T](), true, "")
}

// endpointInput describes what makes or changes an endpoint.
type endpointInput struct {
	URL         *string      `json:"url,omitempty" doc:"https, without user, password and fragment; http only inside --allow-networks"`
	Description *string      `json:"description,omitempty" nullable:"true" doc:"at most 2000 bytes"`
	Mode        *string      `json:"mode,omitempty" nullable:"true" enum:"http,remote" doc:"http: Waybill sends; remote: only remote workers claim, and there is no url"`
	EventTypes  []string     `json:"event_types,omitempty" doc:"exact, or prefix.*; none: all"`
	Policy      *policyInput `json:"policy,omitempty" doc:"what is left out stays as it is; null is back to the default"`
}

// policyInput describes what may be given of a policy: each member, or null for its
// default.
type policyInput struct {
	Timeout           *string            `json:"timeout,omitempty" nullable:"true" doc:"of a whole request, 100ms to 30s; default 15s"`
	Retries           *retriesInput      `json:"retries,omitempty" doc:"either delays, or base, factor, cap and attempts; one form replaces the other"`
	Jitter            *float64           `json:"jitter,omitempty" nullable:"true" doc:"0 to 1; default 0.1"`
	MaxInFlight       *int               `json:"max_in_flight,omitempty" nullable:"true" doc:"1 to 100000; null: no cap of its own"`
	RatePerSecond     *float64           `json:"rate_per_second,omitempty" nullable:"true" doc:"not supported by this version"`
	SubmitRate        *string            `json:"submit_rate,omitempty" nullable:"true" doc:"of what is handed in to this very endpoint, such as 1000/1m; null: no limit"`
	OnUnknown         *string            `json:"on_unknown_outcome,omitempty" nullable:"true" enum:"retry,hold" doc:"default retry"`
	Ordering          *string            `json:"ordering,omitempty" nullable:"true" enum:"none,block,pass" doc:"only none is supported by this version"`
	Headers           map[string]*string `json:"headers,omitempty" doc:"merged by name; null removes one. Values are never shown again."`
	IdempotencyHeader *string            `json:"idempotency_header,omitempty" nullable:"true" enum:"Idempotency-Key" doc:"its value is the message id"`
	CA                *string            `json:"ca_pem,omitempty" nullable:"true" doc:"certificates in PEM to trust instead of the system's"`
	ExpireAfter       *string            `json:"expire_after,omitempty" nullable:"true" doc:"not supported by this version"`
	DisableAfter      *string            `json:"disable_after,omitempty" nullable:"true" doc:"not supported by this version"`
}

// retriesInput describes a schedule in one of its two forms.
type retriesInput struct {
	Delays   []string `json:"delays,omitempty" doc:"delays[i] precedes attempt i+1; 1 to 100 entries of 0s to 720h"`
	Base     *string  `json:"base,omitempty" nullable:"true" doc:"default 5s"`
	Factor   *float64 `json:"factor,omitempty" nullable:"true" doc:"1 to 100; default 3"`
	Cap      *string  `json:"cap,omitempty" nullable:"true" doc:"at most 720h; default 10h"`
	Attempts *int     `json:"attempts,omitempty" nullable:"true" doc:"1 to 100, all of a cycle; default 10"`
}
