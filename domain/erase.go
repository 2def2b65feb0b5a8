package domain

import "github.com/google/uuid"

// PayloadErased: the bytes of the delivery's message, what receivers answered, and the
// salts of both are gone. Their commitments stay and say nothing about them.
type PayloadErased struct {
	Reason     string `json:"reason"`
	LegalBasis string `json:"legal_basis,omitempty"` // such as "GDPR art. 17"
	OnBehalfOf string `json:"on_behalf_of,omitempty"`
}

// MessageErased is PayloadErased for a message that nobody wanted: it has no delivery
// whose history could say so. In the tenant's administrative stream.
type MessageErased struct {
	MessageID  uuid.UUID `json:"message_id"`
	Reason     string    `json:"reason"`
	LegalBasis string    `json:"legal_basis,omitempty"`
	OnBehalfOf string    `json:"on_behalf_of,omitempty"`
}

func (PayloadErased) fact() {}
func (MessageErased) fact() {}

// MaxLegalBasis bounds the text of a legal basis, in bytes.
const MaxLegalBasis = 500

// Check refuses an erasure whose reason or legal basis cannot be kept.
func (e PayloadErased) Check() error {
	if err := CheckReason(e.Reason); err != nil {
		return err
	}
	return CheckText("legal basis", e.LegalBasis, MaxLegalBasis)
}

// Erase records that the delivery's payload goes. It must have ended: what may still be
// sent is still needed. A late result that comes afterwards is recorded without what the
// receiver answered.
func (d Delivery) Erase(e PayloadErased) ([]Event, error) {
	switch {
	case !d.State.Terminal():
		return nil, ErrNotSettled
	case d.PayloadErased:
		return nil, ErrPayloadErased
	}
	return []Event{e}, nil
}
