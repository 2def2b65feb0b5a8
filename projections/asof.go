package projections

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"

	"waybill/domain"
	"waybill/events"
)

// LongestAppend bounds the time between an event's recorded_at and the drawing of its
// position: half a minute of one statement, a quarter of one idle between two, and the wait
// for the commit they share. What was recorded at T is drawn by T + LongestAppend.
const LongestAppend = time.Minute

// Past names a point of a stream's history: a time, or a seq. Exactly one is set.
type Past struct {
	At  domain.Instant // everything recorded up to then
	Seq int            // everything up to this seq
}

// PastAt is a time of the past, or ErrAsOfInFuture.
func PastAt(at, now domain.Instant) (Past, error) {
	if at.Time.After(now.Time) {
		return Past{}, domain.ErrAsOfInFuture
	}
	return Past{At: at}, nil
}

// covers reports whether a record belongs to the prefix that the past is.
func (p Past) covers(r events.Record) bool {
	if p.Seq > 0 {
		return r.Seq <= p.Seq
	}
	return !r.RecordedAt.Time.After(p.At.Time)
}

// Basis is what an answer about the past rests on. Final says that no event can come that
// would change it.
type Basis struct {
	AsOfSeq *int   `json:"as_of_seq,omitempty" doc:"of answers about the past: the last event that they rest on"`
	Horizon *int64 `json:"horizon,omitempty" doc:"of answers about the past: the position up to which the log was settled"`
	Final   *bool  `json:"final,omitempty" doc:"of answers about the past: no event can come that would change this"`
}

func (h Head) basis(seq int, final bool) Basis {
	return Basis{AsOfSeq: &seq, Horizon: &h.Last, Final: &final}
}

// settles reports whether every event recorded up to a time is below the horizon: the last
// block was closed when no append that began by then could still have been under way.
func (h Head) settles(at domain.Instant) bool {
	return !h.SealedAt.IsZero() && h.SealedAt.Time.After(at.Add(LongestAppend))
}

// DeliveryThen is a delivery as it was.
type DeliveryThen struct {
	Delivery
	Basis Basis
}

// View returns it as the contract shows it.
func (d DeliveryThen) View() View {
	v := d.Delivery.View()
	v.Basis = d.Basis
	return v
}

// EndpointThen is an endpoint as it was.
type EndpointThen struct {
	Endpoint
	Basis Basis
}

// View returns it as the contract shows it.
func (p EndpointThen) View() EndpointView {
	v := p.Endpoint.View()
	v.Basis = p.Basis
	return v
}

// DeliveryAsOf returns a delivery as it was: the fold of the prefix of its stream.
// ErrDeliveryNotYet if it had not come so far.
func (r Reader) DeliveryAsOf(ctx context.Context, tenant string, id uuid.UUID, p Past) (DeliveryThen, error) {
	f := &deliveryFold{}
	f.Begin(id)
	basis, there, err := r.foldPast(ctx, tenant, events.DeliveryStream, id, p, f)
	switch {
	case err != nil:
		return DeliveryThen{}, err
	case !there:
		_, err := r.Delivery(ctx, tenant, id)
		if err == nil {
			err = fmt.Errorf("delivery %s has a row and no history; run: waybill verify", id)
		}
		return DeliveryThen{}, err
	case basis.AsOfSeq == nil:
		return DeliveryThen{}, domain.ErrDeliveryNotYet
	}
	return DeliveryThen{f.d, basis}, nil
}

// EndpointAsOf returns an endpoint as it was. ErrEndpointNotYet if it had not come so far.
func (r Reader) EndpointAsOf(ctx context.Context, tenant string, id uuid.UUID, p Past) (EndpointThen, error) {
	f := &endpointFold{}
	f.Begin(id)
	basis, there, err := r.foldPast(ctx, tenant, events.EndpointStream, id, p, f)
	switch {
	case err != nil:
		return EndpointThen{}, err
	case !there:
		return EndpointThen{}, domain.ErrEndpointNotFound
	case basis.AsOfSeq == nil:
		return EndpointThen{}, domain.ErrEndpointNotYet
	}
	return EndpointThen{f.p, basis}, nil
}

// foldPast folds the prefix of a stream, and says whether there is a stream at all. The
// basis names no seq where the prefix is empty, or ends before the seq asked for. The head
// is read first: what it calls settled is in what is read after it.
func (r Reader) foldPast(ctx context.Context, tenant string, kind events.Stream, id uuid.UUID, p Past, f Fold) (b Basis, there bool, err error) {
	head, err := r.Head(ctx)
	if err != nil {
		return b, false, err
	}
	last, following, err := r.foldPrefix(ctx, tenant, kind, id, p, f)
	switch {
	case err != nil:
		return b, false, err
	case last.Seq == 0 || last.Seq < p.Seq:
		return b, last.Seq+following.Seq > 0, nil
	}
	final := last.Position <= head.Last
	if p.Seq == 0 {
		// The seqs of a stream have no holes, so one that is settled after T ends what came by T.
		final = head.settles(p.At) || following.Seq > 0 && following.Position <= head.Last
	}
	return head.basis(last.Seq, final), true, nil
}

// foldPrefix folds page by page and returns the last record that the prefix holds and the
// one that follows it; either is blank where there is none.
func (r Reader) foldPrefix(ctx context.Context, tenant string, kind events.Stream, id uuid.UUID, p Past, f Fold) (last, following events.Record, err error) {
	for {
		page, err := r.Stream(ctx, tenant, kind, id, last.Seq, MaxLimit)
		if err != nil {
			return last, following, err
		}
		for _, e := range page {
			if !p.covers(e) {
				return last, e, nil
			}
			if err := f.Add(e); err != nil {
				return last, following, err
			}
			last = e
		}
		if len(page) < MaxLimit {
			return last, following, nil
		}
	}
}
