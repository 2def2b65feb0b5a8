package domain

// WhyImported is the reason of what is taken over from another system.
const WhyImported = "imported"

// Import takes over a delivery that another system has made already: it is accepted
// and settled in one decision, and no claim ever comes between. Its content is not
// here, so it cannot be replayed either.
func Import(s Scheduled, deliveredAt Instant, status EndpointStatus, at Instant) ([]Event, error) {
	switch {
	case deliveredAt.IsZero():
		return nil, ErrInvalidRequest.With("delivered_at is missing")
	case deliveredAt.Time.After(at.Time):
		return nil, ErrInvalidRequest.With("delivered_at lies in the future")
	}
	facts, err := Schedule(s, status)
	if err != nil {
		return nil, err
	}
	return append(facts, Resolved{
		Resolution: ResolvedDelivered, Reason: WhyImported, DeliveredAt: deliveredAt, OnBehalfOf: s.OnBehalfOf,
	}), nil
}
