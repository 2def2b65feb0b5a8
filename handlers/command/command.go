// Package command holds the use cases: one file each, with the narrow interface it
// needs beside it. A use case reads what a decision rests on, lets the domain
// decide, and appends; where the stream has moved on meanwhile it reads and decides
// again, so that whoever comes second is judged by what the first has done.
//
// Nothing here knows HTTP, flags or SQL.
package command

import (
	"context"
	"fmt"
	"unicode/utf8"

	"github.com/google/uuid"

	"waybill/domain"
)

// Caller is who asks: the tenant that the call is bound to, who was authenticated,
// and whom the caller says it acts for.
type Caller struct {
	Tenant     string
	Actor      domain.Actor
	OnBehalfOf string      // as claimed; at most 200 characters
	KeyID      uuid.UUID   // of the API key, where there is one
	Rate       domain.Rate // of the key's submissions; zero: no limit
}

// Check refuses a claim of identity that cannot be kept as it came.
func (c Caller) Check() error {
	if utf8.RuneCountInString(c.OnBehalfOf) > domain.MaxOnBehalfOf {
		return domain.ErrInvalidRequest.With(fmt.Sprintf("Waybill-Actor has more than %d characters", domain.MaxOnBehalfOf))
	}
	return domain.CheckText("Waybill-Actor", c.OnBehalfOf, 4*domain.MaxOnBehalfOf)
}

// Clock tells the database's time.
type Clock interface {
	Now(ctx context.Context) (domain.Instant, error)
}

// staleTries is how often a decision is taken again because the stream had moved on.
const staleTries = 20
