package domain_test

import (
	"errors"
	"testing"
	"time"

	"waybill/domain"
)

func TestRatesReadAndWrite(t *testing.T) {
	for text, want := range map[string]domain.Rate{
		"1000/1m": {Count: 1000, Per: time.Minute}, "1/1s": {Count: 1, Per: time.Second}, "5/90s": {Count: 5, Per: 90 * time.Second},
		"100000000/24h": {Count: 100_000_000, Per: 24 * time.Hour},
	} {
		r, err := domain.ParseRate(text)
		if err != nil || r != want || r.String() != text {
			t.Errorf("%s: %+v %v", text, r, err)
		}
	}
	for _, text := range []string{"", "/", "1000", "1000/", "/1m", "x/1m", "0/1m", "-1/1m", "1/0s", "1/25h", "1/1500ms", "100000001/1s", "1/1m/1m", "9999999999999999999/1m"} {
		if _, err := domain.ParseRate(text); !errors.Is(err, domain.ErrInvalidRequest) {
			t.Errorf("%q: %v", text, err)
		}
	}
}
