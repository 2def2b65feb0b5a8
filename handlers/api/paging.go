package api

import (
	"encoding/base64"
	"encoding/binary"
	"time"

	"github.com/google/uuid"

	"waybill/domain"
)

// PageInput asks for one page of a list.
type PageInput struct {
	Limit  int    `query:"limit" minimum:"1" maximum:"500" default:"50" doc:"how many at most"`
	Cursor string `query:"cursor" doc:"next_cursor of the page before"`
}

// page is one page of a list.
type page[T any] struct {
	Items      []T     `json:"items"`
	NextCursor *string `json:"next_cursor" doc:"where the next page begins; null at the end"`
}

// pageOf cuts what was asked for with one item more than the limit, which says
// whether there is a next page.
func pageOf[T, V any](list []T, limit int, view func(T) V, cursor func(T) string) page[V] {
	p := page[V]{Items: make([]V, 0, len(list))}
	if len(list) > limit {
		list = list[:limit]
		next := cursor(list[limit-1])
		p.NextCursor = &next
	}
	for _, item := range list {
		p.Items = append(p.Items, view(item))
	}
	return p
}

var errCursor = domain.ErrInvalidRequest.With("cursor is not one that a list has given")

func idCursor(id uuid.UUID) string { return base64.RawURLEncoding.EncodeToString(id[:]) }

func seqCursor(seq int) string {
	return base64.RawURLEncoding.EncodeToString(binary.BigEndian.AppendUint32(nil, uint32(seq)))
}

// beforeID reads a cursor of a list that is ordered by id; empty is the zero id.
func beforeID(cursor string) (uuid.UUID, error) {
	if cursor == "" {
		return uuid.Nil, nil
	}
	b, err := base64.RawURLEncoding.Strict().DecodeString(cursor)
	if id, bad := uuid.FromBytes(b); err == nil && bad == nil && id != uuid.Nil {
		return id, nil
	}
	return uuid.Nil, errCursor
}

// afterSeq reads a cursor of a history; empty is 0.
func afterSeq(cursor string) (int, error) {
	if cursor == "" {
		return 0, nil
	}
	b, err := base64.RawURLEncoding.Strict().DecodeString(cursor)
	if err != nil || len(b) != 4 || b[0] > 0x7f {
		return 0, errCursor
	}
	return int(binary.BigEndian.Uint32(b)), nil
}

// parseID reads an id in its plain form; what is none gets the refusal.
func parseID(s string, otherwise *domain.Error) (uuid.UUID, error) {
	id, err := uuid.Parse(s)
	if err != nil || len(s) != len(uuid.Nil.String()) {
		return uuid.Nil, otherwise
	}
	return id, nil
}

// parseTime reads an RFC 3339 time, or a duration ago; empty is the zero time.
func parseTime(field, s string, now domain.Instant) (domain.Instant, error) {
	if s == "" {
		return domain.Instant{}, nil
	}
	if ago, err := time.ParseDuration(s); err == nil {
		return now.After(-ago), nil
	}
	return parseInstant(field, s)
}

func parseInstant(field, s string) (domain.Instant, error) {
	t, err := time.Parse(time.RFC3339Nano, s)
	if err != nil || t.Year() < 1 {
		return domain.Instant{}, domain.ErrInvalidRequest.With(field + " is not an RFC 3339 time such as 2026-01-02T15:04:05Z")
	}
	return domain.At(t), nil
}
