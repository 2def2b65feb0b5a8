package domain_test

import (
	"errors"
	"testing"

	"waybill/domain"
)

// TestErase: only what has ended loses its payload, once; nothing starts anew afterwards.
func TestErase(t *testing.T) {
	erased := domain.PayloadErased{Reason: "asked for", LegalBasis: "GDPR art. 17"}
	erase := func(d domain.Delivery, _ domain.ClaimHistory) ([]domain.Event, error) { return d.Erase(erased) }
	then := now(erased)
	inEveryLife(t, erase, domain.ErrNotSettled, map[string][]domain.Event{
		"delivered": then, "delivered, as a person said": then, "failed": then, "cancelled": then,
		"cancelled on the wire": then, "cancelled, and then proven": then,
	})
	d := domain.Delivery{State: domain.StateFailed}.Evolve(erased, noon)
	if !d.PayloadErased || d.State != domain.StateFailed {
		t.Errorf("%+v", d)
	}
	if _, err := d.Erase(erased); !errors.Is(err, domain.ErrPayloadErased) {
		t.Errorf("erased twice: %v", err)
	}
	if _, err := d.Replay("r", true, "", noon); !errors.Is(err, domain.ErrPayloadErased) {
		t.Errorf("replayed: %v", err)
	}
	for _, bad := range []domain.PayloadErased{{}, {Reason: "r", LegalBasis: "\x00"}} {
		if err := bad.Check(); !errors.Is(err, domain.ErrInvalidRequest) {
			t.Errorf("%+v: %v", bad, err)
		}
	}
}
