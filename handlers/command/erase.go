package command

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/google/uuid"

	"waybill/domain"
	"waybill/projections"
)

// EraseLedger is what erasing needs of the ledger.
type EraseLedger interface {
	Clock
	Delivery(ctx context.Context, tenant string, id uuid.UUID) (projections.Delivery, error)
	Erase(ctx context.Context, e projections.Erasure) ([]projections.ErasedMessage, error)
	Erasable(ctx context.Context, tenant string, endpoint uuid.UUID, before domain.Instant, after uuid.UUID, limit int) (projections.ErasablePage, error)
}

// Eraser erases payloads and what receivers answered. It acts on messages: every delivery
// of one loses it, and none of them may be unsettled. The history stays.
type Eraser struct{ Ledger EraseLedger }

// Delivery erases the message of one delivery, and returns the delivery as it is after.
func (r Eraser) Delivery(ctx context.Context, by Caller, id uuid.UUID, why domain.PayloadErased) (projections.Delivery, error) {
	d, err := r.Ledger.Delivery(ctx, by.Tenant, id)
	if err != nil {
		return d, err
	}
	m, err := r.Message(ctx, by, d.MessageID, why)
	for _, after := range m.Deliveries {
		if after.ID == id {
			return after, err
		}
	}
	return d, err
}

// Message erases one message.
func (r Eraser) Message(ctx context.Context, by Caller, id uuid.UUID, why domain.PayloadErased) (projections.ErasedMessage, error) {
	return r.message(ctx, by, id, why, false)
}

func (r Eraser) message(ctx context.Context, by Caller, id uuid.UUID, why domain.PayloadErased, dry bool) (projections.ErasedMessage, error) {
	why.OnBehalfOf = by.OnBehalfOf
	if err := checkAll(by.Check(), why.Check()); err != nil {
		return projections.ErasedMessage{}, err
	}
	e := projections.Erasure{Tenant: by.Tenant, Messages: []uuid.UUID{id}, By: by.Actor, Fact: why, DryRun: dry}
	answers, err := r.Ledger.Erase(ctx, e)
	switch {
	case err != nil:
		return projections.ErasedMessage{}, err
	case len(answers) == 0:
		return projections.ErasedMessage{}, domain.ErrMessageNotFound
	}
	a := answers[0]
	if len(a.Unsettled) > 0 {
		a.Err = domain.ErrNotSettled.With(fmt.Sprintf("%s (delivery %s)", domain.ErrNotSettled.Message, a.Unsettled[0]))
	}
	return a, a.Err
}

// One is Message for whoever counts; a dry run says what would become of it.
func (r Eraser) One(ctx context.Context, by Caller, id uuid.UUID, scope ErasureScope) (ErasureCount, error) {
	count := ErasureCount{First: []uuid.UUID{}, DryRun: scope.DryRun}
	a, err := r.message(ctx, by, id, scope.Why, scope.DryRun)
	if err == nil {
		count.add(a)
	}
	return count, err
}

// ErasureScope is what to erase of a tenant, settled messages only.
type ErasureScope struct {
	EndpointID uuid.UUID      // zero: of every endpoint
	Before     domain.Instant // made before
	Why        domain.PayloadErased
	DryRun     bool
}

// ErasureCount is what came of erasing many.
type ErasureCount struct {
	Erased    int         `json:"erased"`    // messages
	Unsettled int         `json:"unsettled"` // messages that were left as they are
	First     []uuid.UUID `json:"first_unsettled"`
	DryRun    bool        `json:"dry_run"`
}

// How much one step looks at and one transaction erases, and how many unsettled
// deliveries are named.
const (
	erasePage  = 5000
	eraseBatch = 100
	eraseNamed = 10
)

// All erases whatever the scope covers and has settled, step by step, and says after each
// how many messages it has dealt with. What was erased before it is stopped stays erased;
// run again it goes on with the rest.
func (r Eraser) All(ctx context.Context, by Caller, scope ErasureScope, told func(messages int)) (ErasureCount, error) {
	scope.Why.OnBehalfOf = by.OnBehalfOf
	count := ErasureCount{First: []uuid.UUID{}, DryRun: scope.DryRun}
	if err := checkAll(by.Check(), scope.Why.Check()); err != nil {
		return count, err
	}
	seen := map[uuid.UUID]bool{} // of this page and the one before: a fan-out's deliveries lie together
	for after := uuid.Nil; ; {
		page, err := r.Ledger.Erasable(ctx, by.Tenant, scope.EndpointID, scope.Before, after, erasePage)
		if err != nil {
			return count, err
		}
		fresh := slices.DeleteFunc(page.Messages, func(id uuid.UUID) bool { return seen[id] })
		slices.SortFunc(fresh, func(a, b uuid.UUID) int { return bytes.Compare(a[:], b[:]) })
		fresh = slices.Compact(fresh)
		seen = map[uuid.UUID]bool{}
		for _, id := range fresh {
			seen[id] = true
		}
		for batch := range slices.Chunk(fresh, eraseBatch) {
			if err := r.batch(ctx, by, scope, batch, &count); err != nil {
				return count, err
			}
			told(len(batch))
		}
		if after = page.Last; page.Seen < erasePage {
			return count, nil
		}
	}
}

// batch erases some messages together; where that fails, each by itself, so that one
// that cannot be erased keeps no other.
func (r Eraser) batch(ctx context.Context, by Caller, scope ErasureScope, ids []uuid.UUID, count *ErasureCount) error {
	e := projections.Erasure{Tenant: by.Tenant, Messages: ids, By: by.Actor, Fact: scope.Why, DryRun: scope.DryRun}
	answers, err := r.Ledger.Erase(ctx, e)
	if err != nil && len(ids) > 1 && ctx.Err() == nil {
		err = nil
		for _, id := range ids {
			if one := r.batch(ctx, by, scope, []uuid.UUID{id}, count); err == nil {
				err = one
			}
		}
		return err
	}
	if errors.Is(err, domain.ErrDeliveryArchived) {
		return nil // on its way out: what it holds goes with it
	}
	for _, a := range answers {
		count.add(a)
	}
	return err
}

func (c *ErasureCount) add(a projections.ErasedMessage) {
	switch {
	case a.Err == nil:
		c.Erased++
	case errors.Is(a.Err, domain.ErrNotSettled):
		c.Unsettled++
		if room := eraseNamed - len(c.First); room > 0 {
			c.First = append(c.First, a.Unsettled[:min(room, len(a.Unsettled))]...)
		}
	}
}
