package domain_test

import (
	"errors"
	"testing"
	"time"

	"waybill/domain"
)

// TestImportIsDeliveredAndNeverSent: what is taken over is settled at once, no claim
// takes it, and nothing makes it due again.
func TestImportIsDeliveredAndNeverSent(t *testing.T) {
	t.Parallel()
	facts, err := domain.Import(domain.Scheduled{DueAt: noon, OnBehalfOf: "crm"}, in(-time.Hour), domain.StatusPaused, noon)
	if err != nil || len(facts) != 2 {
		t.Fatal(facts, err)
	}
	want := domain.Resolved{Resolution: domain.ResolvedDelivered, Reason: "imported", DeliveredAt: in(-time.Hour), OnBehalfOf: "crm"}
	if facts[1] != want {
		t.Errorf("%+v", facts[1])
	}
	var d domain.Delivery
	for _, e := range facts {
		d = d.Evolve(e, noon)
	}
	if d.State != domain.StateDelivered || d.Version != 2 || d.Attempts != 0 || !d.DueAt.IsZero() || d.InDoubt() || !d.PayloadErased {
		t.Errorf("%+v", d)
	}
	if _, err := d.TakeClaim(domain.ClaimOrder{}, domain.StatusActive, domain.DefaultPolicy(), noon); !errors.Is(err, domain.ErrNotDue) {
		t.Errorf("a claim: %v", err)
	}
	for _, force := range []bool{false, true} {
		if _, err := d.Replay("why", force, "", noon); !errors.Is(err, domain.ErrPayloadErased) {
			t.Errorf("a replay, force %v: %v", force, err)
		}
	}
}

func TestImportRefuses(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		delivered domain.Instant
		status    domain.EndpointStatus
		want      error
	}{
		"no time":     {domain.Instant{}, domain.StatusActive, domain.ErrInvalidRequest},
		"the future":  {in(time.Microsecond), domain.StatusActive, domain.ErrInvalidRequest},
		"an archived": {noon, domain.StatusArchived, domain.ErrEndpointArchived},
	} {
		if facts, err := domain.Import(domain.Scheduled{}, c.delivered, c.status, noon); !errors.Is(err, c.want) || facts != nil {
			t.Errorf("%s: %v %v", name, facts, err)
		}
	}
}
