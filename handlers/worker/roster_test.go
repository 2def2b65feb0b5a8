package worker

import (
	"testing"
	"time"

	"github.com/google/uuid"

	"waybill/domain"
)

// TestFutureWorkShutsNobodyOut: a roster that is full of endpoints whose work comes
// later, and one of endpoints whose work comes soon, still takes one that has work now.
func TestFutureWorkShutsNobodyOut(t *testing.T) {
	t.Parallel()
	now := domain.At(time.Now())
	for _, ahead := range []time.Duration{time.Minute, 24 * time.Hour} {
		r := newRoster(64)
		for range maxKnown + 10 {
			r.due(uuid.New(), now.After(ahead), now)
		}
		fresh := uuid.New()
		r.hint([]uuid.UUID{fresh})
		if r.next = len(r.ring) - 2; r.next < 0 {
			r.next = 0
		}
		picked, _ := r.pick(1)
		if len(picked) != 1 || picked[0].EndpointID != fresh {
			t.Errorf("with work %s ahead: picked %v of %d", ahead, picked, len(r.ring))
		}
		if len(r.entries) > maxKnown || ahead > farAhead && len(r.entries) > 1 {
			t.Errorf("%d endpoints are kept", len(r.entries))
		}
	}
}
