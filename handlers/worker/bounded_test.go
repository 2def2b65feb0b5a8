package worker

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/uuid"

	"waybill/projections"
)

// silent is a ledger whose answers never come, as behind a connection that is half open.
type silent struct{ Ledger }

func (silent) Record(ctx context.Context, _ []projections.ResultChange) ([]uuid.UUID, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

func (silent) Recover(ctx context.Context) (int, []projections.Delivery, error) {
	<-ctx.Done()
	return 0, nil, ctx.Err()
}

func (silent) EndClaims(ctx context.Context, _ []uuid.UUID) error {
	<-ctx.Done()
	return ctx.Err()
}

// TestCallsOfTheLedgerEnd: nobody waits for ever for an answer that does not come. It
// hangs without the limit.
func TestCallsOfTheLedgerEnd(t *testing.T) {
	t.Parallel()
	b := bounded{silent{}, 20 * time.Millisecond}
	_, recording := b.Record(context.Background(), nil)
	_, _, recovering := b.Recover(context.Background())
	for _, err := range []error{recording, recovering, b.EndClaims(context.Background(), nil)} {
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
	}
}
