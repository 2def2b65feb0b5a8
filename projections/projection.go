package projections

import (
	"context"
	_ "embed"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"waybill/domain"
	"waybill/events"
)

var (
	//go:embed sql/list_projections.sql
	listProjections string
	//go:embed sql/read_sealed_named.sql
	readSealedNamed string
)

// Projection is rows that are derived from the log. Its version rises when its fold does:
// rows of an older version wait for a rebuild.
type Projection struct {
	Name    string        // of its table, too
	Version int           // that this program computes
	Stream  events.Stream // inline: of the streams whose folds its rows are; empty: it follows the sealed log
}

// Inline reports that it changes with each append, in its transaction.
func (p Projection) Inline() bool { return p.Stream != "" }

// Projections is every projection of the log.
var Projections = []Projection{
	{"deliveries", 1, events.DeliveryStream},
	{"endpoints", 1, events.EndpointStream},
	{"endpoint_health", 1, ""},
	{"outcomes_hourly", 1, ""},
}

// FindProjection returns a projection by its name, or ErrProjectionNotFound.
func FindProjection(name string) (Projection, error) {
	for _, p := range Projections {
		if p.Name == name {
			return p, nil
		}
	}
	return Projection{}, domain.ErrProjectionNotFound
}

// ProjectionState is whether a projection moves.
type ProjectionState string

// The states of projections.
const (
	ProjectionRunning  ProjectionState = "running"
	ProjectionStopped  ProjectionState = "stopped"  // at an event that it could not take; a rebuild starts it anew
	ProjectionOutdated ProjectionState = "outdated" // of another version than this program's; a rebuild brings it up to date
)

// ProjectionStatus is how far a projection is.
type ProjectionStatus struct {
	Name      string          `json:"name"`
	Version   int             `json:"version"` // of its rows
	Kind      string          `json:"kind" enum:"inline,async"`
	Position  *int64          `json:"checkpoint,omitempty"` // absent: it moves with each append
	Lag       int64           `json:"lag"`                  // positions between it and the horizon
	State     ProjectionState `json:"state" enum:"running,stopped,outdated"`
	Error     string          `json:"error,omitempty"`
	Stream    events.Stream   `json:"stream,omitempty"` // with StreamID and Seq: the event that it stopped at
	StreamID  uuid.UUID       `json:"stream_id,omitzero"`
	Seq       int             `json:"seq,omitempty"`
	RebuiltAt domain.Instant  `json:"rebuilt_at,omitzero"`
}

// At names the event that it stopped at; empty if it did not.
func (s ProjectionStatus) At() string {
	if s.Stream == "" {
		return ""
	}
	return fmt.Sprintf("%s %s seq %d", s.Stream, s.StreamID, s.Seq)
}

// ListProjections returns how far every projection is, by name.
func (r Reader) ListProjections(ctx context.Context) ([]ProjectionStatus, error) {
	rows, err := r.DB.Query(ctx, r.Schema.SQL(listProjections))
	if err != nil {
		return nil, fmt.Errorf("list projections: %w", err)
	}
	return collect(rows, scanProjection, "list projections")
}

func scanProjection(row pgx.CollectableRow) (s ProjectionStatus, err error) {
	var fault, stream *string
	var id *uuid.UUID
	var seq *int
	var rebuilt *time.Time
	err = row.Scan(&s.Name, &s.Version, &s.Position, &s.Lag, &s.State, &fault, &stream, &id, &seq, &rebuilt)
	s.Error, s.Stream, s.RebuiltAt, s.Kind = text(fault), events.Stream(text(stream)), instant(rebuilt), "async"
	if id != nil && seq != nil {
		s.StreamID, s.Seq = *id, *seq
	}
	p, unknown := FindProjection(s.Name)
	if s.Position == nil {
		s.Kind = "inline"
	}
	if unknown != nil || p.Version != s.Version {
		s.State = ProjectionOutdated
	}
	return s, err
}

// SealedNamed is [Reader.Sealed] of events of some names, all between two positions.
func (r Reader) SealedNamed(ctx context.Context, after, last int64, names []string) ([]events.Record, error) {
	rows, err := r.DB.Query(ctx, r.Schema.SQL(readSealedNamed), pgx.StrictNamedArgs{"after": after, "last": last, "names": names})
	if err != nil {
		return nil, fmt.Errorf("read the log: %w", err)
	}
	return collect(rows, ScanRecord, "read the log")
}
