package domain

import "strings"

// MaxEventTypes is how many event types an endpoint may name.
const MaxEventTypes = 100

// CheckEventTypes refuses patterns that could never match: each is an exact event
// type or "prefix.*".
func CheckEventTypes(patterns []string) error {
	if len(patterns) > MaxEventTypes {
		return ErrInvalidRequest.With("event_types has at most 100 entries")
	}
	for _, p := range patterns {
		if err := CheckEventType(strings.TrimSuffix(p, ".*")); err != nil {
			return err
		}
	}
	return nil
}

// CheckEventType refuses what cannot travel in a header: an event type has 1–255
// printable ASCII characters without spaces or asterisks.
func CheckEventType(s string) error {
	if s == "" || len(s) > MaxEventType {
		return ErrInvalidRequest.With("an event type has 1 to 255 characters")
	}
	for i := 0; i < len(s); i++ {
		if s[i] <= 0x20 || s[i] > 0x7e || s[i] == '*' {
			return ErrInvalidRequest.With("an event type has printable ASCII characters without spaces or asterisks")
		}
	}
	return nil
}

func matches(patterns []string, eventType string) bool {
	for _, p := range patterns {
		prefix, isPrefix := strings.CutSuffix(p, "*")
		if p == eventType || isPrefix && strings.HasPrefix(eventType, prefix) {
			return true
		}
	}
	return len(patterns) == 0
}
